#pragma once
// Job files as commands are given them: several at once, or standard input.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "cli/snapshot_jobs.hpp"
#include "dialects/dialect.hpp"
#include "jobspec/job_file.hpp"

namespace berth::cli {

struct LoadedFile {
  std::string path;  ///< as it was given
  JobFile file;
};

using ParseFile = std::function<Parsed(const Source&, const DialectOptions&)>;

/// Reads all of them before saying anything is wrong: warnings and mistakes go to standard error
/// with their places, file by file, the first fifty mistakes in full. The error counts them and
/// ends with `consequence`, such as "; nothing was submitted".
[[nodiscard]] Result<std::vector<LoadedFile>> load_job_files(const std::vector<std::string>& paths,
                                                             const DialectOptions& reading,
                                                             std::string_view consequence,
                                                             const ParseFile& parse = parse_file);

struct SubmitOptions {
  bool detach = false;
  bool json = false;
  bool resume = false;  ///< leave out what has succeeded before
  bool redo = false;    ///< nothing is left out, whatever the file says
  SnapshotOptions snapshot;
};
/// In cmd_run.cpp: submits what was read, and watches until all jobs have ended unless `detach`.
[[nodiscard]] Result<int> submit_and_watch(std::vector<LoadedFile> files,
                                           const SubmitOptions& options);

}  // namespace berth::cli
