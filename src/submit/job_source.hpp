#pragma once
// A job file on its way to its dialect: its bytes, and what there is to know of where it was found.

#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "base/time.hpp"
#include "dialects/dialect.hpp"

namespace berth {

/// All of a file, or of standard input ("-"). `what` names it in messages: "job file".
[[nodiscard]] Result<std::string> read_whole_file(const std::string& path, std::string_view what);

/// A file that another one refers to; not_found where there is none.
[[nodiscard]] Result<std::string> read_other_file(const std::filesystem::path& path);
/// The same for who must not be kept waiting: what is no regular file is refused.
[[nodiscard]] Result<std::string> read_regular_file(const std::filesystem::path& path);

/// Where a text stands and who submits it.
struct JobPlace {
  std::string file_name;           ///< as shown in messages
  std::filesystem::path base_dir;  ///< where it lies, absolute
  std::filesystem::path here;      ///< where it is submitted from, absolute; empty: base_dir
  Millis now{0};                   ///< by the wall clock
};

/// The text as dialects take it, with the facts of this process about user, host and programs.
/// Borrows `text`.
[[nodiscard]] Source job_source(std::string_view text, JobPlace place,
                                ReadFile read = read_other_file);

}  // namespace berth
