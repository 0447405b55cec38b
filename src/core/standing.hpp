#pragma once
// Who goes first.

#include <compare>
#include <cstdint>

#include "core/state.hpp"

namespace berth {

/// The order in which a decision looks at jobs, the least first: those started by hand, those that
/// have waited too long, priority, users and batches that have used less, the order of their queue.
struct Standing {
  bool ordinary = true;
  bool fresh = true;
  std::int32_t priority = 5;
  std::uint64_t owner_share = 0;
  std::uint64_t batch_share = 0;
  std::int64_t turn = 0;
  std::int64_t rank = 0;
  JobId job;

  friend auto operator<=>(const Standing&, const Standing&) = default;
};

/// Whether a job goes before the one that cards are kept for.
[[nodiscard]] bool goes_before(const State& state, const Job& job, const Hold& hold, Now now);

[[nodiscard]] Standing standing(const State& state, const Job& job, Now now);

}  // namespace berth
