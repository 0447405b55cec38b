#include "cli/gpulimit_words.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "core/rule_table.hpp"
#include "jobspec/diagnostic.hpp"

namespace berth::cli::gpulimit {
namespace {

constexpr std::array kStatuses = {
    std::pair{TaskStatus::running, std::string_view("running")},
    std::pair{TaskStatus::paused, std::string_view("paused")},
    std::pair{TaskStatus::waiting, std::string_view("waiting")},
    std::pair{TaskStatus::complete, std::string_view("complete")},
    std::pair{TaskStatus::runtime_error, std::string_view("runtime_error")},
    std::pair{TaskStatus::cmd_error, std::string_view("CMD_ERROR")},
    std::pair{TaskStatus::killed, std::string_view("killed")},
};
static_assert(kStatuses.size() == kStatusCount);

constexpr std::array kParameters = {
    ParameterDef{Parameter::timer_polling_time, "TIMER_POLLING_TIME", "10",
                 "seconds for which a task's GPU memory must not have grown before what it has "
                 "not used is given to others",
                 "shrink_claims"},
    ParameterDef{Parameter::max_err_times, "MAX_ERR_TIMES", "1",
                 "how often a task is run that fails; more than 1: it is tried again",
                 "retry_config.exit"},
    ParameterDef{Parameter::max_running_tasks, "MAX_RUNNING_TASKS", "-1",
                 "tasks that run at once; -1: any number", ""},
    ParameterDef{Parameter::safety_keep_memory, "SAFETY_KEEP_MEMORY", "0.2",
                 "share of the machine's memory that must be available when a task starts",
                 "keep_host_memory"},
    ParameterDef{Parameter::safety_keep_gpu_memory, "SAFETY_KEEP_GPU_MEMORY", "0.5",
                 "share of a card's memory that must be free when a task starts on it",
                 "keep_gpu_memory"},
};

constexpr double kPollingMax = 24 * 3600.0;
/// A look at the cards may be as old as a polling time, within reason: drivers do not like to be
/// asked many times a second, and what is older than a minute tells nothing.
constexpr Millis kLookLeast{1'000};
constexpr Millis kLookMost{60'000};
constexpr std::int64_t kTimesMax = 1'000'000;

/// Of the share that must be free a task claims a little less: the driver takes some of each card,
/// and two halves of one would not fit beside that.
constexpr double kClaimed = 0.9;
constexpr double kClaimLeast = 0.1;  ///< of a card, so that only so many start on it unseen

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return out;
}

template <class T>
std::optional<T> number(std::string_view text) {
  T value{};
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && at == end && !text.empty() ? std::optional(value) : std::nullopt;
}

std::unexpected<Error> wrong_value(const ParameterDef& parameter, std::string_view text,
                                   std::string_view expected) {
  return fail(ErrorCode::invalid,
              fmt::format("{}: expected {}, got '{}'", parameter.name, expected, printable(text)));
}

Result<double> share(const ParameterDef& parameter, std::string_view text) {
  const auto value = number<double>(text);
  if (!value || !(*value >= 0.0) || *value > 0.99) {
    return wrong_value(parameter, text, "a share between 0 and 0.99, such as 0.5");
  }
  return *value;
}

/// As short as it can be written: "0.2", "10".
std::string short_number(double value, double steps) {
  return fmt::format("{:g}", std::round(value * steps) / steps);
}

std::string rule_value(const RulesView& rules, std::string_view key) {
  const auto rule = std::ranges::find(rules.rules, key, &RuleView::key);
  return rule == rules.rules.end() ? std::string() : rule->value;
}

std::string home_expanded(const std::string& path) {
  const char* home = std::getenv("HOME");
  return path.starts_with("~/") && home != nullptr ? home + path.substr(1) : path;
}

}  // namespace

std::string_view to_string(TaskStatus status) {
  return std::ranges::find(kStatuses, status, &decltype(kStatuses)::value_type::first)->second;
}

Result<TaskStatus> status_from(std::string_view text) {
  const std::string word = lower(text) == "kill" ? "killed" : lower(text);
  std::vector<std::string_view> names;
  for (const auto& [status, name] : kStatuses) {
    if (lower(name) == word) {
      return status;
    }
    names.push_back(name);
  }
  return fail(ErrorCode::invalid, fmt::format("there is no status '{}'; these there are: {}",
                                              printable(text), fmt::join(names, ", ")));
}

TaskStatus status_of(const JobView& job) {
  switch (job.state) {
    case JobState::queued:
      return TaskStatus::waiting;
    case JobState::running:
      return TaskStatus::running;
    case JobState::paused:
      return TaskStatus::paused;
    case JobState::succeeded:
      return TaskStatus::complete;
    case JobState::failed:
      return job.failure_class == FailureClass::cannot_start ? TaskStatus::cmd_error
                                                             : TaskStatus::runtime_error;
    case JobState::killed:
    case JobState::cancelled:
      return TaskStatus::killed;
  }
  return TaskStatus::waiting;
}

bool has_ended(TaskStatus status) {
  return status != TaskStatus::waiting && status != TaskStatus::running &&
         status != TaskStatus::paused;
}

std::span<const ParameterDef> parameters() {
  return kParameters;
}

Result<const ParameterDef*> find_parameter(std::string_view name) {
  std::vector<std::string_view> names;
  std::string upper(name);
  std::ranges::transform(upper, upper.begin(), [](char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  });
  for (const ParameterDef& parameter : kParameters) {
    if (parameter.name == upper) {
      return &parameter;
    }
    names.push_back(parameter.name);
  }
  return fail(ErrorCode::invalid,
              fmt::format("there is no parameter '{}'{}; `gpulimit set` lists them",
                          printable(name), did_you_mean(upper, names)));
}

Result<Setting> setting_of(const ParameterDef& parameter, std::string_view text,
                           Bytes host_memory) {
  Setting setting;
  switch (parameter.which) {
    case Parameter::timer_polling_time: {
      const auto seconds = number<double>(text);
      if (!seconds || !(*seconds > 0.0) || *seconds > kPollingMax) {
        return wrong_value(parameter, text, "seconds, more than 0 and at most a day");
      }
      const Millis time(std::max(std::llround(*seconds * 1000.0), 1LL));
      setting.rules = {{"shrink_claims", exact_duration(time)},
                       {"sample_age_max", exact_duration(std::clamp(time, kLookLeast, kLookMost))}};
      break;
    }
    case Parameter::max_err_times: {
      const auto times = number<std::int64_t>(text);
      if (!times || *times < 1 || *times > kTimesMax) {
        return wrong_value(parameter, text, "how often a task may run, 1 or more");
      }
      const std::string again = fmt::format("{}", *times - 1);
      setting.rules = {{"retry_config.exit", again}, {"retry_config.host_oom", again}};
      break;
    }
    case Parameter::max_running_tasks: {
      const auto tasks = number<std::int64_t>(text);
      if (!tasks || *tasks == 0 || *tasks < -1 || *tasks > kTimesMax) {
        return wrong_value(parameter, text,
                           "a number of tasks, or -1 for any (`berth pause --queue gpulimit` lets "
                           "none start)");
      }
      setting.limit = static_cast<std::uint32_t>(std::max<std::int64_t>(*tasks, 0));
      break;
    }
    case Parameter::safety_keep_memory: {
      TRY_ASSIGN(const double keep, share(parameter, text));
      setting.rules = {{"keep_host_memory",
                        exact_size(static_cast<Bytes>(keep * static_cast<double>(host_memory)))}};
      break;
    }
    case Parameter::safety_keep_gpu_memory: {
      TRY_ASSIGN(const double keep, share(parameter, text));
      setting.rules = {{"keep_gpu_memory", fmt::format("{}", std::lround(100.0 - keep * 100.0))}};
      break;
    }
  }
  return setting;
}

std::string value_of(const ParameterDef& parameter, const RulesView& rules, Bytes host_memory) {
  const std::string text =
      rule_value(rules, parameter.rule.empty() ? queue_rule(kQueue) : std::string(parameter.rule));
  switch (parameter.which) {
    case Parameter::timer_polling_time:
      return short_number(
          static_cast<double>(parse_duration(text).value_or(Millis(0)).count()) / 1000.0, 1000.0);
    case Parameter::max_err_times:
      return fmt::format("{}", number<std::int64_t>(text).value_or(0) + 1);
    case Parameter::max_running_tasks: {
      const std::int64_t limit = number<std::int64_t>(text).value_or(0);
      return fmt::format("{}", limit == 0 ? -1 : limit);
    }
    case Parameter::safety_keep_memory: {
      const auto kept = static_cast<double>(parse_size(text).value_or(0));
      return host_memory == 0 ? "0" : short_number(kept / static_cast<double>(host_memory), 1000.0);
    }
    case Parameter::safety_keep_gpu_memory:
      return short_number(1.0 - static_cast<double>(number<int>(text).value_or(100)) / 100.0,
                          100.0);
  }
  return {};
}

Bytes claim_of(double keep, Bytes smallest_card) {
  const double part = std::max(keep * kClaimed, kClaimLeast);
  const auto bytes = static_cast<Bytes>(part * static_cast<double>(smallest_card));
  return std::max(bytes / kMiB * kMiB, kMiB);
}

Result<AddRequest> parse_add(const std::vector<std::string>& words) {
  AddRequest request;
  auto at = words.begin();
  for (; at != words.end() && at->starts_with('-') && *at != "-"; ++at) {
    if (*at == "--") {
      ++at;
      break;
    }
    const std::size_t equals = at->find('=');
    const std::string name = at->substr(0, equals);
    if (name == "-h" || name == "--help") {
      request.help = true;
      return request;
    }
    if (name != "--priority" && name != "--logpath") {
      constexpr std::array<std::string_view, 3> kKnown{"--priority", "--logpath", "--help"};
      return fail(ErrorCode::invalid,
                  fmt::format("add has no option '{}'{}; options of the command stand behind its "
                              "first word",
                              printable(name), did_you_mean(name, kKnown)));
    }
    if (equals == std::string::npos && at + 1 == words.end()) {
      return fail(ErrorCode::invalid, fmt::format("{} needs a value", name));
    }
    const std::string value = equals != std::string::npos ? at->substr(equals + 1) : *++at;
    if (name == "--logpath") {
      if (value.empty()) {
        return fail(ErrorCode::invalid, "--logpath needs a file or a directory");
      }
      request.logpath = home_expanded(value);
      continue;
    }
    const auto priority = number<std::int32_t>(value);
    if (!priority) {
      return fail(ErrorCode::invalid, fmt::format("--priority: '{}' is not a whole number; 5 is "
                                                  "usual, lower goes first",
                                                  printable(value)));
    }
    request.priority = *priority;
  }
  request.command.assign(at, words.end());
  return request;
}

std::string log_in(const std::string& path) {
  std::error_code error;
  if (!path.ends_with('/') && !std::filesystem::is_directory(path, error)) {
    return path;
  }
  return path + (path.ends_with('/') ? "" : "/") + "{job_id}.log";
}

Result<std::optional<IdSet>> parse_tasks(const std::vector<std::string>& words) {
  if (words.empty()) {
    return fail(ErrorCode::invalid, "name tasks by their ids, as in 3 or 3-7, or all");
  }
  if (words.size() == 1 && words[0] == "all") {
    return std::optional<IdSet>();
  }
  auto ids = IdSet::parse(fmt::format("{}", fmt::join(words, ",")));
  if (!ids) {
    return std::unexpected(std::move(ids.error()));
  }
  return std::optional<IdSet>(std::move(*ids));
}

Result<std::uint64_t> parse_task(std::string_view word) {
  const auto id = number<std::uint64_t>(word);
  if (!id || *id == 0) {
    return fail(
        ErrorCode::invalid,
        fmt::format("'{}' is not the id of a task; `gpulimit ls` lists them", printable(word)));
  }
  return *id;
}

}  // namespace berth::cli::gpulimit
