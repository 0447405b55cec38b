#include "core/reason.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace berth {

std::string_view to_string(Reason::Kind kind) {
  switch (kind) {
    case Reason::Kind::held:
      return "held";
    case Reason::Kind::queue_paused:
      return "queue_paused";
    case Reason::Kind::dependency:
      return "dependency";
    case Reason::Kind::space:
      return "space";
    case Reason::Kind::max_concurrent:
      return "max_concurrent";
    case Reason::Kind::submitting:
      return "submitting";
    case Reason::Kind::batch_limit:
      return "batch_limit";
    case Reason::Kind::queue_limit:
      return "queue_limit";
    case Reason::Kind::queue_order:
      return "queue_order";
    case Reason::Kind::cpus:
      return "cpus";
    case Reason::Kind::memory:
      return "memory";
    case Reason::Kind::resource:
      return "resource";
    case Reason::Kind::no_gpu:
      return "no_gpu";
    case Reason::Kind::gpu:
      return "gpu";
    case Reason::Kind::due:
      return "due";
  }
  return "?";
}

std::string_view to_string(GpuObstacle::Kind kind) {
  switch (kind) {
    case GpuObstacle::Kind::stale:
      return "stale";
    case GpuObstacle::Kind::trouble:
      return "trouble";
    case GpuObstacle::Kind::unknown:
      return "unknown";
    case GpuObstacle::Kind::claimed:
      return "claimed";
    case GpuObstacle::Kind::ending:
      return "ending";
    case GpuObstacle::Kind::utilization:
      return "utilization";
    case GpuObstacle::Kind::memory:
      return "memory";
    case GpuObstacle::Kind::too_small:
      return "too_small";
  }
  return "?";
}

namespace {

std::string list(const std::vector<JobId>& jobs) {
  constexpr std::size_t kShown = 5;
  std::vector<std::uint64_t> shown;
  for (const JobId id : jobs) {
    if (shown.size() == kShown) {
      return fmt::format("jobs {} and {} more", fmt::join(shown, ", "), jobs.size() - kShown);
    }
    shown.push_back(id.value);
  }
  return fmt::format("job{} {}", shown.size() == 1 ? "" : "s", fmt::join(shown, ", "));
}

}  // namespace

std::string describe(const GpuObstacle& o) {
  std::string gpu = fmt::format("GPU {}: ", o.index);
  switch (o.kind) {
    case GpuObstacle::Kind::stale:
      return gpu + (o.detail.empty() ? "waiting for a fresh look at it" : o.detail);
    case GpuObstacle::Kind::trouble:
      return gpu + o.detail;
    case GpuObstacle::Kind::unknown:
      return gpu + "the driver does not say how much memory is free";
    case GpuObstacle::Kind::claimed:
      return gpu + "taken by " + list(o.jobs);
    case GpuObstacle::Kind::ending:
      return gpu + fmt::format("{} ended, but {} memory is not free yet", list(o.jobs),
                               o.jobs.size() == 1 ? "its" : "their");
    case GpuObstacle::Kind::utilization:
      return gpu + (o.detail.empty() ? fmt::format("others keep it {} % busy, the limit is {} %",
                                                   o.utilization, o.utilization_max)
                                     : o.detail);
    case GpuObstacle::Kind::memory:
      return gpu + fmt::format("{} free, {} needed", format_size(o.free), format_size(o.needed)) +
             (o.jobs.empty() ? "" : ", shared with " + list(o.jobs)) +
             (o.strangers > 0 ? fmt::format(", others hold {}", format_size(o.strangers)) : "");
    case GpuObstacle::Kind::too_small:
      return gpu + fmt::format("has {} in all, {} are needed", format_size(o.free),
                               format_size(o.needed));
  }
  return gpu;
}

