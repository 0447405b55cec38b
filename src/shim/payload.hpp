#pragma once
// Turning one command of the launch spec into a process.

#include <sys/types.h>

#include <cstdint>

#include "proc/launch_spec_view.hpp"

namespace berth::shim {

enum class Stage : std::int32_t { none, cwd, log, exec, interpreter, resources, changed };

[[nodiscard]] std::string_view to_string(Stage stage);

/// Why a command did not come to run; what the child writes when exec fails. Before that, where the
/// log is its own to open: with no stage, and the size the log has had in `size`.
struct StartFailure {
  Stage stage = Stage::none;
  std::int32_t error = 0;
  std::uint64_t size = 0;
  std::uint64_t largest = 0;
  char name[512] = {};
};

struct Child {
  pid_t pid = -1;
  int report = -1;  ///< StartFailures come out, and it ends once the command runs
};

/// Forks. Everything that touches the user's paths happens in the child, so that a mount that hangs
/// holds up the child alone. `output`: -1 lets the child open the log itself.
[[nodiscard]] Child start_command(const LaunchSpecView& spec, std::uint32_t index, int output,
                                  int cgroup_procs);

}  // namespace berth::shim
