#pragma once
// Job files as commands are given them: several at once, or standard input.

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "jobspec/job_file.hpp"

namespace berth::cli {

struct LoadedFile {
  std::string path;  ///< as it was given
  JobFile file;
};

/// Reads all of them before saying anything is wrong: warnings and mistakes go to standard error
/// with their places, file by file, the first fifty mistakes in full. The error counts them and
/// ends with `consequence`, such as "; nothing was submitted".
[[nodiscard]] Result<std::vector<LoadedFile>> load_job_files(const std::vector<std::string>& paths,
                                                             std::string_view consequence);

}  // namespace berth::cli
