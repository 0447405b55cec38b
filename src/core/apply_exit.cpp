// What becomes of a job when an attempt has ended.

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "core/apply_context.hpp"
#include "core/classify.hpp"
#include "core/health.hpp"
#include "core/retry.hpp"

namespace berth {
namespace {

/// Closes an attempt: its GPUs are `ending` until a later sample shows them free.
Attempt close(ApplyContext& c, AttemptId id) {
  auto node = c.state.attempts.extract(id);
  Attempt attempt = std::move(node.mapped());
  for (Gpu& gpu : c.state.gpus) {
    for (Claim& claim : gpu.claims) {
      if (claim.attempt == id) {
        claim.ended = c.now.mono;
      }
    }
  }
  std::erase_if(c.state.strays, [id](const auto& stray) { return stray.first == id; });
  if (!attempt.gpus.empty()) {
    c.step.effects.push_back(effect::Sample{});
  }
  c.step.effects.push_back(effect::Forget{id});
  return attempt;
}

/// Whoever paused a job has not said that it may run again: it is held.
void back_to_waiting(State& state, Job& job, const Attempt& attempt) {
  const bool held = job.state == JobState::paused && !attempt.parked();
  job.state = held ? JobState::paused : JobState::queued;
  state_ops::note_held(state, job);
}

void leave_attempt(ApplyContext& c, Job& job, const Attempt& attempt, const Verdict& verdict) {
  c.step.changes.push_back(change::AttemptEnd{attempt.id, false, verdict, c.now.wall});
  state_ops::vacate(c.state, job, attempt, c.now);
  if (!attempt.gpus.empty()) {
    c.note_usage(job);
  }
  job.attempt = {};
}

/// Of the cards a job may have.
std::optional<Bytes> largest_card(const State& state, const Rules& rules) {
  std::optional<Bytes> largest;
  for (const Gpu& gpu : state.gpus) {
    const bool allowed =
        rules.gpus.empty() || std::ranges::any_of(rules.gpus, [&gpu](const std::string& name) {
          return name == gpu.facts.uuid || name == fmt::format("{}", gpu.facts.index);
        });
    if (allowed && gpu.facts.memory_total && !state.drains.contains(gpu.facts.uuid)) {
      largest = std::max(largest.value_or(0), *gpu.facts.memory_total);
    }
  }
  return largest;
}

RetryCase case_of(const State& state, const Job& job, const Attempt& attempt,
                  const Evidence& evidence) {
  const Rules& rules = state.rules_of(job);
  RetryCase known;
  known.request = state.request(job);
  known.retries = job.retries;
  known.retries_used = job.retries_used;
  known.excused = job.excused;
  known.lot = static_cast<std::uint64_t>(random_turn(rules.seed + attempt.id.value, job.id));
  known.card = evidence.card;
  known.largest = largest_card(state, rules);
  known.peak = evidence.peak;
  return known;
}

/// What the last look at the card showed of others.
Bytes held_beside(const State& state, const std::string& uuid, AttemptId attempt) {
  const Gpu* gpu = state.gpu(uuid);
  Bytes held = 0;
  if (gpu != nullptr && gpu->facts.processes) {
    for (const GpuProcess& process : *gpu->facts.processes) {
      held += process.attempt == attempt ? 0 : process.memory.value_or(0);
    }
  }
  return held;
}

/// What the failure says of the cards: one may be broken, others may be better for this job.
void learn_of_cards(ApplyContext& c, const Job& job, const Attempt& attempt, const Finding& finding,
                    const Retry& retry) {
  // A message does not say which of several cards it means.
  const Gpu* only = attempt.gpus.size() == 1 ? c.state.gpu(attempt.gpus.front()) : nullptr;
  if (finding.drain && only != nullptr) {
    c.drain(*only, reported_sickness(job.id, finding.what));
  }
  if (!retry.again) {
    return;
  }
  if (!attempt.gpus.empty() &&
      (finding.failure == FailureClass::gpu_oom || finding.failure == FailureClass::gpu_lost)) {
    c.state.bereft.insert_or_assign(job.id, c.now.mono);
  }
  if (!retry.elsewhere) {
    return;
  }
  std::vector<Avoided>& avoiding = c.state.avoiding[job.id];
  for (const std::string& uuid : attempt.gpus) {
    std::erase_if(avoiding, [&uuid](const Avoided& avoided) { return avoided.gpu == uuid; });
    const Bytes seen = held_beside(c.state, uuid, attempt.id);
    const Bytes told = finding.figures ? finding.figures->others.value_or(0) : 0;
    avoiding.push_back({uuid, finding.failure == FailureClass::gpu_lost, seen > 0 ? seen : told});
  }
}

void try_again(ApplyContext& c, Job& job, const Attempt& attempt, const Verdict& verdict,
               const Retry& retry, const std::string& message) {
  job.retries_used += retry.charge == Charge::retries ? 1 : 0;
  job.excused += retry.charge == Charge::excused ? 1 : 0;
  back_to_waiting(c.state, job, attempt);
  c.end_expedition(job);
  if (retry.request) {
    state_ops::set_shape(c.state, job, *retry.request);
    change::JobSet set;
    set.id = job.id;
    set.request = retry.request;
    c.step.changes.push_back(std::move(set));
  }
  if (retry.wait > Millis{0}) {
    state_ops::delay(c.state, job,
                     {c.now.mono + retry.wait, c.now.wall + retry.wait, /*backing_off=*/true});
  }
  c.write(job, verdict.exit_code, verdict.failure, message);
  c.history(retry.charge == Charge::nobody && !retry.request ? "requeued" : "retried", job,
            attempt.id, message);
  if (job.ready()) {
    state_ops::enqueue(c.state, job, c.now);
  }
}

Result<Answer> after_failure(ApplyContext& c, Job& job, const Attempt& attempt, Verdict verdict,
                             std::string_view log_end) {
  const Evidence evidence = gather_evidence(c.state, attempt, log_end);
  const Finding finding = classify(verdict, evidence);
  const Retry retry =
      plan_retry(finding, case_of(c.state, job, attempt, evidence), c.state.rules_of(job).retry);
  verdict.failure = finding.failure;
  verdict.message = finding.what;
  leave_attempt(c, job, attempt, verdict);
  learn_of_cards(c, job, attempt, finding, retry);
  const std::string message =
      retry.next.empty() ? finding.what : fmt::format("{}; {}", finding.what, retry.next);
  if (retry.again) {
    try_again(c, job, attempt, verdict, retry, message);
    return Answer{};
  }
  job.state = JobState::failed;
  c.write(job, verdict.exit_code, verdict.failure, message);
  c.history("failed", job, attempt.id, message);
  c.retire(job.id);
  return Answer{};
}

}  // namespace

Result<Answer> apply_exit(ApplyContext& c, const event::AttemptExited& exited) {
  if (!c.state.attempts.contains(exited.attempt)) {
    return fail(ErrorCode::not_found, fmt::format("attempt {} is not open", exited.attempt.value));
  }
  const Attempt attempt = close(c, exited.attempt);
  Job& job = c.state.jobs.at(attempt.job);
  Verdict verdict = exited.verdict;
  // Who was told to make room and ends well has saved its work, which is not to say that it is
  // done.
  const bool gave_way = attempt.leaves() && attempt.gives_way != GivesWay::gpu_lost;
  const bool failed = verdict.failure || verdict.killed || gave_way;
  const bool killed = failed && (job.kill_requested || (verdict.killed && !attempt.leaves()));
  if (failed && !killed) {
    return after_failure(c, job, attempt, std::move(verdict), exited.log_end);
  }
  leave_attempt(c, job, attempt, verdict);
  job.state = killed ? JobState::killed : JobState::succeeded;
  c.write(job, verdict.exit_code, std::nullopt, verdict.message);
  c.history(std::string(to_string(job.state)), job, attempt.id, verdict.message);
  c.retire(job.id);
  return Answer{};
}

Result<Answer> apply_revoked(ApplyContext& c, event::AttemptRevoked revoked) {
  if (!c.state.attempts.contains(revoked.attempt)) {
    return fail(ErrorCode::not_found, fmt::format("attempt {} is not open", revoked.attempt.value));
  }
  const Attempt attempt = close(c, revoked.attempt);
  Job& job = c.state.jobs.at(attempt.job);
  Verdict verdict;
  verdict.message = std::move(revoked.why);
  verdict.ended_wall = c.now.wall;
  c.step.changes.push_back(change::AttemptEnd{attempt.id, true, verdict, c.now.wall});
  state_ops::vacate(c.state, job, attempt, c.now);
  if (!attempt.gpus.empty()) {
    c.note_usage(job);
  }
  job.attempt = {};
  --job.attempts;
  if (job.kill_requested) {
    job.state = JobState::killed;
    c.write(job, {}, {}, "killed before its command ran");
    c.history("killed", job, attempt.id);
    c.retire(job.id);
    return Answer{};
  }
  back_to_waiting(c.state, job, attempt);
  c.write(job, {}, {}, verdict.message);
  c.history("revoked", job, attempt.id, verdict.message);
  if (job.state == JobState::queued) {
    state_ops::enqueue(c.state, job, c.now);
  }
  return Answer{};
}

}  // namespace berth
