// gpulimit ls, show, log, status and debug.

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "cli/gpulimit.hpp"
#include "cli/log_file.hpp"
#include "cli/log_stream.hpp"
#include "cli/pager.hpp"

namespace berth::cli::gpulimit {
namespace {

/// Tasks that have ended, of which `ls` shows the last without --all.
constexpr std::size_t kRecent = 20;
constexpr std::uint64_t kDebugLines = 20;

/// What runs, what waits in the order in which it will start, and what has ended.
Result<std::vector<JobView>> listing(Daemon& daemon, bool all) {
  TRY_ASSIGN(std::vector<JobView> every, tasks(daemon));
  std::vector<JobView> out;
  std::vector<JobView> waiting;
  std::vector<JobView> ended;
  for (JobView& job : every) {
    const TaskStatus status = status_of(job);
    (status == TaskStatus::waiting ? waiting
     : has_ended(status)           ? ended
                                   : out)
        .push_back(std::move(job));
  }
  TRY_ASSIGN(waiting, in_order(daemon, std::move(waiting)));
  if (!all && ended.size() > kRecent) {
    ended.erase(ended.begin(), ended.end() - kRecent);
  }
  std::ranges::move(waiting, std::back_inserter(out));
  std::ranges::move(ended, std::back_inserter(out));
  return out;
}

std::optional<std::uint32_t> process_of(Daemon& daemon, const JobView& job) {
  if (has_ended(status_of(job)) || status_of(job) == TaskStatus::waiting || job.attempts == 0) {
    return std::nullopt;
  }
  return find_process(daemon.paths().dir, job.id, job.attempts);
}

/// The daemon's own log.
Outcome print_main_log(Daemon& daemon) {
  const std::string& path = daemon.paths().daemon_log;
  TRY_ASSIGN(const Fd fd, open_log(path));
  const Screen screen = look_at_stdout();
  const Pager pager(screen);
  TRY(copy_log(fd.get(), path, [&](std::string_view text) {
    if (!pager.left()) {
      print(text);
    }
  }));
  std::fflush(stdout);
  return 0;
}

/// The last lines that the last run has written; empty if there is no log.
std::string log_end(const JobDetail& detail) {
  const AttemptView* attempt = find_attempt(detail, std::nullopt);
  if (attempt == nullptr || attempt->log.empty()) {
    return {};
  }
  const auto fd = open_log(attempt->log);
  if (!fd) {
    return {};
  }
  const auto tails = open_tails(attempt->log);
  const auto log = LogText::of(fd->get(), tails);
  std::string text;
  if (!log ||
      !log->copy(attempt->log, kDebugLines, [&](std::string_view piece) { text += piece; })) {
    return {};
  }
  return text;
}

}  // namespace

Outcome run_ls(const Words& given) {
  Words words = given;
  const bool json = take_flag(words, "--json");
  const bool all = take_flag(words, "--all") || take_flag(words, "-a");
  TRY(expect_words(words, 0, 0, "ls [--all]"));
  TRY_ASSIGN(Daemon daemon, Daemon::open());
  TRY_ASSIGN(const auto list, listing(daemon, all || json));
  if (json) {
    print(list_json(list));
  } else if (list.empty()) {
    print("no tasks; try: gpulimit add python3 main.py\n");
  } else {
    const Screen screen = look_at_stdout();
    print_paged(list_text(list, all, screen, read_clock().wall), screen);
  }
  return 0;
}

Outcome run_show(const Words& given) {
  Words words = given;
  const bool json = take_flag(words, "--json");
  TRY(expect_words(words, 1, 1, "show [id]"));
  TRY_ASSIGN(const std::uint64_t id, parse_task(words[0]));
  TRY_ASSIGN(Daemon daemon, Daemon::open());
  TRY_ASSIGN(const JobDetail detail, task(daemon, id));
  const auto pid = process_of(daemon, detail.job);
  if (json) {
    print(show_json(detail, pid));
    return 0;
  }
  TRY_ASSIGN(const RulesView rules, queue_rules(daemon));
  TRY_ASSIGN(const ParameterDef* times, find_parameter("MAX_ERR_TIMES"));
  const Screen screen = look_at_stdout();
  print(gpulimit::show_text(detail, pid, value_of(*times, rules, 0), screen, read_clock().wall));
  return 0;
}

Outcome run_log(const Words& words) {
  TRY(expect_words(words, 1, 1, "log [id|main]"));
  if (words[0] == "main") {
    TRY_ASSIGN(Daemon daemon, Daemon::open());
    return print_main_log(daemon);
  }
  TRY_ASSIGN(const std::uint64_t id, parse_task(words[0]));
  {
    TRY_ASSIGN(Daemon daemon, Daemon::open());
    TRY(task(daemon, id));
  }
  LogOptions options;
  options.ids.emplace().add(id);
  return cli::run_log(options);
}

Outcome run_status(const Words& given) {
  Words words = given;
  const bool json = take_flag(words, "--json");
  TRY(expect_words(words, 0, 0, "status"));
  TRY_ASSIGN(Daemon daemon, Daemon::open());
  Overview overview;
  overview.memory = host_memory();
  TRY_ASSIGN(const StatusView status, daemon.get<StatusView>("/api/status"));
  overview.gpus = status.gpus;
  overview.gpu_trouble = status.probe.error;
  TRY_ASSIGN(const auto every, tasks(daemon));
  for (const JobView& job : every) {
    ++overview.counts[static_cast<std::size_t>(status_of(job))];
  }
  TRY_ASSIGN(const RulesView rules, queue_rules(daemon));
  overview.parameters = values(rules);
  print(json ? overview_json(overview) : overview_text(overview, look_at_stdout()));
  return 0;
}

Outcome run_debug(const Words& words) {
  TRY(expect_words(words, 1, 1, "debug [id]"));
  TRY_ASSIGN(const std::uint64_t id, parse_task(words[0]));
  TRY_ASSIGN(Daemon daemon, Daemon::open());
  TRY_ASSIGN(const JobDetail detail, task(daemon, id));
  print_paged(debug_text(detail, log_end(detail)), look_at_stdout());
  return 0;
}

}  // namespace berth::cli::gpulimit
