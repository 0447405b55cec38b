// The command line: which options there are, what they mean, and what help says.

#include <algorithm>
#include <array>

#include "base/moment.hpp"
#include "cli/define.hpp"
#include "cli/last_job.hpp"
#include "cli/program_name.hpp"
#include "cli/submitter.hpp"
#include "core/rule_table.hpp"
#include "jobspec/diagnostic.hpp"

namespace berth::cli {
namespace {

constexpr int kWrongUsage = 2;
constexpr Millis kLongestWait{3650ll * 24 * 3600 * 1000};

/// Everything one parse fills in; `action` is what to do then.
struct Invocation {
  Action action;

  AddOptions add;
  SweepOptions sweep;
  RunOptions run;
  KillOptions kill;
  ServerOptions server;
  std::optional<Millis> watch;
  std::vector<std::string> ids;
};

void after_option(CLI::App& sub, JobSpec& job, const std::string& name, After kind,
                  const std::string& help) {
  list_option(sub, name, "IDS", help, [&job, name, kind](const auto& t) {
    if (!job.after.empty() && job.after_kind != kind) {
      throw CLI::ValidationError(name,
                                 "a job has one kind of dependency: give one of --after, "
                                 "--after-any and --after-failed");
    }
    job.after_kind = kind;
    const IdSet ids = checked(name, parse_ids(t));
    for (const std::uint64_t id : checked(name, ids.expand(10'000))) {
      job.after.push_back(JobId{id});
    }
  });
}

}  // namespace

void job_options(CLI::App& sub, AddOptions& add) {
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
  after_option(sub, add.job, "--after", After::ok, "start when these have succeeded; @: the last");
  after_option(sub, add.job, "--after-any", After::any, "start when these have ended");
  after_option(sub, add.job, "--after-failed", After::failed,
               "start when these have ended without success; else it is cancelled");
  option(sub, "--at", "TIME", "not before, as 18:30, 'tomorrow 8:00', '2026-05-01 12:30'",
         [&](const auto& t) {
           const Millis now = read_clock().wall;
           add.job.start_at = checked("--at", parse_moment(t, now));
           if (add.job.start_at < now) {
             throw CLI::ValidationError(
                 "--at",
                 fmt::format("'{}' has passed; without --at it starts at once", printable(t)));
           }
         });
  option(sub, "--in", "TIME", "not before so much time has passed, as 90m, 2h", [&](const auto& t) {
    const Millis wait = checked("--in", parse_duration(t));
    if (wait > kLongestWait) {
      throw CLI::ValidationError("--in",
                                 fmt::format("'{}' is too long; 3650d are the most", printable(t)));
    }
    add.job.start_at = read_clock().wall + wait;
  });
  sub.get_option("--in")->excludes("--at");
  option(sub, "--retries", "N", "how often to try again after a failure (0)", [&](const auto& t) {
    add.job.retries = checked_number<std::uint32_t>("--retries", t, "a number of retries");
  });
  option(sub, "--time", "TIME", "time limit of an attempt, as 90s, 2h30m, 1.5h",
         [&](const auto& t) { payload.time_limit = checked("--time", parse_duration(t)); });
  option(sub, "--grace", "TIME", "between TERM and KILL (10s)",
         [&](const auto& t) { payload.grace = checked("--grace", parse_duration(t)); });
  option(sub, "--signal", "NAME@TIME", "a signal that long before the time limit, as USR1@120",
         [&](const auto& t) { payload.warning = checked("--signal", parse_warning(t)); });
  sub.add_flag_callback(
      "--requeue", [&] { request.rules["retry_config.requeue_on_timeout"] = "true"; },
      "at the time limit it waits again, to go on where it was");
  list_option(sub, "--env", "NAME=VALUE", "set a variable; repeatable", [&](const auto& t) {
    if (t.find('=') == std::string::npos || t.starts_with('=')) {
      throw CLI::ValidationError("--env", fmt::format("'{}' is not NAME=VALUE", printable(t)));
    }
    payload.extra_env.push_back(t);
  });
  option(sub, "--cwd", "DIR", "where to run it (here)", [&](const auto& t) { add.cwd = t; });
  option(sub, "--log", "FILE", "where its output goes", [&](const auto& t) { add.log = t; });
  list_option(sub, "--rule", "KEY=VALUE", "a rule of this job; repeatable; berth set lists them",
              [&](const auto& t) {
                const auto [key, value] = checked("--rule", parse_rule(t));
                request.rules[key] = value;
              });
  snapshot_options(sub, add.snapshot);
  sub.add_flag("--linger", payload.linger, "wait for background processes instead of ending them");
}

void check_job_options(const AddOptions& add) {
  const Request& request = add.job.request;
  if (request.gpu_memory && add.gpus_given && request.gpus.max == 0) {
    throw CLI::ValidationError("--gpu-memory", "needs at least one GPU, and --gpus is 0");
  }
  const Payload& payload = add.job.payload;
  if (payload.warning.signal != 0 && payload.time_limit > Millis(0) &&
      payload.warning.before >= payload.time_limit) {
    throw CLI::ValidationError(
        "--signal",
        fmt::format("would come {} before the end, and --time is {}; it must be less",
                    exact_duration(payload.warning.before), exact_duration(payload.time_limit)));
  }
}

namespace {

void define_add(CLI::App& app, Invocation& in) {
  CLI::App& sub =
      *command(app, "add", "Queue a command; prints the new job's id",
               "  berth add python train.py --lr 0.1\n"
               "  berth add --gpus 2 --gpu-memory 20GiB --time 2h python train.py\n"
               "  berth add --after @ 'python eval.py | tee result.txt'   @: the last job\n"
               "  berth add --in 2h --rule gpu_left=1 python train.py\n"
               "The first word that is not an option begins the command. Several words are\n"
               "run as they are; a single word with blanks or shell syntax goes to bash.");
  // Only for the help: split_add_words() has taken the command away before.
  sub.add_option("CMD", in.ids, "the command and its arguments")->type_name("");
  job_options(sub, in.add);
  json_flag(sub, in.add.json);
  sub.callback([&] {
    check_job_options(in.add);
    in.action = [&] { return run_add(std::move(in.add)); };
  });
}

void define_run(CLI::App& app, Invocation& in) {
  CLI::App& sub = *command(app, "run", "Submit job files and watch until all jobs have ended",
                           "  berth run sweep.yaml\n"
                           "  berth run --detach nightly.yaml\n"
                           "  berth run job.sh -- --epochs 3      a script, and its arguments");
  file_options(sub, in.run.files, in.run.reading);
  sub.add_flag("--resume", in.run.resume, "leave out jobs that have succeeded before");
  sub.add_flag("--redo", in.run.redo, "run those as well, whatever the dialect usually does")
      ->excludes("--resume");
  snapshot_options(sub, in.run.snapshot);
  sub.add_flag("--detach", in.run.detach, "return once they are submitted");
  sub.add_flag("--json", in.run.json, "print the ids as JSON; only with --detach");
  sub.callback([&] {
    require_files(in.run.files, in.run.reading);
    if (in.run.json && !in.run.detach) {
      throw CLI::ValidationError("--json", "goes with --detach; afterwards use berth ls --json");
    }
    in.action = [&] { return run_run(in.run); };
  });
}

void define_kill(CLI::App& app, Invocation& in) {
  CLI::App& kill = *command(app, "kill", "End running jobs and cancel waiting ones",
                            "  berth kill 3,5-9\n"
                            "  berth kill all --grace 30s");
  ids_argument(kill, in.ids, "ids and ranges, as 3,5-9 or @ for the last job, or all");
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

/// The commands in the order and under the headings in which help lists them. One that no heading
/// names is listed last.
constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kGroups{{
    {"Submit", "add run sweep check convert"},
    {"Look", "top ls show log results why wait history gpus status"},
    {"Control", "kill pause resume start retry move set rm clean"},
    {"Inside a job", "report"},
    {"Look after the instance", "ui token stop backup restore doctor"},
    {"Shell", "completion"},
}};

/// The command of this name; null if there is none.
CLI::App* find_command(CLI::App& app, const std::string& name) {
  for (CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (sub->get_name() == name) {
      return sub;
    }
  }
  return nullptr;
}

void group_commands(CLI::App& app) {
  for (const auto& [group, names] : kGroups) {
    std::string_view rest = names;
    while (!rest.empty()) {
      const std::string_view name = rest.substr(0, rest.find(' '));
      if (CLI::App* sub = find_command(app, std::string(name))) {
        sub->group(std::string(group));
      }
      rest.remove_prefix(std::min(rest.size(), name.size() + 1));
    }
  }
}

int report(const Error& error, int code) {
  warn(error.message);
  return code;
}

/// Where the command stands: behind the options of `berth` itself, of which some take a value.
std::size_t command_at(const std::vector<std::string>& arguments) {
  constexpr std::array<std::string_view, 4> kTakeValues = {"--color", "--server", "--token-file",
                                                           "--ca-file"};
  std::size_t at = 0;
  while (at < arguments.size() && arguments[at].starts_with('-')) {
    at += std::ranges::find(kTakeValues, arguments[at]) != kTakeValues.end() ? 2 : 1;
  }
  return at;
}

/// What follows "--" of a command that takes job files is for a script, see file_options().
void protect_script_arguments(std::vector<std::string>& arguments, std::size_t at) {
  constexpr std::array<std::string_view, 3> kTakeFiles = {"run", "check", "convert"};
  if (at >= arguments.size() || std::ranges::find(kTakeFiles, arguments[at]) == kTakeFiles.end()) {
    return;
  }
  const auto dashes = std::ranges::find(arguments, "--");
  if (dashes == arguments.end()) {
    return;
  }
  const std::vector<std::string> words(dashes + 1, arguments.end());
  arguments.erase(dashes, arguments.end());
  for (const std::string& word : words) {
    arguments.push_back(fmt::format("{}={}{}", kScriptArgument, kScriptArgumentMark, word));
  }
}

/// What to say of a word that is no command.
std::string no_such_command(const CLI::App& app, const std::string& word) {
  std::vector<std::string> names;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!sub->get_group().empty()) {
      names.push_back(sub->get_name());
    }
  }
  const std::vector<std::string_view> candidates(names.begin(), names.end());
  return fmt::format("there is no command '{}'{}", printable(word), did_you_mean(word, candidates));
}

/// How the user has called a command, empty: berth itself. A name of its own stands for all of it.
std::string called_as(const std::string& command) {
  return program_name() != "berth" || command.empty() ? program_name() : "berth " + command;
}

/// The help of a command under the name that it was called by.
std::string usage_of(const std::string& called, const std::string& command, std::string help) {
  const std::string usage = "Usage: ";
  const std::string own = usage + "berth " + command;
  if (const auto at = help.find(own); at != std::string::npos) {
    help.replace(at, own.size(), usage + called);
  }
  return help;
}

}  // namespace

int run_cli(std::vector<std::string> arguments) {
  display() = {};
  CLI::App app("berth runs commands on free GPUs, one after the other or side by side.", "berth");
  app.set_version_flag("--version", "berth " BERTH_VERSION, "print the version");
  app.get_help_ptr()->description("print this help");
  app.require_subcommand(0, 1);
  app.formatter(std::make_shared<HelpFormatter>());
  app.footer(
      "Examples:\n"
      "  berth add python train.py       queue a command\n"
      "  berth run sweep.yaml            run a job file to its end\n"
      "  berth                           what runs, what waits and what has failed\n"
      "  berth log -f                    follow the last job\n"
      "berth COMMAND --help tells more. BERTH_DIR chooses another instance.");
  Invocation in;
  in.action = [&] { return run_overview(in.watch); };
  color_option(app);
  watch_option(app, in.watch);
  server_options(app, in.server);
  define_add(app, in);
  define_run(app, in);
  define_sweep(app, in.sweep, in.action);
  define_check(app, in.action);
  define_convert(app, in.action);
  define_look(app, in.action);
  define_results(app, in.action);
  define_kill(app, in);
  define_control(app, in.action);
  define_set(app, in.action);
  define_store(app, in.action);
  define_tools(app, in.action);
  define_report(app, in.action);
  define_access(app, in.action);
  group_commands(app);

  const std::size_t at = command_at(arguments);
  if (at < arguments.size() && find_command(app, arguments[at]) == nullptr) {
    return report({ErrorCode::invalid, no_such_command(app, arguments[at]) + "\ntry: berth --help"},
                  kWrongUsage);
  }
  // The command of `add` is not for CLI11: its words may look like options.
  if (at < arguments.size() && (arguments[at] == "add" || arguments[at] == "sweep")) {
    const bool sweep = arguments[at] == "sweep";
    const auto first = arguments.begin() + static_cast<std::ptrdiff_t>(at) + 1;
    AddWords words = split_add_words({first, arguments.end()});
    (sweep ? in.sweep.job : in.add).command = std::move(words.command);
    arguments.erase(first, arguments.end());
    std::ranges::move(words.options, std::back_inserter(arguments));
  }
  protect_script_arguments(arguments, at);
  try {
    std::ranges::reverse(arguments);  // as CLI11 takes them
    app.parse(std::move(arguments));
  } catch (const CLI::ParseError& error) {
    const auto subs = app.get_subcommands();
    const std::string called = called_as(subs.empty() ? "" : subs[0]->get_name());
    if (error.get_exit_code() == 0) {
      if (program_name() != "berth" && !subs.empty()) {
        print(usage_of(called, subs[0]->get_name(), app.help()));
        return 0;
      }
      return app.exit(error);  // help or version, on standard output
    }
    return report({ErrorCode::invalid, fmt::format("{}\ntry: {} --help", error.what(), called)},
                  kWrongUsage);
  }
  if (in.watch && !app.get_subcommands().empty()) {
    return report(
        {ErrorCode::invalid, fmt::format("--watch goes behind the command: berth {} --watch",
                                         app.get_subcommands()[0]->get_name())},
        kWrongUsage);
  }
  if (app.got_subcommand("add") || app.got_subcommand("sweep")) {
    const AddOptions& job = app.got_subcommand("add") ? in.add : in.sweep.job;
    if (app.got_subcommand("sweep") && job.command.empty()) {
      return report({ErrorCode::invalid,
                     "no command given; for example: berth sweep --grid lr=0.1,0.2 -- python "
                     "train.py --lr {lr}"},
                    kWrongUsage);
    }
    if (const auto command = make_command(job.command); !command) {
      return report(command.error(), kWrongUsage);
    }
  }
  if (const Status chosen = choose_server(in.server); !chosen) {
    return report(chosen.error(), kWrongUsage);
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
