#pragma once
// Looking at processes, and signalling exactly the one that was looked at.

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.hpp"
#include "proc/proc_stat.hpp"

namespace berth {

/// Whole content, however long; empty when it cannot be read. For files of /proc and /sys.
[[nodiscard]] std::string read_small_file(const std::string& path);

[[nodiscard]] std::optional<ProcStat> read_proc_stat(pid_t pid);

/// Every process there is, as far as this user may see.
[[nodiscard]] std::vector<ProcStat> list_processes();

/// pidfd_open(2); empty when there is no such process.
[[nodiscard]] Fd open_pidfd(pid_t pid);

/// A pidfd of the process that had this pid and start time, if it still lives: the start time is
/// read after the descriptor was opened, so the pid cannot have changed hands in between.
[[nodiscard]] Fd open_pidfd_of(pid_t pid, std::uint64_t start_ticks);

/// Signals the process behind the descriptor. False when it is gone or not ours to signal.
bool signal_pidfd(const Fd& pidfd, int signal);

/// This boot of the machine, from /proc/sys/kernel/random/boot_id.
[[nodiscard]] std::string boot_id();

}  // namespace berth
