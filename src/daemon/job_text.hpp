#pragma once
// Job files that came as text: what they would make, and what is wrong with them. May block: other
// files that they refer to are read.

#include <expected>
#include <string>
#include <vector>

#include "api/resources.hpp"
#include "base/result.hpp"
#include "core/event.hpp"
#include "jobspec/job_file.hpp"

namespace berth {

/// Whether there is such a format.
[[nodiscard]] Status check_dialect(const FileRequest& request);
[[nodiscard]] CheckedFile check_text(const FileRequest& request);

using Problems = std::vector<ProblemView>;

/// What the file asks for, or all problems.
[[nodiscard]] std::expected<JobFile, Problems> file_of(const FileRequest& request);

/// Its jobs as a submission without an owner, with the files that they need written; or why that
/// cannot be. An empty `key`: a fresh one.
[[nodiscard]] std::expected<event::Submit, Problems> submission_of(JobFile file,
                                                                   const std::string& key,
                                                                   const std::string& instance_dir);

}  // namespace berth
