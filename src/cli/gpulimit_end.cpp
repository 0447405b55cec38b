// gpulimit kill, rm and clean.

#include <fmt/format.h>

#include <algorithm>

#include "cli/describe.hpp"
#include "cli/gpulimit.hpp"

namespace berth::cli::gpulimit {
namespace {

IdSet ids_of(const std::vector<JobView>& jobs) {
  IdSet ids;
  for (const JobView& job : jobs) {
    ids.add(job.id);
  }
  return ids;
}

/// Ends those that have not, and waits until that has happened.
Result<KillAnswer> end(Daemon& daemon, const std::vector<JobView>& jobs) {
  KillRequest request;
  for (const JobView& job : jobs) {
    request.ids.push_back(job.id);
  }
  TRY_ASSIGN(const std::string body, daemon.call("POST", "/api/jobs/kill", encode_kill(request)));
  TRY_ASSIGN(KillAnswer answer, decode<KillAnswer>(body));
  IdSet ids;
  for (const std::uint64_t id : answer.killed) {
    ids.add(id);
  }
  if (!ids.empty()) {
    TRY(await_end(daemon, ids));
  }
  return answer;
}

/// Forgets tasks that have ended.
Result<std::vector<std::uint64_t>> forget(Daemon& daemon, const IdSet& ids) {
  std::vector<std::uint64_t> removed;
  std::vector<std::uint64_t> needed;
  for (const IdSet& part : in_parts(ids)) {
    RemoveRequest request;
    request.ids = part;
    std::optional<std::uint64_t> next = 0;
    while (next) {
      request.after = *next;
      TRY_ASSIGN(const std::string body,
                 daemon.call("POST", "/api/jobs/remove", encode_remove(request)));
      TRY_ASSIGN(const RemoveAnswer answer, decode<RemoveAnswer>(body));
      removed.insert(removed.end(), answer.removed.begin(), answer.removed.end());
      needed.insert(needed.end(), answer.needed.begin(), answer.needed.end());
      next = answer.next;
    }
  }
  if (!needed.empty()) {
    return fail(ErrorCode::conflict,
                fmt::format("{} cannot be removed: waiting jobs follow it", id_list(needed)));
  }
  std::ranges::sort(removed);
  return removed;
}

}  // namespace

Outcome run_kill(const Words& words) {
  TRY_ASSIGN(const auto ids, parse_tasks(words));
  TRY_ASSIGN(Daemon daemon, Daemon::open());
  TRY_ASSIGN(const auto jobs, chosen(daemon, ids));
  if (jobs.empty()) {
    print("there is nothing to kill\n");
    return 0;
  }
  TRY_ASSIGN(const KillAnswer answer, end(daemon, jobs));
  const auto line = [](const char* what, const std::vector<std::uint64_t>& which) {
    if (!which.empty()) {
      print(fmt::format("{}: {}\n", what, id_list(which)));
    }
  };
  line("killed", answer.killed);
  line("killed before it ran", answer.cancelled);
  line("had already ended", answer.finished);
  return 0;
}

Outcome run_rm(const Words& words) {
  TRY_ASSIGN(const auto ids, parse_tasks(words));
  if (!ids) {
    return fail(ErrorCode::invalid,
                "name the tasks by their ids; `gpulimit kill all` ends what runs and waits, "
                "`gpulimit clean` removes what is complete");
  }
  TRY_ASSIGN(Daemon daemon, Daemon::open());
  TRY_ASSIGN(const auto jobs, chosen(daemon, ids));
  TRY(end(daemon, jobs));
  TRY_ASSIGN(const auto removed, forget(daemon, ids_of(jobs)));
  print(fmt::format("removed: {}\n", id_list(removed)));
  return 0;
}

Outcome run_clean(const Words& words) {
  std::vector<TaskStatus> wanted;
  for (const std::string& word : words) {
    TRY_ASSIGN(const TaskStatus status, status_from(word));
    if (!has_ended(status)) {
      return fail(ErrorCode::invalid,
                  fmt::format("clean removes tasks that have ended; `gpulimit rm` and the ids "
                              "removes those that are {}",
                              to_string(status)));
    }
    wanted.push_back(status);
  }
  if (wanted.empty()) {
    wanted = {TaskStatus::complete, TaskStatus::cmd_error};
  }
  TRY_ASSIGN(Daemon daemon, Daemon::open());
  TRY_ASSIGN(std::vector<JobView> jobs, tasks(daemon));
  std::erase_if(jobs, [&](const JobView& job) {
    return std::ranges::find(wanted, status_of(job)) == wanted.end();
  });
  if (jobs.empty()) {
    print("there is nothing to remove\n");
    return 0;
  }
  TRY_ASSIGN(const auto removed, forget(daemon, ids_of(jobs)));
  print(fmt::format("removed: {}\n", id_list(removed)));
  return 0;
}

}  // namespace berth::cli::gpulimit
