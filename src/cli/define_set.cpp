// How set is described to the user.

#include <algorithm>
#include <array>
#include <iterator>
#include <memory>

#include "cli/define.hpp"
#include "core/rule_table.hpp"

namespace berth::cli {
namespace {

/// One rule with its explanation, wrapped beside or below it.
std::string rule_help(std::string_view rule, std::string_view help) {
  constexpr std::size_t kIndent = 23;
  constexpr std::size_t kWidth = 78;
  std::string out = fmt::format("  {:<20} ", rule);
  if (out.size() > kIndent) {
    out.back() = '\n';
    out += std::string(kIndent, ' ');
  }
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

/// The choices of a rule are too many for its first column.
std::string rule_help(const RuleDef& rule) {
  if (rule.type.find('|') == std::string_view::npos) {
    return rule_help(fmt::format("{}={}", rule.key, rule.type), rule.help);
  }
  std::string choices(rule.type);
  for (std::size_t at = 0; (at = choices.find('|', at)) != std::string::npos; at += 2) {
    choices.replace(at, 1, ", ");
  }
  return rule_help(fmt::format("{}=WORD", rule.key), fmt::format("{}: {}", rule.help, choices));
}

std::string rules_help() {
  constexpr std::array kScopes = {
      std::pair{RuleScope::any, "Rules of the instance, a queue, a batch or a job"},
      std::pair{RuleScope::batch, "Rules of the instance or a batch"},
      std::pair{RuleScope::instance, "Rules of the instance"}};
  std::string out;
  for (const auto& [scope, heading] : kScopes) {
    out += fmt::format("\n{}:\n", heading);
    for (const RuleDef& rule : rule_definitions()) {
      out += rule.scope == scope ? rule_help(rule) : "";
    }
  }
  out += rule_help("resources.NAME=N", kResourceHelp);
  out += rule_help("queue.NAME.limit=N", kQueueLimitHelp);
  out.pop_back();
  return out;
}

/// Behind --unset further words are keys, too: what is changed has '=', and no key begins as an id.
void take_more_to_unset(SetOptions& options) {
  if (options.unset.empty()) {
    return;
  }
  const auto is_key = [](const std::string& word) {
    return !word.empty() && word[0] >= 'a' && word[0] <= 'z' && word != "all" &&
           word.find('=') == std::string::npos;
  };
  std::ranges::copy_if(options.words, std::back_inserter(options.unset), is_key);
  std::erase_if(options.words, is_key);
}

}  // namespace

void define_set(CLI::App& app, Action& action) {
  CLI::App& sub =
      *command(app, "set", "Show and change rules, and what jobs ask for",
               "  berth set                              all rules, and where each comes from\n"
               "  berth set 7                            those job 7 stands under\n"
               "  berth set --queue car gpu_left         one of them, of a queue\n"
               "  berth set max_concurrent=4 --save      change it, and keep it in berth.yaml\n"
               "  berth set --batch 3 order=random\n"
               "  berth set queue.car.limit=1 resources.licence=2\n"
               "  berth set --unset max_concurrent       as berth.yaml or the default say\n"
               "  berth set 7-9 priority=2 gpus=1..2 gpu_left=1     change jobs\n\n"
               "A rule comes from the closest that has it: job, batch, queue, this run,\n"
               "berth.yaml, default.\n\n"
               "Keys of jobs that wait, besides rules: name queue priority gpus gpu_memory\n"
               "cpus memory retries time grace; of jobs that run: name retries. The rule gpus\n"
               "of a job is rules.gpus.\n" +
                   rules_help());
  const auto in = std::make_shared<SetOptions>();
  sub.add_option("WORDS", in->words, "[IDS] KEY=VALUE…, or [ID] [KEY]")->type_name("");
  option(sub, "--queue", "NAME", "the rules of this queue", [in](const auto& text) {
    if (text.empty()) {  // a variable of a shell that is not set; not the whole instance
      throw CLI::ValidationError("--queue", "a queue needs a name");
    }
    in->queue = text;
  });
  option(sub, "--batch", "ID", "the rules of this batch", [in](const auto& text) {
    in->batch = checked_number<std::uint64_t>("--batch", text, "the number of a batch");
  });
  list_option(sub, "--unset", "KEY…", "say nothing of these rules any more",
              [in](const auto& text) { in->unset.push_back(text); });
  sub.add_flag("--save", in->save, "keep the rules in berth.yaml; else they hold for this run");
  json_flag(sub, in->json);
  sub.callback([in, &action] {
    take_more_to_unset(*in);
    if (const auto plan = plan_set(*in); !plan) {
      throw CLI::ValidationError("set", plan.error().message);
    }
    action = [in] { return run_set(*in); };
  });
}

}  // namespace berth::cli
