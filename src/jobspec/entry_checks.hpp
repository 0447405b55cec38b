#pragma once
// What looks wrong about a job although each of its values can be read.

#include <functional>
#include <string>
#include <string_view>

#include "core/job.hpp"
#include "jobspec/job_reader.hpp"
#include "jobspec/matrix.hpp"

namespace berth {

/// Told of what is likely, not certainly, a mistake.
using Warn = std::function<void(Position at, std::string message)>;

/// `{word}` where the job has a matrix and `word` is none of its axes: a mistake in a name or a
/// number; in a command, where braces have other uses, a warning if an axis is spelt alike.
void check_placeholders(const JobKeys& own, const JobContext& context, const Matrix& matrix,
                        Diagnostics& diagnostics, const Warn& warn);

/// A job that chooses its own GPUs goes around the ones it is given.
void check_devices(const JobKeys& own, const JobContext& context, const Warn& warn);

/// Whether a text for bash, or a word of a command, or an entry of an environment, sets
/// CUDA_VISIBLE_DEVICES to something else than `{gpu_list}` or `{gpu_uuids}`.
[[nodiscard]] bool sets_visible_devices(std::string_view text);

}  // namespace berth
