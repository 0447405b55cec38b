// berth set.

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "api/control.hpp"
#include "cli/commands.hpp"
#include "cli/control.hpp"
#include "cli/daemon.hpp"
#include "cli/submitter.hpp"
#include "cli/table.hpp"
#include "core/rule_table.hpp"

namespace berth::cli {
namespace {

template <class T>
Status number(const std::string& text, std::optional<T>& out) {
  T value{};
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
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
  std::string names;
  for (const JobKey& known : kJobKeys) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", known.name);
  }
  return fail(ErrorCode::invalid,
              fmt::format("'{}' of a job cannot be changed; these can: {}", printable(key), names));
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
         (!word.empty() && word[0] >= '0' && word[0] <= '9' && word.find('=') == std::string::npos);
}

std::string rules_text(const RulesView& view) {
  Table table({{"RULE"}, {"VALUE"}, {"FROM"}, {"MEANING"}});
  for (const RuleView& rule : view.rules) {
    table.add({{printable(rule.key)},
               {printable(rule.value)},
               {printable(rule.source), rule.source == "default" ? Style::dim : Style::plain},
               {printable(rule.help), Style::dim}});
  }
  return table.render(look_at_stdout());
}

Outcome show_rules(Daemon& daemon, const SetPlan& plan, bool json) {
  TRY_ASSIGN(RulesView view, daemon.get<RulesView>("/api/rules"));
  if (plan.what == SetPlan::What::show) {
    std::erase_if(view.rules, [&](const RuleView& rule) { return rule.key != plan.key; });
    if (view.rules.empty()) {
      Rules scratch;
      const Status known = set_rule(scratch, plan.key, "0");
      return fail(ErrorCode::not_found,
                  known ? fmt::format("'{}' has not been set", printable(plan.key))
                        : known.error().message);
    }
    if (!json) {
      print(printable(view.rules.front().value) + "\n");
      return 0;
    }
  }
  print(json ? encode(view) + "\n" : rules_text(view));
  for (const std::string& problem : view.problems) {
    if (!json) {
      warn(printable(problem));
    }
  }
  return 0;
}

Outcome set_rules(Daemon& daemon, const SetPlan& plan, const SetOptions& options) {
  SetRulesRequest request;
  request.values = plan.values;
  request.save = options.save;
  TRY_ASSIGN(const std::string body, daemon.call("POST", "/api/rules", encode(request)));
  TRY_ASSIGN(RulesView view, decode<RulesView>(body));
  std::erase_if(view.rules, [&](const RuleView& rule) {
    return std::ranges::none_of(plan.values,
                                [&](const auto& value) { return value.first == rule.key; });
  });
  if (options.json) {
    print(encode(view) + "\n");
    return 0;
  }
  for (const RuleView& rule : view.rules) {
    print(fmt::format("{} = {} ({})\n", printable(rule.key), printable(rule.value),
                      options.save                  ? "saved in berth.yaml"
                      : rule.source == "this run"   ? "for this run; --save keeps it"
                      : rule.source == "berth.yaml" ? "as in berth.yaml"
                      : rule.source == "the store"  ? "kept"
                                                    : "the default"));
  }
  return 0;
}

}  // namespace

Result<SetPlan> plan_set(const SetOptions& options) {
  SetPlan plan;
  const std::vector<std::string>& words = options.words;
  if (!words.empty() && names_jobs(words[0])) {
    plan.what = SetPlan::What::jobs;
    const auto first = std::ranges::find_if_not(words, names_jobs);
    if (first == words.end()) {
      return fail(ErrorCode::invalid, "give KEY=VALUE after the ids");
    }
    if (words[0] != "all" || first - words.begin() > 1) {
      const std::vector<std::string> ids(words.begin(), first);
      TRY_ASSIGN(plan.ids, IdSet::parse(fmt::format("{}", fmt::join(ids, ","))));
    }
    for (auto word = first; word != words.end(); ++word) {
      TRY_ASSIGN(const auto value, assignment(*word));
      TRY(patch_with(plan.patch, value.first, value.second));
    }
    if (options.save) {
      return fail(ErrorCode::invalid, "--save is for rules; changes of jobs are kept anyway");
    }
    return plan;
  }
  if (words.size() <= 1 && (words.empty() || words[0].find('=') == std::string::npos)) {
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
    plan.values.push_back(std::move(value));
  }
  return plan;
}

Outcome run_set(const SetOptions& options) {
  TRY_ASSIGN(const SetPlan plan, plan_set(options));
  TRY_ASSIGN(Daemon daemon, Daemon::open());
  if (plan.what == SetPlan::What::rules) {
    return set_rules(daemon, plan, options);
  }
  if (plan.what != SetPlan::What::jobs) {
    return show_rules(daemon, plan, options.json);
  }
  SetJobsRequest request;
  request.jobs = selection(plan.ids);
  request.patch = plan.patch;
  TRY_ASSIGN(const std::string body,
             daemon.call("POST", "/api/jobs/set", encode(request), kControlTimeout));
  return report_control(body, "unchanged", options.json);
}

}  // namespace berth::cli
