#include "shim/attempt_cgroup.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

namespace berth::shim {

void AttemptCgroup::make(std::string_view parent, std::uint64_t attempt) {
  if (parent.empty()) {
    return;
  }
  path_.add(parent).add("/a").add(attempt);
  if (path_.cut() || (::mkdir(path_.c_str(), 0755) != 0 && errno != EEXIST)) {
    return;
  }
  Text file;
  file.add(path_.view()).add("/cgroup.procs");
  procs_ = ::open(file.c_str(), O_WRONLY | O_CLOEXEC);
}

void AttemptCgroup::kill() {
  if (procs_ < 0) {
    return;
  }
  Text file;
  file.add(path_.view()).add("/cgroup.kill");
  int fd = ::open(file.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd >= 0 && ::write(fd, "1", 1) < 0) {
    // Older than Linux 5.14; the walk over the descendants follows in any case.
  }
  close_fd(fd);
}

ssize_t AttemptCgroup::read(std::string_view name, char* buffer, std::size_t size) {
  if (procs_ < 0) {
    return -1;
  }
  Text file;
  file.add(path_.view()).add("/").add(name);
  const ssize_t got = read_file(file.c_str(), buffer, size - 1);
  if (got >= 0) {
    buffer[got] = '\0';
  }
  return got;
}

bool AttemptCgroup::peak(std::uint64_t& bytes) {
  char text[32];
  if (read("memory.peak", text, sizeof text) <= 0) {
    return false;
  }
  bytes = std::strtoull(text, nullptr, 10);
  return true;
}

std::uint64_t AttemptCgroup::oom_kills() {
  char text[512];
  if (read("memory.events", text, sizeof text) <= 0) {
    return 0;
  }
  constexpr std::string_view kKey = "oom_kill ";
  const char* found = std::strstr(text, kKey.data());
  return found == nullptr ? 0 : std::strtoull(found + kKey.size(), nullptr, 10);
}

void AttemptCgroup::remove() {
  if (procs_ < 0) {
    return;
  }
  close_fd(procs_);
  // A cgroup stays busy for a moment after its last member was reaped.
  for (int i = 0; i < 50 && ::rmdir(path_.c_str()) != 0 && errno == EBUSY; ++i) {
    const timespec pause{0, 2'000'000};
    ::nanosleep(&pause, nullptr);
  }
}

}  // namespace berth::shim
