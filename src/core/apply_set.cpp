// Changing what jobs ask for, and the rules of the instance.

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/apply_context.hpp"
#include "core/rule_table.hpp"

namespace berth {
namespace {

/// Whether there is a rule of this name to take back.
Status check_known(const std::string& key) {
  Rules scratch;
  return find_rule(key) != nullptr ? Status{} : set_rule(scratch, key, "0");
}

Status check(const State& state, const event::JobPatch& patch) {
  if (patch == event::JobPatch{}) {
    return fail(ErrorCode::invalid, "nothing is to be changed; give key=value");
  }
  if (patch.queue && patch.queue->empty()) {
    return fail(ErrorCode::invalid, "queue: give a name");
  }
  if (patch.gpus && patch.gpus->min > patch.gpus->max) {
    return fail(ErrorCode::invalid,
                fmt::format("gpus {}..{} is empty; write the smaller number first", patch.gpus->min,
                            patch.gpus->max));
  }
  if (patch.gpu_memory && *patch.gpu_memory == Bytes{0}) {
    return fail(ErrorCode::invalid, "gpu_memory must be more than 0; `all` means whole cards");
  }
  for (const auto& [key, text] : patch.rules) {
    TRY(check_override(key, text, RuleScope::any));
  }
  for (const std::string& key : patch.unset) {
    TRY(check_known(key));
  }
  if (state.low_space) {
    return fail(ErrorCode::no_space,
                fmt::format("no room to change jobs ({}); free some space", state.space_detail));
  }
  return {};
}

/// What of the patch is too late for a job that runs.
std::string too_late(const event::JobPatch& patch) {
  std::vector<std::string_view> keys;
  const auto note = [&keys](bool set, std::string_view key) {
    if (set) {
      keys.push_back(key);
    }
  };
  note(patch.queue.has_value(), "queue");
  note(patch.priority.has_value(), "priority");
  note(patch.gpus.has_value(), "gpus");
  note(patch.gpu_memory.has_value(), "gpu_memory");
  note(patch.cpus.has_value(), "cpus");
  note(patch.memory.has_value(), "memory");
  note(patch.time_limit.has_value(), "time");
  note(patch.grace.has_value(), "grace");
  note(!patch.rules.empty() || !patch.unset.empty(), "rules");
  return fmt::format("{}", fmt::join(keys, ", "));
}

/// For people, and the same for every job of the request.
std::string summary(const event::JobPatch& patch) {
  std::vector<std::string> parts;
  const auto note = [&parts](std::string_view key, const auto& value) {
    if (value) {
      parts.push_back(fmt::format("{}={}", key, *value));
    }
  };
  note("name", patch.name);
  note("queue", patch.queue);
  note("priority", patch.priority);
  if (patch.gpus) {
    parts.push_back(patch.gpus->min == patch.gpus->max
                        ? fmt::format("gpus={}", patch.gpus->min)
                        : fmt::format("gpus={}..{}", patch.gpus->min, patch.gpus->max));
  }
  if (patch.gpu_memory) {
    parts.push_back("gpu_memory=" + (*patch.gpu_memory ? exact_size(**patch.gpu_memory) : "all"));
  }
  note("cpus", patch.cpus);
  if (patch.memory) {
    parts.push_back("memory=" + exact_size(*patch.memory));
  }
  note("retries", patch.retries);
  if (patch.time_limit) {
    parts.push_back("time=" + exact_duration(*patch.time_limit));
  }
  if (patch.grace) {
    parts.push_back("grace=" + exact_duration(*patch.grace));
  }
  for (const auto& [key, text] : patch.rules) {
    parts.push_back(fmt::format("{}={}", key, text));
  }
  for (const std::string& key : patch.unset) {
    parts.push_back(fmt::format("{} unset", key));
  }
  return fmt::format("{}", fmt::join(parts, " "));
}

Request patched(Request request, const event::JobPatch& patch) {
  for (const auto& [key, text] : patch.rules) {
    request.rules.insert_or_assign(canonical_rule(key), text);
  }
  for (const std::string& key : patch.unset) {
    request.rules.erase(canonical_rule(key));
  }
  request.time = patch.time_limit.value_or(request.time);
  request.gpus = patch.gpus.value_or(request.gpus);
  request.gpu_memory = patch.gpu_memory.value_or(request.gpu_memory);
  request.cpus = patch.cpus.value_or(request.cpus);
  request.memory = patch.memory.value_or(request.memory);
  return request;
}

}  // namespace

Result<Answer> apply_set_jobs(ApplyContext& c, const event::SetJobs& set) {
  TRY(check(c.state, set.patch));
  const event::JobPatch& patch = set.patch;
  const std::string late = too_late(patch);
  const std::string detail = summary(patch);
  return c.for_each(set.jobs, [&](Job& job, Controlled& answer) {
    if (!job.waits() && !late.empty()) {
      answer.refused[fmt::format("runs already, too late for {}", late)].push_back(job.id);
      return;
    }
    change::JobSet change;
    change.id = job.id;
    change.name = patch.name;
    change.time_limit = patch.time_limit;
    change.grace = patch.grace;
    if (patch.retries) {
      job.retries = *patch.retries;
      change.retries = job.retries;
    }
    if (!late.empty()) {
      const QueueId queue = patch.queue ? c.queue_named(*patch.queue) : job.queue;
      Request request = patched(c.state.request(job), patch);
      c.relocate(job, [&] {
        job.queue = queue;
        job.priority = patch.priority.value_or(job.priority);
        state_ops::set_shape(c.state, job, request);
      });
      if (patch.queue) {
        change.queue = queue;
      }
      change.priority = patch.priority;
      change.request = std::move(request);
    }
    c.step.changes.push_back(std::move(change));
    c.history("changed", job, job.attempt, detail);
    answer.jobs[Controlled::What::changed].push_back(job.id);
  });
}

namespace {

/// A layer with some of its values replaced or taken away. The error names the key.
Result<Overrides> changed_layer(const Overrides& layer, const event::SetRules& set,
                                RuleScope scope) {
  Overrides result = layer;
  for (const auto& [key, text] : set.values) {
    TRY(check_override(key, text, scope));
    result.insert_or_assign(canonical_rule(key), text);
  }
  for (const std::string& key : set.unset) {
    TRY(check_known(key));
    result.erase(canonical_rule(key));
  }
  return result;
}

/// "gpu_left=1 (was 0)": what holds from now on, and what did.
std::string told(std::string_view key, const std::string& was, const std::string& is,
                 bool unset = false) {
  const std::string_view more = unset ? ", unset" : "";
  return was == is && !unset ? fmt::format("{}={}", key, is)
                             : fmt::format("{}={} (was {}{})", key, is, was, more);
}

/// The rules with a fixed name that are set or taken back, by what they mean for whoever has them.
std::vector<std::string> told_rules(const event::SetRules& set, const Rules& was, const Rules& is) {
  std::vector<std::string> parts;
  const auto tell = [&](const std::string& key, bool unset) {
    if (const RuleDef* rule = find_rule(key)) {
      parts.push_back(told(rule->key, rule->get(was), rule->get(is), unset));
    }
  };
  for (const auto& [key, text] : set.values) {
    tell(key, false);
  }
  for (const std::string& key : set.unset) {
    tell(key, true);
  }
  return parts;
}

/// berth.yaml says all that it has to say whenever it is read; only what that changes is told.
std::vector<std::string> told_differences(const Rules& was, const Rules& is) {
  std::vector<std::string> parts;
  for (const RuleDef& rule : rule_definitions()) {
    if (rule.get(was) != rule.get(is)) {
      parts.push_back(told(rule.key, rule.get(was), rule.get(is)));
    }
  }
  return parts;
}

void note_rules(ApplyContext& c, const event::SetRules& set, const std::string& whose,
                const std::vector<std::string>& parts) {
  const std::string by = set.by.empty() ? "" : fmt::format(", by {}", set.by);
  c.step.changes.push_back(
      change::History{"changed",
                      {},
                      {},
                      {},
                      fmt::format("rules {}{}: {}", whose, by, fmt::join(parts, ", ")),
                      c.now.wall});
}

Rules with(Rules rules, const Overrides& layer) {
  overlay(rules, layer);
  return rules;
}

/// The instance's limit is not that of each batch.
Rules rules_of(const State& state, const Batch& batch) {
  Rules rules = with(state.rules, batch.rules);
  rules.max_concurrent = batch.max_concurrent;
  return rules;
}

/// Those who wait stand where the rules put them when they came; `order` and its like find them a
/// new place.
void after_rules(ApplyContext& c, BatchId batch, const event::SetRules& set) {
  constexpr std::array kPlaced = {std::string_view("order"), std::string_view("seed"),
                                  std::string_view("max_wait")};
  const auto places = [&](std::string_view key) {
    return std::ranges::find(kPlaced, canonical_rule(key)) != kPlaced.end();
  };
  if (set.layer == event::SetRules::Layer::file ||
      std::ranges::any_of(set.values, [&](const auto& value) { return places(value.first); }) ||
      std::ranges::any_of(set.unset, places)) {
    c.state.reordering.push_back({batch, JobId{1}, c.state.last_job});
    c.go_on();
  }
}

Result<Answer> set_queue_rules(ApplyContext& c, const event::SetRules& set) {
  if (set.queue.empty()) {
    return fail(ErrorCode::invalid, "name the queue");
  }
  const auto known = c.state.queue_names.find(set.queue);
  const Overrides before =
      known == c.state.queue_names.end() ? Overrides{} : c.state.queues.at(known->second).rules;
  TRY_ASSIGN(Overrides rules, changed_layer(before, set, RuleScope::any));
  Queue& queue = c.state.queues.at(c.queue_named(set.queue));
  if (queue.rules != rules) {
    const Rules was = with(c.state.rules, before);
    queue.rules = std::move(rules);
    c.step.changes.push_back(
        change::QueuePut{queue.id, {queue.name, queue.limit, queue.rules}, queue.paused});
    note_rules(c, set, fmt::format("of queue '{}'", queue.name),
               told_rules(set, was, with(c.state.rules, queue.rules)));
    state_ops::resolve_shapes(c.state);
    after_rules(c, {}, set);
  }
  return Answer{};
}

Result<Answer> set_batch_rules(ApplyContext& c, const event::SetRules& set) {
  const auto it = c.state.batches.find(set.batch);
  if (it == c.state.batches.end()) {
    return fail(
        ErrorCode::not_found,
        fmt::format("batch {} has no jobs that wait or run; `berth ls` shows those that have",
                    set.batch.value));
  }
  Batch& batch = it->second;
  TRY_ASSIGN(Overrides rules, changed_layer(batch.rules, set, RuleScope::batch));
  if (batch.rules != rules) {
    const Rules was = rules_of(c.state, batch);
    Rules scratch;
    overlay(scratch, rules);
    if (rules.contains("max_concurrent") || batch.rules.contains("max_concurrent")) {
      batch.max_concurrent = scratch.max_concurrent;
    }
    batch.rules = std::move(rules);
    c.step.changes.push_back(change::BatchRules{batch.id, batch.rules, batch.max_concurrent});
    note_rules(c, set, fmt::format("of batch {}", batch.id.value),
               told_rules(set, was, rules_of(c.state, batch)));
    state_ops::refresh_batch(c.state, batch.id);
    state_ops::resolve_shapes(c.state);
    after_rules(c, batch.id, set);
  }
  return Answer{};
}

/// Of berth.yaml or of `berth set`. Totals of resources and limits of queues are not of a layer:
/// they are stored as soon as they are said.
Result<Answer> set_instance_rules(ApplyContext& c, const event::SetRules& set) {
  State& state = c.state;
  const bool file = set.layer == event::SetRules::Layer::file;
  Overrides layer = file ? Overrides{} : state.set_rules;
  std::vector<std::pair<std::string, std::uint32_t>> limits;
  Rules totals;
  for (const auto& [key, text] : set.values) {
    TRY(set_rule(totals, key, text));
    if (const auto queue = queue_of_rule(key)) {
      TRY_ASSIGN(const std::uint32_t limit, parse_queue_limit(key, text));
      limits.emplace_back(*queue, limit);
    } else if (!resource_of_rule(key)) {
      layer.insert_or_assign(canonical_rule(key), text);
    }
  }
  for (const std::string& key : set.unset) {
    TRY(check_known(key));
    layer.erase(canonical_rule(key));
  }
  std::vector<std::string> kept;
  for (const auto& [name, total] : totals.resources) {
    std::uint64_t& known = state.rules.resources[name];
    if (known != total) {
      kept.push_back(told(std::string(kResourcePrefix) + name, fmt::format("{}", known),
                          fmt::format("{}", total)));
      known = total;
      c.step.changes.push_back(change::ResourcePut{name, total});
    }
  }
  const Rules before = state.rules;
  const bool news_to_file =
      set.saved && std::ranges::any_of(set.values, [&state](const auto& value) {
        const auto known = state.file_rules.find(canonical_rule(value.first));
        return find_rule(value.first) != nullptr &&
               (known == state.file_rules.end() || known->second != value.second);
      });
  (file ? state.file_rules : state.set_rules) = std::move(layer);
  state_ops::resolve_instance(state);
  for (const auto& [name, limit] : limits) {
    Queue& queue = state.queues.at(c.queue_named(name));
    if (queue.limit != limit) {
      kept.push_back(
          told(queue_rule(name), fmt::format("{}", queue.limit), fmt::format("{}", limit)));
      c.set_limit(queue, limit);
      c.step.changes.push_back(
          change::QueuePut{queue.id, {name, limit, queue.rules}, queue.paused});
    }
  }
  if (!kept.empty() || news_to_file || before != state.rules) {
    std::vector<std::string> parts =
        file ? told_differences(before, state.rules) : told_rules(set, before, state.rules);
    parts.insert(parts.end(), kept.begin(), kept.end());
    note_rules(c, set,
               file        ? "of berth.yaml"
               : set.saved ? "for berth.yaml"
                           : "for this run",
               parts);
    after_rules(c, {}, set);
  }
  state.recheck_all = true;
  return Answer{};
}

}  // namespace

Result<Answer> apply_set_rules(ApplyContext& c, const event::SetRules& set) {
  switch (set.layer) {
    case event::SetRules::Layer::queue:
      return set_queue_rules(c, set);
    case event::SetRules::Layer::batch:
      return set_batch_rules(c, set);
    case event::SetRules::Layer::instance:
    case event::SetRules::Layer::file:
      break;
  }
  return set_instance_rules(c, set);
}

}  // namespace berth
