#pragma once
// Ending what an attempt left behind when its supervisor died and can no longer do it.

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.hpp"
#include "base/time.hpp"
#include "proc/proc_stat.hpp"

namespace berth {

/// The variable whose value names the attempt a process belongs to.
inline constexpr std::string_view kMarkerVariable = "BERTH_ATTEMPT";

/// "<instance>.<attempt>": the value of BERTH_ATTEMPT in the payload's environment.
[[nodiscard]] std::string attempt_marker(std::string_view instance, AttemptId attempt);

struct ProcessIdentity {
  pid_t pid = 0;
  std::uint64_t start_ticks = 0;
  friend auto operator<=>(const ProcessIdentity&, const ProcessIdentity&) = default;
};

/// How a survivor is recognised.
struct SurvivorTraits {
  std::string marker;
  /// The dead supervisor's pid, which is the session of its payload; only while that pid cannot
  /// have been given to somebody else, that is, before the supervisor is reaped. 0: not known.
  pid_t session = 0;
  std::string cgroup;  ///< directory; empty: none
  /// Living supervisors of other attempts. Nothing below them is ever touched, whatever its
  /// environment claims.
  std::vector<ProcessIdentity> live_shims;
};

/// Those who bear a trait, and all their descendants. Never this process; and when this process
/// bears the marker itself, nothing below it either.
[[nodiscard]] std::vector<ProcStat> find_survivors(const SurvivorTraits& traits);

struct SurvivorsEnded {
  std::size_t ended = 0;
  std::vector<ProcStat> left;  ///< would not die within the patience
};

/// Stops them until no new one appears, kills them, and looks again until none is left.
[[nodiscard]] SurvivorsEnded end_survivors(const SurvivorTraits& traits, Millis patience);

}  // namespace berth
