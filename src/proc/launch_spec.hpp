#pragma once
// Everything a supervisor is told about its attempt.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.hpp"
#include "base/result.hpp"
#include "core/job.hpp"

namespace berth {

struct LaunchSpec {
  AttemptId attempt;
  JobId job;
  std::vector<Command> commands;
  Environment environment;  ///< final: what the payload gets, and nothing else
  std::string cwd;
  std::string log;                 ///< absolute path
  bool log_named_by_user = false;  ///< true: written by the payload itself, appended to
  Bytes log_limit = 0;             ///< of a log berth names: more loses its middle. 0: none
  std::uint32_t umask = 022;
  std::int32_t nice = 0;
  Millis time_limit{0};  ///< 0: none; time spent paused does not count
  Millis grace{10'000};
  bool linger = false;
  WarningSignal warning;
  std::vector<std::uint32_t> cpus;  ///< to run on, below kLaunchCpusMax; empty: wherever it may
  std::string cgroup_parent;        ///< of find_cgroup_parent(); empty: none
  std::string daemon_lock;  ///< path of the DaemonLock; tells the shim whether a daemon listens

  friend bool operator==(const LaunchSpec&, const LaunchSpec&) = default;
};

/// The bytes for the supervisor. Fails with `invalid` on what no process can be given: a NUL byte,
/// a command without words, a CPU that no machine has, more than 64 MiB. The order of `cpus` and
/// repetitions in it are lost.
[[nodiscard]] Result<std::string> encode_launch_spec(const LaunchSpec& spec);

/// The inverse. Total.
[[nodiscard]] Result<LaunchSpec> decode_launch_spec(std::string_view bytes);

}  // namespace berth
