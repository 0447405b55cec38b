#include "cli/full_screen.hpp"

#include <pthread.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace berth::cli {
namespace {

constexpr std::array kCaught{SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH};

constexpr std::string_view kEnter = "\x1b[?1049h\x1b[?25l\x1b[2J";
constexpr std::string_view kLeave = "\x1b[0m\x1b[?25h\x1b[?1049l";

}  // namespace

Result<TerminalSignals> TerminalSignals::take() {
  sigset_t caught{};
  sigset_t before{};
  sigemptyset(&caught);
  for (const int number : kCaught) {
    sigaddset(&caught, number);
  }
  ::pthread_sigmask(SIG_BLOCK, &caught, &before);
  Fd fd(::signalfd(-1, &caught, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd) {
    const int error = errno;
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return fail_errno("cannot make a signalfd", error);
  }
  return TerminalSignals(std::move(fd), before);
}

TerminalSignals::TerminalSignals(TerminalSignals&& other) noexcept
    : fd_(std::move(other.fd_)), before_(other.before_) {}

TerminalSignals::~TerminalSignals() {
  if (fd_) {
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
}

std::optional<int> TerminalSignals::next() const {
  signalfd_siginfo info{};
  if (::read(fd_.get(), &info, sizeof info) != static_cast<ssize_t>(sizeof info)) {
    return std::nullopt;
  }
  return static_cast<int>(info.ssi_signo);
}

void TerminalSignals::stop() {
  sigset_t stopping{};
  sigemptyset(&stopping);
  sigaddset(&stopping, SIGTSTP);
  ::raise(SIGTSTP);  // pending, until
  ::pthread_sigmask(SIG_UNBLOCK, &stopping, nullptr);
  ::pthread_sigmask(SIG_BLOCK, &stopping, nullptr);
}

FullScreen::FullScreen() {
  known_ = ::tcgetattr(STDIN_FILENO, &before_) == 0;
  enter();
}

FullScreen::~FullScreen() {
  leave();
}

void FullScreen::enter() {
  if (known_) {
    termios keys = before_;
    keys.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    keys.c_iflag &= ~static_cast<tcflag_t>(IXON);
    keys.c_cc[VMIN] = 1;
    keys.c_cc[VTIME] = 0;
    ::tcsetattr(STDIN_FILENO, TCSADRAIN, &keys);
  }
  static_cast<void>(write_terminal(kEnter));
  inside_ = true;
}

void FullScreen::leave() {
  if (!inside_) {
    return;
  }
  inside_ = false;
  static_cast<void>(write_terminal(kLeave));
  if (known_) {
    // Keys typed ahead are not for the shell: a "y" or a "K" too many does no harm there.
    ::tcsetattr(STDIN_FILENO, TCSAFLUSH, &before_);
  }
}

Status write_terminal(std::string_view text) {
  while (!text.empty()) {
    const ssize_t wrote = ::write(STDOUT_FILENO, text.data(), text.size());
    if (wrote < 0 && errno == EINTR) {
      continue;
    }
    if (wrote <= 0) {
      return fail_errno("cannot write to the terminal", errno);
    }
    text.remove_prefix(static_cast<std::size_t>(wrote));
  }
  return {};
}

}  // namespace berth::cli
