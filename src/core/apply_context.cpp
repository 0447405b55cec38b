#include "core/apply_context.hpp"

#include <deque>
#include <utility>

#include <fmt/format.h>

#include "base/assert.hpp"
#include "core/state_ops.hpp"

namespace berth {

void ApplyContext::history(std::string kind, const Job& job, AttemptId attempt,
                           std::string detail) {
  step.changes.push_back(
      change::History{std::move(kind), job.id, attempt, job.batch, std::move(detail), now.wall});
}

void ApplyContext::write(const Job& job, std::optional<std::int32_t> exit_code,
                         std::optional<FailureClass> failure, std::string message) {
  const auto attempt = state.attempts.find(job.attempt);
  step.changes.push_back(change::JobUpdate{
      job.id, job.state, exit_code, failure, std::move(message), job.attempts, job.retries_used,
      job.kill_requested, now.wall,
      attempt == state.attempts.end() ? std::nullopt : attempt->second.kill_grace});
}

QueueId ApplyContext::queue_named(const std::string& name) {
  if (const auto it = state.queue_names.find(name); it != state.queue_names.end()) {
    return it->second;
  }
  const QueueId id{++state.last_queue.value};
  state.queues.emplace(id, Queue{id, name, 0, 0, false});
  state.queue_names.emplace(name, id);
  step.changes.push_back(change::QueuePut{id, {name, 0}, false});
  return id;
}

void ApplyContext::retire(JobId ended) {
  // A work list, not recursion: chains can be long.
  std::deque<JobId> work{ended};
  while (!work.empty()) {
    const auto node = state.jobs.extract(work.front());
    retired.insert(work.front());
    work.pop_front();
    const Job& job = node.mapped();
    BERTH_ASSERT(is_terminal(job.state));
    state_ops::forget_rank(state, job.id);
    if (const auto batch = state.batches.find(job.batch);
        batch != state.batches.end() && --batch->second.live == 0) {
      state.batches.erase(batch);
    }
    const auto followers = state.dependents.extract(job.id);
    if (followers.empty()) {
      continue;
    }
    for (const JobId id : followers.mapped()) {
      const auto it = state.jobs.find(id);
      if (it == state.jobs.end() || !it->second.waits()) {
        continue;
      }
      Job& follower = it->second;
      if (job.state == JobState::succeeded) {
        std::erase(state.pending.at(id), job.id);
        if (--follower.waiting_for == 0) {
          state.pending.erase(id);
          if (follower.state == JobState::queued) {
            state_ops::enqueue(state, follower);
          }
        }
        continue;
      }
      const std::string why = fmt::format("job {}, which it was to follow, {}", job.id.value,
                                          job.state == JobState::failed   ? "failed"
                                          : job.state == JobState::killed ? "was killed"
                                                                          : "was cancelled");
      cancel(follower, why);
      work.push_back(id);
    }
  }
}

void ApplyContext::end_expedition(Job& job) {
  if (job.expedited) {
    job.expedited = false;
    change::JobSet set;
    set.id = job.id;
    set.expedited = false;
    step.changes.push_back(std::move(set));
  }
}

void ApplyContext::cancel(Job& job, const std::string& why) {
  if (job.waiting_for != 0) {
    state.pending.erase(job.id);
  } else if (job.state == JobState::queued) {
    state_ops::dequeue(state, job);
  }
  job.state = JobState::cancelled;
  write(job, {}, {}, why);
  history("cancelled", job, {}, why);
  state.recheck_all = true;
}

}  // namespace berth
