#pragma once
// Bugs planted on purpose, to show that the checkers would see them. All of them live in the
// simulated world; the engine under test knows nothing of it.

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/state.hpp"

namespace berth::sim {

enum class Plant : std::uint8_t {
  none,
  lost_exit,     ///< now and then nobody is told that an attempt ended, not even after a restart
  double_start,  ///< now and then a supervisor runs its command without looking at the record
  leaked_claim,  ///< now and then an ended attempt keeps what it was promised of a GPU
};

[[nodiscard]] std::string_view to_string(Plant plant);
[[nodiscard]] std::optional<Plant> plant_from(std::string_view text);

/// As if closing the attempt had overlooked its claims: they look alive, and nothing will ever end
/// them. False if it held none.
bool leak_claims(const State& state, AttemptId attempt);

}  // namespace berth::sim
