#pragma once
// Two clocks, kept apart: `mono` counts while the machine is up and decides what has expired;
// `wall` is only ever shown. A jump of the wall clock therefore changes nothing.

#include <chrono>
#include <cstdint>

namespace berth {

using Millis = std::chrono::milliseconds;

struct Now {
  Millis mono{0};  ///< CLOCK_BOOTTIME
  Millis wall{0};  ///< since 1970, for people

  friend bool operator==(const Now&, const Now&) = default;
};

/// Reads both clocks of this machine.
[[nodiscard]] Now read_clock();

}  // namespace berth
