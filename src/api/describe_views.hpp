#pragma once
// The fields of what several answers have in common. Private to wire*.cpp.

#include <map>
#include <string>

#include "api/archive.hpp"
#include "api/views.hpp"

namespace berth {

/// With every state, also those that no job is in.
[[nodiscard]] inline std::map<std::string, std::uint64_t> counts_by_name(
    const std::map<JobState, std::uint64_t>& counts) {
  std::map<std::string, std::uint64_t> named;
  for (const JobState state :
       {JobState::queued, JobState::running, JobState::paused, JobState::succeeded,
        JobState::failed, JobState::killed, JobState::cancelled}) {
    const auto it = counts.find(state);
    named[std::string(to_string(state))] = it == counts.end() ? 0 : it->second;
  }
  return named;
}

template <class A>
void describe(A& a, wire::Ref<A, CauseView> cause) {
  a.need("kind", cause.kind);
  a.field("numbers", cause.numbers);
  a.field("names", cause.names);
  a.field("jobs", cause.jobs);
}

template <class A>
void describe(A& a, wire::Ref<A, ObstacleView> obstacle) {
  a.need("gpu", obstacle.gpu);
  a.need("kind", obstacle.kind);
  a.need("text", obstacle.text);
  a.unless("free", obstacle.free, 0);
  a.unless("needed", obstacle.needed, 0);
  a.unless("margin", obstacle.margin, 0);
  a.unless("in_use", obstacle.in_use, 0);
  a.unless("total", obstacle.total, 0);
  a.unless("rule", obstacle.rule, {});
  a.unless("strangers", obstacle.strangers, 0);
  a.unless("own", obstacle.own, false);
  a.unless("utilization", obstacle.utilization, 0);
  a.unless("utilization_max", obstacle.utilization_max, 0);
  a.field("jobs", obstacle.jobs);
  a.unless("detail", obstacle.detail, {});
}

template <class A>
void describe(A& a, wire::Ref<A, GpuProcessView> process) {
  a.need("pid", process.pid);
  a.field("uid", process.uid);
  a.or_null("user", process.user);
  a.or_null("name", process.name);
  a.or_null("command", process.command);
  a.field("since", process.since);
  a.field("memory", process.memory);
  a.or_null("job", process.job);
  a.or_null("attempt", process.attempt);
}

template <class A>
void describe(A& a, wire::Ref<A, ClaimView> claim) {
  a.need("job", claim.job);
  a.field("attempt", claim.attempt);
  a.field("memory", claim.memory);
}

template <class A>
void describe(A& a, wire::Ref<A, GpuView> gpu) {
  a.need("index", gpu.index);
  a.field("uuid", gpu.uuid);
  a.field("name", gpu.name);
  a.or_null("node", gpu.node);
  a.field("memory_total", gpu.memory_total);
  a.field("memory_used", gpu.memory_used);
  a.field("memory_free", gpu.memory_free);
  a.unless("memory_left", gpu.memory_left, {});
  a.field("utilization", gpu.utilization);
  a.field("temperature", gpu.temperature);
  a.field("power_mw", gpu.power_mw);
  a.field("processes", gpu.processes);
  a.field("state", gpu.state);
  a.or_null("trouble", gpu.trouble);
  a.or_null("reserved", gpu.reserved);
  a.unless("reserved_kind", gpu.reserved_kind, {});
  a.unless("reserved_detail", gpu.reserved_detail, {});
  a.unless("drained_why", gpu.drained_why, {});
  a.field("lost", gpu.lost);
  a.field("claims", gpu.claims);
}

template <class A>
void describe(A& a, wire::Ref<A, StatusView::Probe> probe) {
  a.or_null("driver", probe.driver);
  a.field("age_ms", probe.age);
  a.or_null("error", probe.error);
  a.field("simulated", probe.simulated);
}

template <class A>
void describe(A& a, wire::Ref<A, StatusView::Space> space) {
  a.field("low", space.low);
  a.or_null("detail", space.detail);
}

template <class A>
void describe(A& a, wire::Ref<A, StatusView::LoopTimes> loop) {
  a.field("tasks", loop.tasks);
  a.field("over_5ms", loop.over_limit);
  a.field("longest_us", loop.longest_us);
  a.field("longest_wall_us", loop.longest_wall_us);
}

template <class A>
void describe(A& a, wire::Ref<A, QueueView> queue) {
  a.need("name", queue.name);
  a.field("limit", queue.limit);
  a.field("running", queue.running);
  a.field("paused", queue.paused);
  a.unless("waiting", queue.waiting, {});
}

}  // namespace berth
