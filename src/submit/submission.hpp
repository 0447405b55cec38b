#pragma once
// From a job file that has been read to the submission it asks for, with the files that must be
// there before.

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "core/event.hpp"
#include "jobspec/job_file.hpp"

namespace berth {

/// What is left to fill in is complete_submission()'s. `pid` names the state file of a batch whose
/// file was written for another scheduler. Touches no file.
[[nodiscard]] event::Submit to_submission(JobFile file, std::uint64_t pid);

/// Writes the files that jobs need, each all at once. Those that are as they should be are not
/// touched.
[[nodiscard]] Status write_derived(const std::vector<DerivedFile>& files);

/// Makes the state directory of a batch and an empty uni_id.json, if it has one (`dir` is not
/// empty) and they are not there. The daemon, which writes there, says what is wrong with it;
/// submitting goes on.
void prepare_state_directory(const std::string& dir);
/// Whether a batch has files in its `state_dir` beside the log: the program that GPU manager files
/// were written for promised a log alone.
[[nodiscard]] bool has_state_files(const BatchTraits& traits);
/// Prepares what such a batch has.
void prepare_state_directory(const BatchTraits& traits);

}  // namespace berth
