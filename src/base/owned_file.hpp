#pragma once
// Files that are opened for somebody who named them, where others may have had their hands on the
// way there.

#include <cstddef>
#include <optional>
#include <string>

#include <sys/types.h>

#include "base/fd.hpp"
#include "base/result.hpp"

namespace berth {

/// What to do with a symbolic link at the end of a path.
enum class EndLink { follow, refuse };

/// Whose file may be at the end of a path.
enum class FileOf { owner, anybody };

/// Opens a regular file of `owner` to be read. The path is absolute, without "." and "..".
///
/// Symbolic links on the way, and at its end, are followed only if `owner` or root made them: else
/// whoever can write to one of the directories could lead us to another file of the owner. What
/// was looked at is what is opened, so exchanging things meanwhile does not help.
///
/// not_found: there is none. refused: it is not the owner's, or somebody else's link leads to it.
[[nodiscard]] Result<Fd> open_owned(const std::string& path, uid_t owner,
                                    EndLink end = EndLink::follow, FileOf of = FileOf::owner);

/// What is in it; none: there is no such file. One larger than `most` is an error.
[[nodiscard]] Result<std::optional<std::string>> read_owned(const std::string& path, uid_t owner,
                                                            FileOf of, std::size_t most);

}  // namespace berth
