#pragma once
// Small files that are read and replaced as a whole, perhaps by several programs at once.

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include <sys/types.h>

#include "base/fd.hpp"
#include "base/result.hpp"

namespace berth {

/// None: there is no such file. What is no regular file, or larger than `most`, is an error.
[[nodiscard]] Result<std::optional<std::string>> read_whole(const std::string& path,
                                                            std::size_t most);

/// The same of a file that is open already; `path` is for what is told of it.
[[nodiscard]] Result<std::string> read_whole(const Fd& file, const std::string& path,
                                             std::size_t most);

/// Whoever reads sees the old file or the new one, after a crash, too. A file that was there keeps
/// its mode, a new one gets `mode`. A symbolic link in its place is replaced, not followed.
[[nodiscard]] Status replace_whole(const std::string& path, std::string_view text,
                                   mode_t mode = 0644);

/// Takes the lock of an open file, for which it waits a few seconds. busy: somebody holds it all
/// the time, as everybody can who may read the file.
constexpr std::chrono::milliseconds kLockPatience{5'000};
[[nodiscard]] Status lock_file(const Fd& file, const std::string& path,
                               std::chrono::milliseconds patience = kLockPatience);

/// Keeps apart those who take it before they read and replace `path`; it lies beside the file, as
/// "path.lock", and nobody else can open it.
class FileLock {
 public:
  [[nodiscard]] static Result<FileLock> take(const std::string& path);

 private:
  explicit FileLock(Fd file) : file_(std::move(file)) {}
  Fd file_;
};

}  // namespace berth
