#pragma once
// The user's files that the API shows. May block: not for the loop.

#include <cstdint>
#include <string>

#include "base/fd.hpp"
#include "base/owned_file.hpp"
#include "base/result.hpp"

namespace berth {

/// Whoever may only look sees logs, and must not see through them what the instance keeps: the
/// hashes of tokens, the environments of jobs. So where a path really leads is what counts.
struct ShownFiles {
  std::uint32_t owner = 0;  ///< whose files are shown
  std::string dir;          ///< of the instance; the snapshots in it are the user's
  std::string logs;         ///< in it, and shown all the same

  /// A regular file of the owner, as `open_owned` opens it. refused: it is none that is shown.
  [[nodiscard]] Result<Fd> open(const std::string& path, EndLink end) const;
};

}  // namespace berth
