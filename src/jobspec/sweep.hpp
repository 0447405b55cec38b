#pragma once
// One command with open places, and the values to fill them: a job file without a file.

#include "base/result.hpp"
#include "core/job.hpp"
#include "jobspec/job_file.hpp"
#include "jobspec/matrix.hpp"

namespace berth {

/// One job for each combination, as the same matrix in a file makes them. `{axis}` is filled in the
/// commands, variables, paths and name of `job`. A `{word}` that nothing fills is an error there,
/// where it could only be a slip; `{{word}}` gives the word with its braces. An axis that stands
/// nowhere makes a warning.
[[nodiscard]] Result<JobFile> make_sweep(const Matrix& matrix, const JobSpec& job);

}  // namespace berth
