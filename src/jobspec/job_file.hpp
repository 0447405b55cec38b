#pragma once
// The native job file, version 1 (docs/formats/jobfile.md).

#include <cstdint>
#include <expected>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/event.hpp"
#include "core/job.hpp"
#include "jobspec/diagnostic.hpp"
#include "jobspec/other_files.hpp"

namespace berth {

inline constexpr std::size_t kJobFileMostBytes = 128 * kMiB;
inline constexpr std::size_t kJobFileMostJobs = 2'000'000;

/// A file that must be there before the jobs are submitted, such as a configuration with another
/// seed.
struct DerivedFile {
  std::string path;  ///< absolute
  std::string content;

  friend bool operator==(const DerivedFile&, const DerivedFile&) = default;
};

/// A dependency as sbatch writes it: an id alone means all tasks where an array begins with it, and
/// the job itself otherwise. Only the instance knows which.
struct AfterArray {
  JobId id;
  std::optional<std::uint32_t> task;  ///< of the array, this one alone

  friend bool operator==(const AfterArray&, const AfterArray&) = default;
};

/// What a job file asks for: the parts of one submission.
struct JobFile {
  std::string name;               ///< of the batch; the file's own name when it gives none
  std::vector<QueueSpec> queues;  ///< in the order of the file
  std::uint32_t max_concurrent = 0;
  std::map<std::string, std::uint64_t> resources;
  Overrides rules;  ///< of the batch
  /// In the order of the file, matrices written out. `after_index` may point forwards.
  /// Payload::environment is null: it is the submitter's, and the caller's to fill in.
  std::vector<JobSpec> jobs;
  BatchTraits traits;
  std::vector<DerivedFile> derived;
  /// Further dependencies of every job, for resolve_arrays().
  std::vector<AfterArray> after_arrays;
  bool skip_done = false;             ///< leave out what has succeeded before, as --resume does
  std::vector<std::string> warnings;  ///< "file:3:5: …", for people
};

/// Reads a job file; relative paths in it start at `base_dir`. `file_name` is only ever shown.
/// `now`, by the wall clock, is what `in` and times of day count from; `read` gives the tables that
/// matrices are made of. All mistakes come back at once, in the order of the file, those of a table
/// with its path. Never throws.
[[nodiscard]] std::expected<JobFile, std::vector<Diagnostic>> parse_job_file(
    std::string_view text, const std::string& file_name, const std::filesystem::path& base_dir,
    Millis now = Millis{0}, const ReadFile& read = {}, const LacksDirectory& lacks_directory = {});

}  // namespace berth
