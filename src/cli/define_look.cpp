// The commands that look: top, ls, show, log, why, wait, gpus and status.

#include <memory>
#include <ranges>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/units.hpp"
#include "cli/define.hpp"
#include "cli/since.hpp"

namespace berth::cli {
namespace {

/// What one parse fills in.
struct Look {
  TopOptions top;
  LsOptions ls;
  ShowOptions show;
  LogOptions log;
  WhyOptions why;
  WaitOptions wait;
  MachineOptions machine;
  std::string id;
  std::vector<std::string> ids;
};

bool means_all(const std::vector<std::string>& words) {
  return words.size() == 1 && words[0] == "all";
}

void add_states(const std::string& text, std::vector<JobState>& states) {
  std::string_view rest = text;
  while (true) {
    const std::string_view word = rest.substr(0, rest.find(','));
    const auto state = job_state_from(word);
    if (!state) {
      throw CLI::ValidationError("--state",
                                 fmt::format("'{}' is not a state; there are queued, running, "
                                             "paused, succeeded, failed, killed and cancelled",
                                             printable(word)));
    }
    states.push_back(*state);
    if (word.size() == rest.size()) {
      return;
    }
    rest.remove_prefix(word.size() + 1);
  }
}

void define_top(CLI::App& app, Action& action, const std::shared_ptr<Look>& in) {
  CLI::App& sub = *command(app, "top", "GPUs, jobs and queues, live and full-screen, with keys",
                           "  berth top\n"
                           "  berth top --every 5s\n"
                           "? lists the keys, q ends. berth ls --watch only draws.");
  option(sub, "--every", "TIME", "how often to ask the daemon (2s)", [in](const auto& t) {
    in->top.every = checked("--every", parse_duration(t));
    if (in->top.every < Millis(500)) {
      throw CLI::ValidationError("--every", "at most twice a second");
    }
  });
  color_option(sub);
  sub.callback([in, &action] { action = [in] { return run_top(in->top); }; });
}

void define_ls(CLI::App& app, Action& action, const std::shared_ptr<Look>& in) {
  CLI::App& sub = *command(app, "ls", "List jobs: those that have not ended and the last that have",
                           "  berth ls\n"
                           "  berth ls --state failed,killed --since 2h\n"
                           "  berth ls --queue car --name 'lr-*' --limit 20\n"
                           "  berth ls --all --sort=-ended --limit 20\n"
                           "  berth ls 3,5-9\n"
                           "  berth ls --watch\n"
                           "  berth ls --all --json | jq '.[].exit_code'");
  sub.add_flag("--all", in->ls.all, "every job there has been");
  list_option(sub, "--state", "STATES", "only these, as queued,running",
              [in](const auto& t) { add_states(t, in->ls.states); });
  list_option(sub, "--queue", "NAME", "only this queue", [in](const auto& t) {
    if (!in->ls.queue.empty() && in->ls.queue != t) {
      throw CLI::ValidationError("--queue", "one queue at a time");
    }
    in->ls.queue = t;
  });
  option(sub, "--batch", "ID", "only this batch", [in](const auto& t) {
    in->ls.batch = checked_number<std::uint64_t>("--batch", t, "the number of a batch");
  });
  option(sub, "--name", "PATTERN", "only names like this, as 'lr-*'",
         [in](const auto& t) { in->ls.name = t; });
  option(sub, "--since", "TIME", "leave out what ended before: 2h, yesterday, 2024-05-01",
         [in](const auto& t) {
           in->ls.since = checked("--since", parse_since(t, read_clock().wall));
         });
  option(sub, "--limit", "N", "at most so many", [in](const auto& t) {
    in->ls.limit = checked_number<std::uint32_t>("--limit", t, "a number of jobs");
  });
  option(sub, "--sort", "KEY", "by id, priority, state, started or ended; -KEY: the last first",
         [in](const auto& t) {
           in->ls.sort = job_sort_from(t);
           if (!in->ls.sort) {
             throw CLI::ValidationError(
                 "--sort", fmt::format("expected {}, or one of these with a - before it, got '{}'",
                                       fmt::join(kJobSorts | std::views::keys, ", "), t));
           }
         });
  ids_argument(sub, in->ids, "ids and ranges, as 3,5-9, or all");
  json_flag(sub, in->ls.json);
  color_option(sub);
  pager_flag(sub);
  watch_option(sub, in->ls.watch);
  sub.callback([in, &action] {
    if (means_all(in->ids)) {
      in->ls.all = true;
    } else if (!in->ids.empty()) {
      in->ls.ids = ids_of(in->ids);
    }
    if (in->ls.json && in->ls.watch) {
      throw CLI::ValidationError("--watch", "is for people; leave out --json");
    }
    action = [in] { return run_ls(in->ls); };
  });
}

void define_show(CLI::App& app, Action& action, const std::shared_ptr<Look>& in) {
  CLI::App& show = *command(app, "show", "Everything about one job",
                            "  berth show         the last job\n"
                            "  berth show 3");
  show.add_option("ID", in->id, "the job; default: the last one")->type_name("");
  json_flag(show, in->show.json);
  color_option(show);
  pager_flag(show);
  show.callback([in, &action] {
    if (!in->id.empty()) {
      in->show.id = id_of(in->id);
    }
    action = [in] { return run_show(in->show); };
  });
}

void define_log(CLI::App& app, Action& action, const std::shared_ptr<Look>& in) {
  CLI::App& log = *command(app, "log", "What jobs have written",
                           "  berth log          the last job's\n"
                           "  berth log -f 3     follow it, retries included, to its end\n"
                           "  berth log -f 3-5   several at once, each line behind its job's name\n"
                           "  berth log 3 -n 20 --attempt 1");
  ids_argument(log, in->ids, "ids and ranges, as 3,5-9; default: the last job");
  log.add_flag("-f,--follow", in->log.follow, "go on until the jobs have ended");
  option(log, "-n,--lines", "N", "only the last N lines of each", [in](const auto& t) {
    in->log.lines = checked_number<std::uint64_t>("--lines", t, "a number of lines");
  });
  option(log, "--attempt", "N", "only this attempt; default: the last one", [in](const auto& t) {
    in->log.attempt = checked_number<std::uint32_t>("--attempt", t, "the number of an attempt");
  });
  log.add_flag("--json", in->log.json, "print where the logs are and how large, as JSON");
  color_option(log);
  pager_flag(log);
  log.callback([in, &action] {
    if (in->log.json && in->log.follow) {
      throw CLI::ValidationError("--json", "tells about the logs as they are; leave out --follow");
    }
    if (!in->ids.empty()) {
      in->log.ids = ids_of(in->ids);
    }
    action = [in] { return run_log(in->log); };
  });
}

void define_why(CLI::App& app, Action& action, const std::shared_ptr<Look>& in) {
  CLI::App& why = *command(app, "why", "Why jobs wait",
                           "  berth why          what holds up all that wait\n"
                           "  berth why 3");
  why.add_option("ID", in->id, "the job; default: what holds up all that wait")->type_name("");
  json_flag(why, in->why.json);
  color_option(why);
  pager_flag(why);
  why.callback([in, &action] {
    if (!in->id.empty() && in->id != "all") {
      in->why.id = id_of(in->id);
    }
    action = [in] { return run_why(in->why); };
  });
}

void define_wait(CLI::App& app, Action& action, const std::shared_ptr<Look>& in) {
  CLI::App& wait = *command(app, "wait", "Wait until jobs have ended; exit 0 only if all succeeded",
                            "  berth wait && berth log       the last job\n"
                            "  berth wait 3,5-9\n"
                            "  berth wait --all --timeout 2h");
  ids_argument(wait, in->ids, "ids and ranges, as 3,5-9, or all; default: the last job");
  wait.add_flag("--all", in->wait.all, "all jobs that have not ended");
  option(wait, "--timeout", "TIME", "give up after this time",
         [in](const auto& t) { in->wait.timeout = checked("--timeout", parse_duration(t)); });
  json_flag(wait, in->wait.json);
  color_option(wait);
  wait.callback([in, &action] {
    if (means_all(in->ids)) {
      in->wait.all = true;
    } else if (!in->ids.empty()) {
      if (in->wait.all) {
        throw CLI::ValidationError("IDS", "give ids, or --all");
      }
      in->wait.ids = ids_of(in->ids);
    }
    action = [in] { return run_wait(in->wait); };
  });
}

void define_machine(CLI::App& app, Action& action, const std::shared_ptr<Look>& in) {
  const auto define = [&](const char* name, const char* help, const char* examples,
                          Outcome (*run)(const MachineOptions&)) {
    CLI::App& sub = *command(app, name, help, examples);
    json_flag(sub, in->machine.json);
    color_option(sub);
    pager_flag(sub);
    watch_option(sub, in->machine.watch);
    sub.callback([in, &action, run] {
      if (in->machine.json && in->machine.watch) {
        throw CLI::ValidationError("--watch", "is for people; leave out --json");
      }
      action = [in, run] { return run(in->machine); };
    });
  };
  define("gpus", "The GPUs and what holds them", "  berth gpus\n  berth gpus --watch=5", run_gpus);
  define("status", "The daemon and what it knows", "  berth status --json", run_status);
}

}  // namespace

void define_look(CLI::App& app, Action& action) {
  const auto in = std::make_shared<Look>();
  define_top(app, action, in);
  define_ls(app, action, in);
  define_show(app, action, in);
  define_log(app, action, in);
  define_why(app, action, in);
  define_wait(app, action, in);
  define_machine(app, action, in);
}

}  // namespace berth::cli
