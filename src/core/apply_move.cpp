// Changing where waiting jobs stand.

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "core/apply_context.hpp"

namespace berth {
namespace {

constexpr std::int64_t kLastStepMax = 16;

/// Where the jobs of one event go: the first gets `first`, each next one `step` more.
struct Places {
  std::int64_t first = 0;
  std::int64_t step = kRankGap;
  std::int32_t priority = 5;
};

Places at_the_front(const State& state, std::uint64_t count) {
  const std::int64_t lowest =
      state.ranks_in_order.empty() ? 0 : std::min<std::int64_t>(*state.ranks_in_order.begin(), 0);
  return {lowest - static_cast<std::int64_t>(count) * kRankGap, kRankGap, 0};
}

/// New submissions still come after those that are moved to the end, so these share what is left
/// before the next id.
Result<Places> at_the_end(const State& state, std::uint64_t count) {
  std::int64_t from = usual_rank(state.last_job);
  if (!state.ranks_in_order.empty()) {
    from = std::max(from, *state.ranks_in_order.rbegin());
  }
  const std::int64_t room = usual_rank(state.last_job) + kRankGap - from;
  const std::int64_t step = std::min(room / static_cast<std::int64_t>(count + 1), kLastStepMax);
  if (step < 1) {
    return fail(ErrorCode::conflict,
                fmt::format("{} more jobs do not fit between the end and what is submitted next; "
                            "move fewer, or change their --priority",
                            count));
  }
  return Places{from + step, step, 0};
}

/// One that is held, or waits for others, stands in no line yet: it has the place it was given.
OrderKey place_of(const State& state, const Job& job) {
  if (job.ready()) {
    return state.order(job);
  }
  OrderKey key;
  key.ordinary = !job.expedited;
  key.priority = job.priority;
  key.rank = state.rank(job);
  key.job = job.id;
  return key;
}

Result<Places> directly_before(const State& state, const Job& target, std::uint64_t count) {
  const OrderKey key = place_of(state, target);
  // 0 lies in the middle of no gap: on disk it means that nobody has moved the job.
  std::int64_t from =
      key.rank > 0 ? std::max<std::int64_t>(key.rank - kRankGap, 0) : key.rank - kRankGap;
  if (const OrderKey* previous = state.ready.before(target.queue, key);
      previous != nullptr && previous->priority == key.priority && previous->rank < key.rank) {
    from = std::max(from, previous->rank);
  }
  const std::int64_t step = (key.rank - from) / static_cast<std::int64_t>(count + 1);
  if (step < 1) {
    return fail(ErrorCode::conflict,
                fmt::format("there is no room left directly before job {}; move it away and back, "
                            "or use --first or --priority",
                            target.id.value));
  }
  // Towards the end of the gap there is the most room for those that come later.
  return Places{key.rank - step * static_cast<std::int64_t>(count), step, key.priority};
}

Result<const Job*> waiting_target(const State& state, JobId id) {
  const Job* target = state.job(id);
  if (target == nullptr) {
    return fail(ErrorCode::not_found,
                fmt::format("there is no waiting job {} to stand before", id.value));
  }
  if (!target->waits()) {
    return fail(ErrorCode::conflict, fmt::format("job {} runs already; use --first", id.value));
  }
  if (target->expedited) {
    return fail(ErrorCode::conflict,
                fmt::format("job {} starts before all others; `berth start` does the same for more",
                            id.value));
  }
  return target;
}

class Mover {
 public:
  Mover(ApplyContext& c, const event::Move& move) : c_(c), move_(move) {}

