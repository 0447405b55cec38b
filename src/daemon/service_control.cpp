// Pausing, moving, starting out of turn and changing jobs and rules.

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "core/rule_table.hpp"
#include "daemon/service.hpp"

namespace berth {
namespace {

/// A request about a million jobs is done in parts, with everybody else's work in between. A part
/// ends at so many jobs, or at so many ids looked up.
constexpr std::size_t kJobsAtOnce = 200;
constexpr std::size_t kLookupsAtOnce = 10'000;
/// Text of a longer answer is made away from the loop.
constexpr std::size_t kEncodeHere = 2'000;

HttpResponse ok(std::string body) {
  HttpResponse response;
  response.body = std::move(body);
  return response;
}

/// The ids of a selection, one after the other, from either end.
class IdWalk {
 public:
  IdWalk(const Selection& jobs, std::uint64_t last_job, bool backwards) : backwards_(backwards) {
    if (jobs.all) {
      ranges_ = {{1, last_job}};
    } else {
      ranges_ = jobs.ids.ranges();
    }
    std::erase_if(ranges_, [](const auto& range) { return range.first > range.second; });
    if (backwards) {
      std::ranges::reverse(ranges_);
    }
    for (const auto& [first, last] : ranges_) {
      left_ += last - first + 1;
    }
  }

  [[nodiscard]] std::uint64_t left() const { return left_; }
  std::uint64_t next() {
    auto& [first, last] = ranges_[at_];
    const std::uint64_t id = backwards_ ? last : first;
    if (first == last) {
      ++at_;
    } else {
      backwards_ ? --last : ++first;
    }
    --left_;
    return id;
  }

