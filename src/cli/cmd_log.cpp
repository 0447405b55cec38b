// berth log: what jobs have written.

#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <cerrno>
#include <cstdio>
#include <memory>

#include "api/text.hpp"
#include "cli/commands.hpp"
#include "cli/daemon.hpp"
#include "cli/describe.hpp"
#include "cli/interrupt.hpp"
#include "cli/last_job.hpp"
#include "cli/log_stream.hpp"
#include "cli/pager.hpp"
#include "cli/remote_log.hpp"
#include "cli/server.hpp"

namespace berth::cli {
namespace {

constexpr int kPollMs = 200;
constexpr int kPollsPerLook = 3;  ///< the daemon is asked less often than the files
constexpr std::size_t kFollowMax = 200;
constexpr std::size_t kFollowThereMax = 50;  ///< each takes a connection, and others want some
constexpr std::size_t kPrefixMax = 24;

std::string detail_target(std::uint64_t id) {
  return fmt::format("/api/jobs/{}", id);
}

std::unexpected<Error> no_such_attempt(std::uint64_t id, std::uint32_t number, std::size_t had) {
  return fail(ErrorCode::not_found,
              fmt::format("job {} has no attempt {}; it has had {}", id, number, had));
}

/// The jobs whose logs are wanted. Ids that were named one by one must be there.
Result<std::vector<JobView>> chosen(Daemon& daemon, const LogOptions& options) {
  if (!options.ids) {
    TRY_ASSIGN(JobView last, last_job(daemon));
    return std::vector{std::move(last)};
  }
  std::vector<JobView> jobs;
  for (IdSet& part : in_parts(*options.ids)) {
    JobQuery query;
    query.ids = std::move(part);
    TRY_ASSIGN(auto some, daemon.jobs(query));
    std::ranges::move(some, std::back_inserter(jobs));
  }
  for (const auto& [first, last] : options.ids->ranges()) {
    if (first == last && std::ranges::find(jobs, first, &JobView::id) == jobs.end()) {
      return fail(ErrorCode::not_found,
                  fmt::format("there is no job {}; berth ls --all lists them", first));
    }
  }
  if (jobs.empty()) {
    return fail(ErrorCode::not_found, fmt::format("there are no jobs {}; berth ls --all lists them",
                                                  options.ids->to_string()));
  }
  return jobs;
}

/// "train-3 | ", the same width for all, each job in a colour of its own.
std::vector<std::string> prefixes(const std::vector<JobView>& jobs, const Screen& screen) {
  constexpr std::array kColors{36, 33, 35, 32, 34, 96, 93, 95, 92, 94};
  std::vector<std::string> names;
  std::size_t width = 0;
  for (const JobView& job : jobs) {
    std::string name = job.name.empty() ? fmt::format("{}", job.id) : printable(job.name);
    // Two jobs of one name are told apart by their ids.
    if (std::ranges::count(jobs, job.name, &JobView::name) > 1 && !job.name.empty()) {
      name = fmt::format("{} {}", job.id, name);
    }
    names.push_back(shorten(name, kPrefixMax));
    width = std::max(width, display_width(names.back()));
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    names[i] += std::string(width - display_width(names[i]), ' ') + " |";
    if (screen.color) {
      names[i] = fmt::format("\x1b[{}m{}\x1b[0m", kColors[i % kColors.size()], names[i]);
    }
    names[i] += ' ';
  }
  return names;
}

/// None: it is not there.
Result<std::optional<std::uint64_t>> log_size(Daemon& daemon, std::uint64_t job,
                                              const AttemptView& attempt) {
  if (chosen_server()) {
    return remote_log_size(daemon, {job, attempt.number, {}});
  }
  struct stat status{};
  return ::stat(attempt.log.c_str(), &status) == 0
             ? std::optional(static_cast<std::uint64_t>(status.st_size))
             : std::nullopt;
}

Result<std::string> metadata(Daemon& daemon, const std::vector<JobView>& jobs,
                             const LogOptions& options) {
  boost::json::array out;
  for (const JobView& job : jobs) {
    TRY_ASSIGN(const JobDetail detail, daemon.get<JobDetail>(detail_target(job.id)));
    boost::json::array attempts;
    for (const AttemptView& attempt : detail.attempts) {
      if (attempt.log.empty() || (options.attempt && attempt.number != *options.attempt)) {
        continue;
      }
      TRY_ASSIGN(const auto size, log_size(daemon, job.id, attempt));
      attempts.push_back({{"attempt", attempt.number},
                          {"path", to_utf8(attempt.log)},
                          {"size", size ? boost::json::value(*size) : nullptr},
                          {"ended", attempt.ended_at.has_value()}});
    }
    out.push_back({{"id", job.id},
                   {"name", job.name},
                   {"state", to_string(job.state)},
                   {"attempts", std::move(attempts)}});
  }
  return boost::json::serialize(out) + "\n";
}

/// One job's log as it stands.
Status print_log(Daemon& daemon, std::uint64_t id, const LogOptions& options, const LogSink& sink) {
  TRY_ASSIGN(const JobDetail detail, daemon.get<JobDetail>(detail_target(id)));
  const AttemptView* attempt = find_attempt(detail, options.attempt);
  if (attempt == nullptr || attempt->log.empty()) {
    if (options.attempt) {
      return no_such_attempt(id, *options.attempt, detail.attempts.size());
    }
    const std::string why = remark(detail.job);
    return fail(ErrorCode::not_found,
                fmt::format("job {} has no log: it {}{}", id, predicate(detail.job.state),
                            why.empty() ? "" : ": " + why));
  }
  // Its supervisor makes the file a moment after the attempt has begun.
  const auto nothing_yet = [&]() -> Status {
    warn(fmt::format("job {} has written nothing yet", id));
    return {};
  };
  if (chosen_server()) {
    Status copied = copy_remote_log(daemon, {id, attempt->number, options.lines}, sink);
    return !copied && copied.error().code == ErrorCode::not_found && !attempt->ended_at
               ? nothing_yet()
               : copied;
  }
  if (!attempt->ended_at && ::access(attempt->log.c_str(), F_OK) != 0 && errno == ENOENT) {
    return nothing_yet();
  }
  TRY_ASSIGN(const Fd fd, open_log(attempt->log));
  const auto tails = open_tails(attempt->log);
  TRY_ASSIGN(const LogText log, LogText::of(fd.get(), tails));
  TRY(log.copy(attempt->log, options.lines, sink));
  if (!attempt->message.empty() && log.empty()) {
    warn(fmt::format("job {} has written nothing: {}", id, printable(attempt->message)));
  }
  return {};
}

Outcome print_all(Daemon& daemon, const std::vector<JobView>& jobs, const LogOptions& options) {
  const Screen screen = look_at_stdout();
  // What fits the screen is printed as it is; the pager starts with the first piece that does not.
  std::unique_ptr<Pager> pager;
  std::string held;
  const auto out = [&](std::string_view text) {
    if (!screen.terminal || pager) {
      if (!pager || !pager->left()) {
        print(text);
      }
      return;
    }
    held += text;
    if (screen_lines(held, screen, screen.height) >= screen.height) {
      pager = std::make_unique<Pager>(screen);
      print(held);
      held.clear();
    }
  };
  std::vector<Error> errors;
  if (jobs.size() == 1) {
    if (const Status printed = print_log(daemon, jobs[0].id, options, out); !printed) {
      errors.push_back(printed.error());
    }
  } else {
    const auto names = prefixes(jobs, screen);
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      PrefixedLines lines(names[i], out);
      const Status printed =
          print_log(daemon, jobs[i].id, options, [&](std::string_view text) { lines.feed(text); });
      lines.finish();
      if (!printed) {
        errors.push_back(printed.error());
      }
    }
  }
  print(held);
  std::fflush(stdout);
  pager.reset();
  for (std::size_t i = 0; i + 1 < errors.size(); ++i) {
    warn(errors[i].message);
  }
  if (!errors.empty()) {
    return std::unexpected(std::move(errors.back()));
  }
  return 0;
}

struct Followed {
  JobView job;
  std::unique_ptr<PrefixedLines> lines;  ///< null: one job alone, as it is
  std::unique_ptr<FollowedLog> follower;
  std::optional<Error> error;
  bool stale = true;  ///< the daemon is to be asked for its attempts
};

Status look_at(Daemon& daemon, Followed& one, const LogOptions& options) {
  TRY_ASSIGN(const JobDetail detail, daemon.get<JobDetail>(detail_target(one.job.id)));
  if (chosen_server() && options.attempt && find_attempt(detail, options.attempt) == nullptr) {
    return no_such_attempt(one.job.id, *options.attempt, detail.attempts.size());
  }
  TRY(one.follower->look(detail, [&](std::uint32_t number) {
    if (one.lines) {
      one.lines->finish();
    }
    std::fflush(stdout);
    warn(fmt::format("attempt {} of job {}", number, one.job.id));
  }));
  if (one.follower->over() && !one.follower->opened()) {
    if (options.attempt && !detail.attempts.empty()) {
      return no_such_attempt(one.job.id, *options.attempt, detail.attempts.size());
    }
    return fail(ErrorCode::not_found,
                fmt::format("job {} never started: {}", one.job.id, remark(detail.job)));
  }
  return {};
}

/// Marks those that have moved on since the last look: one request for all of them.
Status find_changes(Daemon& daemon, std::vector<Followed>& followed) {
  IdSet ids;
  for (const Followed& one : followed) {
    if (!one.follower->over()) {
      ids.add(one.job.id);
    }
  }
  for (IdSet& part : in_parts(ids)) {
    JobQuery query;
    query.ids = std::move(part);
    TRY_ASSIGN(const auto jobs, daemon.jobs(query));
    for (const JobView& job : jobs) {
      const auto one = std::ranges::find(followed, job.id, [](const auto& f) { return f.job.id; });
      one->stale = one->job.state != job.state || one->job.attempts != job.attempts ||
                   !one->follower->opened();
      one->job = job;
    }
  }
  return {};
}

std::unique_ptr<FollowedLog> follower_of(std::uint64_t job, const LogOptions& options,
                                         LogSink sink) {
  if (chosen_server()) {
    return std::make_unique<RemoteLogFollower>(
        *chosen_server(), LogPart{job, options.attempt, options.lines}, std::move(sink));
  }
  return std::make_unique<LogFollower>(options.attempt, options.lines, std::move(sink));
}

/// Looks at the daemon or the log, whichever there is need for.
Status go_on(Daemon& daemon, Followed& one, const LogOptions& options) {
  if (std::exchange(one.stale, false)) {
    return look_at(daemon, one, options);
  }
  TRY(one.follower->drain());
  return one.follower->over() && !one.follower->opened() ? look_at(daemon, one, options) : Status();
}

/// Prints the attempts' logs as they grow until all jobs have ended.
Outcome follow(Daemon& daemon, const std::vector<JobView>& jobs, const LogOptions& options) {
  const std::size_t most = chosen_server() ? kFollowThereMax : kFollowMax;
  if (jobs.size() > most) {
    return fail(ErrorCode::invalid, fmt::format("{} logs are too many to follow at once; choose up "
                                                "to {}",
                                                jobs.size(), most));
  }
  const CatchInterrupt catcher;
  const auto names = prefixes(jobs, look_at_stdout());
  std::vector<Followed> followed;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    std::unique_ptr<PrefixedLines> lines;
    LogSink sink = print;
    if (jobs.size() > 1) {
      lines = std::make_unique<PrefixedLines>(names[i], print);
      sink = [to = lines.get()](std::string_view text) { to->feed(text); };
    }
    followed.push_back(
        {jobs[i], std::move(lines), follower_of(jobs[i].id, options, std::move(sink)), {}, true});
  }
  bool good = true;
  for (unsigned round = 0; !interrupted(); ++round) {
    bool open = false;
    // The daemon of another machine tells by itself.
    if (round % kPollsPerLook == 0 && round > 0 && !chosen_server()) {
      TRY(find_changes(daemon, followed));
    }
    for (Followed& one : followed) {
      if (one.follower->over() || one.error) {
        continue;
      }
      Status status = go_on(daemon, one, options);
      if (!status) {
        one.error = std::move(status.error());
        warn(one.error->message);
        good = false;
      }
      const bool over = one.follower->over() || one.error;
      if (one.lines && over) {
        one.lines->finish();
      }
      open = open || !over;
    }
    std::fflush(stdout);
    if (!open) {
      return good ? 0 : 1;
    }
    ::poll(nullptr, 0, kPollMs);
  }
  return interrupt_code();
}

}  // namespace

Outcome run_log(const LogOptions& options) {
  TRY_ASSIGN(Daemon daemon, Daemon::open());
  TRY_ASSIGN(const auto jobs, chosen(daemon, options));
  if (options.json) {
    TRY_ASSIGN(const std::string text, metadata(daemon, jobs, options));
    print(text);
    return 0;
  }
  if (options.follow) {
    return follow(daemon, jobs, options);
  }
  return print_all(daemon, jobs, options);
}

}  // namespace berth::cli
