#include "proc/daemon_lock.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <thread>

#include "base/time.hpp"
#include "proc/procfs.hpp"

namespace berth {
namespace {

/// How long whatever a dead daemon left behind may keep its lock.
constexpr Millis kAfterlifeMax{2'000};
constexpr Millis kAfterlifeCheck{2};

std::string read_holder(const Fd& fd) {
  char text[32] = {};
  const ssize_t size = ::pread(fd.get(), text, sizeof text - 1, 0);
  std::string holder(text, size > 0 ? static_cast<std::size_t>(size) : 0);
  holder.erase(holder.find_last_not_of(" \n") + 1);
  return holder;
}

bool lives(const std::string& pid) {
  const auto stat = read_proc_stat(std::atoi(pid.c_str()));
  return stat && !stat->dead();
}

}  // namespace

Result<DaemonLock> DaemonLock::acquire(const std::string& path) {
  Fd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) {
    return fail_errno(fmt::format("cannot open the lock file {}", path), errno);
  }
  // An open-file-description lock: unlike a classic one it is not dropped when some other part of
  // the process opens and closes the same file.
  struct flock lock{};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  for (Millis waited{0}; ::fcntl(fd.get(), F_OFD_SETLK, &lock) != 0; waited += kAfterlifeCheck) {
    const int error = errno;
    if (error != EAGAIN && error != EACCES) {
      return fail_errno(fmt::format("cannot lock {}; is it on a local disk?", path), error);
    }
    const std::string holder = read_holder(fd);
    // A child that was on its way to exec when its daemon was killed has the lock for a moment
    // longer; and who has just taken it may not have written its pid yet.
    if (!lives(holder) && waited < kAfterlifeMax) {
      std::this_thread::sleep_for(kAfterlifeCheck);
      continue;
    }
    return fail(ErrorCode::conflict,
                fmt::format("another berthd ({}) already serves this directory: {} is locked; use "
                            "that one, or set BERTH_DIR to another directory",
                            holder.empty() ? "pid unknown" : "pid " + holder, path));
  }
  const std::string pid = fmt::format("{}\n", ::getpid());
  if (::ftruncate(fd.get(), 0) != 0 ||
      ::pwrite(fd.get(), pid.data(), pid.size(), 0) != static_cast<ssize_t>(pid.size())) {
    // Only the name of the holder suffers: the lock itself holds, also on a full disk.
  }
  return DaemonLock(std::move(fd), path);
}

}  // namespace berth
