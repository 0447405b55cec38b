#include "proc/procfs.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <memory>

namespace berth {

std::string read_small_file(const std::string& path) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  if (!fd) {
    return text;
  }
  char buffer[4096];
  for (;;) {
    const ssize_t got = ::read(fd.get(), buffer, sizeof buffer);
    if (got > 0) {
      text.append(buffer, static_cast<std::size_t>(got));
    } else if (got == 0 || errno != EINTR) {
      return text;
    }
  }
}

std::optional<ProcStat> read_proc_stat(pid_t pid) {
  ProcStat stat;
  if (!parse_proc_stat(read_small_file("/proc/" + std::to_string(pid) + "/stat"), stat)) {
    return std::nullopt;
  }
  return stat;
}

std::vector<ProcStat> list_processes() {
  std::vector<ProcStat> all;
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(::opendir("/proc"), ::closedir);
  if (!dir) {
    return all;
  }
  while (const dirent* entry = ::readdir(dir.get())) {
    const pid_t pid = std::atoi(entry->d_name);
    if (pid <= 0) {
      continue;
    }
    if (auto stat = read_proc_stat(pid)) {
      all.push_back(*stat);
    }
  }
  return all;
}

Fd open_pidfd(pid_t pid) {
  return Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

Fd open_pidfd_of(pid_t pid, std::uint64_t start_ticks) {
  Fd fd = open_pidfd(pid);
  if (fd) {
    const auto stat = read_proc_stat(pid);
    if (!stat || stat->start_ticks != start_ticks) {
      fd.reset();
    }
  }
  return fd;
}

bool signal_pidfd(const Fd& pidfd, int signal) {
  return ::syscall(SYS_pidfd_send_signal, pidfd.get(), signal, nullptr, 0) == 0;
}

std::string boot_id() {
  std::string id = read_small_file("/proc/sys/kernel/random/boot_id");
  id.erase(id.find_last_not_of(" \n") + 1);
  return id;
}

}  // namespace berth
