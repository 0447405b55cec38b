#include "core/reason.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/standing.hpp"

namespace berth {

std::string_view to_string(Reason::Kind kind) {
  switch (kind) {
    case Reason::Kind::held:
      return "held";
    case Reason::Kind::parked:
      return "parked";
    case Reason::Kind::queue_paused:
      return "queue_paused";
    case Reason::Kind::instance_paused:
      return "instance_paused";
    case Reason::Kind::delayed:
      return "delayed";
    case Reason::Kind::retry:
      return "retry";
    case Reason::Kind::quota:
      return "quota";
    case Reason::Kind::host_memory:
      return "host_memory";
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

namespace {

constexpr std::string_view kAwaitsLook = "waiting for a fresh look at the GPUs";

std::string_view outcome(After after) {
  switch (after) {
    case After::ok:
      return "succeed";
    case After::any:
      return "end";
    case After::failed:
      return "fail";
  }
  return "?";
}

/// More than the limit run where some were started by hand, or it was lowered.
std::string run_already(std::uint32_t running, std::string_view whose, std::string_view limit,
                        std::uint32_t most) {
  return fmt::format("{} job{}{} run{} already, the limit {}{}", running, running == 1 ? "" : "s",
                     whose, running == 1 ? "s" : "", limit,
                     running == most ? "" : fmt::format(" is {}", most));
}

/// Who go first and have places among those that may run, though they wait for a look still.
std::vector<JobId> places_kept(const State& state, const Job& job, const auto& counts) {
  std::vector<JobId> kept;
  for (const JobId id : state.expected) {
    if ((!state.recheck_all || state.looks_again) && id != job.id && counts(state.jobs.at(id))) {
      kept.push_back(id);
    }
  }
  return kept;
}

Reason no_place_left(Reason::Kind kind, std::vector<JobId> kept, std::string_view limit) {
  std::string text = fmt::format("{} go{} first and ha{} the last place{} that {} leaves",
                                 list_jobs(kept), kept.size() == 1 ? "es" : "",
                                 kept.size() == 1 ? "s" : "ve", kept.size() == 1 ? "" : "s", limit);
  return {kind, std::move(text), std::move(kept), {}};
}

std::uint64_t milliseconds(Millis time) {
  return static_cast<std::uint64_t>(std::max(Millis{0}, time).count());
}

/// The rules that make a quota as small as it is, with their values.
std::string binding(const Quota& quota) {
  if (quota.max_gpu != 0 && quota.allowed == quota.max_gpu) {
    return fmt::format("max_gpu={}", quota.max_gpu);
  }
  const std::string left =
      quota.gpu_left == 0 ? "" : fmt::format(", gpu_left={} gpu_left_mode=any", quota.gpu_left);
  const std::uint32_t rest =
      quota.available > quota.gpu_left ? quota.available - quota.gpu_left : 0;
  return fmt::format("{} available{}{}", quota.available, left,
                     quota.min_gpu > rest ? fmt::format(", min_gpu={}", quota.min_gpu) : "");
}

std::string quota_text(const Quota& quota, const Wish& wish) {
  const std::uint32_t asked = wish.request->gpus.min;
  const char* const who = quota.of_batch ? "its batch" : "berth";
  if (asked <= quota.allowed && quota.allowed == 1) {
    return quota.used == 1 ? fmt::format("the one card that {} may use at once is in use ({})", who,
                                         binding(quota))
                           : fmt::format("{} cards are in use, and {} may use 1 at once ({})",
                                         quota.used, who, binding(quota));
  }
  if (asked <= quota.allowed) {
    return fmt::format("{} of the {} cards that {} may use at once are in use ({})", quota.used,
                       quota.allowed, who, binding(quota));
  }
  const std::string target =
      quota.of_batch ? fmt::format("--batch {} ", wish.batch.value) : std::string();
  return fmt::format(
      "asks for {} GPU{}, and {} may use {} at once ({}){}", asked, asked == 1 ? "" : "s", who,
      quota.allowed, binding(quota),
      quota.max_gpu != 0 && quota.max_gpu < asked
          ? fmt::format(", so it never starts; `berth set {}max_gpu={}` lets it", target, asked)
          : std::string());
}

/// Whether the quota stands in the way, or a rule leaves no card at all; says so.
bool explain_fence(const Wish& wish, const Room& room, const std::vector<GpuObstacle>& obstacles,
                   std::vector<Reason>& reasons) {
  using Kind = Reason::Kind;
  const auto fenced = [](const GpuObstacle& o) {
    return o.kind == GpuObstacle::Kind::left || o.kind == GpuObstacle::Kind::not_allowed;
  };
  if (!obstacles.empty() && obstacles.size() == room.gpu_count() &&
      std::ranges::all_of(obstacles, fenced)) {
    const auto absent = room.absent(*wish.rules);
    reasons.push_back(
        {Kind::gpu,
         fmt::format(
             "the rules leave it no card: gpus={}{}, gpu_left={}",
             wish.rules->gpus.empty() ? "all" : fmt::format("{}", fmt::join(wish.rules->gpus, ",")),
             absent.empty() ? "" : fmt::format(" ({} not there)", fmt::join(absent, ", ")),
             wish.rules->gpu_left),
         {},
         obstacles,
         {{{"gpu_left", wish.rules->gpu_left}},
          {{"gpus", fmt::format("{}", fmt::join(wish.rules->gpus, ","))},
           {"absent", fmt::format("{}", fmt::join(absent, ", "))}}}});
    return true;
  }
  if (const auto quota = room.full_quota(wish)) {
    reasons.push_back(
        {Kind::quota,
         quota_text(*quota, wish),
         {},
         {},
         {{{"asked", wish.request->gpus.min},
           {"used", quota->used},
           {"allowed", quota->allowed},
           {"available", quota->available},
           {"gpu_left", quota->gpu_left},
           {"min_gpu", quota->min_gpu},
           {"max_gpu", quota->max_gpu}},
          {{"of", quota->of_batch ? "batch" : "instance"}, {"rules", binding(*quota)}}}});
    return true;
  }
  return false;
}

void explain_room(const State& state, const Wish& wish, const Room& room,
                  std::vector<Reason>& reasons) {
  using Kind = Reason::Kind;
  const Request& request = *wish.request;
  if (request.cpus > room.cpus_free()) {
    reasons.push_back(
        {Kind::cpus,
         request.cpus > state.host.cpus
             ? fmt::format("asks for {} CPUs; this machine has {}, so it can never start",
                           request.cpus, state.host.cpus)
             : fmt::format("asks for {} CPUs, {} of {} are free", request.cpus, room.cpus_free(),
                           state.host.cpus),
         {},
         {},
         {{{"asked", request.cpus}, {"free", room.cpus_free()}, {"total", state.host.cpus}}}});
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
         {},
         {{{"asked", request.memory},
           {"free", room.memory_free()},
           {"total", state.host.memory}}}});
  }
  if (room.host_stale(wish)) {
    reasons.push_back({Kind::host_memory,
                       "waiting for a fresh look at the memory of the host (keep_host_memory)",
                       {},
                       {},
                       {}});
  } else if (!room.keeps_host_memory(wish)) {
    reasons.push_back({Kind::host_memory,
                       fmt::format("{} of host memory are available, {} must stay so "
                                   "(keep_host_memory)",
                                   format_size(state.host_available.value_or(0)),
                                   format_size(wish.rules->keep_host_memory)),
                       {},
                       {},
                       {{{"available", state.host_available.value_or(0)},
                         {"kept", wish.rules->keep_host_memory}}}});
  }
  for (const auto& [name, count] : request.resources) {
    if (const std::uint64_t free = room.resource_free(name); count > free) {
      reasons.push_back({Kind::resource,
                         fmt::format("asks for {} '{}', {} free", count, name, free),
                         {},
                         {},
                         {{{"asked", count}, {"free", free}}, {{"resource", name}}}});
    }
  }
  if (room.awaits_look(wish)) {
    reasons.push_back({Kind::gpu, std::string(kAwaitsLook), {}, {}, {{}, {{"error", ""}}}});
  }
  if (request.gpus.min == 0) {
    return;
  }
  std::vector<GpuObstacle> obstacles;
  std::size_t fitting = 0;
  std::size_t possible = 0;
  for (std::size_t i = 0; i < room.gpu_count(); ++i) {
    auto obstacle = room.obstacle(i, wish);
    possible += !obstacle || obstacle->kind != GpuObstacle::Kind::too_small ? 1 : 0;
    if (obstacle) {
      obstacles.push_back(std::move(*obstacle));
    } else {
      ++fitting;
    }
  }
  if (fitting >= request.gpus.min) {
    if (room.full_quota(wish)) {
      explain_fence(wish, room, obstacles, reasons);
    }
    return;
  }
  if (room.stale(wish)) {
    reasons.push_back({Kind::gpu,
                       state.probe_error.empty()
                           ? std::string(kAwaitsLook)
                           : fmt::format("the GPUs cannot be seen: {}", state.probe_error),
                       {},
                       std::move(obstacles),
                       {{}, {{"error", state.probe_error}}}});
    return;
  }
  if (room.gpu_count() < request.gpus.min) {
    reasons.push_back(
        {Kind::no_gpu,
         room.gpu_count() == 0
             ? std::string("this machine has no GPU; submit with --gpus 0 to run without one")
             : fmt::format("asks for {} GPUs; this machine has {}, so it can never start",
                           request.gpus.min, room.gpu_count()),
         {},
         {},
         {{{"asked", request.gpus.min}, {"total", room.gpu_count()}}}});
    return;
  }
  if (explain_fence(wish, room, obstacles, reasons)) {
    return;
  }
  std::string text = request.gpus.min == 1
                         ? std::string("no GPU has room")
                         : fmt::format("asks for {} GPUs, {} of {} have room", request.gpus.min,
                                       fitting, room.gpu_count());
  if (possible < request.gpus.min) {
    text += " and never will: the cards are too small";
  }
  std::vector<std::string> parts = describe(obstacles);
  std::vector<JobId> jobs;
  for (const GpuObstacle& obstacle : obstacles) {
    jobs.insert(jobs.end(), obstacle.jobs.begin(), obstacle.jobs.end());
  }
  std::ranges::sort(jobs);
  const auto repeated = std::ranges::unique(jobs);
  jobs.erase(repeated.begin(), repeated.end());
  if (const auto absent = room.absent(*wish.rules); !absent.empty()) {
    parts.push_back(fmt::format("the rule gpus names {}, which {} not there",
                                fmt::join(absent, ", "), absent.size() == 1 ? "is" : "are"));
  }
  reasons.push_back({Kind::gpu,
                     fmt::format("{}: {}", text, fmt::join(parts, "; ")),
                     std::move(jobs),
                     std::move(obstacles),
                     {{{"asked", request.gpus.min},
                       {"fitting", fitting},
                       {"possible", possible},
                       {"total", room.gpu_count()}}}});
}

/// Limits to how many run at once, of the instance, the batch and the queue, as far as they are
/// reached only by jobs that go first and will have started in a moment.
void explain_places(const State& state, const Job& job, std::vector<Reason>& reasons) {
  using Kind = Reason::Kind;
  if (state.expected.empty() || job.expedited) {
    return;
  }
  const auto check = [&](Kind kind, std::uint32_t running, std::uint32_t limit,
                         const std::string& name, const auto& counts) {
    auto kept = places_kept(state, job, counts);
    if (limit != 0 && running < limit && running + kept.size() >= limit) {
      reasons.push_back(no_place_left(kind, std::move(kept), name));
    }
  };
  check(Kind::max_concurrent, state.running, state.rules.max_concurrent, "max_concurrent",
        [](const Job&) { return true; });
  if (const auto it = state.batches.find(job.batch); it != state.batches.end()) {
    check(Kind::batch_limit, it->second.running, it->second.max_concurrent,
          "max_concurrent of the batch",
          [&job](const Job& other) { return other.batch == job.batch; });
  }
  if (std::ranges::find(reasons, Kind::queue_order, &Reason::kind) != reasons.end()) {
    return;  // which says the same of its queue
  }
  const Queue& queue = state.queues.at(job.queue);
  check(Kind::queue_limit, queue.running, queue.limit,
        fmt::format("the limit of queue '{}'", queue.name),
        [&job](const Job& other) { return other.queue == job.queue; });
}

/// Nobody overtakes the job of a serial queue that is to be tried again.
Reason waits_for_retry(const State& state, const Queue& queue, Now now) {
  const JobId first = *std::ranges::min_element(
      queue.backing_off, {}, [&state](JobId id) { return state.order(state.jobs.at(id)); });
  const Millis left = std::max(Millis{0}, state.delays.at(first).due - now.mono);
  return {Reason::Kind::retry,
          fmt::format("job {} of the serial queue '{}' goes first and is tried again in {}",
                      first.value, queue.name, format_duration(left)),
          {first},
          {},
          {{{"in_ms", milliseconds(left)}}, {{"queue", queue.name}}}};
}

/// Of one that has started: which stranger it stands still for.
void explain_parked(const State& state, const Job& job, std::vector<Reason>& reasons) {
  const auto it = state.attempts.find(job.attempt);
  if (it == state.attempts.end() || !it->second.parked()) {
    return;
  }
  std::vector<std::uint32_t> cards;
  for (const std::string& uuid : it->second.gpus) {
    if (const Gpu* gpu = state.gpu(uuid); gpu != nullptr && gpu->stranger_seen) {
      cards.push_back(gpu->facts.index);
    }
  }
  reasons.push_back(
      {Reason::Kind::parked,
       fmt::format("stands still for {} on GPU {}; goes on once that has "
                   "been quiet for {} (quiet_time)",
                   it->second.for_own ? "your own process" : "somebody else",
                   fmt::join(cards, ", "), format_duration(state.rules_of(job).quiet_time)),
       {},
       {},
       {{{"quiet_ms", milliseconds(state.rules_of(job).quiet_time)}},
        {{"gpus", fmt::format("{}", fmt::join(cards, ", "))}}}});
}

}  // namespace

Room room_to_explain(const State& state, Now now) {
  Room room(state, now);
  // Before a whole decision nobody knows for whom cards will be kept.
  if (state.hold && !state.recheck_all) {
    room.hold(*state.hold);
  }
  return room;
}

std::vector<Reason> explain(const State& state, const Job& job, Now now) {
  return explain(state, job, room_to_explain(state, now));
}

std::vector<Reason> explain(const State& state, const Job& job, const Room& room) {
  using Kind = Reason::Kind;
  std::vector<Reason> reasons;
  if (!job.waits()) {
    explain_parked(state, job, reasons);
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
    reasons.push_back(
        {Kind::dependency,
         fmt::format("waits for {} to {}", list_jobs(it->second), outcome(job.after_kind)),
         it->second,
         {},
         {{}, {{"outcome", std::string(to_string(job.after_kind))}}}});
  }
  if (const auto it = state.delays.find(job.id); it != state.delays.end()) {
    const Millis left = std::max(Millis{0}, it->second.due - room.now().mono);
    reasons.push_back(
        {it->second.backing_off ? Kind::retry : Kind::delayed,
         fmt::format("{} in {}", it->second.backing_off ? "is tried again" : "is to start",
                     format_duration(left)),
         {},
         {},
         {{{"in_ms", milliseconds(left)}}}});
  }
  if (state.paused) {
    reasons.push_back(
        {Kind::instance_paused,
         "berth is paused and starts nothing; `berth resume --instance` lets it go on",
         {},
         {}});
  }
  if (state.low_space) {
    reasons.push_back({Kind::space,
                       "nothing starts while the disk is full: " + state.space_detail,
                       {},
                       {},
                       {{}, {{"detail", state.space_detail}}}});
  }
  if (!job.expedited && state.rules.max_concurrent != 0 &&
      state.running >= state.rules.max_concurrent) {
    reasons.push_back({Kind::max_concurrent,
                       run_already(state.running, "", "max_concurrent", state.rules.max_concurrent),
                       {},
                       {},
                       {{{"running", state.running}, {"limit", state.rules.max_concurrent}}}});
  }
  const Queue& queue = state.queues.at(job.queue);
  if (queue.paused && !job.expedited) {
    reasons.push_back(
        {Kind::queue_paused,
         fmt::format("queue '{0}' is paused; `berth resume --queue {0}` lets it start "
                     "jobs again",
                     queue.name),
         {},
         {},
         {{}, {{"queue", queue.name}}}});
  }
  const auto batch = state.batches.find(job.batch);
  if (batch != state.batches.end() && batch->second.open) {
    const auto open = state.submissions.find(job.batch);
    Reason reason{
        Kind::submitting, std::string("its batch was given up and is being removed"), {}, {}};
    if (open != state.submissions.end()) {
      reason.text = fmt::format("its batch is still being submitted, {} of {} so far",
                                open->second.arrived, open->second.head.count);
      reason.facts.numbers = {{"arrived", open->second.arrived},
                              {"total", open->second.head.count}};
    }
    reasons.push_back(std::move(reason));
  }
  if (!job.expedited && batch != state.batches.end() && !batch->second.has_room()) {
    reasons.push_back(
        {Kind::batch_limit,
         run_already(batch->second.running, " of its batch", "max_concurrent of the batch",
                     batch->second.max_concurrent),
         {},
         {},
         {{{"running", batch->second.running}, {"limit", batch->second.max_concurrent}}}});
  }
  if (job.expedited) {
    // Neither limit nor order of its queue counts.
  } else if (!queue.has_room()) {
    reasons.push_back(
        {Kind::queue_limit,
         fmt::format("queue '{}' runs {} at a time and is busy", queue.name, queue.limit),
         {},
         {},
         {{{"limit", queue.limit}}, {{"queue", queue.name}}}});
  } else if (queue.waits_for_retry() && !job.delayed) {
    reasons.push_back(waits_for_retry(state, queue, room.now()));
  } else if (queue.limit == 1 && job.ready()) {
    if (const OrderKey* first = state.ready.first(job.queue); first && first->job != job.id) {
      reasons.push_back(
          {Kind::queue_order,
           fmt::format("job {} goes first in the serial queue '{}'", first->job.value, queue.name),
           {first->job},
           {},
           {{}, {{"queue", queue.name}}}});
    }
  }
  explain_places(state, job, reasons);
  Wish wish = wish_of(state, job);
  wish.before_hold = room.held() && goes_before(state, job, *room.held(), room.now());
  explain_room(state, wish, room, reasons);
  const bool looked_at =
      std::ranges::find(state.recheck_shapes, job.shape) == state.recheck_shapes.end();
  if (reasons.empty() && wish.before_hold && looked_at) {
    // It did not go before the one that cards are kept for when it was looked at. Shares have
    // changed since, and who gets the cards now is for the next look at everything.
    wish.before_hold = false;
    explain_room(state, wish, room, reasons);
  }
  if (reasons.empty()) {
    reasons.push_back({Kind::due, "nothing stands in its way; it starts in a moment", {}, {}});
  }
  return reasons;
}

}  // namespace berth
