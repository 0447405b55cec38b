#pragma once
// What a user or a batch has used of the GPUs, the longer ago the less.

#include <cmath>
#include <cstdint>

#include "base/time.hpp"

namespace berth {

struct Usage {
  double gpu_ms = 0;  ///< GPU milliseconds, decayed to the moment `at`
  Millis at{0};
  std::uint32_t gpus = 0;  ///< in use now

  [[nodiscard]] double now(Millis mono, Millis half_life) const {
    const auto passed = static_cast<double>((mono - at).count());
    const double kept =
        half_life.count() > 0 ? std::exp2(-passed / static_cast<double>(half_life.count())) : 1.0;
    return gpu_ms * kept + passed * gpus;
  }

  /// Before `gpus` changes.
  void settle(Millis mono, Millis half_life) {
    gpu_ms = now(mono, half_life);
    at = mono;
  }
};

}  // namespace berth
