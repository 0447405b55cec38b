#include "core/standing.hpp"

#include <cmath>

namespace berth {
namespace {

/// Use in steps: a few seconds more or less are no reason to overtake anybody.
constexpr double kStep = 60'000;

template <class Map, class Key>
std::uint64_t share(const State& state, const Map& used, const Key& key, Now now) {
  const auto it = used.find(key);
  if (!state.rules.fair_share || it == used.end()) {
    return 0;
  }
  return static_cast<std::uint64_t>(
      std::max(0.0, std::floor(it->second.now(now.mono, state.rules.half_life) / kStep)));
}

}  // namespace

bool goes_before(const State& state, const Job& job, const Hold& hold, Now now) {
  const Job* kept_for = state.job(hold.job);
  return kept_for == nullptr || !kept_for->ready() ||
         standing(state, job, now) < standing(state, *kept_for, now);
}

Standing standing(const State& state, const Job& job, Now now) {
  const OrderKey key = state.order(job);
  Standing result{key.ordinary, key.fresh, key.priority, 0, 0, key.turn, key.rank, job.id};
  if (key.ordinary && key.fresh) {
    result.owner_share = share(state, state.used_by_owner, job.owner, now);
    result.batch_share = share(state, state.used_by_batch, job.batch, now);
  }
  if (!key.fresh) {
    result.priority = 0;  // who has waited longest goes first, whatever its priority
    result.turn = key.since;
  } else if (job.order == Order::fifo) {
    // The first of a serial queue, among those of the others.
    const Rules& rules = state.rules_of(job);
    if (rules.order == Order::random) {
      result.turn = random_turn(rules.seed, job.id);
    } else if (rules.order == Order::largest_first) {
      result.turn = -std::int64_t{state.request(job).gpus.max};
    }
  }
  return result;
}

}  // namespace berth
