// gpulimit's tasks and parameters as the daemon keeps them: jobs and rules of one queue.

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <tuple>

#include "cli/control.hpp"
#include "cli/gpulimit.hpp"
#include "core/rule_table.hpp"

namespace berth::cli::gpulimit {
namespace {

/// Beyond so many the order of the rest is told by priority and id.
constexpr std::size_t kOrdered = 500;
constexpr Millis kPatience{120'000};

std::optional<std::uint64_t> field(const std::string& text, std::string_view name) {
  const std::size_t at = text.find(name);
  if (at == std::string::npos) {
    return std::nullopt;
  }
  std::uint64_t value = 0;
  const std::size_t digit = text.find_first_of("0123456789", at + name.size());
  if (digit == std::string::npos) {
    return std::nullopt;
  }
  std::from_chars(text.data() + digit, text.data() + text.size(), value);
  return value;
}

}  // namespace

Result<std::vector<JobView>> tasks(Daemon& daemon, std::vector<JobState> states) {
  JobQuery query;
  query.queue = kQueue;
  query.states = std::move(states);
  return daemon.jobs(query);
}

Result<JobDetail> task(Daemon& daemon, std::uint64_t id) {
  auto detail = daemon.get<JobDetail>(fmt::format("/api/jobs/{}", id));
  if (!detail) {
    if (detail.error().code == ErrorCode::not_found) {
      return fail(ErrorCode::not_found,
                  fmt::format("there is no task {}; `gpulimit ls --all` lists them", id));
    }
    return detail;
  }
  if (detail->job.queue != kQueue) {
    return fail(ErrorCode::not_found,
                fmt::format("{0} is none of gpulimit's tasks but a job in queue '{1}'; see `berth "
                            "show {0}`",
                            id, printable(detail->job.queue)));
  }
  return detail;
}

Result<std::vector<JobView>> chosen(Daemon& daemon, const std::optional<IdSet>& ids) {
  if (!ids) {
    return tasks(daemon, {JobState::queued, JobState::running, JobState::paused});
  }
  std::vector<JobView> found;
  for (IdSet& part : in_parts(*ids)) {
    JobQuery query;
    query.queue = kQueue;
    query.ids = std::move(part);
    TRY_ASSIGN(auto some, daemon.jobs(query));
    std::ranges::move(some, std::back_inserter(found));
  }
  for (const auto& [first, last] : ids->ranges()) {
    if (first == last && std::ranges::find(found, first, &JobView::id) == found.end()) {
      TRY(task(daemon, first));  // says what is wrong with it
    }
  }
  if (found.empty()) {
    return fail(
        ErrorCode::not_found,
        fmt::format("there are no tasks {}; `gpulimit ls --all` lists them", ids->to_string()));
  }
  return found;
}

Result<std::vector<JobView>> in_order(Daemon& daemon, std::vector<JobView> waiting) {
  std::ranges::stable_sort(waiting, {}, [](const JobView& job) {
    return std::tuple(!job.expedited, job.priority, job.id);
  });
  if (waiting.size() > kOrdered) {
    return waiting;
  }
  std::vector<std::pair<std::uint64_t, JobView>> places;
  for (JobView& job : waiting) {
    const auto why = daemon.get<WhyView>(fmt::format("/api/jobs/{}/why", job.id));
    // One that is not in line, or has begun meanwhile, comes behind those that are.
    places.emplace_back(why ? why->ahead.value_or(UINT64_MAX) : UINT64_MAX, std::move(job));
  }
  std::ranges::stable_sort(places, {}, [](const auto& place) { return place.first; });
  std::vector<JobView> out;
  for (auto& [ahead, job] : places) {
    out.push_back(std::move(job));
  }
  return out;
}

Status await_end(Daemon& daemon, const IdSet& ids) {
  const Millis deadline = read_clock().mono + kPatience;
  for (const IdSet& part : in_parts(ids)) {
    while (true) {
      const Millis poll = kLongPollMax / 4;
      TRY_ASSIGN(const WaitAnswer answer,
                 daemon.get<WaitAnswer>(wait_query_target({part, poll}), poll + kPatience));
      if (answer.done) {
        break;
      }
      if (read_clock().mono > deadline) {
        return fail(
            ErrorCode::unavailable,
            fmt::format("of the tasks {} some have not ended yet; `gpulimit ls` tells which",
                        part.to_string()));
      }
    }
  }
  return {};
}

HostMemory host_memory() {
  const std::string text = read_text("/proc/meminfo");
  return {field(text, "MemTotal:").value_or(0) * kKiB,
          field(text, "MemAvailable:").value_or(0) * kKiB};
}

Status apply(Daemon& daemon, const Setting& setting) {
  if (!setting.rules.empty()) {
    SetRulesRequest request;
    request.values = setting.rules;
    request.queue = kQueue;
    TRY(daemon.call("POST", "/api/rules", encode(request)));
  }
  if (setting.limit) {
    // A queue's limit is said to the instance, which keeps it with the queue.
    SetRulesRequest request;
    request.values = {{queue_rule(kQueue), fmt::format("{}", *setting.limit)}};
    TRY(daemon.call("POST", "/api/rules", encode(request)));
  }
  return {};
}

Result<RulesView> queue_rules(Daemon& daemon) {
  RulesQuery query;
  query.queue = kQueue;
  auto known = daemon.get<RulesView>(rules_query_target(query));
  if (!known && known.error().code != ErrorCode::not_found) {
    return known;
  }
  const std::string own = fmt::format("queue {}", kQueue);
  const auto is_said = [&](std::string_view key) {
    if (!known) {
      return false;
    }
    const auto rule = std::ranges::find(known->rules, key, &RuleView::key);
    return rule != known->rules.end() && rule->source == own;
  };
  Setting missing;
  for (const ParameterDef& parameter : parameters()) {
    if (parameter.rule.empty()) {
      continue;  // without a limit, as it is where nobody has set one
    }
    TRY_ASSIGN(const Setting usual, setting_of(parameter, parameter.usual, host_memory().total));
    if (!is_said(parameter.rule)) {
      std::ranges::copy(usual.rules, std::back_inserter(missing.rules));
    }
  }
  // As gpulimit does, a task is tried again without a pause.
  constexpr std::string_view kSteps = "retry_config.max_retry_before_backoff";
  if (!is_said(kSteps)) {
    missing.rules.emplace_back(kSteps, "0");
  }
  if (missing.rules.empty()) {
    return known;
  }
  TRY(apply(daemon, missing));
  return daemon.get<RulesView>(rules_query_target(query));
}

std::vector<ParameterValue> values(const RulesView& rules) {
  const Bytes memory = host_memory().total;
  std::vector<ParameterValue> out;
  for (const ParameterDef& parameter : parameters()) {
    out.push_back({&parameter, value_of(parameter, rules, memory)});
  }
  return out;
}

Result<std::optional<Bytes>> claim(Daemon& daemon, const RulesView& rules) {
  TRY_ASSIGN(const auto gpus, daemon.get<std::vector<GpuView>>("/api/gpus"));
  std::optional<Bytes> smallest;
  for (const GpuView& gpu : gpus) {
    if (gpu.memory_total && *gpu.memory_total > 0) {
      smallest = std::min(smallest.value_or(*gpu.memory_total), *gpu.memory_total);
    }
  }
  if (!smallest) {
    return std::optional<Bytes>();
  }
  const auto rule = std::ranges::find(rules.rules, "keep_gpu_memory", &RuleView::key);
  double percent = 100.0;
  if (rule != rules.rules.end()) {
    std::from_chars(rule->value.data(), rule->value.data() + rule->value.size(), percent);
  }
  return std::optional(claim_of(1.0 - percent / 100.0, *smallest));
}

}  // namespace berth::cli::gpulimit
