// berth ls.

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "cli/commands.hpp"
#include "cli/daemon.hpp"
#include "cli/describe.hpp"
#include "cli/watch.hpp"

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

/// Whether anything but the usual selection was asked for.
bool is_chosen(const LsOptions& options) {
  return options.all || !options.states.empty() || !options.queue.empty() || options.batch != 0 ||
         options.ids || !options.name.empty() || options.since;
}

/// Whether the ids are all that was asked for: then each that was named must be there.
bool only_ids(const LsOptions& options) {
  return options.ids && !options.limit && options.states.empty() && options.queue.empty() &&
         options.batch == 0 && options.name.empty() && !options.since;
}

/// As the daemon sorts, for what did not come in one list.
void sort_jobs(std::vector<JobView>& jobs, std::pair<JobSort, bool> sort) {
  const auto key = [&](const JobView& job) -> std::optional<std::int64_t> {
    const auto count = [](const std::optional<Millis>& time) {
      return time ? std::optional(time->count()) : std::nullopt;
    };
    switch (sort.first) {
      case JobSort::id:
        return 0;
      case JobSort::priority:
        return job.priority;
      case JobSort::state:
        return static_cast<std::int64_t>(job.state);
      case JobSort::started:
        return count(job.started_at);
      case JobSort::ended:
        return count(job.ended_at);
    }
    std::unreachable();
  };
  std::ranges::sort(jobs, [&](const JobView& a, const JobView& b) {
    return goes_before({JobId{a.id}, key(a)}, {JobId{b.id}, key(b)}, sort.second);
  });
}

/// What was asked for; of a large set of ids, part by part.
Result<std::vector<JobView>> selected(Daemon& daemon, const LsOptions& options) {
  JobQuery query = with_states(options.states);
  query.queue = options.queue;
  query.batch = options.batch;
  query.since = options.since;
  // With a limit, the newest; of ids, the first.
  query.descending = options.limit && !options.ids && !options.sort;
  if (options.sort && !options.ids) {
    std::tie(query.sort, query.descending) = *options.sort;
  }
  const std::size_t max = options.limit.value_or(UINT32_MAX);
  std::vector<JobView> all;
  const auto take = [&]() -> Status {
    query.after = {};
    while (all.size() < max) {
      // Names are looked at here, so a page may yield less than it holds.
      const std::size_t wanted = options.name.empty() ? max - all.size() : kPageLimitMax;
      query.limit = static_cast<std::uint32_t>(std::min<std::size_t>(wanted, 2000));
      TRY_ASSIGN(JobPage page, daemon.get<JobPage>(job_query_target(query)));
      for (JobView& job : page.jobs) {
        if (all.size() < max &&
            (options.name.empty() || ::fnmatch(options.name.c_str(), job.name.c_str(), 0) == 0)) {
          all.push_back(std::move(job));
        }
      }
      if (!page.next) {
        break;
      }
      query.after = *page.next;
    }
    return {};
  };
  if (!options.ids) {
    TRY(take());
    if (query.descending && !options.sort) {
      std::ranges::reverse(all);
    }
    return all;
  }
  for (IdSet& part : in_parts(*options.ids)) {
    query.ids = std::move(part);
    TRY(take());
  }
  if (options.sort) {
    sort_jobs(all, *options.sort);
  }
  return all;
}

struct Listing {
  std::vector<JobView> jobs;
  bool more_queued = false;
};

/// Those that have not ended, and the last that have.
Result<Listing> usual(Daemon& daemon, const LsOptions& options) {
  Listing list;
  const std::size_t limit =
      options.limit.value_or(options.json ? UINT32_MAX : std::uint32_t{kQueuedShown});
  TRY_ASSIGN(list.jobs, newest(daemon, with_states(kEnded), kRecent));
  TRY_ASSIGN(auto active, daemon.jobs(with_states({JobState::running})));
  std::ranges::move(active, std::back_inserter(list.jobs));
  // One more than is shown tells whether there are more. Held jobs may be as many.
  TRY_ASSIGN(auto queued, daemon.jobs(with_states(kWaiting), limit + 1));
  if (queued.size() > limit) {
    queued.resize(limit);
    list.more_queued = true;
  }
  std::ranges::move(queued, std::back_inserter(list.jobs));
  std::ranges::sort(list.jobs, {}, &JobView::id);
  // A job may have moved on between the requests.
  const auto doubled = std::ranges::unique(list.jobs, {}, &JobView::id);
  list.jobs.erase(doubled.begin(), doubled.end());
  if (options.sort) {
    sort_jobs(list.jobs, *options.sort);
  }
  return list;
}

Result<Listing> listing(Daemon& daemon, const LsOptions& options) {
  if (!is_chosen(options)) {
    return usual(daemon, options);
  }
  Listing list;
  TRY_ASSIGN(list.jobs, selected(daemon, options));
  if (only_ids(options)) {
    for (const auto& [first, last] : options.ids->ranges()) {
      if (first == last && std::ranges::find(list.jobs, first, &JobView::id) == list.jobs.end()) {
        return fail(ErrorCode::not_found, fmt::format("there is no job {}", first));
      }
    }
  }
  return list;
}

}  // namespace

Outcome run_ls(const LsOptions& options) {
  const auto picture = [&](Daemon& daemon, const Screen& screen) -> Result<std::string> {
    TRY_ASSIGN(const Listing list, listing(daemon, options));
    if (options.json) {
      return encode_array(list.jobs);
    }
    if (list.jobs.empty()) {
      const std::string none =
          is_chosen(options) ? "no such jobs" : "no jobs yet; try: berth add python train.py";
      if (options.watch) {
        return none + "\n";
      }
      warn(none);
      return std::string();
    }
    return job_table(list.jobs, screen, read_clock().wall) +
           (list.more_queued ? "… more are waiting: berth ls --state queued,paused\n" : "");
  };
  return show_picture(options.watch, "berth ls", picture);
}

}  // namespace berth::cli
