#pragma once
// What belongs to a working tree: as git sees it where it is git's, else all but caches.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace berth {

struct TreeFiles {
  std::filesystem::path root;                ///< the top of the working tree, absolute
  std::vector<std::filesystem::path> files;  ///< below it: plain files and links, each once
  /// Not part of it, yet there: data, environments, results. Links lead to them.
  std::vector<std::filesystem::path> beside;
  std::vector<std::string> warnings;
};

/// The tree that `dir` lies in. Git's answer: what is tracked, also in submodules, and what is
/// neither tracked nor ignored; ignored things are `beside`. Without git: everything below `dir`
/// but version control and caches; virtual environments and node_modules are `beside`.
[[nodiscard]] Result<TreeFiles> list_tree(const std::string& dir);

}  // namespace berth
