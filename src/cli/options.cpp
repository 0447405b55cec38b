// The command line: which options there are, what they mean, and what help says.

#include <algorithm>

#include "cli/define.hpp"
#include "cli/submitter.hpp"

namespace berth::cli {
namespace {

constexpr int kWrongUsage = 2;

/// Everything one parse fills in; `action` is what to do then.
struct Invocation {
  Action action = run_overview;

  AddOptions add;
  RunOptions run;
  LsOptions ls;
  ShowOptions show;
  LogOptions log;
  WaitOptions wait;
  KillOptions kill;
  WhyOptions why;
  bool json = false;
  bool wait_all = false;
  std::string id;
  std::vector<std::string> ids;
};

void define_add(CLI::App& app, Invocation& in) {
  CLI::App& sub =
      *command(app, "add", "Queue a command; prints the new job's id",
               "  berth add python train.py --lr 0.1\n"
               "  berth add --gpus 2 --gpu-memory 20GiB --time 2h python train.py\n"
               "  berth add --after 3 'python eval.py | tee result.txt'\n"
               "The first word that is not an option begins the command. Several words "
               "are run as they\nare; a single word with blanks or shell syntax goes to "
               "bash.");
  // Only for the help: split_add_words() has taken the command away before.
  sub.add_option("CMD", in.ids, "the command and its arguments")->type_name("");
  AddOptions& add = in.add;
  Request& request = add.job.request;
  Payload& payload = add.job.payload;
  option(sub, "--name", "NAME", "what to call it", [&](const auto& t) { add.job.name = t; });
  option(sub, "--queue", "NAME", "the queue it waits in (one named default)", [&](const auto& t) {
    if (t.empty()) throw CLI::ValidationError("--queue", "a queue needs a name");
    add.job.queue = t;
  });
  option(sub, "--priority", "N", "lower goes first (5)", [&](const auto& t) {
    add.job.priority = checked_number<std::int32_t>("--priority", t, "a whole number");
  });
  option(sub, "--gpus", "N|MIN..MAX", "how many GPUs (1, or 0 where there are none); 0: none",
         [&](const auto& t) {
           request.gpus = checked("--gpus", parse_gpu_count(t));
           add.gpus_given = true;
         });
  option(sub, "--gpu-memory", "SIZE", "memory on each GPU, to share cards; default: whole cards",
         [&](const auto& t) { request.gpu_memory = checked("--gpu-memory", parse_size(t)); });
  option(sub, "--cpus", "N", "processors it needs", [&](const auto& t) {
    request.cpus = checked_number<std::uint32_t>("--cpus", t, "a number of processors");
  });
  option(sub, "--memory", "SIZE", "host memory it needs",
         [&](const auto& t) { request.memory = checked("--memory", parse_size(t)); });
  list_option(sub, "--resource", "NAME=N", "named resource it needs; repeatable",
              [&](const auto& t) {
                const auto [name, count] = checked("--resource", parse_resource(t));
                request.resources[name] = count;
              });
  list_option(sub, "--after", "IDS", "start when these have succeeded", [&](const auto& t) {
    const IdSet ids = checked("--after", IdSet::parse(t));
    for (const std::uint64_t id : checked("--after", ids.expand(10'000))) {
      add.job.after.push_back(JobId{id});
    }
  });
  option(sub, "--retries", "N", "how often to try again after a failure (0)", [&](const auto& t) {
    add.job.retries = checked_number<std::uint32_t>("--retries", t, "a number of retries");
  });
  option(sub, "--time", "TIME", "time limit of an attempt, as 90s, 2h30m, 1.5h",
         [&](const auto& t) { payload.time_limit = checked("--time", parse_duration(t)); });
  option(sub, "--grace", "TIME", "between TERM and KILL (10s)",
         [&](const auto& t) { payload.grace = checked("--grace", parse_duration(t)); });
  list_option(sub, "--env", "NAME=VALUE", "set a variable; repeatable", [&](const auto& t) {
    if (t.find('=') == std::string::npos || t.starts_with('=')) {
      throw CLI::ValidationError("--env", fmt::format("'{}' is not NAME=VALUE", printable(t)));
    }
    payload.extra_env.push_back(t);
  });
  option(sub, "--cwd", "DIR", "where to run it (here)", [&](const auto& t) { add.cwd = t; });
  option(sub, "--log", "FILE", "where its output goes", [&](const auto& t) { add.log = t; });
  sub.add_flag("--linger", payload.linger, "wait for background processes instead of ending them");
  json_flag(sub, add.json);
  sub.callback([&] { in.action = [&] { return run_add(std::move(in.add)); }; });
}

void define_run(CLI::App& app, Invocation& in) {
  CLI::App& sub = *command(app, "run", "Submit job files and watch until all jobs have ended",
                           "  berth run sweep.yaml\n"
                           "  berth run --detach nightly.yaml");
  sub.add_option("FILE", in.run.files, "job files; - is standard input")->required()->type_name("");
  sub.add_flag("--detach", in.run.detach, "return once they are submitted");
  sub.add_flag("--json", in.run.json, "print the ids as JSON; only with --detach");
  sub.callback([&] {
    if (in.run.json && !in.run.detach) {
      throw CLI::ValidationError("--json", "goes with --detach; afterwards use berth ls --json");
    }
    in.action = [&] { return run_run(in.run); };
  });
}

void define_ls(CLI::App& app, Invocation& in) {
  CLI::App& sub = *command(app, "ls", "List jobs: those that have not ended and the last that have",
                           "  berth ls\n"
                           "  berth ls --state failed,killed --limit 20\n"
                           "  berth ls 3,5-9\n"
                           "  berth ls --all --json | jq '.[].exit_code'");
  sub.add_flag("--all", in.ls.all, "every job there has been");
  list_option(sub, "--state", "STATES", "only these, as queued,running", [&](const auto& t) {
    std::string_view rest = t;
    while (true) {
      const std::string_view word = rest.substr(0, rest.find(','));
      const auto state = job_state_from(word);
      if (!state) {
        throw CLI::ValidationError(
            "--state", fmt::format("'{}' is not a state; there are queued, running, paused, "
                                   "succeeded, failed, killed and cancelled",
                                   printable(word)));
      }
      in.ls.states.push_back(*state);
      if (word.size() == rest.size()) break;
      rest.remove_prefix(word.size() + 1);
    }
  });
  option(sub, "--queue", "NAME", "only this queue", [&](const auto& t) { in.ls.queue = t; });
  option(sub, "--batch", "ID", "only this batch", [&](const auto& t) {
    in.ls.batch = checked_number<std::uint64_t>("--batch", t, "the number of a batch");
  });
  option(sub, "--limit", "N", "at most so many", [&](const auto& t) {
    in.ls.limit = checked_number<std::uint32_t>("--limit", t, "a number of jobs");
  });
  ids_argument(sub, in.ids, "ids and ranges, as 3,5-9, or all");
  json_flag(sub, in.ls.json);
  sub.callback([&] {
    if (in.ids.size() == 1 && in.ids[0] == "all") {
      in.ls.all = true;
    } else if (!in.ids.empty()) {
      in.ls.ids = ids_of(in.ids);
    }
    in.action = [&] { return run_ls(in.ls); };
  });
}

void define_one_job(CLI::App& app, Invocation& in) {
  CLI::App& show = *command(app, "show", "Everything about one job", "  berth show 3");
  show.add_option("ID", in.id, "the job")->required()->type_name("");
  json_flag(show, in.show.json);
  show.callback([&] {
    in.show.id = id_of(in.id);
    in.action = [&] { return run_show(in.show); };
  });

  CLI::App& log = *command(app, "log", "What a job has written",
                           "  berth log          the last job's\n"
                           "  berth log -f 3     follow it, retries included, to its end\n"
                           "  berth log 3 --attempt 1");
  log.add_option("ID", in.id, "the job; default: the last one")->type_name("");
  log.add_flag("-f,--follow", in.log.follow, "go on until the job has ended");
  option(log, "--attempt", "N", "only this attempt; default: the last one", [&](const auto& t) {
    in.log.attempt = checked_number<std::uint32_t>("--attempt", t, "the number of an attempt");
  });
  log.callback([&] {
    if (!in.id.empty()) {
      in.log.id = id_of(in.id);
    }
    in.action = [&] { return run_log(in.log); };
  });

  CLI::App& why = *command(app, "why", "Why a job waits", "  berth why 3\n  berth why");
  why.add_option("ID", in.id, "the job; default: all that wait")->type_name("");
  json_flag(why, in.why.json);
  why.callback([&] {
    if (!in.id.empty()) {
      in.why.id = id_of(in.id);
    }
    in.action = [&] { return run_why(in.why); };
  });
}

void define_wait_and_kill(CLI::App& app, Invocation& in) {
  CLI::App& wait = *command(app, "wait", "Wait until jobs have ended; exit 0 only if all succeeded",
                            "  berth wait 3 && berth log 3\n"
                            "  berth wait --all --timeout 2h");
  ids_argument(wait, in.ids, "ids and ranges, as 3,5-9, or all");
  wait.add_flag("--all", in.wait_all, "all jobs that have not ended");
  option(wait, "--timeout", "TIME", "give up after this time",
         [&](const auto& t) { in.wait.timeout = checked("--timeout", parse_duration(t)); });
  json_flag(wait, in.wait.json);
  wait.callback([&] {
    const bool all = in.wait_all || (in.ids.size() == 1 && in.ids[0] == "all");
    if (all == !in.ids.empty() && !(all && in.ids[0] == "all")) {
      throw CLI::ValidationError("IDS", "give ids, or --all");
    }
    if (!all) {
      in.wait.ids = ids_of(in.ids);
    }
    in.action = [&] { return run_wait(in.wait); };
  });

  CLI::App& kill = *command(app, "kill", "End running jobs and cancel waiting ones",
                            "  berth kill 3,5-9\n"
                            "  berth kill all --grace 30s");
  ids_argument(kill, in.ids, "ids and ranges, as 3,5-9, or all");
  kill.get_option("IDS")->required();
  option(kill, "--grace", "TIME", "between TERM and KILL; default: what each job says",
         [&](const auto& t) { in.kill.grace = checked("--grace", parse_duration(t)); });
  json_flag(kill, in.kill.json);
  kill.callback([&] {
    if (in.ids.size() != 1 || in.ids[0] != "all") {
      in.kill.ids = ids_of(in.ids);
    }
    in.action = [&] { return run_kill(in.kill); };
  });
}

void define_machine(CLI::App& app, Invocation& in) {
  CLI::App& gpus = *command(app, "gpus", "The GPUs and what holds them", "  berth gpus");
  json_flag(gpus, in.json);
  gpus.callback([&] { in.action = [&] { return run_gpus(in.json); }; });
  CLI::App& status =
      *command(app, "status", "The daemon and what it knows", "  berth status --json");
  json_flag(status, in.json);
  status.callback([&] { in.action = [&] { return run_status(in.json); }; });
  CLI::App& stop = *command(app, "stop", "Stop the daemon; running jobs go on",
                            "  berth stop     the next berth command starts it again");
  stop.callback([&] { in.action = run_stop; });
}

int report(const Error& error, int code) {
  warn(error.message);
  return code;
}

}  // namespace

int run_cli(std::vector<std::string> arguments) {
  CLI::App app("berth runs commands on free GPUs, one after the other or side by side.", "berth");
  app.set_version_flag("--version", "berth " BERTH_VERSION);
  app.require_subcommand(0, 1);
  app.footer(
      "Examples:\n"
      "  berth add python train.py       queue a command\n"
      "  berth run sweep.yaml            run a job file to its end\n"
      "  berth                           what runs and what waits\n"
      "berth COMMAND --help tells more. BERTH_DIR chooses another instance.");
  Invocation in;
  define_add(app, in);
  define_run(app, in);
  define_check(app, in.action);
  define_ls(app, in);
  define_one_job(app, in);
  define_wait_and_kill(app, in);
  define_machine(app, in);
  define_control(app, in.action);

  // The command of `add` is not for CLI11: its words may look like options.
  if (!arguments.empty() && arguments[0] == "add") {
    AddWords words = split_add_words({arguments.begin() + 1, arguments.end()});
    in.add.command = std::move(words.command);
    arguments.resize(1);
    std::ranges::move(words.options, std::back_inserter(arguments));
  }
  try {
    std::ranges::reverse(arguments);  // as CLI11 takes them
    app.parse(std::move(arguments));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {
      return app.exit(error);  // help or version, on standard output
    }
    const auto subs = app.get_subcommands();
    return report({ErrorCode::invalid, fmt::format("{}\ntry: berth {}--help", error.what(),
                                                   subs.empty() ? "" : subs[0]->get_name() + " ")},
                  kWrongUsage);
  }
  if (app.got_subcommand("add")) {
    if (const auto command = make_command(in.add.command); !command) {
      return report(command.error(), kWrongUsage);
    }
  }
  const Outcome outcome = in.action();
  if (!outcome) {
    return report(outcome.error(), 1);
  }
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    return 1;
  }
  return *outcome;
}

}  // namespace berth::cli