 private:
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges_;
  bool backwards_;
  std::size_t at_ = 0;
  std::uint64_t left_ = 0;
};

}  // namespace

struct Service::ControlRun {
  IdWalk ids;
  bool all = false;
  bool backwards = false;
  /// The event for some of the jobs, with the number of ids still to come.
  std::function<Event(std::vector<JobId>, std::uint64_t)> make;
  Respond respond;
  ControlAnswer answer;
  std::size_t unanswered = 0;
  bool sent_all = false;
  std::optional<Error> error;
};

void Service::control(const std::shared_ptr<ControlRun>& run) {
  const State& state = engine_.state();
  std::vector<JobId> part;
  std::size_t lookups = 0;
  while (run->ids.left() > 0 && part.size() < kJobsAtOnce && lookups++ < kLookupsAtOnce) {
    const JobId id{run->ids.next()};
    if (state.jobs.contains(id)) {
      part.push_back(id);
    } else if (!run->all) {
      // Ids are issued one after the other: what is not alive has ended, or is still to come.
      const bool to_come =
          id > state.last_job || std::ranges::any_of(state.submissions, [id](const auto& open) {
            const OpenSubmission& submission = open.second;
            return id >= submission.first &&
                   id.value < submission.first.value + submission.head.count;
          });
      (to_come ? run->answer.unknown : run->answer.finished).push_back(id.value);
    }
  }
  run->sent_all = run->ids.left() == 0;
  if (!part.empty()) {
    if (run->backwards) {
      std::ranges::reverse(part);
    }
    ++run->unanswered;
    engine_.handle(run->make(std::move(part), run->ids.left()),
                   [this, run](const Result<Answer>& answer) {
                     --run->unanswered;
                     if (!answer) {
                       run->error = run->error.value_or(answer.error());
                       run->sent_all = true;
                     } else {
                       run->answer.add(std::get<Controlled>(*answer));
                     }
                     control_done(run);
                   });
  } else {
    control_done(run);
  }
  if (!run->sent_all) {
    loop_.post([this, run] {
      if (!run->error) {
        control(run);
      }
    });
  }
}

void Service::control_done(const std::shared_ptr<ControlRun>& run) {
  if (!run->sent_all || run->unanswered > 0 || !run->respond) {
    return;
  }
  const Respond respond = std::exchange(run->respond, {});
  if (run->error) {
    respond(error_response(*run->error));
    return;
  }
  ControlAnswer answer = std::move(run->answer);
  std::size_t size = 0;
  const auto tidy = [&size](std::vector<std::uint64_t>& ids) {
    size += ids.size();
    if (!std::ranges::is_sorted(ids)) {
      std::ranges::sort(ids);
    }
  };
  for (auto* ids : {&answer.moved, &answer.unchanged, &answer.finished, &answer.unknown}) {
    tidy(*ids);  // parts may have been done from the end
  }
  for (const auto* ids : {&answer.paused, &answer.held, &answer.resumed, &answer.released,
                          &answer.expedited, &answer.changed}) {
    size += ids->size();
  }
  for (auto& refused : answer.refused) {
    tidy(refused.ids);
  }
  if (size <= kEncodeHere) {
    respond(ok(encode(answer)));
    return;
  }
  read_store([answer = std::move(answer)](StoreReader&) { return encode(answer); },
             [respond](std::string body) { respond(ok(std::move(body))); });
}

void Service::pause_queue(const std::string& queue, bool paused, Respond respond) {
  engine_.handle(event::PauseQueue{queue, paused},
                 [queue, respond = std::move(respond)](const Result<Answer>& answer) {
                   if (!answer) {
                     respond(error_response(answer.error()));
                     return;
                   }
                   ControlAnswer result;
                   result.queue = queue;
                   respond(ok(encode(result)));
                 });
}

void Service::pause(const HttpRequest& request, bool paused, Respond respond) {
  const auto asked = decode_control_request(request.body);
  if (!asked) {
    respond(error_response(asked.error()));
    return;
  }
  if (!asked->queue.empty()) {
    pause_queue(asked->queue, paused, std::move(respond));
    return;
  }
  const auto make = [paused](std::vector<JobId> jobs, std::uint64_t) -> Event {
    if (paused) {
      return event::Pause{std::move(jobs)};
    }
    return event::Resume{std::move(jobs)};
  };
  control(std::make_shared<ControlRun>(
      ControlRun{IdWalk(asked->jobs, engine_.state().last_job.value, false),
                 asked->jobs.all,
                 false,
                 make,
                 std::move(respond),
                 {},
                 0,
                 false,
                 {}}));
}

void Service::start(const HttpRequest& request, Respond respond) {
  const auto asked = decode_control_request(request.body);
  if (!asked || !asked->queue.empty()) {
    respond(error_response(asked ? Error{ErrorCode::invalid, "queue: name the jobs to start"}
                                 : asked.error()));
    return;
  }
  control(std::make_shared<ControlRun>(ControlRun{
      IdWalk(asked->jobs, engine_.state().last_job.value, false),
      asked->jobs.all,
      false,
      [](std::vector<JobId> jobs, std::uint64_t) { return event::Expedite{std::move(jobs)}; },
      std::move(respond),
      {},
      0,
      false,
      {}}));
}

void Service::move(const HttpRequest& request, Respond respond) {
  auto asked = decode_move_request(request.body);
  if (!asked) {
    respond(error_response(asked.error()));
    return;
  }
  // Each part goes before all others, so the last ids have to go first.
  const bool backwards = asked->to == event::Move::To::first;
  const IdWalk ids(asked->jobs, engine_.state().last_job.value, backwards);
  const bool all = asked->jobs.all;
  control(std::make_shared<ControlRun>(
      ControlRun{ids,
                 all,
                 backwards,
                 [asked = std::move(*asked)](std::vector<JobId> jobs, std::uint64_t following) {
                   event::Move move;
                   move.jobs = std::move(jobs);
                   move.to = asked.to;
                   move.before = JobId{asked.before};
                   move.queue = asked.queue;
                   move.priority = asked.priority;
                   move.following = following;
                   return move;
                 },
                 std::move(respond),
                 {},
                 0,
                 false,
                 {}}));
}

void Service::set_jobs(const HttpRequest& request, Respond respond) {
  auto asked = decode_set_jobs_request(request.body);
  if (!asked) {
    respond(error_response(asked.error()));
    return;
  }
  const IdWalk ids(asked->jobs, engine_.state().last_job.value, false);
  control(std::make_shared<ControlRun>(
      ControlRun{ids,
                 asked->jobs.all,
                 false,
                 [patch = asked->patch](std::vector<JobId> jobs, std::uint64_t) {
                   return event::SetJobs{std::move(jobs), patch};
                 },
                 std::move(respond),
                 {},
                 0,
                 false,
                 {}}));
}

RulesView Service::rules_view() const {
  const State& state = engine_.state();
  // What the file says, as the daemon would say it.
  Rules saved;
  std::map<std::string, std::uint32_t> saved_limits;
  std::map<std::string, bool> in_file;
  for (const auto& [key, value] : config_.settings.values) {
    in_file[key] = set_rule(saved, key, value).has_value();
    if (const auto queue = queue_of_rule(key)) {
      saved_limits[*queue] = parse_queue_limit(key, value).value_or(0);
    }
  }
  const Rules usual;
  RulesView view;
  for (const RuleDef& rule : rule_definitions()) {
    const std::string value = rule.get(state.rules);
    const bool is_saved = in_file[std::string(rule.key)];
    view.rules.push_back({std::string(rule.key), value, rule.get(usual),
                          is_saved && value == rule.get(saved)    ? "berth.yaml"
                          : !is_saved && value == rule.get(usual) ? "default"
                                                                  : "this run",
                          std::string(rule.type), std::string(rule.help)});
  }
  for (const auto& [name, total] : state.rules.resources) {
    const auto in = saved.resources.find(name);
    view.rules.push_back(
        {std::string(kResourcePrefix) + name, fmt::format("{}", total), "",
         in != saved.resources.end() && in->second == total ? "berth.yaml" : "the store", "N",
         std::string(kResourceHelp)});
  }
  for (const auto& [id, queue] : state.queues) {
    const auto in = saved_limits.find(queue.name);
    view.rules.push_back({queue_rule(queue.name), fmt::format("{}", queue.limit), "0",
                          in != saved_limits.end() && in->second == queue.limit ? "berth.yaml"
                          : queue.limit == 0                                    ? "default"
                                                                                : "the store",
                          "N", std::string(kQueueLimitHelp)});
  }
  view.problems = config_.settings.problems;
  return view;
}

void Service::rules(Respond respond) {
  engine_.read(
      [this](const State&) { return rules_view(); },
      [respond = std::move(respond)](const RulesView& view) { respond(ok(encode(view))); });
}

void Service::set_rules(const HttpRequest& request, Respond respond) {
  auto asked = decode_set_rules_request(request.body);
  if (!asked) {
    respond(error_response(asked.error()));
    return;
  }
  event::SetRules event{asked->values};
  engine_.handle(std::move(event), [this, asked = std::move(*asked), respond = std::move(respond)](
                                       const Result<Answer>& answer) mutable {
    if (!answer) {
      respond(error_response(answer.error()));
      return;
    }
    if (!asked.save) {
      rules(std::move(respond));
      return;
    }
    read_store(
        [path = config_.settings_file, values = std::move(asked.values)](StoreReader&) {
          const Status saved = save_settings(path, values);
          return std::pair{saved, saved ? read_settings(path) : Settings()};
        },
        [this, respond = std::move(respond)](std::pair<Status, Settings> result) mutable {
          if (!result.first) {
            Error error = result.first.error();
            error.message = "set for this run, but not saved: " + error.message;
            respond(error_response(error));
            return;
          }
          config_.settings = std::move(result.second);
          rules(std::move(respond));
        });
  });
}

}  // namespace berth