namespace {

void explain_room(const State& state, const Request& request, const Room& room,
                  std::vector<Reason>& reasons) {
  using Kind = Reason::Kind;
  if (request.cpus > room.cpus_free()) {
    reasons.push_back(
        {Kind::cpus,
         request.cpus > state.host.cpus
             ? fmt::format("asks for {} CPUs; this machine has {}, so it can never start",
                           request.cpus, state.host.cpus)
             : fmt::format("asks for {} CPUs, {} of {} are free", request.cpus, room.cpus_free(),
                           state.host.cpus),
         {},
         {}});
  }
  if (request.memory > room.memory_free()) {
    reasons.push_back(
        {Kind::memory,
         request.memory > state.host.memory
             ? fmt::format("asks for {} of host memory; this machine has {}, so it can never start",
                           format_size(request.memory), format_size(state.host.memory))
             : fmt::format("asks for {} of host memory, {} are not promised to other jobs",
                           format_size(request.memory), format_size(room.memory_free())),
         {},
         {}});
  }
  for (const auto& [name, count] : request.resources) {
    if (const std::uint64_t free = room.resource_free(name); count > free) {
      reasons.push_back(
          {Kind::resource, fmt::format("asks for {} '{}', {} free", count, name, free), {}, {}});
    }
  }
  if (request.gpus.min == 0) {
    return;
  }
  std::vector<GpuObstacle> obstacles;
  std::size_t fitting = 0;
  std::size_t possible = 0;
  for (std::size_t i = 0; i < room.gpu_count(); ++i) {
    auto obstacle = room.obstacle(i, request);
    possible += !obstacle || obstacle->kind != GpuObstacle::Kind::too_small ? 1 : 0;
    if (obstacle) {
      obstacles.push_back(std::move(*obstacle));
    } else {
      ++fitting;
    }
  }
  if (fitting >= request.gpus.min) {
    return;
  }
  if (room.stale()) {
    reasons.push_back({Kind::gpu,
                       state.probe_error.empty()
                           ? "waiting for a fresh look at the GPUs"
                           : fmt::format("the GPUs cannot be seen: {}", state.probe_error),
                       {},
                       std::move(obstacles)});
    return;
  }
  if (room.gpu_count() < request.gpus.min) {
    reasons.push_back(
        {Kind::no_gpu,
         room.gpu_count() == 0
             ? std::string("this machine has no GPU; submit with --gpus 0 to run without one")
             : fmt::format("asks for {} GPUs, this machine has {}", request.gpus.min,
                           room.gpu_count()),
         {},
         {}});
    return;
  }
  std::string text = request.gpus.min == 1
                         ? std::string("no GPU has room")
                         : fmt::format("asks for {} GPUs, {} of {} have room", request.gpus.min,
                                       fitting, room.gpu_count());
  if (possible < request.gpus.min) {
    text += " and never will: the cards are too small";
  }
  std::vector<std::string> parts;
  std::vector<JobId> jobs;
  for (const GpuObstacle& obstacle : obstacles) {
    parts.push_back(describe(obstacle));
    jobs.insert(jobs.end(), obstacle.jobs.begin(), obstacle.jobs.end());
  }
  std::ranges::sort(jobs);
  const auto repeated = std::ranges::unique(jobs);
  jobs.erase(repeated.begin(), repeated.end());
  reasons.push_back({Kind::gpu, fmt::format("{}: {}", text, fmt::join(parts, "; ")),
                     std::move(jobs), std::move(obstacles)});
}

}  // namespace

std::vector<Reason> explain(const State& state, const Job& job, Now now) {
  return explain(state, job, Room(state, now));
}

std::vector<Reason> explain(const State& state, const Job& job, const Room& room) {
  using Kind = Reason::Kind;
  std::vector<Reason> reasons;
  if (!job.waits()) {
    return reasons;
  }
  if (job.held()) {
    reasons.push_back(
        {Kind::held,
         fmt::format("held; `berth resume {}` lets it wait for its turn again", job.id.value),
         {},
         {}});
  }
  if (const auto it = state.pending.find(job.id); it != state.pending.end()) {
    reasons.push_back({Kind::dependency,
                       fmt::format("waits for {} to succeed", list(it->second)),
                       it->second,
                       {}});
  }
  if (state.low_space) {
    reasons.push_back(
        {Kind::space, "nothing starts while the disk is full: " + state.space_detail, {}, {}});
  }
  if (state.rules.max_concurrent != 0 && state.running >= state.rules.max_concurrent) {
    reasons.push_back(
        {Kind::max_concurrent,
         fmt::format("{} jobs run already, the limit max_concurrent", state.rules.max_concurrent),
         {},
         {}});
  }
  const Queue& queue = state.queues.at(job.queue);
  if (queue.paused && !job.expedited) {
    reasons.push_back(
        {Kind::queue_paused,
         fmt::format("queue '{0}' is paused; `berth resume --queue {0}` lets it start "
                     "jobs again",
                     queue.name),
         {},
         {}});
  }
  const auto batch = state.batches.find(job.batch);
  if (batch != state.batches.end() && batch->second.open) {
    const auto open = state.submissions.find(job.batch);
    reasons.push_back({Kind::submitting,
                       open == state.submissions.end()
                           ? std::string("its batch was given up and is being removed")
                           : fmt::format("its batch is still being submitted, {} of {} so far",
                                         open->second.arrived, open->second.head.count),
                       {},
                       {}});
  }
  if (!job.expedited && batch != state.batches.end() && !batch->second.has_room()) {
    reasons.push_back({Kind::batch_limit,
                       fmt::format("{} jobs of its batch run already, the batch's max_concurrent",
                                   batch->second.max_concurrent),
                       {},
                       {}});
  }
  if (job.expedited) {
    // Neither limit nor order of its queue counts.
  } else if (!queue.has_room()) {
    reasons.push_back(
        {Kind::queue_limit,
         fmt::format("queue '{}' runs {} at a time and is busy", queue.name, queue.limit),
         {},
         {}});
  } else if (queue.limit == 1 && job.waiting_for == 0 && !job.held()) {
    if (const OrderKey* first = state.ready.first(job.queue); first && first->job != job.id) {
      reasons.push_back(
          {Kind::queue_order,
           fmt::format("job {} goes first in the serial queue '{}'", first->job.value, queue.name),
           {first->job},
           {}});
    }
  }
  explain_room(state, state.request(job), room, reasons);
  if (reasons.empty()) {
    reasons.push_back({Kind::due, "nothing stands in its way; it starts in a moment", {}, {}});
  }
  return reasons;
}

}  // namespace berth
