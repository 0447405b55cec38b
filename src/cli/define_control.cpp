// How pause, resume, start and move are described to the user.

#include <algorithm>
#include <charconv>
#include <memory>
#include <utility>

#include "cli/define.hpp"

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

/// The indices of "3" or "0-3"; none: it is something else, such as a UUID.
std::optional<std::pair<std::uint32_t, std::uint32_t>> card_range(std::string_view word) {
  constexpr std::uint32_t kMostCards = 1'024;
  const auto dash = word.find('-');
  const std::string_view first = word.substr(0, dash);
  const std::string_view last = dash == std::string_view::npos ? first : word.substr(dash + 1);
  const auto number = [](std::string_view text) -> std::optional<std::uint32_t> {
    std::uint32_t value = 0;
    const auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && at == text.data() + text.size() && value < kMostCards
               ? std::optional(value)
               : std::nullopt;
  };
  const auto from = number(first);
  const auto to = number(last);
  return from && to && *from <= *to ? std::optional(std::pair(*from, *to)) : std::nullopt;
}

/// Of "0", "0,2-3", "GPU-8f0c…" or several of them.
void add_cards(const std::string& text, std::vector<std::string>& cards) {
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::string word(rest.substr(0, rest.find(',')));
    rest.remove_prefix(std::min(word.size() + 1, rest.size()));
    const auto range = card_range(word);
    if (!range) {
      cards.push_back(word);
      continue;
    }
    for (std::uint32_t index = range->first; index <= range->second; ++index) {
      cards.push_back(fmt::format("{}", index));
    }
  }
}

void define_pause(CLI::App& app, Action& action, const std::string& name, const std::string& help,
                  const std::string& examples, Outcome (*run)(const ControlOptions&)) {
  CLI::App& sub = *command(app, name, help, examples);
  const auto in = std::make_shared<ControlWords>();
  ids_argument(sub, in->ids, "ids and ranges, as 3,5-9 or @ for the last job, or all");
  list_option(sub, "--queue", "NAME", "this queue instead of jobs; may be repeated",
              [in](const auto& text) { in->options.queues.push_back(text); });
  sub.add_flag("--instance", in->options.instance, "everything: nothing starts, what runs goes on");
  list_option(sub, "--gpu", "N", "these cards instead of jobs, as 0 or 0,2-3, or by UUID",
              [in](const auto& text) { add_cards(text, in->options.gpus); });
  if (name == "pause") {
    option(sub, "--why", "TEXT", "with --gpu: what berth why and berth gpus say",
           [in](const auto& text) { in->options.why = text; })
        ->needs("--gpu");
  }
  json_flag(sub, in->options.json);
  sub.callback([in, run, &action] {
    ControlOptions& options = in->options;
    if (int{!in->ids.empty()} + int{!options.queues.empty()} + int{!options.gpus.empty()} +
            int{options.instance} !=
        1) {
      throw CLI::ValidationError(
          "IDS", "give ids, as 3,5-9, or all, or one of --queue NAME, --gpu N and --instance");
    }
    if (!in->ids.empty()) {
      options.ids = selected(in->ids);
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
  ids_argument(sub, in->ids, "ids and ranges, as 3,5-9 or @ for the last job, or all");
  sub.get_option("IDS")->required();
  json_flag(sub, in->options.json);
  sub.callback([in, &action] {
    in->options.ids = selected(in->ids);
    action = [in] { return run_start(in->options); };
  });
}

void define_retry(CLI::App& app, Action& action) {
  struct Words {
    RetryOptions options;
    std::vector<std::string> ids;
    bool failed = false;
  };
  CLI::App& sub =
      *command(app, "retry", "Run ended jobs again under their ids",
               "  berth retry 7\n"
               "  berth retry 7-9,12\n"
               "  berth retry --failed\n"
               "  berth retry --failed --batch 3\n"
               "  berth retry 7 --succeeded\n"
               "Their attempts go on counting, and their retries begin anew. Jobs that were\n"
               "cancelled because of them are not touched: name them, too.");
  const auto in = std::make_shared<Words>();
  ids_argument(sub, in->ids, "ids and ranges, as 3,5-9 or @ for the last job");
  sub.add_flag("--failed", in->failed, "all jobs that have failed, instead of ids");
  option(sub, "--batch", "N", "only jobs of this batch", [in](const auto& text) {
    in->options.batch = checked_number<std::uint64_t>("--batch", text, "the number of a batch");
  });
  sub.add_flag("--succeeded", in->options.succeeded, "with ids: those that succeeded, too");
  json_flag(sub, in->options.json);
  sub.callback([in, &action] {
    if (in->failed != in->ids.empty()) {
      throw CLI::ValidationError("IDS", "give either ids, as 3,5-9, or --failed");
    }
    if (!in->failed) {
      in->options.ids = ids_of(in->ids);
    }
    action = [in] { return run_retry(in->options); };
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
  ids_argument(sub, in->ids, "ids and ranges, as 3,5-9 or @ for the last job, or all");
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

}  // namespace

void define_control(CLI::App& app, Action& action) {
  define_pause(app, action, "pause",
               "Stop running jobs where they are, hold waiting ones; pause queues, cards, all",
               "  berth pause 3,5-9            running ones keep their GPUs and stand still\n"
               "  berth pause all              all jobs\n"
               "  berth pause --queue car      starts nothing more; what runs goes on\n"
               "  berth pause --gpu 2 --why 'fan replaced on Monday'   likewise of a card\n"
               "  berth pause --instance       likewise of everything, to drain the machine",
               run_pause);
  define_pause(app, action, "resume", "Let paused jobs, queues, cards or all go on",
               "  berth resume 3,5-9\n"
               "  berth resume all\n"
               "  berth resume --queue car\n"
               "  berth resume --gpu 2\n"
               "  berth resume --instance",
               run_resume);
  define_start(app, action);
  define_retry(app, action);
  define_move(app, action);
}

}  // namespace berth::cli
