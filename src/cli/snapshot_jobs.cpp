#include "cli/snapshot_jobs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "api/remote.hpp"
#include "cli/server.hpp"
#include "cli/terminal.hpp"
#include "snapshot/snapshot_store.hpp"

namespace berth::cli {
namespace {

constexpr Millis kCopyPatience{10 * 60'000};

bool names(const Command& command, const std::string& root) {
  return std::ranges::any_of(command.argv, [&](const std::string& word) {
    return word.find(root + "/") != std::string::npos;
  });
}

/// A path in a command may be data, an output or code: only the user knows.
void warn_of_originals(const event::Submit& submit, const std::vector<std::string>& roots) {
  for (const std::string& root : roots) {
    const auto job = std::ranges::find_if(submit.jobs, [&](const JobSpec& one) {
      return std::ranges::any_of(one.payload.commands,
                                 [&](const Command& command) { return names(command, root); });
    });
    if (job != submit.jobs.end()) {
      warn(
          fmt::format("warning: the command{} names '{}/…' itself: that stays the original, not "
                      "the snapshot; relative paths lead into the snapshot",
                      job->name.empty() ? "" : fmt::format(" of job '{}'", printable(job->name)),
                      printable(root)));
    }
  }
}

/// Lets the jobs run where `place_of` says.
template <class PlaceOf>
Status move_jobs(event::Submit& submit, const PlaceOf& place_of) {
  for (JobSpec& job : submit.jobs) {
    Payload& payload = job.payload;
    if (payload.work_dir.empty()) {
      payload.work_dir = payload.cwd;
    }
    TRY_ASSIGN(payload.cwd, place_of(payload.cwd));
  }
  return {};
}

void tell(const event::Submit& submit, const std::vector<std::string>& warnings,
          const std::vector<std::string>& roots) {
  for (const std::string& warning : warnings) {
    warn("warning: " + printable(warning));
  }
  warn_of_originals(submit, roots);
}

/// The trees are the other machine's, and so is the copy.
Status snapshot_there(event::Submit& submit, const SnapshotOptions& options, Daemon& daemon) {
  std::set<std::string> dirs;
  for (const JobSpec& job : submit.jobs) {
    dirs.insert(job.payload.cwd);
  }
  const SnapshotRequest request{submit.client_key, {dirs.begin(), dirs.end()}, options.limit};
  TRY_ASSIGN(const std::string body,
             daemon.call("POST", "/api/snapshots", encode(request), kCopyPatience));
  TRY_ASSIGN(const SnapshotAnswer answer, decode_snapshot_answer(body));
  if (answer.places.size() != request.dirs.size()) {
    return fail(ErrorCode::invalid, "cannot understand the daemon; is it of another version?");
  }
  TRY(move_jobs(submit, [&](const std::string& dir) -> Result<std::string> {
    const auto at = std::ranges::lower_bound(request.dirs, dir) - request.dirs.begin();
    return answer.places[static_cast<std::size_t>(at)];
  }));
  tell(submit, answer.warnings, answer.roots);
  return {};
}

}  // namespace

Result<std::optional<TreeSnapshot>> snapshot_jobs(event::Submit& submit,
                                                  const SnapshotOptions& options, Daemon& daemon) {
  std::optional<TreeSnapshot> out;
  if (!options.wanted) {
    return out;
  }
  if (chosen_server()) {
    TRY(snapshot_there(submit, options, daemon));
    return out;
  }
  TRY_ASSIGN(TreeSnapshot snapshot,
             TreeSnapshot::begin(snapshots_in(daemon.paths().dir), submit.client_key));
  const SnapshotLimit limit = options.limit ? SnapshotLimit::of(*options.limit) : SnapshotLimit{};
  TRY(move_jobs(submit, [&](const std::string& dir) { return snapshot.place_of(dir, limit); }));
  tell(submit, snapshot.warnings(), snapshot.roots());
  out.emplace(std::move(snapshot));
  return out;
}

Result<SubmitAnswer> submit_with(Daemon& daemon, const event::Submit& submit,
                                 std::optional<TreeSnapshot>& snapshot) {
  auto answer = daemon.submit(submit);
  // A daemon that stopped answering may have taken them; if not, it finds a snapshot of nobody.
  if (snapshot && (answer || answer.error().code == ErrorCode::unavailable ||
                   answer.error().code == ErrorCode::io)) {
    snapshot->keep();
  }
  return answer;
}

}  // namespace berth::cli
