#include "core/apply.hpp"

#include <algorithm>
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
Result<Answer> on(Context& c, const event::SetJobs& set) {
  return apply_set_jobs(c, set);
}
Result<Answer> on(Context& c, const event::SetRules& set) {
  return apply_set_rules(c, set);
}
Result<Answer> on(Context& c, const event::Remove& remove) {
  return apply_remove(c, remove);
}

/// Closes an attempt: its GPUs are `ending` until a later sample shows them free.
Attempt close(Context& c, AttemptId id) {
  auto node = c.state.attempts.extract(id);
  Attempt attempt = std::move(node.mapped());
  for (Gpu& gpu : c.state.gpus) {
    for (Claim& claim : gpu.claims) {
      if (claim.attempt == id) {
        claim.ended = c.now.mono;
      }
    }
  }
  if (!attempt.gpus.empty()) {
    c.step.effects.push_back(effect::Sample{});
  }
  c.step.effects.push_back(effect::Forget{id});
  return attempt;
}

/// Whoever paused a job has not said that it may run again: it is held.
void back_to_waiting(Job& job) {
  job.state = job.state == JobState::paused ? JobState::paused : JobState::queued;
}

Result<Answer> on(Context& c, event::AttemptExited exited) {
  if (!c.state.attempts.contains(exited.attempt)) {
    return fail(ErrorCode::not_found, fmt::format("attempt {} is not open", exited.attempt.value));
  }
  const Attempt attempt = close(c, exited.attempt);
  Job& job = c.state.jobs.at(attempt.job);
  const Verdict& verdict = exited.verdict;
  c.step.changes.push_back(change::AttemptEnd{attempt.id, false, verdict, c.now.wall});
  state_ops::vacate(c.state, job);
  job.attempt = {};
  const bool killed = verdict.killed || (job.kill_requested && verdict.failure);
  if (!killed && verdict.failure && job.retries_used < job.retries) {
    ++job.retries_used;
    back_to_waiting(job);
    c.write(job, verdict.exit_code, verdict.failure, verdict.message);
    c.history("retried", job, attempt.id, verdict.message);
    c.end_expedition(job);
    if (job.state == JobState::queued) {
      state_ops::enqueue(c.state, job);
    }
    return Answer{};
  }
  job.state = killed ? JobState::killed : verdict.failure ? JobState::failed : JobState::succeeded;
  c.write(job, verdict.exit_code, killed ? std::nullopt : verdict.failure, verdict.message);
  c.history(std::string(to_string(job.state)), job, attempt.id, verdict.message);
  c.retire(job.id);
  return Answer{};
}

Result<Answer> on(Context& c, event::AttemptRevoked revoked) {
  if (!c.state.attempts.contains(revoked.attempt)) {
    return fail(ErrorCode::not_found, fmt::format("attempt {} is not open", revoked.attempt.value));
  }
  const Attempt attempt = close(c, revoked.attempt);
  Job& job = c.state.jobs.at(attempt.job);
  Verdict verdict;
  verdict.message = std::move(revoked.why);
  verdict.ended_wall = c.now.wall;
  c.step.changes.push_back(change::AttemptEnd{attempt.id, true, verdict, c.now.wall});
  state_ops::vacate(c.state, job);
  job.attempt = {};
  --job.attempts;
  if (job.kill_requested) {
    job.state = JobState::killed;
    c.write(job, {}, {}, "killed before its command ran");
    c.history("killed", job, attempt.id);
    c.retire(job.id);
    return Answer{};
  }
  back_to_waiting(job);
  c.write(job, {}, {}, verdict.message);
  c.history("revoked", job, attempt.id, verdict.message);
  if (job.state == JobState::queued) {
    state_ops::enqueue(c.state, job);
  }
  return Answer{};
}

Result<Answer> on(Context& c, event::Sampled sampled) {
  State& state = c.state;
  GpuSample& sample = sampled.sample;
  state.seen = c.now.mono;
  state.probe_error.clear();
  state.driver = sample.driver;
  std::vector<Gpu> gpus;
  for (GpuFacts& facts : sample.gpus) {
    Gpu gpu;
    gpu.known = true;
    gpu.sampled = sample.begun_mono;
    gpu.seen = c.now.mono;
    gpu.facts = std::move(facts);
    const auto old =
        std::ranges::find(state.gpus, gpu.facts.uuid, [](const Gpu& g) { return g.facts.uuid; });
    if (old != state.gpus.end()) {
      gpu.claims = std::move(old->claims);
      old->claims.clear();
      std::erase_if(gpu.claims, [&](const Claim& claim) {
        if (!claim.ended || sample.begun_mono < *claim.ended || !gpu.facts.trouble.empty()) {
          return false;
        }
        return !gpu.facts.processes ||
               std::ranges::none_of(*gpu.facts.processes, [&](const GpuProcess& process) {
                 return process.attempt == claim.attempt;
               });
      });
    }
    gpus.push_back(std::move(gpu));
  }
  for (Gpu& old : state.gpus) {
    if (!old.claims.empty()) {
      // Promised, but the driver no longer shows it.
      old.known = false;
      old.facts.trouble = "the driver no longer shows it";
      gpus.push_back(std::move(old));
    }
  }
  state.gpus = std::move(gpus);
  state.recheck_all = true;
  return Answer{};
}

Result<Answer> on(Context& c, event::ProbeFailed failed) {
  c.state.probe_error = std::move(failed.why);
  c.state.seen.reset();
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
  c.go_on();
  return Answer{};
}

}  // namespace

Result<Answer> apply(State& state, Event event, Now now, Step& step) {
  Context context{state, now, step, {}, kSlice};
  return std::visit([&](auto&& e) { return on(context, std::forward<decltype(e)>(e)); },
                    std::move(event));
}

void apply(State& state, const Decision& decision, Now now, Step& step) {
  Context c{state, now, step, {}, kSlice};
  state.recheck_all = false;
  state.recheck_shapes.clear();
  for (const Placement& placement : decision.start) {
    Job& job = state.jobs.at(placement.job);
    const Request& request = state.request(job);
    state_ops::dequeue(state, job);
    Attempt attempt;
    attempt.id = AttemptId{++state.last_attempt.value};
    attempt.job = job.id;
    attempt.number = ++job.attempts;
    attempt.gpu_memory = request.gpu_memory.value_or(0);
    std::vector<std::uint32_t> indices;
    for (const std::size_t gpu : placement.gpus) {
      attempt.gpus.push_back(state.gpus[gpu].facts.uuid);
      indices.push_back(state.gpus[gpu].facts.index);
    }
    job.state = JobState::running;
    job.attempt = attempt.id;
    state_ops::claim(state, attempt, now.mono);
    state_ops::occupy(state, job);
    c.write(job);
    step.changes.push_back(change::AttemptPut{attempt.id, job.id, attempt.number, attempt.gpus,
                                              indices, attempt.gpu_memory, now.wall});
    c.history("started", job, attempt.id);
    step.prepare.push_back(attempt.id);
    step.effects.push_back(
        effect::Start{attempt.id, job.id, attempt.number, attempt.gpus, std::move(indices)});
    state.attempts.emplace(attempt.id, std::move(attempt));
  }
  if (decision.want_sample) {
    step.effects.push_back(effect::Sample{});
  }
}

}  // namespace berth
