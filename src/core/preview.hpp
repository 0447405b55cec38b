#pragma once
// What a change of rules would do, found out by doing it to a copy.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.hpp"
#include "core/event.hpp"
#include "core/reason.hpp"
#include "core/state.hpp"

namespace berth {

struct Preview {
  struct Wait {
    JobId id;
    std::uint64_t jobs = 1;        ///< that wait as it does: itself and those of its line and shape
    std::optional<Reason> before;  ///< the first; none: it starts
    std::optional<Reason> after;   ///< likewise
  };
  std::vector<JobId> starts;  ///< with the very next decisions, ascending
  /// Of those that stand first in their lines, the ones that would wait for something else.
  std::vector<Wait> waits;
  bool more = false;  ///< there may be further ones, which nobody has looked at
};

/// An error: the rules would be refused. Takes as long as applying them does, whatever the order
/// asks to be moved included. `most`: how many waits are told.
[[nodiscard]] Result<Preview> preview_rules(const State& state, const event::SetRules& set, Now now,
                                            std::size_t most);

}  // namespace berth
