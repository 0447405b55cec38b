// berth ls, and what bare `berth` shows.

#include <fmt/format.h>

#include <algorithm>

#include "cli/commands.hpp"
#include "cli/daemon.hpp"
#include "cli/describe.hpp"

namespace berth::cli {
namespace {

constexpr std::size_t kRecent = 10;
constexpr std::size_t kQueuedShown = 50;
const std::vector<JobState> kWaiting{JobState::paused, JobState::queued};
const std::vector<JobState> kEnded{JobState::succeeded, JobState::failed, JobState::killed,
                                   JobState::cancelled};

/// The most recent `limit` of what matches, in ascending order.
Result<std::vector<JobView>> newest(Daemon& daemon, JobQuery query, std::size_t limit) {
  query.descending = true;
  TRY_ASSIGN(auto jobs, daemon.jobs(std::move(query), limit));
  std::ranges::reverse(jobs);
  return jobs;
}

JobQuery with_states(std::vector<JobState> states) {
  JobQuery query;
  query.states = std::move(states);
  return query;
}

/// What was asked for; of a large set of ids, part by part.
Result<std::vector<JobView>> selected(Daemon& daemon, const LsOptions& options) {
  JobQuery query = with_states(options.states);
  query.queue = options.queue;
  query.batch = options.batch;
  if (!options.ids) {
    return options.limit ? newest(daemon, query, *options.limit) : daemon.jobs(query);
  }
  std::vector<JobView> all;
  for (IdSet& part : in_parts(*options.ids)) {
    query.ids = std::move(part);
    TRY_ASSIGN(auto jobs, daemon.jobs(query, options.limit.value_or(UINT32_MAX) - all.size()));
    std::ranges::move(jobs, std::back_inserter(all));
  }
  return all;
}

}  // namespace

Outcome run_ls(const LsOptions& options) {
  TRY_ASSIGN(Daemon daemon, Daemon::open());
  const bool chosen = options.all || !options.states.empty() || !options.queue.empty() ||
                      options.batch != 0 || options.ids;
  std::vector<JobView> jobs;
  std::string more;
  if (chosen) {
    TRY_ASSIGN(jobs, selected(daemon, options));
    if (options.ids && !options.limit && options.states.empty() && options.queue.empty() &&
        options.batch == 0) {
      // Ids that were named one by one must be there.
      for (const auto& [first, last] : options.ids->ranges()) {
        if (first == last && std::ranges::find(jobs, first, &JobView::id) == jobs.end()) {
          return fail(ErrorCode::not_found, fmt::format("there is no job {}", first));
        }
      }
    }
  } else {
    const std::size_t limit =
        options.limit.value_or(options.json ? UINT32_MAX : std::uint32_t{kQueuedShown});
    TRY_ASSIGN(jobs, newest(daemon, with_states(kEnded), kRecent));
    TRY_ASSIGN(auto active, daemon.jobs(with_states({JobState::running})));
    std::ranges::move(active, std::back_inserter(jobs));
    // One more than is shown tells whether there are more. Held jobs may be as many.
    TRY_ASSIGN(auto queued, daemon.jobs(with_states(kWaiting), limit + 1));
    if (queued.size() > limit) {
      queued.resize(limit);
      more = "… more are waiting: berth ls --state queued,paused\n";
    }
    std::ranges::move(queued, std::back_inserter(jobs));
    std::ranges::sort(jobs, {}, &JobView::id);
    // A job may have moved on between the requests.
    const auto doubled = std::ranges::unique(jobs, {}, &JobView::id);
    jobs.erase(doubled.begin(), doubled.end());
  }
  if (options.json) {
    print(encode_array(jobs));
  } else if (jobs.empty()) {
    warn(chosen ? "no such jobs" : "no jobs yet; try: berth add python train.py");
  } else {
    print(job_table(jobs, look_at_stdout(), read_clock().wall) + more);
  }
  return 0;
}

Outcome run_overview() {
  TRY_ASSIGN(Daemon daemon, Daemon::open());
  const Screen screen = look_at_stdout();
  TRY_ASSIGN(const StatusView status, daemon.get<StatusView>("/api/status"));
  print(status_text(status, screen));
  TRY_ASSIGN(auto jobs, daemon.jobs(with_states({JobState::running})));
  TRY_ASSIGN(auto queued, daemon.jobs(with_states(kWaiting), kRecent));
  const std::size_t waiting = queued.size();
  std::ranges::move(queued, std::back_inserter(jobs));
  if (!jobs.empty()) {
    print("\n" + job_table(jobs, screen, read_clock().wall));
    std::uint64_t all = 0;
    for (const JobState state : kWaiting) {
      const auto it = status.counts.find(state);
      all += it == status.counts.end() ? 0 : it->second;
    }
    if (all > waiting) {
      print(fmt::format("… and {} more waiting\n", all - waiting));
    }
  }
  print("\nberth add CMD… queues a command, berth ls lists jobs, berth --help tells the rest\n");
  return 0;
}

}  // namespace berth::cli
