#include "shim/outside.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "proc/uni_entry_view.hpp"
#include "shim/sys.hpp"

namespace berth::shim {
namespace {

constexpr std::string_view kName = "berth-outside";
constexpr std::string_view kFileVariable = "BERTH_STATE_FILE=";
constexpr std::string_view kMarkerVariable = "BERTH_ATTEMPT=";
constexpr off_t kFileMax = off_t{64} << 20U;  ///< as the daemon
/// Whoever writes in place, or under the lock, needs a moment.
constexpr int kLooks = 6;
constexpr timespec kBetweenLooks{0, 50'000'000};

/// The value of a variable of the payload; empty: it has none.
std::string_view variable(const LaunchSpecView& spec, std::string_view name) {
  SpecReader variables(spec.variables);
  for (std::uint32_t i = 0; i < spec.variable_count; ++i) {
    const std::string_view entry = variables.string();
    if (entry.starts_with(name)) {
      return entry.substr(name.size());
    }
  }
  return {};
}

/// The lock of supervisor and payload must not live on in a child that never becomes another
/// program.
void close_all() {
  constexpr int kFirst = 3;
  constexpr int kUsualMost = 1024;
#ifdef SYS_close_range
  if (::syscall(SYS_close_range, kFirst, ~0U, 0) == 0) {
    return;
  }
#endif
  for (int fd = kFirst; fd < kUsualMost; ++fd) {
    ::close(fd);
  }
}

UniEntryView read_once(const char* file, std::string_view uni_id) {
  UniEntryView found;
  int fd = ::open(file, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  struct stat status{};
  if (fd < 0 || ::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) ||
      status.st_size > kFileMax) {
    found.complete = true;  // looking again will not help
    close_fd(fd);
    return found;
  }
  const auto size = static_cast<std::size_t>(status.st_size);
  char* text = static_cast<char*>(std::malloc(size + 1));
  std::size_t got = 0;
  while (text != nullptr && got < size) {
    const ssize_t more = ::read(fd, text + got, size - got);
    if (more <= 0) {
      break;
    }
    got += static_cast<std::size_t>(more);
  }
  if (text != nullptr) {
    found = UniEntryReader({text, got}).find(uni_id);
  }
  std::free(text);
  close_fd(fd);
  return found;
}

/// Passes by who holds the lock for ever.
UniEntryView read_entry(const char* file, std::string_view uni_id) {
  Text lock_path;
  lock_path.add(file).add(".lock");
  int lock = ::open(lock_path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  for (int look = 0; lock >= 0 && look < kLooks && ::flock(lock, LOCK_SH | LOCK_NB) != 0; ++look) {
    ::nanosleep(&kBetweenLooks, nullptr);
  }
  UniEntryView found;
  for (int look = 0; look < kLooks && !found.complete; ++look) {
    if (look > 0) {
      ::nanosleep(&kBetweenLooks, nullptr);
    }
    found = read_once(file, uni_id);
  }
  close_fd(lock);
  return found.complete ? found : UniEntryView{};
}

/// Whether the process began as part of another attempt. Most processes of a user on such a machine
/// did; so one that has the number of a process long gone is found out.
bool of_another_attempt(pid_t pid, std::string_view uni_id) {
  Text path;
  path.add("/proc/").add(static_cast<std::uint64_t>(pid)).add("/environ");
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  constexpr std::size_t kMost = std::size_t{1} << 20U;
  char* text = fd < 0 ? nullptr : static_cast<char*>(std::malloc(kMost));
  std::size_t got = 0;
  for (ssize_t more = 1; text != nullptr && more > 0 && got < kMost;) {
    more = ::read(fd, text + got, kMost - got);
    got += more > 0 ? static_cast<std::size_t>(more) : 0;
  }
  bool other = false;
  for (std::string_view rest(text, got); !rest.empty();) {
    const std::string_view entry = rest.substr(0, rest.find('\0'));
    if (entry.starts_with(kMarkerVariable)) {
      other = entry.substr(kMarkerVariable.size()) != uni_id;
    }
    rest.remove_prefix(entry.size() < rest.size() ? entry.size() + 1 : rest.size());
  }
  std::free(text);
  close_fd(fd);
  return other;
}

bool is_ours(pid_t pid) {
  Text path;
  path.add("/proc/").add(static_cast<std::uint64_t>(pid));
  struct stat status{};
  return ::stat(path.c_str(), &status) == 0 && status.st_uid == ::geteuid();
}

/// The supervisor, or one that it descends from: to wait for those is to wait for ever.
bool is_above(pid_t pid, pid_t self) {
  constexpr int kDeepest = 1000;
  ProcStat process;
  process.pid = self;
  for (int i = 0; i < kDeepest && process.pid > 1; ++i) {
    if (process.pid == pid) {
      return true;
    }
    if (!read_stat(process.pid, process)) {
      return false;
    }
    process.pid = process.parent;
  }
  return false;
}

bool counts(pid_t pid, std::string_view uni_id, pid_t supervisor, ProcStat& process) {
  if (pid <= 1 || !read_stat(pid, process) || process.dead()) {
    return false;
  }
  const std::string_view name = process.name;
  const bool berths = name == "berth-shim" || name == "berthd" || name == kName;
  return !berths && is_ours(pid) && !is_above(pid, supervisor) && !of_another_attempt(pid, uni_id);
}

}  // namespace

bool Outside::watch(const LaunchSpecView& spec) {
  const std::string_view file = variable(spec, kFileVariable);
  const std::string_view uni_id = variable(spec, kMarkerVariable);
  if (file.empty() || uni_id.empty()) {
    return false;
  }
  void* page =
      ::mmap(nullptr, sizeof(Seen), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) {
    return false;
  }
  seen_ = static_cast<Seen*>(page);
  const pid_t self = ::getpid();
  const pid_t child = ::fork();
  if (child == 0) {
    follow(file.data(), uni_id, self);
  }
  return child > 0;
}

void Outside::follow(const char* file, std::string_view uni_id, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::prctl(PR_SET_NAME, kName.data());
  if (::getppid() != parent) {
    ::_exit(0);
  }
  close_all();
  // Signals stay blocked: being asked to end, it waits for who it waits for, who is asked as well.
  ProcStat last;
  for (;;) {
    const UniEntryView entry = read_entry(file, uni_id);
    ProcStat process;
    const auto pid = static_cast<pid_t>(entry.pid);
    int fd = entry.running && pid > 1 ? static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)) : -1;
    // Looked at after the descriptor was opened, so that it cannot be about somebody else.
    if (fd < 0 || !counts(pid, uni_id, parent, process) ||
        (last.pid == process.pid && last.start_ticks == process.start_ticks)) {
      ::_exit(0);
    }
    last = process;
    __atomic_store_n(&seen_->pid, 0, __ATOMIC_SEQ_CST);
    __atomic_store_n(&seen_->start_ticks, process.start_ticks, __ATOMIC_SEQ_CST);
    __atomic_store_n(&seen_->pid, process.pid, __ATOMIC_SEQ_CST);
    pollfd wait{fd, POLLIN, 0};
    while (::poll(&wait, 1, -1) < 1) {
      ::nanosleep(&kBetweenLooks, nullptr);
    }
    close_fd(fd);
  }
}

bool Outside::process(ProcStat& out) const {
  const pid_t pid = seen_ == nullptr ? 0 : __atomic_load_n(&seen_->pid, __ATOMIC_SEQ_CST);
  return pid > 0 && read_stat(pid, out) &&
         out.start_ticks == __atomic_load_n(&seen_->start_ticks, __ATOMIC_SEQ_CST) && !out.dead();
}

}  // namespace berth::shim
