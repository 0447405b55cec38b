#pragma once
// What the store gave back, made ready to begin with.

#include <cstdint>

#include "core/change.hpp"
#include "core/rules.hpp"
#include "core/state.hpp"
#include "daemon/settings.hpp"
#include "proc/launcher.hpp"

namespace berth {

/// Records of attempts that were prepared but never committed: nothing ran, and their numbers are
/// not given to anybody else.
void forget_uncommitted(Launcher& launcher, Snapshot& snapshot);

/// The State to begin with, under the rules of berth.yaml from the first decision on.
[[nodiscard]] State first_state(Snapshot& snapshot, const Rules& usual, const Settings& settings,
                                std::uint32_t max_concurrent);

}  // namespace berth
