// Changing what jobs ask for, and the rules of the instance.

#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/apply_context.hpp"
#include "core/rule_table.hpp"

namespace berth {
namespace {

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
  return fmt::format("{}", fmt::join(parts, " "));
}

Request patched(Request request, const event::JobPatch& patch) {
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
        job.shape = state_ops::intern(c.state, request);
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

Result<Answer> apply_set_rules(ApplyContext& c, const event::SetRules& set) {
  Rules rules = c.state.rules;
  std::vector<std::pair<std::string, std::uint32_t>> limits;
  std::vector<std::string> parts;
  for (const auto& [key, text] : set.values) {
    TRY(set_rule(rules, key, text));
    if (const auto queue = queue_of_rule(key)) {
      TRY_ASSIGN(const std::uint32_t limit, parse_queue_limit(key, text));
      limits.emplace_back(*queue, limit);
    }
    parts.push_back(fmt::format("{}={}", key, text));
  }
  for (const auto& [name, total] : rules.resources) {
    const auto known = c.state.rules.resources.find(name);
    if (known == c.state.rules.resources.end() || known->second != total) {
      c.step.changes.push_back(change::ResourcePut{name, total});
    }
  }
  bool differs = c.state.rules != rules;
  c.state.rules = std::move(rules);
  for (const auto& [name, limit] : limits) {
    Queue& queue = c.state.queues.at(c.queue_named(name));
    if (queue.limit != limit) {
      queue.limit = limit;
      differs = true;
      c.step.changes.push_back(change::QueuePut{queue.id, {name, limit}, queue.paused});
      state_ops::refresh_queue(c.state, queue.id);
    }
  }
  if (differs) {
    c.step.changes.push_back(change::History{
        "changed", {}, {}, {}, fmt::format("rules: {}", fmt::join(parts, " ")), c.now.wall});
  }
  c.state.recheck_all = true;
  return Answer{};
}

}  // namespace berth
