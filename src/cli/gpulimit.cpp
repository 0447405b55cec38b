// gpulimit and gpulimit_server: berth in gpulimit's words.

#include "cli/gpulimit.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "base/fd.hpp"
#include "cli/start_daemon.hpp"

namespace berth::cli::gpulimit {
namespace {

constexpr int kWrongUsage = 2;
constexpr std::string_view kClient = "gpulimit";
constexpr std::string_view kServer = "gpulimit_server";

bool asks_for_help(std::string_view word) {
  return word == "-h" || word == "--help";
}

/// In the name of the program that was called.
int report(std::string_view program, const Error& error) {
  std::fflush(stdout);
  fmt::print(stderr, "{}: {}\n", program, error.message);
  return error.code == ErrorCode::invalid ? kWrongUsage : 1;
}

/// Becomes berthd, whose output goes where `gpulimit log main` finds it.
Status become_server() {
  TRY_ASSIGN(const std::string program, sibling_program("berthd"));
  TRY_ASSIGN(const InstancePaths paths, find_instance());
  TRY(prepare_instance(paths));
  if (lock_is_held(paths)) {
    print("gpulimit_server runs already; `gpulimit status` asks it\n");
    return {};
  }
  const Fd log(::open(paths.daemon_log.c_str(),  // NOLINT
                      O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!log) {
    return fail_errno(fmt::format("cannot open '{}'", paths.daemon_log), errno);
  }
  fmt::print(stderr, "{}: serving, pid {}; `gpulimit log main` shows what it does\n", kServer,
             ::getpid());
  ::setenv("BERTH_DIR", paths.dir.c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
  ::dup2(log.get(), STDOUT_FILENO);
  const Fd terminal(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3));  // NOLINT
  ::dup2(log.get(), STDERR_FILENO);
  ::execl(program.c_str(), "berthd", "--foreground", static_cast<char*>(nullptr));
  const int error = errno;
  if (terminal) {
    ::dup2(terminal.get(), STDERR_FILENO);
  }
  return fail_errno(fmt::format("cannot execute '{}'", program), error);
}

}  // namespace

bool take_flag(Words& words, std::string_view flag) {
  return std::erase(words, flag) > 0;
}

Status expect_words(const Words& words, std::size_t least, std::size_t most,
                    std::string_view usage) {
  for (const std::string& word : words) {
    if (word.starts_with('-')) {
      return fail(ErrorCode::invalid, fmt::format("there is no option '{}'; usage: gpulimit {}",
                                                  printable(word), usage));
    }
  }
  if (words.size() < least || words.size() > most) {
    return fail(ErrorCode::invalid, fmt::format("usage: gpulimit {}", usage));
  }
  return {};
}

int run(const Words& words) {
  display() = {};
  if (words.empty() || asks_for_help(words[0])) {
    print(help_text());
    return 0;
  }
  if (words[0] == "--version") {
    print("gpulimit, by berth " BERTH_VERSION "\n");
    return 0;
  }
  const CommandDef* command = find_command(words[0]);
  if (command == nullptr) {
    return report(
        kClient, {ErrorCode::invalid, fmt::format("there is no command '{}'{}\ntry: gpulimit help",
                                                  printable(words[0]), nearest_command(words[0]))});
  }
  const Words rest(words.begin() + 1, words.end());
  // The words of a task's command are its own.
  if (command->name != "add" && std::ranges::any_of(rest, asks_for_help)) {
    print(help_text(*command));
    return 0;
  }
  const Outcome outcome = command->run(rest);
  if (!outcome) {
    return report(kClient, outcome.error());
  }
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    return 1;
  }
  return *outcome;
}

int serve(const Words& words) {
  display() = {};
  if (!words.empty()) {
    if (asks_for_help(words[0])) {
      print(
          "gpulimit_server: runs the server of gpulimit in the foreground\n\n"
          "Usage: gpulimit_server\n"
          "       nohup gpulimit_server &      in the background\n\n"
          "gpulimit starts it by itself when it is needed. Ending it leaves running tasks\n"
          "alone, and the next one goes on with them. BERTH_DIR chooses another instance.\n");
      return 0;
    }
    return report(kServer, {ErrorCode::invalid, fmt::format("it takes no words, but got '{}'\ntry: "
                                                            "gpulimit_server --help",
                                                            printable(words[0]))});
  }
  const Status served = become_server();
  return served ? 0 : report(kServer, served.error());
}

}  // namespace berth::cli::gpulimit
