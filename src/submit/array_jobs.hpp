#pragma once
// Dependencies on arrays, in the way of sbatch: the id that the tasks of an array have in common is
// the id of the first of them, and whoever names it means them all.

#include <cstdint>
#include <functional>
#include <vector>

#include "api/views.hpp"
#include "base/result.hpp"
#include "jobspec/job_file.hpp"

namespace berth {

/// Whether the job with these variables of its own is the first of an array.
[[nodiscard]] bool begins_array(const Environment& extra_env);

/// The jobs of the array that begins with job `first`; none: no array begins there.
using FindTasks = std::function<Result<std::vector<JobView>>(std::uint64_t first)>;

/// Turns `file.after_arrays` into dependencies of its jobs. Fails where a task is named that there
/// is none of; a job that is not there is left to the submission to tell.
[[nodiscard]] Status resolve_arrays(JobFile& file, const FindTasks& find);

}  // namespace berth
