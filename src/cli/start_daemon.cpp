#include "cli/start_daemon.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <string>

#include "base/fd.hpp"
#include "base/time.hpp"

namespace berth::cli {
namespace {

constexpr Millis kStartTimeout{10'000};
/// For one that has got as far as the lock: it may have much to recover.
constexpr Millis kRecoveryTimeout{60'000};
constexpr int kPollMs = 20;

/// In the child: becomes berthd, or says on `ready` why not. Only system calls between fork and
/// exec besides setenv, which is safe because this program has one thread.
[[noreturn]] void become_daemon(const std::string& program, const std::string& dir, int null,
                                int log, int ready) {
  if (::setsid() < 0 || ::fork() != 0) {
    ::_exit(0);  // the intermediate process: its child belongs to nobody
  }
  ::dup2(null, STDIN_FILENO);
  ::dup2(log, STDOUT_FILENO);
  ::dup2(log, STDERR_FILENO);
  ::fcntl(ready, F_SETFD, 0);
  ::setenv("BERTH_READY_FD", std::to_string(ready).c_str(), 1);
  // It must look for its state where we do, although it starts from elsewhere.
  ::setenv("BERTH_DIR", dir.c_str(), 1);
  if (::chdir("/") == 0) {
    ::execl(program.c_str(), "berthd", "--foreground", static_cast<char*>(nullptr));
  }
  const std::string error = fmt::format("error: cannot execute '{}': errno {}\n", program, errno);
  [[maybe_unused]] const ssize_t ignored = ::write(ready, error.data(), error.size());
  ::_exit(127);
}

}  // namespace

Result<std::string> sibling_program(const std::string& name) {
  std::array<char, PATH_MAX> buffer{};
  const ssize_t size = ::readlink("/proc/self/exe", buffer.data(), buffer.size());
  if (size <= 0) {
    return fail_errno("cannot find out where this program lies", errno);
  }
  std::string path(buffer.data(), static_cast<std::size_t>(size));
  path = path.substr(0, path.rfind('/') + 1) + name;
  if (::access(path.c_str(), X_OK) != 0) {
    return fail_errno(fmt::format("cannot start '{}'; install {} beside berth", path, name), errno);
  }
  return path;
}

bool lock_is_held(const InstancePaths& paths) {
  const Fd fd(::open(paths.lock.c_str(), O_RDWR | O_CLOEXEC));  // NOLINT
  if (!fd) {
    return false;
  }
  struct flock probe{};
  probe.l_type = F_WRLCK;
  probe.l_whence = SEEK_SET;
  return ::fcntl(fd.get(), F_OFD_GETLK, &probe) == 0 && probe.l_type != F_UNLCK;  // NOLINT
}

namespace {

Status start_once(const InstancePaths& paths, const std::function<bool()>& answers) {
  if (std::getenv("BERTH_ATTEMPT") != nullptr) {
    return fail(
        ErrorCode::refused,
        "no daemon answers, and one started from inside a job would end with the job; start "
        "it from an ordinary shell (any berth command does)");
  }
  TRY_ASSIGN(const std::string program, sibling_program("berthd"));
  TRY(prepare_instance(paths));

  const Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));  // NOLINT
  const Fd log(::open(paths.daemon_log.c_str(),            // NOLINT
                      O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!null || !log) {
    return fail_errno(fmt::format("cannot open '{}'", paths.daemon_log), errno);
  }
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return fail_errno("cannot make a pipe", errno);
  }
  const Fd from_daemon(ends[0]);
  Fd to_us(ends[1]);
  const pid_t child = ::fork();
  if (child < 0) {
    return fail_errno("cannot start the daemon", errno);
  }
  if (child == 0) {
    become_daemon(program, paths.dir, null.get(), log.get(), to_us.get());
  }
  to_us.reset();
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }

  std::string said;
  bool open = true;
  bool other = false;  // another daemon held the lock when ours gave up
  const Millis begun = read_clock().mono;
  const auto waited = [&] { return read_clock().mono - begun; };
  while (waited() < kStartTimeout || (waited() < kRecoveryTimeout && lock_is_held(paths))) {
    pollfd wait{open ? from_daemon.get() : -1, POLLIN, 0};
    if (::poll(&wait, 1, kPollMs) == 1) {
      std::array<char, 4096> buffer{};
      const ssize_t size = ::read(from_daemon.get(), buffer.data(), buffer.size());
      open = size > 0 || (size < 0 && errno == EINTR);
      said.append(buffer.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
    }
    if (answers()) {
      return {};
    }
    if (!open) {
      if (!lock_is_held(paths)) {
        break;  // ours has ended, and there is no other to wait for
      }
      other = true;
    }
  }
  if (answers()) {
    return {};
  }
  constexpr std::string_view kError = "error: ";
  constexpr std::string_view kOtherServes = "already serves this directory";
  if (const auto at = said.find(kError); at != std::string::npos) {
    other = other || said.find(kOtherServes) != std::string::npos;
    return fail(other ? ErrorCode::conflict : ErrorCode::refused,
                said.substr(at + kError.size(), said.find('\n', at) - at - kError.size()));
  }
  return fail(ErrorCode::unavailable,
              fmt::format("the daemon {}; see '{}'", open ? "does not answer" : "ended at once",
                          paths.daemon_log));
}

}  // namespace

Status start_daemon(const InstancePaths& paths, const std::function<bool()>& answers) {
  Status started = start_once(paths, answers);
  if (!started && started.error().code == ErrorCode::conflict && !lock_is_held(paths)) {
    started = start_once(paths, answers);  // the one that was in the way was just ending
  }
  return started;
}

}  // namespace berth::cli
