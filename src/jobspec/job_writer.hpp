#pragma once
// Jobs written back as a job file, matrices and defaults written out. JSON is YAML, so what is
// written here can be read again and means the same, up to bytes that are not UTF-8.

#include <span>
#include <string>
#include <string_view>

#include "jobspec/job_file.hpp"

namespace berth {

/// The file up to and including the bracket that opens its jobs; "]}" closes it.
[[nodiscard]] std::string job_file_head(const JobFile& file);

/// Appends one job with the keys of the format: sizes in bytes, times in seconds, `after` by name.
/// `jobs` are those that `after_index` points into. `from`, unless empty, is added as "file".
void append_job(std::string& out, const JobSpec& job, std::span<const JobSpec> jobs,
                std::string_view from = {});

/// "2" or "1..4".
[[nodiscard]] std::string gpu_count_text(GpuCount gpus);

}  // namespace berth
