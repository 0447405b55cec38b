#pragma once
// What looks wrong about a job although each of its values can be read.

#include <functional>
#include <set>
#include <string>
#include <string_view>

#include "core/job.hpp"
#include "jobspec/job_reader.hpp"
#include "jobspec/matrix.hpp"
#include "jobspec/other_files.hpp"

namespace berth {

/// Told of what is likely, not certainly, a mistake.
using Warn = std::function<void(Position at, std::string message)>;

/// `{word}` where the job has a matrix and `word` is none of its axes: a mistake in a name or a
/// number; in a command, where braces have other uses, a warning if an axis is spelt alike. With a
/// matrix or without, a warning if a word that a launch fills in is.
void check_placeholders(const JobKeys& own, const JobContext& context, const Matrix& matrix,
                        Diagnostics& diagnostics, const Warn& warn);

/// What to say of a word in braces that is much like one that a launch fills in; empty: nothing.
[[nodiscard]] std::string slip_of(std::string_view word);

/// A job that chooses its own GPUs goes around the ones it is given.
void check_devices(const JobKeys& own, const JobContext& context, const Warn& warn);

/// A directory of the job that is not there, where that is known. Whoever calls it says which paths
/// it has `seen`, each once.
void check_directories(const JobKeys& own, const JobContext& context, const JobSpec& job,
                       const LacksDirectory& lacks, std::set<std::string>& seen, const Warn& warn);

/// What is said of it: `key` is what names it.
[[nodiscard]] std::string no_directory(std::string_view key, std::string_view path);

/// Whether a text for bash, or a word of a command, or an entry of an environment, sets
/// CUDA_VISIBLE_DEVICES to something else than `{gpu_list}` or `{gpu_uuids}`.
[[nodiscard]] bool sets_visible_devices(std::string_view text);

}  // namespace berth
