// berth backup and berth restore.

#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "base/units.hpp"
#include "cli/commands.hpp"
#include "cli/daemon.hpp"
#include "cli/server.hpp"
#include "cli/start_daemon.hpp"
#include "submit/environment.hpp"

extern char** environ;  // NOLINT

namespace berth::cli {
namespace {

constexpr int kLookMs = 100;
constexpr Millis kStopTimeout{30'000};
constexpr Millis kRestoreTimeout{600'000};  ///< a large store takes its time

Result<std::string> absolute(const std::string& file) {
  if (chosen_server() && !file.starts_with('/')) {
    return fail(ErrorCode::invalid, fmt::format("'{}' must begin with /: it is a file of {}",
                                                printable(file), chosen_server()->host));
  }
  std::error_code error;
  const auto path = std::filesystem::absolute(file, error);
  if (error || file.empty()) {
    return fail(ErrorCode::invalid, fmt::format("'{}' cannot be a file", printable(file)));
  }
  return path.lexically_normal().native();
}

/// Nothing may run and no daemon may be there: what is restored is not of the same moment as they.
/// Whether there was one.
Result<bool> stop_for_restore() {
  auto daemon = Daemon::open(Daemon::Start::never);
  if (!daemon) {
    if (daemon.error().code == ErrorCode::unavailable) {
      return false;
    }
    return std::unexpected(std::move(daemon.error()));
  }
  TRY_ASSIGN(const StatusView status, daemon->get<StatusView>("/api/status"));
  std::uint64_t running = 0;
  for (const JobState state : {JobState::running, JobState::paused}) {
    const auto it = status.counts.find(state);
    running += it == status.counts.end() ? 0 : it->second;
  }
  if (running > 0) {
    return fail(ErrorCode::conflict,
                fmt::format("{} running; wait for {} or end {} first: berth wait --all, or berth "
                            "kill all",
                            running == 1 ? "a job is" : fmt::format("{} jobs are", running),
                            running == 1 ? "it" : "them", running == 1 ? "it" : "them"));
  }
  const auto answer = daemon->call("POST", "/api/stop");
  if (!answer && answer.error().code != ErrorCode::unavailable) {
    return std::unexpected(answer.error());
  }
  const Millis deadline = read_clock().mono + kStopTimeout;
  while (lock_is_held(daemon->paths())) {
    if (read_clock().mono > deadline) {
      return fail(ErrorCode::unavailable, "the daemon has been told to stop but is still there");
    }
    ::poll(nullptr, 0, 20);
  }
  return true;
}

Result<int> run_program(const std::string& program, const std::vector<std::string>& arguments) {
  std::vector<char*> pointers;
  for (const std::string& argument : arguments) {
    pointers.push_back(const_cast<char*>(argument.c_str()));
  }
  pointers.push_back(nullptr);
  std::fflush(stdout);
  pid_t pid = 0;
  if (const int error =
          ::posix_spawn(&pid, program.c_str(), nullptr, nullptr, pointers.data(), environ);
      error != 0) {
    return fail_errno(fmt::format("cannot run {}", program), error);
  }
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) {
      return fail_errno(fmt::format("lost sight of {}", program), errno);
    }
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/// The daemon there restores between its end and its next beginning, and tells afterwards.
Outcome restore_there(const std::string& path) {
  TRY_ASSIGN(Daemon daemon, Daemon::open());
  const RestoreRequest request{path, fresh_key()};
  TRY_ASSIGN(const std::string body, daemon.call("POST", "/api/restore", encode_restore(request)));
  TRY_ASSIGN(RestoreView view, decode<RestoreView>(body));
  Millis deadline = read_clock().mono + kRestoreTimeout;
  while (view.running) {
    ::poll(nullptr, 0, kLookMs);
    auto next = daemon.get<RestoreView>("/api/restore");
    if (!next && next.error().code == ErrorCode::unavailable && read_clock().mono < deadline) {
      continue;
    }
    if (!next || next->key != request.key) {
      return fail(
          ErrorCode::unavailable,
          fmt::format("it is not known how restoring went: {}. Look there: berth status, "
                      "and its log",
                      next ? "the daemon has been started once more" : next.error().message));
    }
    view = std::move(*next);
    deadline = read_clock().mono + kRestoreTimeout;
  }
  if (!view.error.empty()) {
    return fail(ErrorCode::io, view.error);
  }
  print(view.message + "the daemon runs again\n");
  return 0;
}

}  // namespace

Outcome run_backup(const BackupOptions& options) {
  BackupRequest request;
  TRY_ASSIGN(request.path, absolute(options.file));
  request.replace = options.force;
  TRY_ASSIGN(Daemon daemon, Daemon::open());
  TRY_ASSIGN(std::string body, daemon.call("POST", "/api/backup", encode_backup(request)));
  TRY_ASSIGN(BackupView view, decode<BackupView>(body));
  const bool show = ::isatty(STDERR_FILENO) == 1;
  while (view.running) {
    ::poll(nullptr, 0, kLookMs);
    TRY_ASSIGN(view, daemon.get<BackupView>("/api/backup"));
    if (view.path != request.path) {
      return fail(ErrorCode::unavailable,
                  "the daemon ended before the backup was complete; try again");
    }
    if (show && view.total > 0) {
      fmt::print(stderr, "\rbacking up: {} %", view.pages * 100 / view.total);
    }
  }
  if (show) {
    fmt::print(stderr, "\r\x1b[K");
  }
  if (!view.error.empty()) {
    return fail(ErrorCode::io, view.error);
  }
  if (options.json) {
    print(encode(view) + "\n");
    return 0;
  }
  print(fmt::format("backed up to {} ({}): jobs, queues, history\nnot in it: the logs in {}\n",
                    view.path, format_size(view.size), daemon.paths().logs));
  return 0;
}

Outcome run_restore(const std::string& file) {
  TRY_ASSIGN(const std::string path, absolute(file));
  if (chosen_server()) {
    return restore_there(path);
  }
  if (::access(path.c_str(), R_OK) != 0) {
    return fail_errno(fmt::format("cannot read {}", path), errno);
  }
  TRY_ASSIGN(const InstancePaths paths, find_instance());
  TRY_ASSIGN(const std::string program, sibling_program("berthd"));
  TRY_ASSIGN(const bool stopped, stop_for_restore());
  TRY_ASSIGN(const int code,
             run_program(program, {"berthd", "--dir", paths.dir, "--restore", path}));
  if (code != 0) {  // it has said why
    if (stopped) {
      TRY(Daemon::open());  // on with what was there
    }
    return 1;
  }
  TRY(Daemon::open());
  print("the daemon runs again\n");
  return 0;
}

}  // namespace berth::cli
