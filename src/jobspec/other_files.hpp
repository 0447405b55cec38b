#pragma once
// Files that a job file refers to.

#include <filesystem>
#include <functional>
#include <string>

#include "base/result.hpp"

namespace berth {

/// Reads a whole file; the path is absolute.
using ReadFile = std::function<Result<std::string>(const std::filesystem::path&)>;

/// Whether a path, an absolute one, is certainly no directory now.
using LacksDirectory = std::function<bool(const std::filesystem::path&)>;

struct OtherFiles {
  std::filesystem::path base_dir;       ///< where relative paths begin
  ReadFile read;                        ///< none: there are no other files
  LacksDirectory lacks_directory = {};  ///< none: that is not known
};

}  // namespace berth