  Result<Answer> run() {
    const Job* target = nullptr;
    if (move_.to == event::Move::To::before) {
      TRY_ASSIGN(target, waiting_target(c_.state, move_.before));
    }
    std::vector<Job*> movable;
    Controlled answer = c_.for_each(move_.jobs, [&](Job& job, Controlled& out) {
      if (!job.waits()) {
        out.refused["runs already"].push_back(job.id);
      } else if (&job == target) {
        out.jobs[Controlled::What::unchanged].push_back(job.id);
      } else if (target != nullptr && job.queue != target->queue) {
        out.refused[fmt::format("is not in queue '{0}', where job {1} is; move it there with "
                                "--queue {0}",
                                c_.state.queues.at(target->queue).name, target->id.value)]
            .push_back(job.id);
      } else {
        movable.push_back(&job);
      }
    });
    if (movable.empty()) {
      return answer;
    }
    if (move_.to == event::Move::To::queue || move_.to == event::Move::To::priority) {
      relabel(movable, answer);
      return answer;
    }
    TRY_ASSIGN(const Places places, choose(target, movable.size()));
    std::int64_t rank = places.first;
    for (Job* job : movable) {
      place(*job, rank, target != nullptr ? places.priority : fitting_priority(*job));
      rank += places.step;
      answer.jobs[Controlled::What::moved].push_back(job->id);
    }
    return answer;
  }

 private:
  Result<Places> choose(const Job* target, std::uint64_t count) {
    switch (move_.to) {
      case event::Move::To::last:
        return at_the_end(c_.state, count + move_.following);
      case event::Move::To::before:
        return directly_before(c_.state, *target, count + move_.following);
      default:
        return at_the_front(c_.state, count);
    }
  }

  /// Priority goes before rank: to be the first or the last of a queue, a job must not have a later
  /// or earlier one than those it is to pass.
  std::int32_t fitting_priority(const Job& job) {
    const bool first = move_.to == event::Move::To::first;
    const OrderKey* end = first ? c_.state.ready.first(job.queue) : c_.state.ready.last(job.queue);
    if (end == nullptr) {
      return job.priority;
    }
    return first ? std::min(job.priority, end->priority) : std::max(job.priority, end->priority);
  }

  void place(Job& job, std::int64_t rank, std::int32_t priority) {
    change::JobSet set;
    set.id = job.id;
    set.rank = rank;
    if (priority != job.priority) {
      set.priority = priority;
    }
    c_.relocate(job, [&] {
      state_ops::set_rank(c_.state, job, rank);
      job.priority = priority;
    });
    const std::string where = move_.to == event::Move::To::first ? "to the front"
                              : move_.to == event::Move::To::last
                                  ? "to the end"
                                  : fmt::format("before job {}", move_.before.value);
    c_.history("moved", job, {},
               set.priority ? fmt::format("{}, priority {}", where, priority) : where);
    c_.step.changes.push_back(std::move(set));
  }

  void relabel(const std::vector<Job*>& jobs, Controlled& answer) {
    const bool to_queue = move_.to == event::Move::To::queue;
    const QueueId queue = to_queue ? c_.queue_named(move_.queue) : QueueId{};
    for (Job* job : jobs) {
      if (to_queue ? job->queue == queue : job->priority == move_.priority) {
        answer.jobs[Controlled::What::unchanged].push_back(job->id);
        continue;
      }
      change::JobSet set;
      set.id = job->id;
      c_.relocate(*job, [&] {
        if (to_queue) {
          job->queue = queue;
          set.queue = queue;
        } else {
          job->priority = move_.priority;
          set.priority = move_.priority;
        }
      });
      c_.step.changes.push_back(std::move(set));
      c_.history("moved", *job, {},
                 to_queue ? fmt::format("to queue '{}'", move_.queue)
                          : fmt::format("priority {}", move_.priority));
      answer.jobs[Controlled::What::moved].push_back(job->id);
    }
  }

  ApplyContext& c_;
  const event::Move& move_;
};

}  // namespace

Result<Answer> apply_move(ApplyContext& c, const event::Move& move) {
  if (move.to == event::Move::To::queue && move.queue.empty()) {
    return fail(ErrorCode::invalid, "name the queue to move to");
  }
  return Mover(c, move).run();
}

}  // namespace berth
