// gpulimit's commands and what help says of them.

#include <fmt/format.h>

#include <array>

#include "cli/gpulimit.hpp"
#include "jobspec/diagnostic.hpp"

namespace berth::cli::gpulimit {
namespace {

constexpr std::array kCommands = {
    CommandDef{"help", "[cmd]", "show help", "", run_help},
    CommandDef{"add", "[--priority=N] [--logpath=PATH] cmds…", "add a task to the queue",
               "Options stand before the command:\n"
               "  --priority=N     lower starts first; 5 is usual\n"
               "  --logpath=PATH   where its output goes; a directory gets <id>.log\n"
               "The task runs here, with the environment of this shell. Prints its id.\n"
               "Examples:\n"
               "  gpulimit add python3 main.py --lambda=12 --alpha=1\n"
               "  gpulimit add --priority=1 --logpath=./ python3 main.py\n"
               "  gpulimit add 'python3 main.py | tee result.txt'     one word goes to bash\n",
               run_add},
    CommandDef{"ls", "[--all]", "list the tasks",
               "Running tasks, waiting ones in the order in which they start, and the last\n"
               "that have ended.\n"
               "  --all    every task, and its whole command\n"
               "  --json   for programs\n",
               run_ls},
    CommandDef{"show", "id", "show one task in full",
               "  --json   for programs\n"
               "Example:\n"
               "  gpulimit show 3\n",
               run_show},
    CommandDef{"rm", "id…", "remove tasks; one that runs is killed first",
               "Returns when they are gone, with the logs that are kept for them.\n"
               "Examples:\n"
               "  gpulimit rm 3\n"
               "  gpulimit rm 3-7 9\n",
               run_rm},
    CommandDef{"clean", "[status…]", "remove tasks that are complete or CMD_ERROR",
               "Or those of the states named: complete, CMD_ERROR, runtime_error, killed.\n"
               "Example:\n"
               "  gpulimit clean killed runtime_error\n",
               run_clean},
    CommandDef{"kill", "id…|all", "kill tasks",
               "TERM, five seconds later KILL; returns when they have ended. Waiting tasks do\n"
               "not start any more. `gpulimit start` and the id runs one again.\n"
               "Examples:\n"
               "  gpulimit kill 3\n"
               "  gpulimit kill 3-7\n"
               "  gpulimit kill all       what runs and what waits\n",
               run_kill},
    CommandDef{"mv", "id [index]", "move a waiting task; 0, the default, is the first",
               "Also: move. It counts waiting tasks, as `gpulimit ls` lists them.\n"
               "Example:\n"
               "  gpulimit mv 12 0\n",
               run_mv},
    CommandDef{"set", "[name [value]]", "show parameters, or change one",
               "Without words it lists all with their meaning. What is set is kept.\n"
               "  --json   for programs\n"
               "Examples:\n"
               "  gpulimit set\n"
               "  gpulimit set MAX_RUNNING_TASKS 4\n"
               "  gpulimit set SAFETY_KEEP_GPU_MEMORY 0.3\n",
               run_set},
    CommandDef{"start", "[id]", "start a task now, again if it has ended",
               "A waiting task starts on the card with the most free memory, whatever the\n"
               "parameters say. One that was killed, failed or is complete runs again under\n"
               "its id; a paused one goes on. Without an id all waiting tasks start as soon as\n"
               "cards have room for them, however many MAX_RUNNING_TASKS allows.\n",
               run_start},
    CommandDef{"log", "id|main", "show what a task has written",
               "main is the log of the server.\n"
               "Examples:\n"
               "  gpulimit log 3\n"
               "  gpulimit log main\n",
               run_log},
    CommandDef{"status", "", "show memory, GPUs, tasks and parameters", "  --json   for programs\n",
               run_status},
    CommandDef{"debug", "id", "show why a task is CMD_ERROR or runtime_error",
               "What could not be started, where, and with which PATH; of a task that failed\n"
               "the end of its output.\n"
               "Example:\n"
               "  gpulimit debug 3\n",
               run_debug},
};

}  // namespace

std::span<const CommandDef> commands() {
  return kCommands;
}

const CommandDef* find_command(std::string_view name) {
  const std::string_view known = name == "move" ? "mv" : name;
  for (const CommandDef& command : kCommands) {
    if (command.name == known) {
      return &command;
    }
  }
  return nullptr;
}

std::string nearest_command(std::string_view word) {
  std::vector<std::string_view> names{"move"};
  for (const CommandDef& command : kCommands) {
    names.push_back(command.name);
  }
  return did_you_mean(word, names);
}

std::string help_text() {
  std::string out =
      "gpulimit: a queue of tasks for the GPUs of this machine\n"
      "Usage: gpulimit COMMAND …       as in: gpulimit add python3 main.py\n\n";
  for (const CommandDef& command : kCommands) {
    const std::string usage = fmt::format(
        "{} {}", command.name, command.name == "add" ? "[options] cmds…" : command.arguments);
    out += fmt::format("  {:<22} {}\n", usage, command.summary);
    if (command.name == "mv") {
      out += fmt::format("  {:<22} the same\n", fmt::format("move {}", command.arguments));
    }
  }
  return out +
         "\ngpulimit help COMMAND tells more. gpulimit_server runs the server in the\n"
         "foreground; otherwise it starts by itself. Tasks are jobs in berth's queue\n"
         "'gpulimit', and its own commands, such as berth top, show them too.\n";
}

std::string help_text(const CommandDef& command) {
  std::string summary(command.summary);
  summary[0] = static_cast<char>(summary[0] - 'a' + 'A');
  return fmt::format("{}\n\nUsage: gpulimit {}{}{}\n{}{}", summary, command.name,
                     command.arguments.empty() ? "" : " ", command.arguments,
                     command.details.empty() ? "" : "\n", command.details);
}

Outcome run_help(const Words& words) {
  TRY(expect_words(words, 0, 1, "help [cmd]"));
  if (words.empty()) {
    print(help_text());
    return 0;
  }
  const CommandDef* command = find_command(words[0]);
  if (command == nullptr) {
    return fail(ErrorCode::invalid, fmt::format("there is no command '{}'{}", printable(words[0]),
                                                nearest_command(words[0])));
  }
  print(help_text(*command));
  return 0;
}

}  // namespace berth::cli::gpulimit
