#pragma once
// The lock that makes one daemon the only one of its state directory, and that tells supervisors
// whether a daemon is there to read their records.

#include <string>

#include "base/fd.hpp"
#include "base/result.hpp"

namespace berth {

/// Held as long as the object lives; the kernel lets go of it when the process ends, however it
/// ends.
class DaemonLock {
 public:
  /// Fails with `conflict`, naming the holder, when another process has it. Waits only
  /// for what a dead holder left behind, a moment at most.
  [[nodiscard]] static Result<DaemonLock> acquire(const std::string& path);

  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  DaemonLock(Fd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}

  Fd fd_;
  std::string path_;
};

}  // namespace berth
