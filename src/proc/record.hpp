#pragma once
// An attempt's record: what its supervisor wrote down, as data. See docs/formats/record.md for the
// lines themselves and record_line.hpp for how one is built.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/job.hpp"

namespace berth {

struct Record {
  struct Start {
    unsigned version = 0;
    std::int32_t pid = 0;
    std::uint64_t start_ticks = 0;  ///< field 22 of /proc/<pid>/stat: tells pids apart
    Millis wall{0};
  };
  struct CommandEnd {
    std::uint32_t index = 0;
    std::optional<std::int32_t> code;
    std::optional<std::int32_t> signal;
  };
  struct Exit {
    std::string why;  ///< ok, exit, signal, timeout, killed, cannot_start, host_oom
    std::uint32_t index = 0;
    std::optional<std::int32_t> code;
    std::optional<std::int32_t> signal;
    std::optional<Millis> user_time;
    std::optional<Millis> system_time;
    std::optional<Bytes> max_rss;
    std::optional<Bytes> peak_memory;
    std::uint32_t leftover = 0;
    std::string leftover_names;  ///< of the first few, separated by commas
    Bytes output_lost = 0;
    Bytes output_cut = 0;  ///< out of the log, because of its limit
    Millis elapsed{0};
    Millis ended_wall{0};
    Millis time_limit{0};
    std::string stage;           ///< of cannot_start: what was being done
    std::string name;            ///< of cannot_start: to which file
    int error = 0;               ///< of cannot_start: errno
    std::uint64_t size = 0;      ///< of E2BIG: all arguments and variables together
    std::uint64_t largest = 0;   ///< of E2BIG: the longest of them
    std::string log;             ///< absolute path; empty: not told
    std::uint64_t log_from = 0;  ///< where in it the output of this attempt begins
  };

  std::optional<Start> start;
  std::vector<CommandEnd> commands;
  std::vector<std::string> signals;  ///< what was done to the attempt, for people
  std::string ending;                ///< processes that will not die, for people; empty: none
  std::optional<Exit> exit;
  bool revoked = false;
  std::size_t damaged = 0;  ///< lines that were torn or are not ours
};

/// Reads whatever bytes there are. Total: damaged lines are counted and skipped, unknown words and
/// keys of a later version are ignored.
[[nodiscard]] Record parse_record(std::string_view bytes);

/// What an EXIT line means to the scheduler and to people.
[[nodiscard]] Verdict verdict_of(const Record::Exit& exit);

/// The verdict on an attempt of which nobody can say how it went.
[[nodiscard]] Verdict verdict_lost(std::string why, Millis wall);

/// "SIGSEGV" for 11; "signal 99" for what has no name.
[[nodiscard]] std::string signal_name(int signal);

}  // namespace berth
