#pragma once
// What /proc tells about a process that a driver named.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.hpp"

namespace berth {

/// The two facts of /proc/<pid>/stat that are used here.
struct ProcessStat {
  std::uint32_t parent = 0;
  std::uint64_t start_time = 0;  ///< clock ticks since boot

  friend bool operator==(const ProcessStat&, const ProcessStat&) = default;
};

/// nullopt for anything but a whole line of that file. The name in it may hold anything, ')' too.
[[nodiscard]] std::optional<ProcessStat> parse_process_stat(std::string_view text);

/// How long ago that was, at a time of the boot clock.
[[nodiscard]] Millis age_of(std::uint64_t start_time, Millis now_mono);

struct ProcessFacts {
  ProcessStat stat;
  std::uint32_t uid = 0;  ///< the real user: who started it, whatever it has become since
  std::string name;
};

/// Reads processes for one sample. Remembers parents in between, since the processes of a job share
/// most of their ancestors; so it is made anew for each sample.
class ProcessReader {
 public:
  explicit ProcessReader(std::string proc = "/proc") : proc_(std::move(proc)) {}

  /// nullopt when it is gone, or not visible here (another pid namespace, hidepid).
  [[nodiscard]] std::optional<ProcessFacts> read(std::uint32_t pid) const;
  /// Parent, grandparent, …, pid 1; at most 64. As far as it can be followed.
  [[nodiscard]] std::vector<std::uint32_t> ancestors(std::uint32_t pid);

 private:
  std::string proc_;
  std::map<std::uint32_t, std::uint32_t> parents_;
};

}  // namespace berth
