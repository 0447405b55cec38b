#pragma once
// What gpulimit calls things: the states of its tasks, and its parameters as rules of a queue.
//
// gpulimit starts a task on a card of which at least SAFETY_KEEP_GPU_MEMORY is free, one task every
// TIMER_POLLING_TIME, so that it sees what the last one took. Here every task claims nearly that
// share of a card when it starts, no task is added to a card above the limit, and a claim shrinks
// to what the task uses once that has not grown for TIMER_POLLING_TIME: small tasks make room for
// more, and none starts on memory that another is about to take.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/control.hpp"
#include "api/idset.hpp"
#include "api/views.hpp"
#include "base/result.hpp"
#include "cli/terminal.hpp"

namespace berth::cli::gpulimit {

/// The queue in which its tasks wait; its parameters are rules of this queue alone.
inline constexpr std::string_view kQueue = "gpulimit";
/// Between TERM and KILL.
inline constexpr Millis kGrace{5'000};

enum class TaskStatus : std::uint8_t {
  running,
  paused,
  waiting,
  complete,
  runtime_error,
  cmd_error,
  killed,
};
inline constexpr std::size_t kStatusCount = 7;

[[nodiscard]] std::string_view to_string(TaskStatus status);
/// In any case; "kill" is "killed". The error lists them all.
[[nodiscard]] Result<TaskStatus> status_from(std::string_view text);
[[nodiscard]] TaskStatus status_of(const JobView& job);
[[nodiscard]] bool has_ended(TaskStatus status);

enum class Parameter : std::uint8_t {
  timer_polling_time,
  max_err_times,
  max_running_tasks,
  safety_keep_memory,
  safety_keep_gpu_memory,
};

struct ParameterDef {
  Parameter which;
  std::string_view name;
  std::string_view usual;  ///< what it is where nobody has set it
  std::string_view help;
  std::string_view rule;  ///< the one its value is read from; empty: the queue's limit
};
[[nodiscard]] std::span<const ParameterDef> parameters();
/// By its name in any case.
[[nodiscard]] Result<const ParameterDef*> find_parameter(std::string_view name);

/// A value of a parameter as what berth keeps.
struct Setting {
  std::vector<std::pair<std::string, std::string>> rules;  ///< of the queue
  std::optional<std::uint32_t> limit;                      ///< of the queue; 0: none
};
/// `host_memory`: what the machine has, for shares of it.
[[nodiscard]] Result<Setting> setting_of(const ParameterDef& parameter, std::string_view text,
                                         Bytes host_memory);
/// The value that the queue's rules amount to.
[[nodiscard]] std::string value_of(const ParameterDef& parameter, const RulesView& rules,
                                   Bytes host_memory);

/// What a task claims of a card when it starts. `keep`: SAFETY_KEEP_GPU_MEMORY.
[[nodiscard]] Bytes claim_of(double keep, Bytes smallest_card);

struct AddRequest {
  std::int32_t priority = 5;
  std::string logpath;  ///< as it was written; empty: berth names one
  std::vector<std::string> command;
  bool help = false;
};
/// Options stand before the command; what looks like one behind its first word belongs to it.
[[nodiscard]] Result<AddRequest> parse_add(const std::vector<std::string>& words);

/// Where a task's output goes. A directory, one that exists or a path that ends in '/', gets one
/// file per task. `path` is absolute.
[[nodiscard]] std::string log_in(const std::string& path);

/// "all" (none), or ids and ranges as separate words or between commas.
[[nodiscard]] Result<std::optional<IdSet>> parse_tasks(const std::vector<std::string>& words);
/// One id.
[[nodiscard]] Result<std::uint64_t> parse_task(std::string_view word);

}  // namespace berth::cli::gpulimit
