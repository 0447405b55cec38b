#include "core/job.hpp"

#include <array>
#include <charconv>
#include <utility>

#include <fmt/format.h>

namespace berth {
namespace {

constexpr std::array kStates = {
    std::pair{JobState::queued, "queued"},       std::pair{JobState::running, "running"},
    std::pair{JobState::paused, "paused"},       std::pair{JobState::succeeded, "succeeded"},
    std::pair{JobState::failed, "failed"},       std::pair{JobState::killed, "killed"},
    std::pair{JobState::cancelled, "cancelled"},
};

constexpr std::array kFailures = {
    std::pair{FailureClass::exit, "exit"},
    std::pair{FailureClass::gpu_oom, "gpu_oom"},
    std::pair{FailureClass::host_oom, "host_oom"},
    std::pair{FailureClass::timeout, "timeout"},
    std::pair{FailureClass::cannot_start, "cannot_start"},
    std::pair{FailureClass::gpu_lost, "gpu_lost"},
    std::pair{FailureClass::node_lost, "node_lost"},
    std::pair{FailureClass::preempted, "preempted"},
};

constexpr std::array kAfter = {
    std::pair{After::ok, "ok"},
    std::pair{After::any, "any"},
    std::pair{After::failed, "failed"},
};

template <class Table, class Value>
std::string_view name_of(const Table& table, Value value) {
  for (const auto& [key, name] : table) {
    if (key == value) {
      return name;
    }
  }
  return "?";
}

template <class Value, class Table>
std::optional<Value> value_of(const Table& table, std::string_view text) {
  for (const auto& [key, name] : table) {
    if (text == name) {
      return key;
    }
  }
  return std::nullopt;
}

}  // namespace

std::string_view to_string(JobState state) {
  return name_of(kStates, state);
}
std::string_view to_string(FailureClass failure) {
  return name_of(kFailures, failure);
}

std::string_view to_string(After after) {
  return name_of(kAfter, after);
}
std::optional<After> after_from(std::string_view text) {
  return value_of<After>(kAfter, text);
}

std::optional<JobState> job_state_from(std::string_view text) {
  return value_of<JobState>(kStates, text);
}

std::optional<FailureClass> failure_class_from(std::string_view text) {
  return value_of<FailureClass>(kFailures, text);
}

std::string format_fingerprint(std::uint64_t fingerprint) {
  return fingerprint == 0 ? std::string() : fmt::format("{:016x}", fingerprint);
}

std::optional<std::uint64_t> parse_fingerprint(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  if (!text.empty() && (!whole || text.size() != 16)) {
    return std::nullopt;
  }
  return value;
}

bool operator==(const Payload& a, const Payload& b) {
  const bool same_environment =
      a.environment == b.environment ||
      (a.environment && b.environment && *a.environment == *b.environment);
  return same_environment && a.commands == b.commands && a.extra_env == b.extra_env &&
         a.cwd == b.cwd && a.log == b.log && a.umask == b.umask && a.nice == b.nice &&
         a.time_limit == b.time_limit && a.grace == b.grace && a.linger == b.linger &&
         a.warning == b.warning && a.params == b.params && a.fingerprint == b.fingerprint &&
         a.work_dir == b.work_dir;
}

}  // namespace berth
