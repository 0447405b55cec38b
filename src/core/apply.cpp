#include "core/apply.hpp"

#include <algorithm>
#include <set>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "core/apply_context.hpp"
#include "core/state_ops.hpp"

namespace berth {
namespace {

using Context = ApplyContext;

Result<Answer> on(Context& c, event::Submit submit) {
  return apply_submit(c, std::move(submit));
}
Result<Answer> on(Context& c, event::SubmitBegin begin) {
  return apply_begin(c, std::move(begin));
}
Result<Answer> on(Context& c, event::SubmitPart part) {
  return apply_part(c, std::move(part));
}
Result<Answer> on(Context& c, const event::SubmitEnd& end) {
  return apply_end(c, end);
}
Result<Answer> on(Context& c, const event::SubmitAbort& abort) {
  return apply_abort(c, abort);
}

Result<Answer> on(Context& c, const event::Kill& kill) {
  Killed answer;
  std::unordered_set<JobId> seen;
  for (const JobId id : kill.jobs) {
    if (!seen.insert(id).second) {
      continue;
    }
    const auto it = c.state.jobs.find(id);
    if (it == c.state.jobs.end()) {
      // It may have been there a moment ago, and have ended with one it was to follow.
      (c.retired.contains(id) ? answer.cancelled : answer.unknown).push_back(id);
      continue;
    }
    Job& job = it->second;
    if (job.waits()) {
      c.cancel(job, "cancelled on request");
      c.retire(id);
      answer.cancelled.push_back(id);
      continue;
    }
    answer.killed.push_back(id);
    // Kept for a daemon that has to say it again. Asked again: only ever sooner.
    std::optional<Millis>& grace = c.state.attempts.at(job.attempt).kill_grace;
    const bool sooner = kill.grace && (!grace || *kill.grace < *grace);
    if (sooner) {
      grace = kill.grace;
    }
    if (!job.kill_requested) {
      c.history("kill_requested", job, job.attempt);
    }
    if (sooner || !job.kill_requested) {
      job.kill_requested = true;
      c.write(job);
    }
    c.step.effects.push_back(effect::Kill{job.attempt, kill.grace});
  }
  return answer;
}

Result<Answer> on(Context& c, const event::Pause& pause) {
  return apply_pause(c, pause);
}
Result<Answer> on(Context& c, const event::Resume& resume) {
  return apply_resume(c, resume);
}
Result<Answer> on(Context& c, const event::PauseQueue& pause) {
  return apply_pause_queue(c, pause);
}
Result<Answer> on(Context& c, const event::Move& move) {
  return apply_move(c, move);
}
Result<Answer> on(Context& c, const event::Expedite& expedite) {
  return apply_expedite(c, expedite);
}
Result<Answer> on(Context& c, const event::Revive& revive) {
  return apply_revive(c, revive);
}
Result<Answer> on(Context& c, const event::SetJobs& set) {
  return apply_set_jobs(c, set);
}
Result<Answer> on(Context& c, const event::SetRules& set) {
  return apply_set_rules(c, set);
}
Result<Answer> on(Context& c, const event::Remove& remove) {
  return apply_remove(c, remove);
}

Result<Answer> on(Context& c, const event::PauseInstance& pause) {
  return apply_pause_instance(c, pause);
}
Result<Answer> on(Context& c, const event::DrainGpu& drain) {
  return apply_drain(c, drain);
}
Result<Answer> on(Context& c, const event::AttemptExited& exited) {
  return apply_exit(c, exited);
}
Result<Answer> on(Context& c, event::AttemptRevoked revoked) {
  return apply_revoked(c, std::move(revoked));
}
Result<Answer> on(Context& c, event::Sampled sampled) {
  return apply_sample(c, std::move(sampled));
}

Result<Answer> on(Context& c, event::BoardRead read) {
  if (c.state.board != read.held) {
    c.state.board = std::move(read.held);
    c.state.recheck_all = true;
  }
  return Answer{};
}

Result<Answer> on(Context& c, event::ProbeFailed failed) {
  c.state.probe_error = std::move(failed.why);
  c.state.seen.reset();
  c.state.host_available = failed.host_available;
  c.state.host_seen = c.now.mono;
  c.state.recheck_all = true;  // for those that want no card
  for (Gpu& gpu : c.state.gpus) {
    gpu.known = false;
  }
  return Answer{};
}

Result<Answer> on(Context& c, event::SpaceChanged space) {
  c.state.low_space = space.low;
  c.state.space_detail = std::move(space.detail);
  c.state.recheck_all = true;
  return Answer{};
}

Result<Answer> on(Context& c, const event::SetHost& set) {
  c.state.host = set.host;
  c.state.recheck_all = true;
  return Answer{};
}

Result<Answer> on(Context& c, const event::Continue&) {
  c.state.continuing = false;
  c.go_on();
  return Answer{};
}

Result<Answer> on(Context& c, const event::Tick&) {
  c.state.recheck_all = true;
  c.pass_time();
  c.go_on();
  return Answer{};
}

}  // namespace

Result<Answer> apply(State& state, Event event, Now now, Step& step) {
  Context context{state, now, step, {}, kSlice};
  state.looks_again = false;
  return std::visit([&](auto&& e) { return on(context, std::forward<decltype(e)>(e)); },
                    std::move(event));
}

namespace {

void stop(GpuWait& wait, Millis now) {
  wait.reading = wait.now(now);
  wait.running_since.reset();
}

/// In a serial queue only the first waits for GPUs; the others wait for it.
void count_only(State& state, GpuWait& wait, JobId job, Millis now) {
  if (wait.came.contains(job)) {
    return;
  }
  for (const auto& [id, came] : wait.came) {
    state.waited[id] = wait.now(now) - came;
  }
  const auto before = state.waited.find(job);
  const Millis came = wait.now(now) - (before == state.waited.end() ? Millis{0} : before->second);
  wait.came = {{job, came}};
  wait.jobs = {{came, job}};
}

/// Clocks of those who do not wait for ever run while nothing but missing GPUs holds them.
void run_clocks(State& state, const Decision& decision, Now now) {
  std::set<std::pair<LaneKey, ShapeId>> seen;
  for (const Waiting& waiting : decision.waits) {
    const std::pair key{waiting.lane, waiting.shape};
    seen.insert(key);
    if (waiting.lane.queue && state.queues.at(waiting.lane.queue).limit == 1) {
      count_only(state, state.gpu_waits[key], waiting.job, now.mono);
    }
    const auto it = state.gpu_waits.find(key);
    if (it == state.gpu_waits.end()) {
      continue;
    }
    GpuWait& wait = it->second;
    if (waiting.only_gpus && !wait.running_since) {
      wait.running_since = now.mono;
    } else if (!waiting.only_gpus && wait.running_since) {
      stop(wait, now.mono);
    }
  }
  if (!decision.complete && !decision.shut) {
    return;
  }
  // Who was not looked at is held by something else.
  for (auto& [key, wait] : state.gpu_waits) {
    if (wait.running_since && !seen.contains(key)) {
      stop(wait, now.mono);
    }
  }
}

/// Asks to be called when time alone changes something.
void ask_to_be_woken(State& state, Now now, Step& step) {
  if (state.waking && *state.waking <= now.mono) {
    state.waking.reset();
  }
  const auto wake = next_wake(state, now);
  if (wake && (!state.waking || *wake < *state.waking)) {
    state.waking = std::max(*wake, now.mono + Millis{1});
    step.effects.push_back(effect::Wake{*state.waking});
  }
}

void start(Context& c, const Placement& placement) {
  State& state = c.state;
  Job& job = state.jobs.at(placement.job);
  const Request& request = state.request(job);
  state_ops::dequeue(state, job, c.now);
  Attempt attempt;
  attempt.id = AttemptId{++state.last_attempt.value};
  attempt.job = job.id;
  attempt.number = ++job.attempts;
  attempt.gpu_memory = request.gpu_memory.value_or(0);
  attempt.started = c.now.mono;
  std::vector<std::uint32_t> indices;
  for (const std::size_t gpu : placement.gpus) {
    attempt.gpus.push_back(state.gpus[gpu].facts.uuid);
    indices.push_back(state.gpus[gpu].facts.index);
    state.last_gpu = attempt.gpus.back();
  }
  job.state = JobState::running;
  job.attempt = attempt.id;
  job.aged = false;
  job.clocked = false;
  state.waited.erase(job.id);
  state.bereft.erase(job.id);
  state_ops::claim(state, attempt, c.now.mono);
  state_ops::occupy(state, job, attempt, c.now);
  c.write(job);
  c.step.changes.push_back(change::AttemptPut{attempt.id, job.id, attempt.number, attempt.gpus,
                                              indices, attempt.gpu_memory, c.now.wall});
  c.history("started", job, attempt.id);
  c.step.prepare.push_back(attempt.id);
  c.step.effects.push_back(effect::Start{attempt.id, job.id, attempt.number, attempt.gpus,
                                         std::move(indices), state.rules_of(job).cpu_affinity,
                                         job.batch});
  state.attempts.emplace(attempt.id, std::move(attempt));
}

void preempt(Context& c, const Preemption& preemption) {
  c.give_way(c.state.attempts.at(preemption.attempt), GivesWay::preempted,
             fmt::format("to job {}, which is of higher priority", preemption.by.value));
}

}  // namespace

void apply(State& state, const Decision& decision, Now now, Step& step) {
  Context c{state, now, step, {}, kSlice};
  state.recheck_shapes.clear();
  // Who waits behind cards that are no longer kept may have them with the next decision.
  state.recheck_all = decision.look_again || (state.hold && !decision.hold && !decision.complete);
  state.looks_again = state.recheck_all;
  state.hold = decision.hold;
  state.expected = decision.expected;
  state.look_after = std::max(state.look_after, decision.look_after);
  if (decision.complete) {
    state.look_within = decision.look_within;
  } else if (decision.look_within) {
    state.look_within =
        std::min(state.look_within.value_or(*decision.look_within), *decision.look_within);
  }
  run_clocks(state, decision, now);
  for (const Placement& placement : decision.start) {
    start(c, placement);
  }
  for (const Preemption& preemption : decision.preempt) {
    preempt(c, preemption);
  }
  if (decision.want_sample) {
    step.effects.push_back(effect::Sample{});
  }
  ask_to_be_woken(state, now, step);
}

}  // namespace berth
