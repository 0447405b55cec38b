#pragma once
// The daemon's own log: one line per event, `time=… level=… pid=… event=… key=value …`, to standard
// error. Where that is the instance's daemon.log, as when `berth` started it, the file is rotated.

#include <cstdint>
#include <string>
#include <string_view>

namespace berth {

/// As a value of a line: in quotes, with everything escaped that could end it or begin another.
[[nodiscard]] std::string log_value(std::string_view text);

/// From now on lines of this level and above go to standard error.
void open_log(const std::string& level);

struct LogRotation {
  std::string file;
  std::uint64_t size = 8UL * 1024 * 1024;
  unsigned keep = 3;  ///< daemon.log.1 is the youngest
};

/// Rotates the log if standard error is that file. Only for the daemon that holds the instance's
/// lock: two would rotate each other's.
void rotate_log(const LogRotation& rotation);

}  // namespace berth
