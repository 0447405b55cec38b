// How pause, resume, start, move and set are described to the user.

#include <memory>

#include "cli/define.hpp"
#include "core/rule_table.hpp"

namespace berth::cli {
namespace {

struct ControlWords {
  ControlOptions options;
  std::vector<std::string> ids;
};

/// None: all.
std::optional<IdSet> selected(const std::vector<std::string>& words) {
  if (words.size() == 1 && words[0] == "all") {
    return std::nullopt;
  }
  return ids_of(words);
}

void define_pause(CLI::App& app, Action& action, const std::string& name, const std::string& help,
                  const std::string& examples, Outcome (*run)(const ControlOptions&)) {
  CLI::App& sub = *command(app, name, help, examples);
  const auto in = std::make_shared<ControlWords>();
  ids_argument(sub, in->ids, "ids and ranges, as 3,5-9, or all");
  option(sub, "--queue", "NAME", "this queue instead of jobs",
         [in](const auto& text) { in->options.queue = text; });
  json_flag(sub, in->options.json);
  sub.callback([in, run, &action] {
    if (in->ids.empty() == in->options.queue.empty()) {
      throw CLI::ValidationError("IDS", "give ids, as 3,5-9, or all, or --queue NAME");
    }
    if (in->options.queue.empty()) {
      in->options.ids = selected(in->ids);
    }
    action = [in, run] { return run(in->options); };
  });
}

void define_start(CLI::App& app, Action& action) {
  CLI::App& sub =
      *command(app, "start", "Start jobs before all others, as soon as there is room for them",
               "  berth start 7\n"
               "  berth start 7-9\n"
               "Limit, order and pause of their queue do not count for them.");
  const auto in = std::make_shared<ControlWords>();
  ids_argument(sub, in->ids, "ids and ranges, as 3,5-9, or all");
  sub.get_option("IDS")->required();
  json_flag(sub, in->options.json);
  sub.callback([in, &action] {
    in->options.ids = selected(in->ids);
    action = [in] { return run_start(in->options); };
  });
}

void define_move(CLI::App& app, Action& action) {
  struct Words {
    MoveOptions options;
    std::vector<std::string> ids;
    bool first = false;
    bool last = false;
    int places = 0;
  };
  CLI::App& sub = *command(app, "move", "Change the order, queue or priority of waiting jobs",
                           "  berth move 7 --first\n"
                           "  berth move 7-9 --before 4\n"
                           "  berth move 7 --queue car\n"
                           "  berth move all --priority 3");
  const auto in = std::make_shared<Words>();
  using To = event::Move::To;
  const auto to = [in](To place) {
    in->options.to = place;
    ++in->places;
  };
  ids_argument(sub, in->ids, "ids and ranges, as 3,5-9, or all");
  sub.get_option("IDS")->required();
  sub.add_flag("--first", in->first, "to the front of their queue");
  sub.add_flag("--last", in->last, "to the end of their queue");
  option(sub, "--before", "ID", "directly before this job", [in, to](const auto& text) {
    in->options.before = id_of(text);
    to(To::before);
  });
  option(sub, "--queue", "NAME", "into this queue", [in, to](const auto& text) {
    in->options.queue = text;
    to(To::queue);
  });
  option(sub, "--priority", "N", "lower goes first", [in, to](const auto& text) {
    in->options.priority = checked_number<std::int32_t>("--priority", text, "a whole number");
    to(To::priority);
  });
  json_flag(sub, in->options.json);
  sub.callback([in, to, &action] {
    if (in->first) {
      to(To::first);
    }
    if (in->last) {
      to(To::last);
    }
    if (in->places != 1) {
      throw CLI::ValidationError(
          "move", "give one of --first, --last, --before ID, --queue NAME, --priority N");
    }
    in->options.ids = selected(in->ids);
    if (!in->options.ids && in->options.to != To::queue && in->options.to != To::priority) {
      throw CLI::ValidationError("IDS", "all jobs have no place among themselves; name some");
    }
    action = [in] { return run_move(in->options); };
  });
}

/// One rule with its explanation, wrapped beside it.
std::string rule_help(std::string_view rule, std::string_view help) {
  constexpr std::size_t kIndent = 23;
  constexpr std::size_t kWidth = 78;
  std::string out = fmt::format("  {:<20} ", rule);
  std::size_t column = kIndent;
  while (!help.empty()) {
    const std::string_view word = help.substr(0, help.find(' '));
    help.remove_prefix(std::min(help.size(), word.size() + 1));
    if (column > kIndent && column + 1 + word.size() > kWidth) {
      out += "\n" + std::string(kIndent, ' ');
      column = kIndent;
    } else if (column > kIndent) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
  }
  return out + "\n";
}

void define_set(CLI::App& app, Action& action) {
  std::string footer =
      "  berth set                              all rules of this instance\n"
      "  berth set max_concurrent               one of them\n"
      "  berth set max_concurrent=4 --save      change it, and keep it in berth.yaml\n"
      "  berth set queue.car.limit=1 resources.licence=2\n"
      "  berth set 7-9 priority=2 gpus=1..2     change jobs\n\n"
      "Keys of jobs that wait: name queue priority gpus gpu_memory cpus memory\n"
      "retries time grace; of jobs that run: name retries.\n\nRules:\n";
  for (const RuleDef& rule : rule_definitions()) {
    footer += rule_help(fmt::format("{}={}", rule.key, rule.type), rule.help);
  }
  footer += rule_help("resources.NAME=N", kResourceHelp);
  footer += rule_help("queue.NAME.limit=N", kQueueLimitHelp);
  footer.pop_back();
  CLI::App& sub =
      *command(app, "set", "Change jobs, or show and change the instance's rules", footer);
  const auto in = std::make_shared<SetOptions>();
  sub.add_option("WORDS", in->words, "[IDS] KEY=VALUE…, or KEY")->type_name("");
  sub.add_flag("--save", in->save, "keep the rules in berth.yaml; else they hold for this run");
  json_flag(sub, in->json);
  sub.callback([in, &action] {
    if (const auto plan = plan_set(*in); !plan) {
      throw CLI::ValidationError("set", plan.error().message);
    }
    action = [in] { return run_set(*in); };
  });
}

}  // namespace

void define_control(CLI::App& app, Action& action) {
  define_pause(app, action, "pause",
               "Stop running jobs where they are, hold waiting ones, or pause a queue",
               "  berth pause 3,5-9       running ones keep their GPUs and stand still\n"
               "  berth pause --queue car starts nothing more; what runs goes on\n"
               "  berth pause all",
               run_pause);
  define_pause(app, action, "resume", "Let paused jobs or a paused queue go on",
               "  berth resume 3,5-9\n"
               "  berth resume --queue car\n"
               "  berth resume all",
               run_resume);
  define_start(app, action);
  define_move(app, action);
  define_set(app, action);
}

}  // namespace berth::cli
