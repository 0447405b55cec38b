// berth set.

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "api/control.hpp"
#include "cli/commands.hpp"
#include "cli/control.hpp"
#include "cli/daemon.hpp"
#include "cli/last_job.hpp"
#include "cli/submitter.hpp"
#include "cli/table.hpp"
#include "core/rule_table.hpp"

namespace berth::cli {
namespace {

constexpr int kWrongUsage = 2;

template <class T>
Status number(const std::string& text, std::optional<T>& out) {
  T value{};
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc::result_out_of_range && at == end) {
    return fail(ErrorCode::invalid,
                fmt::format("'{}' is not from {} to {}", printable(text),
                            std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
  }
  if (text.empty() || error != std::errc() || at != end) {
    return fail(ErrorCode::invalid, fmt::format("'{}' is not a whole number", printable(text)));
  }
  out = value;
  return {};
}

Status gpu_memory(const std::string& text, event::JobPatch& patch) {
  patch.gpu_memory.emplace();
  if (text != "all") {
    TRY_ASSIGN(*patch.gpu_memory, parse_size(text));
    if (**patch.gpu_memory == 0) {
      return fail(ErrorCode::invalid, "must be more than 0; `all` means whole cards");
    }
  }
  return {};
}

struct JobKey {
  std::string_view name;
  Status (*set)(event::JobPatch& patch, const std::string& text);
};

constexpr JobKey kJobKeys[] = {
    {"name",
     [](event::JobPatch& patch, const std::string& text) -> Status {
       patch.name = text;
       return {};
     }},
    {"queue",
     [](event::JobPatch& patch, const std::string& text) -> Status {
       if (text.empty()) {
         return fail(ErrorCode::invalid, "give a name");
       }
       patch.queue = text;
       return {};
     }},
    {"priority",
     [](event::JobPatch& patch, const std::string& text) { return number(text, patch.priority); }},
    {"gpus",
     [](event::JobPatch& patch, const std::string& text) -> Status {
       TRY_ASSIGN(patch.gpus, parse_gpu_count(text));
       return {};
     }},
    {"gpu_memory",
     [](event::JobPatch& patch, const std::string& text) { return gpu_memory(text, patch); }},
    {"cpus",
     [](event::JobPatch& patch, const std::string& text) { return number(text, patch.cpus); }},
    {"memory",
     [](event::JobPatch& patch, const std::string& text) -> Status {
       TRY_ASSIGN(patch.memory, parse_size(text));
       return {};
     }},
    {"retries",
     [](event::JobPatch& patch, const std::string& text) { return number(text, patch.retries); }},
    {"time",
     [](event::JobPatch& patch, const std::string& text) -> Status {
       TRY_ASSIGN(patch.time_limit, parse_duration(text));
       return {};
     }},
    {"grace",
     [](event::JobPatch& patch, const std::string& text) -> Status {
       TRY_ASSIGN(patch.grace, parse_duration(text));
       return {};
     }},
};

Status patch_with(event::JobPatch& patch, const std::string& key, const std::string& value) {
  for (const JobKey& known : kJobKeys) {
    if (known.name != key) {
      continue;
    }
    if (Status set = known.set(patch, value); !set) {
      return fail(ErrorCode::invalid, fmt::format("{}: {}", key, set.error().message));
    }
    return {};
  }
  constexpr std::string_view kPrefix = "rules.";
  const std::string rule = key.starts_with(kPrefix) ? key.substr(kPrefix.size()) : key;
  if (find_rule(rule) != nullptr) {
    TRY(check_override(rule, value, RuleScope::any));
    patch.rules[canonical_rule(rule)] = value;
    return {};
  }
  std::string names;
  for (const JobKey& known : kJobKeys) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", known.name);
  }
  return fail(ErrorCode::invalid,
              fmt::format("'{}' of a job cannot be changed; these can: {}, and rules (`berth set` "
                          "lists them)",
                          printable(key), names));
}

Result<std::pair<std::string, std::string>> assignment(const std::string& word) {
  const std::size_t equals = word.find('=');
  if (equals == std::string::npos || equals == 0) {
    return fail(ErrorCode::invalid,
                fmt::format("'{}' is not of the form KEY=VALUE", printable(word)));
  }
  return std::pair{word.substr(0, equals), word.substr(equals + 1)};
}

bool names_jobs(const std::string& word) {
  return word == "all" ||
         (!word.empty() && ((word[0] >= '0' && word[0] <= '9') || word[0] == '@') &&
          word.find('=') == std::string::npos);
}

std::string rules_text(const RulesView& view) {
  constexpr std::size_t kWhole = 99;  // what is cut cannot be typed
  Table table({{"RULE", Align::left, kWhole}, {"VALUE", Align::left, 8}, {"FROM"}, {"MEANING"}});
  for (const RuleView& rule : view.rules) {
    table.add({{printable(rule.key)},
               {printable(rule.value)},
               {printable(rule.source), rule.source == "default" ? Style::dim : Style::plain},
               {printable(rule.help), Style::dim}});
  }
  return table.render(look_at_stdout());
}

void warn_of(const RulesView& view) {
  for (const std::string& problem : view.problems) {
    warn(printable(problem));
  }
}

Outcome show_rules(Daemon& daemon, const SetPlan& plan, const SetOptions& options) {
  TRY_ASSIGN(RulesView view,
             daemon.get<RulesView>(rules_query_target({options.queue, options.batch, plan.job})));
  if (!plan.key.empty()) {
    const std::string key = canonical_rule(plan.key);
    const auto of_group = [&](const RuleView& rule) { return rule.key.starts_with(key + "."); };
    const bool group = std::ranges::any_of(view.rules, of_group);
    std::erase_if(view.rules,
                  [&](const RuleView& rule) { return rule.key != key && !of_group(rule); });
    if (view.rules.empty()) {
      Rules scratch;
      const Status known = find_rule(key) != nullptr ? Status{} : set_rule(scratch, key, "0");
      return fail(ErrorCode::not_found,
                  known ? fmt::format("'{}' has not been set", printable(plan.key))
                        : known.error().message);
    }
    if (!options.json && !group) {
      print(printable(view.rules.front().value) + "\n");
      return 0;
    }
  }
  print(options.json ? encode(view) + "\n" : rules_text(view));
  if (!options.json) {
    warn_of(view);
  }
  return 0;
}

/// How long a rule that was just changed will hold; `part`: for a queue or a batch.
std::string standing(const RuleView& rule, bool saved, bool part) {
  const bool of_instance = rule.source == "this run" || rule.source == "berth.yaml";
  return saved                         ? "saved in berth.yaml"
         : part && of_instance         ? "of the instance"
         : rule.source == "this run"   ? "for this run; --save keeps it"
         : rule.source == "berth.yaml" ? "as in berth.yaml"
         : rule.source == "the store"  ? "kept"
         : rule.source == "default"    ? "the default"
                                       : fmt::format("kept for {}", printable(rule.source));
}

bool same_value(const std::string& key, const std::string& one, const std::string& other) {
  Rules first;
  Rules second;
  return one == other ||
         (set_rule(first, key, one) && set_rule(second, key, other) && first == second);
}

Outcome set_rules(Daemon& daemon, const SetPlan& plan, const SetOptions& options) {
  SetRulesRequest request;
  request.values = plan.values;
  request.unset = options.unset;
  request.save = options.save;
  request.queue = options.queue;
  request.batch = options.batch;
  TRY_ASSIGN(const std::string body, daemon.call("POST", "/api/rules", encode(request)));
  TRY_ASSIGN(RulesView view, decode<RulesView>(body));
  const auto is_set = [&](const RuleView& rule) {
    return std::ranges::any_of(
        plan.values, [&](const auto& value) { return canonical_rule(value.first) == rule.key; });
  };
  const auto is_unset = [&](const RuleView& rule) {
    return std::ranges::any_of(options.unset,
                               [&](const auto& key) { return canonical_rule(key) == rule.key; });
  };
  std::erase_if(view.rules, [&](const RuleView& rule) { return !is_set(rule) && !is_unset(rule); });
  if (options.json) {
    print(encode(view) + "\n");
    return 0;
  }
  for (const RuleView& rule : view.rules) {
    const auto asked = std::ranges::find_if(plan.values, [&rule](const auto& value) {
      return canonical_rule(value.first) == rule.key;
    });
    if (options.save && asked != plan.values.end() &&
        !same_value(rule.key, asked->second, rule.value)) {
      // A mistake elsewhere in the file keeps all of it from being taken over.
      print(fmt::format("{} = {} is saved in berth.yaml and not in force yet; it is still {}\n",
                        printable(rule.key), printable(asked->second), printable(rule.value)));
      continue;
    }
    print(fmt::format("{} = {} ({})\n", printable(rule.key), printable(rule.value),
                      standing(rule, options.save && is_set(rule),
                               !options.queue.empty() || options.batch != 0)));
  }
  warn_of(view);
  return 0;
}

/// Jobs by their ids, with what to change; or one, to see its rules.
Result<SetPlan> plan_jobs(const SetOptions& options) {
  SetPlan plan;
  const std::vector<std::string>& words = options.words;
  const auto first = std::ranges::find_if_not(words, names_jobs);
  if (!options.queue.empty() || options.batch != 0) {
    return fail(ErrorCode::invalid, "give ids, --queue or --batch, and only one of them");
  }
  if (options.save) {
    return fail(ErrorCode::invalid, "--save is for rules; changes of jobs are kept anyway");
  }
  if (words[0] != "all" || first - words.begin() > 1) {
    const std::vector<std::string> ids(words.begin(), first);
    TRY_ASSIGN(plan.ids, parse_ids(fmt::format("{}", fmt::join(ids, ","))));
  }
  const auto left = words.end() - first;
  if (options.unset.empty() && plan.ids && plan.ids->size() == 1 &&
      (left == 0 || (left == 1 && first->find('=') == std::string::npos))) {
    plan.what = SetPlan::What::show;
    plan.job = plan.ids->ranges().front().first;
    plan.key = left == 0 ? "" : *first;
    return plan;
  }
  plan.what = SetPlan::What::jobs;
  if (left == 0 && options.unset.empty()) {
    return fail(ErrorCode::invalid, "give KEY=VALUE after the ids, or one id to see its rules");
  }
  for (auto word = first; word != words.end(); ++word) {
    TRY_ASSIGN(const auto value, assignment(*word));
    TRY(patch_with(plan.patch, value.first, value.second));
  }
  plan.patch.unset = options.unset;
  return plan;
}

}  // namespace

Result<SetPlan> plan_set(const SetOptions& options) {
  SetPlan plan;
  const std::vector<std::string>& words = options.words;
  if (!words.empty() && names_jobs(words[0])) {
    return plan_jobs(options);
  }
  if (!options.queue.empty() && options.batch != 0) {
    return fail(ErrorCode::invalid, "give --queue or --batch, not both");
  }
  if (options.save && (!options.queue.empty() || options.batch != 0)) {
    return fail(ErrorCode::invalid,
                "--save is for the instance; rules of queues and batches are kept anyway");
  }
  if (options.unset.empty() && words.size() <= 1 &&
      (words.empty() || words[0].find('=') == std::string::npos)) {
    plan.what = words.empty() ? SetPlan::What::list : SetPlan::What::show;
    plan.key = words.empty() ? "" : words[0];
    if (options.save) {
      return fail(ErrorCode::invalid, "--save needs KEY=VALUE");
    }
    return plan;
  }
  plan.what = SetPlan::What::rules;
  for (const std::string& word : words) {
    TRY_ASSIGN(auto value, assignment(word));
    if (!options.queue.empty() && (value.first == "max_concurrent" || value.first == "limit")) {
      return fail(ErrorCode::invalid,
                  fmt::format("how many jobs of a queue run at once is queue.NAME.limit: berth set "
                              "queue.{}.limit={}",
                              printable(options.queue), printable(value.second)));
    }
    plan.values.push_back(std::move(value));
  }
  return plan;
}

Outcome run_set(const SetOptions& options) {
  TRY_ASSIGN(const SetPlan plan, plan_set(options));
  TRY_ASSIGN(Daemon daemon, Daemon::open());
  if (plan.what == SetPlan::What::rules) {
    Outcome outcome = set_rules(daemon, plan, options);
    // A key or a value that only the daemon could judge is wrong usage all the same.
    if (!outcome && outcome.error().code == ErrorCode::invalid) {
      warn(outcome.error().message);
      return kWrongUsage;
    }
    return outcome;
  }
  if (plan.what != SetPlan::What::jobs) {
    return show_rules(daemon, plan, options);
  }
  SetJobsRequest request;
  request.jobs = selection(plan.ids);
  request.patch = plan.patch;
  TRY_ASSIGN(const std::string body,
             daemon.call("POST", "/api/jobs/set", encode(request), kControlTimeout));
  return report_control(body, "unchanged", options.json);
}

}  // namespace berth::cli
