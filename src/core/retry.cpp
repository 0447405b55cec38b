#include "core/retry.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "core/rule_table.hpp"

namespace berth {
namespace {

/// A request is a multiple of this.
constexpr Bytes kMemoryStep = 64 * kMiB;

Bytes rounded_up(Bytes bytes) {
  return (bytes + kMemoryStep - 1) / kMemoryStep * kMemoryStep;
}

/// So that people can read it.
Bytes rounded_down(Bytes bytes) {
  return bytes < kMemoryStep ? bytes : bytes / kMemoryStep * kMemoryStep;
}

/// Without numbers half as much again; with them what it would have needed and a fifth.
Bytes raised(const Finding& finding, const RetryCase& job) {
  const Bytes had = std::max(job.request.gpu_memory.value_or(0), job.peak.value_or(0));
  const auto needed = finding.needed();
  if (needed && *needed > job.request.gpu_memory.value_or(0)) {
    return rounded_up(*needed + *needed / 5);
  }
  return rounded_up(had + had / 2);
}

/// Gives a job that is too big for what it asked for more of it, up to a whole card, up to the
/// largest.
void raise_memory(Retry& retry, const Finding& finding, const RetryCase& job) {
  if (job.request.gpus.max == 0 || !job.largest) {
    return;
  }
  Request request = job.request;
  if (request.gpu_memory) {
    // Of a card something is always taken: who needs nearly all of it gets it whole.
    const Bytes more = raised(finding, job);
    const Bytes nearly_all = *job.largest - *job.largest / 20;
    if (more <= nearly_all) {
      request.gpu_memory = more;
      retry.next = fmt::format("trying again with {}", format_size(more));
    } else {
      // Strangers who may share a card with one that has not said what it needs leave too little.
      request.gpu_memory.reset();
      request.rules.insert_or_assign("min_free_memory", exact_size(rounded_down(nearly_all)));
      retry.next = "trying again with a whole card";
    }
  } else if (job.card && *job.largest > *job.card + *job.card / 20) {
    request.rules.insert_or_assign("min_free_memory", exact_size(rounded_up(*job.card + 1)));
    retry.next = fmt::format("trying again with a card of more than {}", format_size(*job.card));
  } else {
    return;
  }
  retry.again = true;
  retry.request = std::move(request);
}

bool is_excused(const Finding& finding) {
  return finding.blame == Blame::neighbour || finding.blame == Blame::hardware;
}

std::string_view place(const Retry& retry) {
  return retry.elsewhere ? " elsewhere" : "";
}

std::string announce(const Retry& retry, std::string_view which) {
  if (retry.wait > Millis{0}) {
    return fmt::format("trying again{} in {} ({})", place(retry), format_duration(retry.wait),
                       which);
  }
  return fmt::format("trying again{} ({})", place(retry), which);
}

void charge(Retry& retry, Charge to, const RetryCase& job, const RetryRules& rules,
            std::uint32_t limit) {
  retry.again = true;
  retry.charge = to;
  retry.wait = backoff(rules, job.retries_used + job.excused + 1, job.lot);
  const std::uint32_t used = to == Charge::retries ? job.retries_used : job.excused;
  retry.next =
      announce(retry, fmt::format("{} {} of {}", to == Charge::retries ? "retry" : "not its fault,",
                                  used + 1, limit));
}

/// Why it is not tried again, where that is not evident.
std::string last_word(const Finding& finding, const RetryCase& job, const RetryRules& rules) {
  const bool had_all = finding.failure == FailureClass::gpu_oom && rules.raise_memory &&
                       job.request.gpus.max > 0 && job.largest && !job.request.gpu_memory;
  const std::string all =
      had_all ? fmt::format("a whole card of {}, the largest there is", format_size(*job.largest))
              : std::string();
  if (had_all && finding.blame == Blame::own) {
    return "gave up: it had " + all;
  }
  if (is_excused(finding) && job.excused > 0) {
    return fmt::format("gave up after {} retries that were not its fault{}", job.excused,
                       had_all ? "; it had " + all : std::string());
  }
  if (job.retries_used > 0) {
    return fmt::format("no retry left after {}", job.retries_used);
  }
  return {};
}

}  // namespace

std::optional<std::uint32_t> limit_of(const RetryRules& rules, FailureClass failure) {
  switch (failure) {
    case FailureClass::exit:
      return rules.exit;
    case FailureClass::gpu_oom:
      return rules.gpu_oom;
    case FailureClass::host_oom:
      return rules.host_oom;
    case FailureClass::timeout:
      return rules.timeout;
    case FailureClass::cannot_start:
      return rules.cannot_start;
    case FailureClass::gpu_lost:
      return rules.gpu_lost;
    case FailureClass::node_lost:
      return rules.node_lost;
    case FailureClass::preempted:
      return rules.preempted;
  }
  return std::nullopt;
}

Millis backoff(const RetryRules& rules, std::uint32_t count, std::uint64_t lot) {
  if (rules.backoff == Backoff::steps) {
    const std::uint32_t every = rules.max_retry_before_backoff;
    const bool waits = every > 0 && count > 1 && (count - 1) % every == 0;
    return waits ? rules.backoff_duration : Millis{0};
  }
  const double limit = static_cast<double>(rules.backoff_max.count());
  const double grown = static_cast<double>(rules.backoff_first.count()) *
                       std::pow(static_cast<double>(rules.backoff_factor), count - 1.0);
  // Evenly from as much less to as much more.
  constexpr std::uint64_t kLots = 1U << 20U;
  const double drawn = 2.0 * static_cast<double>(lot % kLots) / kLots - 1.0;
  const double wait = std::min(grown, limit) * (1.0 + drawn * rules.jitter / 100.0);
  return Millis(static_cast<std::int64_t>(std::clamp(wait, 0.0, limit)));
}

Retry plan_retry(const Finding& finding, const RetryCase& job, const RetryRules& rules) {
  Retry retry;
  const auto limit = limit_of(rules, finding.failure);
  retry.elsewhere = finding.failure == FailureClass::gpu_lost ||
                    (finding.failure == FailureClass::gpu_oom && finding.blame == Blame::neighbour);
  if (finding.failure == FailureClass::preempted && !limit) {
    retry.again = true;
    retry.next = "waiting again";
    return retry;
  }
  if (finding.failure == FailureClass::timeout && rules.requeue_on_timeout && !limit) {
    retry.again = true;
    retry.next = "waiting again to go on, as asked";
    return retry;
  }
  const bool excused = is_excused(finding);
  if (excused && job.excused < limit.value_or(rules.not_its_fault)) {
    charge(retry, Charge::excused, job, rules, limit.value_or(rules.not_its_fault));
    return retry;
  }
  // Who has lost memory to others again and again may as well be too big for what it asks for.
  const bool too_big = finding.failure == FailureClass::gpu_oom &&
                       (finding.blame == Blame::own || (excused && !limit && job.excused > 0));
  if (too_big && rules.raise_memory && limit != 0U) {
    Retry raise = retry;
    raise_memory(raise, finding, job);
    if (raise.again && (!limit || job.retries_used < *limit)) {
      raise.charge = limit ? Charge::retries : Charge::nobody;
      return raise;
    }
  }
  const std::uint32_t own_limit = limit.value_or(job.retries);
  if ((!excused || !limit) && job.retries_used < own_limit) {
    charge(retry, Charge::retries, job, rules, own_limit);
    return retry;
  }
  retry.next = last_word(finding, job, rules);
  return retry;
}

}  // namespace berth
