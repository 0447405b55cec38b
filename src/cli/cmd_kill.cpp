// berth kill and berth wait.

#include <fmt/format.h>

#include <algorithm>

#include "cli/commands.hpp"
#include "cli/daemon.hpp"
#include "cli/describe.hpp"
#include "cli/last_job.hpp"

namespace berth::cli {
namespace {

const std::vector<JobState> kLive{JobState::queued, JobState::running, JobState::paused};

}  // namespace

Outcome run_kill(const KillOptions& options) {
  KillRequest request;
  request.all = !options.ids;
  request.grace = options.grace;
  if (options.ids) {
    TRY_ASSIGN(request.ids, options.ids->expand());
  }
  TRY_ASSIGN(Daemon daemon, Daemon::open());
  TRY_ASSIGN(const std::string body, daemon.call("POST", "/api/jobs/kill", encode_kill(request)));
  TRY_ASSIGN(const KillAnswer answer, decode<KillAnswer>(body));
  if (options.json) {
    print(encode(answer) + "\n");
  } else {
    const auto line = [](const char* what, const std::vector<std::uint64_t>& ids) {
      if (!ids.empty()) {
        print(fmt::format("{}: {}\n", what, id_list(ids)));
      }
    };
    line("killed", answer.killed);
    line("cancelled", answer.cancelled);
    line("had already ended", answer.finished);
    if (request.all && answer.killed.empty() && answer.cancelled.empty()) {
      print("there is nothing to kill\n");
    }
  }
  if (!answer.unknown.empty()) {
    return fail(ErrorCode::not_found,
                fmt::format("there {} {}; berth ls --all lists them",
                            answer.unknown.size() == 1 ? "is no job" : "are no jobs",
                            id_list(answer.unknown)));
  }
  return 0;
}

Outcome run_wait(const WaitOptions& options) {
  TRY_ASSIGN(Daemon daemon, Daemon::open());
  IdSet ids;
  if (options.ids) {
    ids = *options.ids;
  } else if (!options.all) {
    TRY_ASSIGN(const JobView last, last_job(daemon));
    ids.add(last.id);
  } else {
    JobQuery query;
    query.states = kLive;
    TRY_ASSIGN(const auto live, daemon.jobs(query));
    for (const JobView& job : live) {
      ids.add(job.id);
    }
  }
  const Millis deadline = options.timeout ? read_clock().mono + *options.timeout : Millis::max();
  std::vector<JobView> jobs;
  bool all_done = true;
  for (const IdSet& part : in_parts(ids)) {
    while (true) {
      const Millis left = std::max(deadline - read_clock().mono, Millis(0));
      const Millis poll = std::min(left, kLongPollMax / 2);
      TRY_ASSIGN(WaitAnswer answer,
                 daemon.get<WaitAnswer>(wait_query_target({part, poll}), poll + Millis(60'000)));
      if (answer.done || left <= Millis(0)) {
        all_done = all_done && answer.done;
        if (answer.jobs.size() >= kPageLimitMax) {  // one answer does not hold them all
          JobQuery query;
          query.ids = part;
          TRY_ASSIGN(answer.jobs, daemon.jobs(query));
        }
        std::ranges::move(answer.jobs, std::back_inserter(jobs));
        break;
      }
    }
  }
  if (options.ids) {
    // Waiting for a job that does not exist must not look like success.
    for (const auto& [first, last] : ids.ranges()) {
      if (first == last && std::ranges::find(jobs, first, &JobView::id) == jobs.end()) {
        return fail(ErrorCode::not_found,
                    fmt::format("there is no job {}; berth ls --all lists them", first));
      }
    }
    if (jobs.empty()) {
      return fail(ErrorCode::not_found,
                  fmt::format("there are no jobs {}; berth ls --all lists them", ids.to_string()));
    }
  }
  const Screen screen = look_at_stdout();
  bool good = true;
  std::size_t unfinished = 0;
  for (const JobView& job : jobs) {
    good = good && job.state == JobState::succeeded;
    unfinished += is_terminal(job.state) ? 0 : 1;
    if (!options.json && is_terminal(job.state)) {
      const std::string note = job.state == JobState::succeeded ? "" : remark(job);
      print(fmt::format("job {} {} {}{}\n", job.id, label(job),
                        styled(to_string(job.state), style_of(job.state), screen),
                        note.empty() ? "" : ": " + note));
    }
  }
  if (options.json) {
    print(encode_array(jobs));
  }
  if (!all_done) {
    return fail(ErrorCode::unavailable,
                fmt::format("timed out; {} of {} jobs have not ended", unfinished, jobs.size()));
  }
  return good ? 0 : 1;
}

}  // namespace berth::cli
