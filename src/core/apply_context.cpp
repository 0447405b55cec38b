#include "core/apply_context.hpp"

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
  leave(ended);
  go_on();
}

void ApplyContext::go_on() {
  settle();
  drop();
  if ((!state.settling.empty() || !state.dropping.empty()) && !state.continuing) {
    state.continuing = true;
    step.effects.push_back(effect::Continue{});
  }
}

void ApplyContext::leave(JobId ended) {
  const auto node = state.jobs.extract(ended);
  retired.insert(ended);
  const Job& job = node.mapped();
  BERTH_ASSERT(is_terminal(job.state));
  state_ops::forget_rank(state, ended);
  if (const auto batch = state.batches.find(job.batch);
      batch != state.batches.end() && --batch->second.live == 0 && !batch->second.open) {
    state.batches.erase(batch);
  }
  if (auto followers = state.dependents.extract(ended); !followers.empty()) {
    state.settling.push_back({ended, job.state, std::move(followers.mapped()), 0});
  }
}

void ApplyContext::settle() {
  while (!state.settling.empty() && budget > 0) {
    Settling& front = state.settling.front();
    if (front.next == front.followers.size()) {
      state.settling.pop_front();
      continue;
    }
    --budget;
    const JobId id = front.followers[front.next++];
    const auto it = state.jobs.find(id);
    if (it == state.jobs.end() || !it->second.waits()) {
      continue;
    }
    Job& follower = it->second;
    if (front.as == JobState::succeeded) {
      std::erase(state.pending.at(id), front.ended);
      if (--follower.waiting_for == 0) {
        state.pending.erase(id);
        if (follower.state == JobState::queued) {
          state_ops::enqueue(state, follower);
        }
      }
      continue;
    }
    cancel(follower, fmt::format("job {}, which it was to follow, {}", front.ended.value,
                                 front.as == JobState::failed   ? "failed"
                                 : front.as == JobState::killed ? "was killed"
                                                                : "was cancelled"));
    leave(id);
  }
}

void ApplyContext::drop() {
  while (!state.dropping.empty() && budget > 0) {
    Dropping& front = state.dropping.front();
    change::JobsRemove removed;
    for (; front.next && front.next <= front.last && budget > 0; ++front.next.value, --budget) {
      if (const auto it = state.jobs.find(front.next); it != state.jobs.end()) {
        // It stays in the lists of those it was to follow, where nobody minds it.
        if (it->second.state == JobState::queued && it->second.waiting_for == 0) {
          state_ops::dequeue(state, it->second);
        }
        state_ops::forget_rank(state, front.next);
        state.pending.erase(front.next);
        state.dependents.erase(front.next);
        state.jobs.erase(front.next);
      }
      removed.ids.push_back(front.next);
    }
    if (!removed.ids.empty()) {
      step.changes.push_back(std::move(removed));
    }
    if (!front.next || front.next > front.last) {
      state.batches.erase(front.batch);
      step.changes.push_back(change::BatchRemove{front.batch});
      state.dropping.pop_front();
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
