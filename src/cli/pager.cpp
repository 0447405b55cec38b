#include "cli/pager.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>

namespace berth::cli {
namespace {

bool installed(const std::string& program) {
  const char* path = std::getenv("PATH");
  std::string_view rest = path == nullptr ? "/usr/bin:/bin" : path;
  while (!rest.empty()) {
    const std::string_view dir = rest.substr(0, rest.find(':'));
    if (::access((std::string(dir) + "/" + program).c_str(), X_OK) == 0) {
      return true;
    }
    rest.remove_prefix(std::min(rest.size(), dir.size() + 1));
  }
  return false;
}

[[noreturn]] void become_pager(const std::string& command, int input) {
  ::signal(SIGPIPE, SIG_DFL);
  ::signal(SIGINT, SIG_DFL);
  ::dup2(input, STDIN_FILENO);
  // Leave at once what fits, keep colours, and leave the text on the screen.
  ::setenv("LESS", "FRX", 0);
  ::execl("/bin/sh", "sh", "-c", command.c_str(), static_cast<char*>(nullptr));
  ::_exit(127);
}

}  // namespace

std::string pager_command() {
  for (const char* name : {"BERTH_PAGER", "PAGER"}) {
    if (const char* value = std::getenv(name)) {
      const std::string command = value;
      return command.find_first_not_of(" \t") == std::string::npos || command == "cat" ? ""
                                                                                       : command;
    }
  }
  return installed("less") ? "less -FRX" : "";
}

std::size_t screen_lines(std::string_view text, const Screen& screen, std::size_t enough) {
  const std::size_t width = std::max<std::size_t>(screen.width.value_or(80), 1);
  std::size_t lines = 0;
  while (!text.empty() && lines < enough) {
    const std::string_view line = text.substr(0, text.find('\n'));
    std::string visible;  // without the colours
    for (std::size_t at = 0; at < line.size(); ++at) {
      if (line[at] == '\x1b') {
        at = std::min(line.find('m', at), line.size());
      } else {
        visible += line[at];
      }
    }
    lines += std::max<std::size_t>((display_width(visible) + width - 1) / width, 1);
    text.remove_prefix(std::min(text.size(), line.size() + 1));
  }
  return lines;
}

Pager::Pager(const Screen& screen) {
  if (!screen.terminal || !display().pager) {
    return;
  }
  const std::string command = pager_command();
  std::array<int, 2> ends{};
  if (command.empty() || ::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return;
  }
  const Fd reading(ends[0]);
  const Fd writing(ends[1]);
  std::fflush(stdout);
  child_ = ::fork();
  if (child_ == 0) {
    become_pager(command, reading.get());
  }
  if (child_ < 0) {
    return;  // without a pager, then
  }
  terminal_.reset(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3));  // NOLINT
  ::dup2(writing.get(), STDOUT_FILENO);
  // The keys are the pager's, Ctrl-C included, and leaving it early must not end us.
  ::signal(SIGINT, SIG_IGN);
  ::signal(SIGPIPE, SIG_IGN);
}

bool Pager::left() const {
  return child_ > 0 && std::ferror(stdout) != 0;
}

Pager::~Pager() {
  if (child_ < 0) {
    return;
  }
  std::fflush(stdout);
  ::dup2(terminal_.get(),
         STDOUT_FILENO);  // closes the pipe, which tells the pager that this is all
  while (::waitpid(child_, nullptr, 0) < 0 && errno == EINTR) {
  }
  std::clearerr(stdout);
  ::signal(SIGINT, SIG_DFL);
  ::signal(SIGPIPE, SIG_DFL);
}

void print_paged(std::string_view text, const Screen& screen) {
  if (!screen.terminal || screen_lines(text, screen, screen.height) < screen.height) {
    print(text);
    return;
  }
  const Pager pager(screen);
  print(text);
}

}  // namespace berth::cli
