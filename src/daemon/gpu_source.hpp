#pragma once
// Which GPUs an instance looks at: the machine's, none, or simulated ones.

#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"

namespace berth {

struct GpuSource {
  std::string spec;  ///< as remembered for the next start
  bool none = false;
  bool simulated = false;
  std::string nvml_library;  ///< empty: the driver's own
  /// For the probe process and for every job, so that both see the same cards.
  std::vector<std::pair<std::string, std::string>> environment;
  std::string library_dir;  ///< to go in front of LD_LIBRARY_PATH of jobs; empty: nothing
};

/// `wanted` is "auto", "none", "sim:SPEC" or empty: what this directory used last, else auto.
/// Simulated cards are set up in `dir`; the programs for them are looked for in `bin_dir`.
[[nodiscard]] Result<GpuSource> choose_gpus(const std::string& wanted, const std::string& dir,
                                            const std::string& bin_dir,
                                            const std::string& nvml_library);

}  // namespace berth
