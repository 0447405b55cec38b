#pragma once
// The small moves that keep State's parts in step with each other. For `restore` and `apply` only.

#include "core/state.hpp"

namespace berth::state_ops {

[[nodiscard]] ShapeId intern(State& state, const Request& request);

/// Puts a queued job whose dependencies are met where a decision finds it, or takes it away.
void enqueue(State& state, const Job& job);
void dequeue(State& state, const Job& job);

/// Gives a job a place of its own. Only while it is not enqueued.
void set_rank(State& state, const Job& job, std::int64_t rank);
void forget_rank(State& state, JobId id);

/// Counts a running job in everything that is limited, or out of it again.
void occupy(State& state, const Job& job);
void vacate(State& state, const Job& job);

void claim(State& state, const Attempt& attempt, Millis made);

/// After the limit of a queue has changed, or it was paused or resumed.
void refresh_queue(State& state, QueueId queue);
/// After a batch has been opened or closed to its jobs.
void refresh_batch(State& state, BatchId batch);

}  // namespace berth::state_ops
