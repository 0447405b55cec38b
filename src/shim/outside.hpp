#pragma once
// A process that is no descendant of ours, and yet is the attempt: a command may hand its work to a
// server that ran before (tmux, a daemon of the user, systemd-run) and write the pid of what works
// there into uni_id.json. The attempt lasts as long as that process.

#include <sys/types.h>

#include <cstdint>

#include "proc/launch_spec_view.hpp"
#include "proc/proc_stat.hpp"

namespace berth::shim {

/// Follows what uni_id.json says, from a child of its own: the file may lie on a mount that hangs,
/// and as long as there is somebody to wait for, wait(2) shows a child.
class Outside {
 public:
  /// Starts to look. False when there is no such file, or no child to be had.
  bool watch(const LaunchSpecView& spec);

  /// Whom it waits for now. False: nobody, or nobody any more.
  [[nodiscard]] bool process(ProcStat& out) const;

 private:
  /// Shared with the child. The pid is written last.
  struct Seen {
    std::uint64_t start_ticks;
    pid_t pid;
  };

  [[noreturn]] void follow(const char* file, std::string_view uni_id, pid_t parent);

  Seen* seen_ = nullptr;
};

}  // namespace berth::shim
