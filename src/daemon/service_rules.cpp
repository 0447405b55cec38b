// Rules: what holds for the instance, a queue, a batch or a job, and where it comes from.

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "access/gate.hpp"
#include "core/rule_table.hpp"
#include "daemon/answers.hpp"
#include "daemon/rule_warnings.hpp"
#include "daemon/service.hpp"

namespace berth {
namespace {

/// The value of a key in berth.yaml, under whatever spelling.
const std::string* value_in(const Settings& settings, const std::string& key) {
  const auto found = std::ranges::find(settings.values, canonical_rule(key), [](const auto& value) {
    return canonical_rule(value.first);
  });
  return found == settings.values.end() ? nullptr : &found->second;
}

/// Totals and limits are of no layer that could give way to another: what is taken back becomes
/// what berth.yaml says after this, or what it was before anybody said anything.
Status take_back_kept(event::SetRules& set, const State& state, const Settings& settings,
                      bool save) {
  const std::vector<std::string> keys = std::exchange(set.unset, {});
  for (const std::string& key : keys) {
    const std::string* in_file = value_in(settings, key);
    const auto queue = queue_of_rule(key);
    if (in_file != nullptr && !save && (queue || resource_of_rule(key))) {
      set.values.emplace_back(key, *in_file);
    } else if (queue && state.queue_names.contains(*queue)) {
      set.values.emplace_back(key, "0");
    } else if (const auto resource = resource_of_rule(key);
               resource && in_file == nullptr && state.rules.resources.contains(*resource)) {
      return fail(ErrorCode::invalid,
                  fmt::format("{0}: jobs may count on it, and berth.yaml does not name it; `berth "
                              "set {0}=0` leaves none of it",
                              key));
    } else {
      set.unset.push_back(key);
    }
  }
  return {};
}

/// The rules somebody stands under, and who has said them, the closest first.
struct Resolved {
  Rules rules;
  std::vector<std::pair<const Overrides*, std::string>> layers;
  RuleScope scope = RuleScope::instance;
};

Resolved of_instance(const State& state) {
  return {state.rules,
          {{&state.set_rules, "this run"}, {&state.file_rules, "berth.yaml"}},
          RuleScope::instance};
}

void put_before(Resolved& resolved, const Overrides& layer, std::string name) {
  resolved.layers.emplace(resolved.layers.begin(), &layer, std::move(name));
}

Result<Resolved> of_queue(const State& state, const std::string& name) {
  const auto known = state.queue_names.find(name);
  if (known == state.queue_names.end() && name != kDefaultQueue) {
    return fail(ErrorCode::not_found,
                fmt::format("there is no queue '{}'; `berth status` lists them", name));
  }
  Resolved resolved = of_instance(state);
  resolved.scope = RuleScope::any;
  if (known != state.queue_names.end()) {
    const Queue& queue = state.queues.at(known->second);
    overlay(resolved.rules, queue.rules);
    put_before(resolved, queue.rules, fmt::format("queue {}", name));
  }
  return resolved;
}

Result<Resolved> of_batch(const State& state, BatchId id) {
  const auto batch = state.batches.find(id);
  if (batch == state.batches.end()) {
    return fail(
        ErrorCode::not_found,
        fmt::format("batch {} has no jobs that wait or run; `berth ls` shows those that have",
                    id.value));
  }
  Resolved resolved = of_instance(state);
  overlay(resolved.rules, batch->second.rules);
  // The instance's limit is not that of each batch.
  resolved.rules.max_concurrent = batch->second.max_concurrent;
  put_before(resolved, batch->second.rules, fmt::format("batch {}", id.value));
  resolved.scope = RuleScope::batch;
  return resolved;
}

Result<Resolved> of_job(const State& state, JobId id) {
  const Job* job = state.job(id);
  if (job == nullptr && id > state.last_job) {
    return fail(ErrorCode::not_found,
                fmt::format("there is no job {}; `berth ls --all` lists them", id.value));
  }
  if (job == nullptr) {
    return fail(ErrorCode::not_found,
                fmt::format("job {} neither waits nor runs; `berth show {}` tells what it had",
                            id.value, id.value));
  }
  Resolved resolved = of_instance(state);
  resolved.rules = state.rules_of(*job);
  const Queue& queue = state.queues.at(job->queue);
  put_before(resolved, queue.rules, fmt::format("queue {}", queue.name));
  if (const auto batch = state.batches.find(job->batch); batch != state.batches.end()) {
    put_before(resolved, batch->second.rules, fmt::format("batch {}", job->batch.value));
  }
  put_before(resolved, state.request(*job).rules, fmt::format("job {}", id.value));
  resolved.scope = RuleScope::any;
  return resolved;
}

Result<Resolved> resolve(const State& state, const RulesQuery& query) {
  if (!query.queue.empty()) {
    return of_queue(state, query.queue);
  }
  if (query.batch != 0) {
    return of_batch(state, BatchId{query.batch});
  }
  if (query.job != 0) {
    return of_job(state, JobId{query.job});
  }
  return of_instance(state);
}

void add_rules(RulesView& view, const Resolved& resolved, const RulesQuery& query) {
  const Rules usual;
  for (const RuleDef& rule : rule_definitions()) {
    if (rule.scope < resolved.scope) {
      continue;
    }
    const std::string key(rule.key);
    const std::string value = rule.get(resolved.rules);
    const auto said = std::ranges::find_if(
        resolved.layers, [&](const auto& layer) { return layer.first->contains(key); });
    std::string source = said == resolved.layers.end() ? "default" : said->second;
    if (query.batch != 0 && key == "max_concurrent") {
      source = value == "0" ? "default" : fmt::format("batch {}", query.batch);
    }
    view.rules.push_back({key, value, rule.get(usual), std::move(source), std::string(rule.type),
                          std::string(rule.help)});
  }
}

/// Totals and limits are of no layer: they are kept once they have been said.
void add_kept(RulesView& view, const State& state, const Settings& settings,
              const std::string& only_queue) {
  const auto source = [&](const std::string& key, const std::string& value,
                          const std::string& usual) -> std::string {
    const std::string* in_file = value_in(settings, key);
    return in_file != nullptr && *in_file == value ? "berth.yaml"
           : value == usual                        ? "default"
                                                   : "the store";
  };
  for (const auto& [name, total] : state.rules.resources) {
    const std::string key = std::string(kResourcePrefix) + name;
    const std::string value = fmt::format("{}", total);
    if (only_queue.empty()) {
      view.rules.push_back(
          {key, value, "", source(key, value, ""), "N", std::string(kResourceHelp)});
    }
  }
  for (const auto& [id, queue] : state.queues) {
    const std::string key = queue_rule(queue.name);
    const std::string value = fmt::format("{}", queue.limit);
    if (only_queue.empty() || queue.name == only_queue) {
      view.rules.push_back(
          {key, value, "0", source(key, value, "0"), "N", std::string(kQueueLimitHelp)});
    }
  }
}

/// Who asks, for people; over the socket it is the owner, and nobody is named.
std::string name_of(const HttpRequest& request) {
  if (!request.caller || request.caller->via == Caller::Via::nobody) {
    return {};
  }
  return request.caller->via == Caller::Via::cookie ? request.caller->name
                                                    : "token " + request.caller->name;
}

}  // namespace

Result<RulesView> Service::rules_view(const RulesQuery& query) const {
  const State& state = engine_.state();
  TRY_ASSIGN(const Resolved resolved, resolve(state, query));
  RulesView view;
  add_rules(view, resolved, query);
  if (query.batch == 0 && query.job == 0) {
    add_kept(view, state, settings_.settings(), query.queue);
  }
  view.problems = settings_.settings().problems;
  std::ranges::move(rule_warnings(state, resolved.rules), std::back_inserter(view.problems));
  return view;
}

void Service::answer_rules(const RulesQuery& query, Respond respond, const std::string& note) {
  engine_.read(
      [this, query, note](const State&) {
        auto view = rules_view(query);
        if (view && !note.empty()) {
          view->problems.insert(view->problems.begin(), note);
        }
        return view;
      },
      [respond = std::move(respond)](const Result<RulesView>& view) {
        respond(view ? ok(encode(*view)) : error_response(view.error()));
      });
}

void Service::rules(const HttpRequest& request, Respond respond) {
  const auto query = parse_rules_query(request.query);
  if (!query) {
    respond(error_response(query.error()));
    return;
  }
  answer_rules(*query, std::move(respond));
}

void Service::set_rules(const HttpRequest& request, Respond respond) {
  auto asked = decode_set_rules_request(request.body);
  if (!asked) {
    respond(error_response(asked.error()));
    return;
  }
  event::SetRules event{asked->values};
  event.unset = asked->unset;
  event.queue = asked->queue;
  event.batch = BatchId{asked->batch};
  event.saved = asked->save;
  event.by = name_of(request);
  event.layer = !asked->queue.empty() ? event::SetRules::Layer::queue
                : asked->batch != 0   ? event::SetRules::Layer::batch
                                      : event::SetRules::Layer::instance;
  const State& state = engine_.state();
  if (event.layer == event::SetRules::Layer::instance) {
    if (const Status can = take_back_kept(event, state, settings_.settings(), asked->save); !can) {
      respond(error_response(can.error()));
      return;
    }
  }
  const bool unheard_of = !asked->queue.empty() && asked->queue != kDefaultQueue &&
                          !state.queue_names.contains(asked->queue);
  engine_.handle(
      std::move(event), [this, unheard_of, asked = std::move(*asked),
                         respond = std::move(respond)](const Result<Answer>& answer) mutable {
        if (!answer) {
          respond(error_response(answer.error()));
        } else if (asked.save) {
          save_rules(std::move(asked), std::move(respond));
        } else {
          const std::string note =
              unheard_of ? fmt::format(
                               "there is no queue '{}' yet; this is kept for the jobs that "
                               "will name it",
                               asked.queue)
                         : "";
          answer_rules({asked.queue, asked.batch, 0}, std::move(respond), note);
        }
      });
}

void Service::save_rules(SetRulesRequest asked, Respond respond) {
  read_store(
      [path = settings_.path(), asked](StoreReader&) {
        return save_settings(path, asked.values, asked.unset);
      },
      [this, asked, respond = std::move(respond)](const Status& saved) mutable {
        if (!saved) {
          Error error = saved.error();
          error.message = "set for this run, but not saved: " + error.message;
          respond(error_response(error));
          return;
        }
        settings_.reload([this, asked = std::move(asked), respond = std::move(respond)]() mutable {
          // The file says it now, and is to be heard when it changes.
          event::SetRules only_there;
          for (const auto& [key, value] : asked.values) {
            only_there.unset.push_back(key);
          }
          engine_.handle(std::move(only_there),
                         [this, respond = std::move(respond)](const Result<Answer>&) mutable {
                           answer_rules({}, std::move(respond));
                         });
        });
      });
}

}  // namespace berth
