#include "core/apply_context.hpp"

#include <algorithm>
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
  const auto delay = state.delays.find(job.id);
  step.changes.push_back(
      change::JobUpdate{job.id, job.state, exit_code, failure, std::move(message), job.attempts,
                        job.retries_used, job.kill_requested, now.wall,
                        attempt == state.attempts.end() ? std::nullopt : attempt->second.kill_grace,
                        delay == state.delays.end() ? Millis{0} : delay->second.wall, job.excused});
}

void ApplyContext::note_usage(const Job& job) {
  const auto put = [this](bool batch, std::uint64_t id, const Usage& usage) {
    step.changes.push_back(
        change::UsagePut{batch, id, usage.now(now.mono, state.rules.half_life), now.wall});
  };
  if (const auto it = state.used_by_owner.find(job.owner); it != state.used_by_owner.end()) {
    put(false, job.owner, it->second);
  }
  if (const auto it = state.used_by_batch.find(job.batch); it != state.used_by_batch.end()) {
    put(true, job.batch.value, it->second);
  }
}

QueueId ApplyContext::queue_named(const std::string& name) {
  if (const auto it = state.queue_names.find(name); it != state.queue_names.end()) {
    return it->second;
  }
  const QueueId id{++state.last_queue.value};
  state.queues.emplace(id, Queue{id, name, 0, 0, false, {}});
  state.queue_names.emplace(name, id);
  step.changes.push_back(change::QueuePut{id, {name, 0}, false});
  return id;
}

void ApplyContext::set_limit(Queue& queue, std::uint32_t limit) {
  const bool serial_before = queue.limit == 1;
  queue.limit = limit;
  state_ops::refresh_queue(state, queue.id);
  state.recheck_all = true;
  // Inside a serial queue jobs stand in the order they came, elsewhere as `order` says, and all of
  // them wait for GPUs.
  bool differs = false;
  state.shapes.for_each([&](ShapeId, const Shape& shape) {
    differs = differs || (shape.key.queue == queue.id &&
                          (shape.rules.order != Order::fifo || shape.rules.max_wait > Millis{0}));
  });
  if (differs && serial_before != (limit == 1)) {
    state.reordering.push_back({{}, JobId{1}, state.last_job});
    go_on();
  }
}

void ApplyContext::retire(JobId ended) {
  leave(ended);
  go_on();
}

void ApplyContext::go_on() {
  settle();
  drop();
  reorder();
  if ((!state.settling.empty() || !state.dropping.empty() || !state.reordering.empty()) &&
      !state.continuing) {
    state.continuing = true;
    step.effects.push_back(effect::Continue{});
  }
}

void ApplyContext::forget(Job& job) {
  state_ops::end_delay(state, job);
  state_ops::forget_rank(state, job.id);
  state_ops::forget_shape(state, job);
  state.held.erase(job.id);
  state.waited.erase(job.id);
  state.avoiding.erase(job.id);
  state.bereft.erase(job.id);
}

void ApplyContext::leave(JobId ended) {
  auto node = state.jobs.extract(ended);
  retired.insert(ended);
  Job& job = node.mapped();
  BERTH_ASSERT(is_terminal(job.state));
  forget(job);
  if (const auto batch = state.batches.find(job.batch);
      batch != state.batches.end() && --batch->second.live == 0 && !batch->second.open) {
    state.used_by_batch.erase(job.batch);
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
    // One that ended and lives again may stand in the list twice, or not mind any more.
    const auto pending = state.pending.find(id);
    if (pending == state.pending.end() ||
        std::ranges::find(pending->second, front.ended) == pending->second.end()) {
      continue;
    }
    Job& follower = it->second;
    if (is_as_wanted(follower.after_kind, front.as)) {
      std::erase(pending->second, front.ended);
      if (--follower.waiting_for == 0) {
        state.pending.erase(id);
        if (follower.ready()) {
          state_ops::enqueue(state, follower, now);
        }
      }
      continue;
    }
    cancel(follower, fmt::format("job {}, which it was to follow, {}", front.ended.value,
                                 front.as == JobState::succeeded ? "succeeded"
                                 : front.as == JobState::failed  ? "failed"
                                 : front.as == JobState::killed  ? "was killed"
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
        if (it->second.ready()) {
          state_ops::dequeue(state, it->second, now);
        }
        forget(it->second);
        if (auto pending = state.pending.extract(front.next); !pending.empty()) {
          for (const JobId id : pending.mapped()) {
            if (id > front.last) {
              state.dependents.erase(id);  // of a part that never came
            }
          }
        }
        state.dependents.erase(front.next);
        state.jobs.erase(front.next);
      }
      removed.ids.push_back(front.next);
    }
    if (!removed.ids.empty()) {
      step.changes.push_back(std::move(removed));
    }
    if (!front.next || front.next > front.last) {
      state.used_by_batch.erase(front.batch);
      state.batches.erase(front.batch);
      step.changes.push_back(change::BatchRemove{front.batch});
      state.dropping.pop_front();
    }
  }
}

