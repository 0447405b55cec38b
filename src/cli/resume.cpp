#include "cli/resume.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <set>

#include "cli/server.hpp"

namespace berth::cli {
namespace {

bool exists(const std::string& path) {
  struct stat status{};
  return path.empty() || ::stat(path.c_str(), &status) == 0;
}

/// Those logs of jobs on another machine that are not there any more.
Result<std::set<std::string>> logs_gone(Daemon& daemon, const std::vector<DoneView>& known) {
  std::set<std::string> gone;
  for (const DoneView& one : known) {
    if (one.succeeded == 0 || one.alive != 0 || one.log.empty()) {
      continue;
    }
    const auto nothing = daemon.call("GET", fmt::format("/api/jobs/{}/log?lines=0", one.succeeded));
    if (!nothing && nothing.error().code == ErrorCode::not_found) {
      gone.insert(one.log);
    } else if (!nothing && nothing.error().code == ErrorCode::unavailable) {
      return std::unexpected(nothing.error());
    }
  }
  return gone;
}

}  // namespace

Result<LeftOut> leave_out_done(JobFile& file, Daemon& daemon) {
  TRY_ASSIGN(const std::vector<DoneView> known, daemon.done(questions_of(file)));
  if (!chosen_server()) {
    return leave_out(file, known, exists);
  }
  TRY_ASSIGN(const auto gone, logs_gone(daemon, known));
  return leave_out(file, known, [&](const std::string& log) { return !gone.contains(log); });
}

}  // namespace berth::cli
