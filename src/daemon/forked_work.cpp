#include "daemon/forked_work.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <new>
#include <utility>

#include <fmt/format.h>

#include "base/units.hpp"
#include "base/write_all.hpp"
#include "proc/procfs.hpp"
#include "proc/record.hpp"

namespace berth {
namespace {

const Error kGoing{ErrorCode::unavailable, "the daemon was stopped"};

// How a child ends that has nothing to tell.
constexpr int kOrphaned = 2;
constexpr int kNoMemory = 3;
constexpr int kThrew = 4;
constexpr int kCannotClose = 5;

/// Only this stays open: an inherited lock would keep an attempt, or the instance itself, alive in
/// the eyes of the next daemon.
bool close_all_but(int fd) {
  const auto number = static_cast<unsigned>(fd);
  const bool below = number == 0 || ::syscall(SYS_close_range, 0U, number - 1, 0U) == 0;
  return ::syscall(SYS_close_range, number + 1, ~0U, 0U) == 0 && below;
}

/// The daemon's handlers write to descriptors that are its own.
void forget_handlers() {
  for (int number = 1; number < NSIG; ++number) {
    ::signal(number, SIG_DFL);
  }
  sigset_t none;
  ::sigemptyset(&none);
  ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
}

/// If memory runs out this goes, not the daemon and not a job.
void offer_oneself() {
  const int fd = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (fd >= 0) {
    [[maybe_unused]] const ssize_t written = ::write(fd, "1000", 4);
    ::close(fd);
  }
}

/// All of the child's life. `output` is the writing end of the pipe.
[[noreturn]] void live_as_child(pid_t daemon, int output, const ForkedWork::Work& work) {
  // Before anything else, and asked again afterwards: it may have died in between.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != daemon) {
    ::_exit(kOrphaned);
  }
  if (!close_all_but(output)) {
    ::_exit(kCannotClose);
  }
  ::setpgid(0, 0);  // a terminal's Ctrl-C is not meant for it
  forget_handlers();
  offer_oneself();
  try {
    ::_exit(write_all(output, work()) ? 0 : kThrew);
  } catch (const std::bad_alloc&) {
    ::_exit(kNoMemory);
  } catch (...) {
    ::_exit(kThrew);
  }
}

std::string told(int status) {
  if (WIFSIGNALED(status)) {
    return fmt::format("was ended by {}{}", signal_name(WTERMSIG(status)),
                       WTERMSIG(status) == SIGKILL ? "; is memory short?" : "");
  }
  switch (WEXITSTATUS(status)) {
    case kNoMemory:
      return "found no memory";
    case kCannotClose:
      return "could not close its files; is the kernel older than 5.9?";
    default:
      return fmt::format("ended with code {}", WEXITSTATUS(status));
  }
}

}  // namespace

ForkedWork::ForkedWork(Loop& loop, std::string what, Limits limits)
    : loop_(loop), what_(std::move(what)), limits_(limits) {}

ForkedWork::~ForkedWork() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);  // it has no file or device that could hold it
  }
}

void ForkedWork::run(Work work, Then then) {
  if (closed_) {
    then(std::unexpected(kGoing));
    return;
  }
  if (asked_.size() > limits_.waiting) {
    then(fail(ErrorCode::busy, fmt::format("{} others wait for {} already; try again in a moment",
                                           asked_.size(), what_)));
    return;
  }
  asked_.push_back({std::move(work), std::move(then)});
  if (asked_.size() == 1) {
    next();
  }
}

void ForkedWork::next() {
  result_.clear();
  given_up_.reset();
  if (Status forked = fork_for(asked_.front().work); !forked) {
    // Later: whoever asked is not done with asking.
    loop_.post([this, error = std::move(forked.error())] { finish(std::unexpected(error)); });
    return;
  }
  patience_ = loop_.after(limits_.time, [this] {
    give_up({ErrorCode::unavailable, fmt::format("{} was given up: it took longer than {}", what_,
                                                 format_duration(limits_.time))});
  });
  output_watch_ = loop_.when_readable(output_.get(), [this] { on_output(); });
}

Status ForkedWork::fork_for(const Work& work) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return fail_errno("cannot make a pipe", errno);
  }
  output_.reset(ends[0]);
  const Fd input(ends[1]);
  ::fcntl(output_.get(), F_SETFL, O_NONBLOCK);
  const pid_t daemon = ::getpid();
  // A signal that reached the child first would be taken by the daemon's handlers.
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t pid = ::fork();
  if (pid == 0) {
    live_as_child(daemon, input.get(), work);
  }
  const int error = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (pid < 0) {
    output_.reset();
    return fail(ErrorCode::unavailable,
                fmt::format("cannot start a process for {}: {}", what_, std::strerror(error)));
  }
  pid_ = pid;
  pidfd_ = open_pidfd(pid);
  if (!pidfd_) {
    const int why = errno;
    ::kill(pid, SIGKILL);
    ::waitpid(std::exchange(pid_, -1), nullptr, 0);
    output_.reset();
    return fail(ErrorCode::unavailable,
                fmt::format("cannot watch the process for {}: {}", what_, std::strerror(why)));
  }
  return {};
}

void ForkedWork::on_output() {
  std::array<char, 64 * 1024> piece;
  const ssize_t n = ::read(output_.get(), piece.data(), piece.size());
  if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
    await_end();
    return;
  }
  result_.append(piece.data(), n > 0 ? static_cast<std::size_t>(n) : 0);
  if (result_.size() > limits_.bytes) {
    give_up({ErrorCode::unavailable, fmt::format("{} was given up: it is larger than {}", what_,
                                                 format_size(limits_.bytes))});
    return;
  }
  output_watch_ = loop_.when_readable(output_.get(), [this] { on_output(); });
}

void ForkedWork::give_up(Error why) {
  given_up_ = std::move(why);
  signal_pidfd(pidfd_, SIGKILL);
  await_end();
}

void ForkedWork::await_end() {
  output_watch_.reset();
  end_watch_ = loop_.when_readable(pidfd_.get(), [this] { on_end(); });
}

void ForkedWork::on_end() {
  int status = 0;
  const bool reaped = ::waitpid(std::exchange(pid_, -1), &status, 0) > 0;
  if (given_up_) {
    finish(std::unexpected(std::move(*given_up_)));
  } else if (!reaped || status != 0) {
    finish(fail(ErrorCode::unavailable,
                fmt::format("the process that worked out {} {}", what_, told(status))));
  } else {
    finish(std::move(result_));
  }
}

void ForkedWork::finish(Result<std::string> result) {
  patience_.reset();
  end_watch_.reset();
  output_.reset();
  pidfd_.reset();
  if (asked_.empty()) {
    return;  // closed meanwhile
  }
  const Then then = std::move(asked_.front().then);
  asked_.pop_front();
  if (!asked_.empty()) {
    next();
  }
  then(std::move(result));
}

void ForkedWork::close() {
  closed_ = true;
  if (pid_ > 0) {
    signal_pidfd(pidfd_, SIGKILL);
  }
  for (const Asked& asked : std::exchange(asked_, {})) {
    asked.then(std::unexpected(kGoing));
  }
}

}  // namespace berth
