#pragma once
// The native job file, version 1 (docs/formats/jobfile.md).

#include <cstdint>
#include <expected>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/event.hpp"
#include "core/job.hpp"
#include "jobspec/diagnostic.hpp"

namespace berth {

inline constexpr std::size_t kJobFileMostBytes = 128 * kMiB;
inline constexpr std::size_t kJobFileMostJobs = 2'000'000;

/// What a job file asks for: the parts of one submission.
struct JobFile {
  std::string name;               ///< of the batch; the file's own name when it gives none
  std::vector<QueueSpec> queues;  ///< in the order of the file
  std::uint32_t max_concurrent = 0;
  std::map<std::string, std::uint64_t> resources;
  /// In the order of the file, matrices written out. `after_index` may point forwards.
  /// Payload::environment is null: it is the submitter's, and the caller's to fill in.
  std::vector<JobSpec> jobs;
  std::vector<std::string> warnings;  ///< "file:3:5: …", for people
};

/// Reads a job file; relative paths in it start at `base_dir`. `file_name` is only ever shown.
/// All mistakes come back at once, in the order of the file. Never throws.
[[nodiscard]] std::expected<JobFile, std::vector<Diagnostic>> parse_job_file(
    std::string_view text, const std::string& file_name, const std::filesystem::path& base_dir);

}  // namespace berth
