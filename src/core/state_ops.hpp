#pragma once
// The small moves that keep State's parts in step with each other. For `restore` and `apply` only.

#include "core/state.hpp"

namespace berth::state_ops {

/// Gives a job its shape, by what it asks for and its queue and batch, or takes it away. Only while
/// it is not enqueued.
void set_shape(State& state, Job& job, const Request& request);
void forget_shape(State& state, Job& job);

/// After a layer of rules has changed.
void resolve_instance(State& state);
void resolve_shapes(State& state);

/// Puts a queued job whose dependencies are met where a decision finds it, or takes it away.
void enqueue(State& state, Job& job, Now now);
void dequeue(State& state, const Job& job, Now now);

/// Lets a job wait until then. Only while it is not enqueued.
void delay(State& state, Job& job, Delay delay);
void end_delay(State& state, Job& job);

/// Gives a job a place of its own. Only while it is not enqueued.
void set_rank(State& state, const Job& job, std::int64_t rank);
void forget_rank(State& state, JobId id);

/// Brings State::held in line with the job's state.
void note_held(State& state, const Job& job);

/// Counts a running job in everything that is limited, or out of it again.
void occupy(State& state, const Job& job, const Attempt& attempt, Now now);
void vacate(State& state, const Job& job, const Attempt& attempt, Now now);

void claim(State& state, const Attempt& attempt, Millis made);

/// After the limit of a queue has changed, or it was paused or resumed.
void refresh_queue(State& state, QueueId queue);
/// After a batch has been opened or closed to its jobs.
void refresh_batch(State& state, BatchId batch);

}  // namespace berth::state_ops
