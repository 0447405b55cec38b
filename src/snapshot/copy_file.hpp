#pragma once
// One file of a tree, copied as cheaply as the file system allows.

#include <filesystem>

#include "base/result.hpp"
#include "base/units.hpp"

namespace berth {

/// Copies content, permissions and time; shares the blocks where both lie on one file system that
/// can. `to` must not exist. False: `from` is not there any more.
[[nodiscard]] Result<bool> copy_plain_file(const std::filesystem::path& from,
                                           const std::filesystem::path& to);

/// Makes the same link. One that leads out of `root` by a relative way gets the absolute one.
[[nodiscard]] Result<bool> copy_link(const std::filesystem::path& from,
                                     const std::filesystem::path& to,
                                     const std::filesystem::path& root);

}  // namespace berth
