#include "shim/sys.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>

namespace berth::shim {
namespace {

std::string_view armed_name;
long passes_left = 0;

}  // namespace

std::int64_t now_ms(clockid_t clock) {
  timespec ts{};
  ::clock_gettime(clock, &ts);
  return static_cast<std::int64_t>(ts.tv_sec) * 1000 + ts.tv_nsec / 1'000'000;
}

void close_fd(int& fd) {
  if (fd >= 0) {
    ::close(fd);
    fd = -1;
  }
}

ssize_t read_file(const char* path, char* buffer, std::size_t size) {
  int fd = ::open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    return -1;
  }
  const ssize_t got = ::read(fd, buffer, size);
  close_fd(fd);
  return got;
}

bool read_stat(pid_t pid, ProcStat& out) {
  char path[40] = "/proc/";
  std::size_t end = 6;
  char digits[16];
  int used = 0;
  for (auto rest = static_cast<unsigned>(pid); rest != 0; rest /= 10) {
    digits[used++] = static_cast<char>('0' + rest % 10);
  }
  while (used > 0) {
    path[end++] = digits[--used];
  }
  std::memcpy(path + end, "/stat", 6);
  char text[1024];
  const ssize_t size = read_file(path, text, sizeof text);
  return size > 0 && parse_proc_stat({text, static_cast<std::size_t>(size)}, out);
}

void signal_process(const ProcStat& process, int signal, int second) {
  int fd = static_cast<int>(::syscall(SYS_pidfd_open, process.pid, 0));
  if (fd < 0) {
    return;
  }
  ProcStat now;
  if (read_stat(process.pid, now) && now.start_ticks == process.start_ticks) {
    ::syscall(SYS_pidfd_send_signal, fd, signal, nullptr, 0);
    if (second != 0) {
      ::syscall(SYS_pidfd_send_signal, fd, second, nullptr, 0);
    }
  }
  close_fd(fd);
}

void make_parents(char* path) {
  for (char* slash = std::strchr(path + 1, '/'); slash != nullptr;
       slash = std::strchr(slash + 1, '/')) {
    *slash = '\0';
    ::mkdir(path, 0777);  // a failure shows when the file itself is opened
    *slash = '/';
  }
}

Text& Text::add(std::string_view text) {
  const std::size_t room = sizeof buffer_ - 1 - size_;
  cut_ = cut_ || text.size() > room;
  text = text.substr(0, room);
  std::memcpy(buffer_ + size_, text.data(), text.size());
  size_ += text.size();
  buffer_[size_] = '\0';
  return *this;
}

Text& Text::add(std::uint64_t number) {
  char digits[20];
  std::size_t used = sizeof digits;
  do {
    digits[--used] = static_cast<char>('0' + number % 10);
    number /= 10;
  } while (number != 0);
  return add(std::string_view(digits + used, sizeof digits - used));
}

bool RecordWriter::append(RecordLine& line) {
  return write_line(line.finish());
}

bool RecordWriter::write_line(std::string_view line) {
  // After a partial write the next line begins on a line of its own, so only the torn one is lost.
  if (torn_ && ::write(fd_, "\n", 1) != 1) {
    return false;
  }
  torn_ = false;
  ssize_t written = 0;
  do {
    written = ::write(fd_, line.data(), line.size());
  } while (written < 0 && errno == EINTR);
  torn_ = written > 0 && static_cast<std::size_t>(written) != line.size();
  return written == static_cast<ssize_t>(line.size());
}

void RecordWriter::append_surely(RecordLine& line) {
  const std::string_view text = line.finish();
  while (!write_line(text)) {
    if (errno != ENOSPC && errno != EDQUOT && !torn_) {
      return;  // an I/O error does not pass; the attempt will be found without an EXIT
    }
    const timespec second{1, 0};
    ::nanosleep(&second, nullptr);
  }
}

void RecordWriter::sync() {
  ::fdatasync(fd_);
}

void arm_failpoints(char* const* environment) {
  constexpr std::string_view kPrefix = "BERTH_CRASH_AT=";
  for (; *environment != nullptr; ++environment) {
    std::string_view entry = *environment;
    if (entry.starts_with(kPrefix)) {
      entry.remove_prefix(kPrefix.size());
      const auto colon = entry.find(':');
      armed_name = entry.substr(0, colon);
      passes_left =
          colon == std::string_view::npos ? 1 : std::strtol(entry.data() + colon + 1, nullptr, 10);
    }
  }
}

void failpoint(std::string_view name) {
  if (name == armed_name && --passes_left == 0) {
    ::kill(::getpid(), SIGKILL);
    ::pause();
  }
}

}  // namespace berth::shim
