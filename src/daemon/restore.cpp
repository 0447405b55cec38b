#include "daemon/restore.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <charconv>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/paths.hpp"
#include "base/fd.hpp"
#include "proc/daemon_lock.hpp"
#include "store/backup.hpp"

namespace berth {
namespace {

namespace fs = std::filesystem;

/// The numbers that the names in a directory begin with.
std::vector<std::pair<std::uint64_t, std::string>> numbered(const std::string& directory) {
  std::vector<std::pair<std::uint64_t, std::string>> found;
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(::opendir(directory.c_str()), ::closedir);
  while (const dirent* entry = dir ? ::readdir(dir.get()) : nullptr) {
    const std::string_view name = entry->d_name;
    std::uint64_t number = 0;
    if (std::from_chars(name.data(), name.data() + name.size(), number).ec == std::errc{}) {
      found.emplace_back(number, directory + "/" + std::string(name));
    }
  }
  return found;
}

/// Whether a supervisor holds the record of an attempt: then its job runs, whatever any store says.
bool is_held(const std::string& record) {
  const Fd fd(::open(record.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  return fd && ::flock(fd.get(), LOCK_EX | LOCK_NB) != 0;
}

/// Records of another instance must not be taken for those of the restored one.
Status put_records_aside(const InstancePaths& paths, const std::string& kept) {
  const auto records = numbered(paths.attempts);
  if (records.empty()) {
    return {};
  }
  const std::string aside = kept.empty()
                                ? paths.attempts + ".before-restore"
                                : paths.attempts + kept.substr(kept.rfind(".before-restore-"));
  if (::mkdir(aside.c_str(), 0700) != 0 && errno != EEXIST) {
    return fail_errno(fmt::format("cannot create {}", aside), errno);
  }
  for (const auto& [number, record] : records) {
    const fs::path target = fs::path(aside) / fs::path(record).filename();
    if (std::rename(record.c_str(), target.c_str()) != 0) {
      return fail_errno(fmt::format("cannot move {} away", record), errno);
    }
  }
  return {};
}

Result<Restored> restore(const DaemonOptions& options, const std::string& backup) {
  TRY_ASSIGN(const InstancePaths paths,
             options.dir.empty() ? find_instance() : instance_in(options.dir));
  TRY(prepare_instance(paths));
  TRY_ASSIGN(const DaemonLock lock, DaemonLock::acquire(paths.lock));
  IssuedIds issued;
  std::vector<std::uint64_t> running;
  for (const auto& [number, record] : numbered(paths.attempts)) {
    issued.attempt = std::max(issued.attempt, AttemptId{number});
    if (is_held(record)) {
      running.push_back(number);
    }
  }
  if (!running.empty()) {
    return fail(ErrorCode::conflict,
                fmt::format("jobs are running (attempts {}); wait for them or end them first: "
                            "berth wait --all, or berth kill all",
                            fmt::join(running, ", ")));
  }
  for (const auto& [thousand, directory] : numbered(paths.logs)) {
    for (const auto& [job, log] : numbered(directory)) {
      issued.job = std::max(issued.job, JobId{job});
    }
  }
  TRY_ASSIGN(Restored restored, restore_store(backup, paths.database, issued, read_clock().wall));
  if (!restored.same_instance) {
    TRY(put_records_aside(paths, restored.kept));
  }
  return restored;
}

/// What was done, in lines.
std::string tell(const Restored& restored, const std::string& backup) {
  std::string text = fmt::format("restored {} jobs from {}", restored.jobs, backup);
  if (restored.waiting > 0) {
    text += fmt::format("; {} of them wait and will start", restored.waiting);
  }
  if (restored.running > 0) {
    text +=
        fmt::format("; {} ran when the backup was made and are taken for lost", restored.running);
  }
  text += '\n';
  if (!restored.kept.empty()) {
    text += fmt::format("the database that was there is kept as {}\n", restored.kept);
  }
  if (!restored.unreadable.empty()) {
    text += fmt::format(
        "it could not be read ({}), so ids of jobs that left no log may be given again\n",
        restored.unreadable);
  }
  return text;
}

}  // namespace

int restore_main(const DaemonOptions& options) {
  const auto restored = restore(options, options.restore);
  if (!restored) {
    fmt::print(stderr, "berth: {}\n", restored.error().message);
    return 1;
  }
  fmt::print("{}", tell(*restored, options.restore));
  return 0;
}

RestoreView restore_as_asked(const DaemonOptions& options, const RestoreRequest& request) {
  RestoreView view;
  view.path = request.path;
  view.key = request.key;
  if (const auto restored = restore(options, request.path)) {
    view.message = tell(*restored, request.path);
  } else {
    view.error = restored.error().message;
    view.code = to_string(restored.error().code);
  }
  return view;
}

}  // namespace berth
