#pragma once
// Values the way sbatch writes them.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"
#include "base/units.hpp"

namespace berth {

/// MINUTES, MINUTES:SECONDS, HOURS:MINUTES:SECONDS, DAYS-HOURS, DAYS-HOURS:MINUTES,
/// DAYS-HOURS:MINUTES:SECONDS; UNLIMITED is 0.
[[nodiscard]] Result<Millis> parse_slurm_time(std::string_view text);

/// "4G", "500M"; a plain number is MiB.
[[nodiscard]] Result<Bytes> parse_slurm_memory(std::string_view text);

/// When a job begins, as a key of a native job and its value: "now+2hours", "16:00", "4:30PM",
/// "tomorrow", "noon", "2026-05-01T12:30:00".
struct SlurmBegin {
  std::string key;  ///< "at" or "in"
  std::string value;
};
[[nodiscard]] Result<SlurmBegin> parse_slurm_begin(std::string_view text);

/// "0-9", "1,3,5", "0-15:4", "0-99%8".
struct ArrayTasks {
  std::vector<std::uint32_t> indices;  ///< ascending, each once
  std::uint32_t step = 1;              ///< of its range; 1 where there are several
  std::uint32_t limit = 0;             ///< at once; 0: any number
};
[[nodiscard]] Result<ArrayTasks> parse_array(std::string_view text);

/// What the signs of an output path stand for.
struct PathWords {
  std::string job_id;    ///< %j, %J
  std::string array_id;  ///< %A
  std::string task;      ///< %a, its last digit %b
  std::string name;      ///< %x
  std::string user;      ///< %u
  std::string host;      ///< %N
};
struct FilledPath {
  std::string path;
  std::string unknown;  ///< the first sign that is not known, which stays as it is: "%q"
};
/// `pattern` as a log path of berth: `{job_id}` where the start of the job tells.
[[nodiscard]] FilledPath fill_path(std::string_view pattern, const PathWords& words);

}  // namespace berth