void ApplyContext::reorder() {
  while (!state.reordering.empty() && budget > 0) {
    Reordering& front = state.reordering.front();
    for (; front.next <= front.last && budget > 0; ++front.next.value, --budget) {
      const auto it = state.jobs.find(front.next);
      if (it != state.jobs.end() && it->second.ready() &&
          (!front.batch || it->second.batch == front.batch)) {
        state_ops::dequeue(state, it->second, now);
        state_ops::enqueue(state, it->second, now);
      }
    }
    if (front.next > front.last) {
      state.reordering.pop_front();
      state.recheck_all = true;
    }
  }
}

void ApplyContext::pass_time() {
  for (; !state.delays_in_order.empty() && state.delays_in_order.begin()->first <= now.mono &&
         budget > 0;
       --budget) {
    Job& job = state.jobs.at(state.delays_in_order.begin()->second);
    // The store keeps the moment: from then on it has waited, also for the next daemon.
    state_ops::end_delay(state, job);
    if (job.ready()) {
      state_ops::enqueue(state, job, now);
    }
  }
  for (; state.rules.aging > Millis{0} && !state.wait_clocks.empty() && budget > 0; --budget) {
    const auto [since, id] = state.wait_clocks.front();
    if (since + state.rules.aging > now.mono) {
      break;
    }
    state.wait_clocks.pop_front();
    const auto it = state.jobs.find(id);
    if (it == state.jobs.end() || !it->second.clocked || it->second.since != since ||
        it->second.aged) {
      continue;
    }
    Job& job = it->second;
    if (job.ready()) {
      state_ops::dequeue(state, job, now);
    }
    job.aged = true;
    if (job.ready()) {
      state_ops::enqueue(state, job, now);
    }
  }
  // Whoever has waited long enough for a card does not want one any more.
  std::vector<JobId> given_up;
  for (const auto& [key, wait] : state.gpu_waits) {
    const Millis limit = state.shapes.at(key.second).rules.max_wait;
    const Millis reading = wait.now(now.mono);
    for (const auto& [came, id] : wait.jobs) {
      if (!wait.running_since || limit == Millis{0} || reading - came < limit ||
          given_up.size() >= budget) {
        break;
      }
      given_up.push_back(id);
    }
  }
  for (const JobId id : given_up) {
    Job& job = state.jobs.at(id);
    cancel(job, fmt::format("no GPU for it within {}, its max_wait",
                            format_duration(state.rules_of(job).max_wait)));
    retire(id);
  }
}

void ApplyContext::drain(const Gpu& gpu, const std::string& why) {
  if (!state.drains.emplace(gpu.facts.uuid, why).second) {
    return;
  }
  step.changes.push_back(change::DrainPut{gpu.facts.uuid, true, why, now.wall});
  step.changes.push_back(change::History{
      "drained", {}, {}, {}, fmt::format("GPU {}: {}", gpu.facts.index, why), now.wall});
}

void ApplyContext::give_way(Attempt& attempt, GivesWay why, const std::string& detail) {
  Job& job = state.jobs.at(attempt.job);
  if (attempt.leaves() || job.kill_requested) {
    return;
  }
  if (attempt.parked()) {
    unpark(attempt);  // or its job would be held, as one that somebody has paused
  }
  attempt.gives_way = why;
  step.changes.push_back(change::AttemptGivesWay{attempt.id, why});
  history("gives_way", job, attempt.id, detail);
  step.effects.push_back(effect::Kill{attempt.id, {}, why != GivesWay::gpu_lost});
}

void ApplyContext::park(Attempt& attempt) {
  Job& job = state.jobs.at(attempt.job);
  attempt.gives_way = GivesWay::parked;
  job.state = JobState::paused;
  step.changes.push_back(change::AttemptGivesWay{attempt.id, attempt.gives_way});
  write(job);
}

void ApplyContext::unpark(Attempt& attempt) {
  Job& job = state.jobs.at(attempt.job);
  attempt.gives_way.reset();
  job.state = JobState::running;
  step.changes.push_back(change::AttemptGivesWay{attempt.id, std::nullopt});
  write(job);
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
  } else if (job.ready()) {
    state_ops::dequeue(state, job, now);
  }
  state_ops::end_delay(state, job);
  job.state = JobState::cancelled;
  write(job, {}, {}, why);
  history("cancelled", job, {}, why);
  state.recheck_all = true;
}

}  // namespace berth
