#pragma once
// What a user asks for, and what becomes of it.
//
// A JobSpec has two halves. `Request` is what scheduling needs and stays in memory while the job
// waits or runs. `Payload` is what only the supervisor needs (commands, environment, paths); it
// goes straight to the store and is read back when the attempt starts.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "base/units.hpp"
#include "core/rules.hpp"

namespace berth {

enum class JobState : std::uint8_t {
  queued,
  running,
  paused,
  succeeded,
  failed,
  killed,
  cancelled
};

/// Why an attempt did not succeed.
enum class FailureClass : std::uint8_t {
  exit,          ///< the command's own exit code or signal
  gpu_oom,       ///< out of GPU memory
  host_oom,      ///< the kernel or a cgroup ended it for lack of memory
  timeout,       ///< ran into its time limit
  cannot_start,  ///< the command, directory or log could not be opened or executed
  gpu_lost,      ///< the GPU went away
  node_lost,     ///< the machine or the supervisor died; what happened is not known
  preempted,     ///< given way to somebody else
};

[[nodiscard]] constexpr bool is_terminal(JobState state) {
  return state == JobState::succeeded || state == JobState::failed || state == JobState::killed ||
         state == JobState::cancelled;
}

[[nodiscard]] std::string_view to_string(JobState state);
[[nodiscard]] std::string_view to_string(FailureClass failure);
[[nodiscard]] std::optional<JobState> job_state_from(std::string_view text);
[[nodiscard]] std::optional<FailureClass> failure_class_from(std::string_view text);

/// How many GPUs a job takes: exactly `min` when both are equal. {0,0} means none.
struct GpuCount {
  std::uint32_t min = 1;
  std::uint32_t max = 1;
  friend auto operator<=>(const GpuCount&, const GpuCount&) = default;
};

/// Everything that decides whether a job fits somewhere. Jobs with equal requests fit or do not
/// fit together, which is what keeps a decision independent of the length of the backlog.
struct Request {
  GpuCount gpus;
  std::optional<Bytes> gpu_memory;  ///< per GPU; none: the whole card
  std::uint32_t cpus = 0;           ///< 0: not counted
  Bytes memory = 0;                 ///< host memory; 0: not counted
  std::map<std::string, std::uint64_t> resources;
  Overrides rules;  ///< the job's own
  Millis time{0};   ///< its limit, for planning; 0: none

  friend auto operator<=>(const Request&, const Request&) = default;
};

/// What a job's dependencies must have done.
enum class After : std::uint8_t {
  ok,      ///< succeeded
  any,     ///< ended
  failed,  ///< ended in another way
};

/// Whether a dependency that has ended so is as it must be.
[[nodiscard]] constexpr bool is_as_wanted(After wanted, JobState ended) {
  return wanted == After::any || (wanted == After::ok) == (ended == JobState::succeeded);
}

[[nodiscard]] std::string_view to_string(After after);
[[nodiscard]] std::optional<After> after_from(std::string_view text);

/// One command of a job: `argv` executed as it is, or one string for bash.
struct Command {
  bool shell = false;             ///< true: argv has one element, run by `bash -c`
  std::vector<std::string> argv;  ///< bytes, not necessarily UTF-8

  friend bool operator==(const Command&, const Command&) = default;
};

/// "NAME=value" bytes in the submitter's order, without berth's own and volatile variables.
using Environment = std::vector<std::string>;

/// A signal that says that the end is near, so that a program can save what it has.
struct WarningSignal {
  std::int32_t signal = 0;  ///< 0: none
  Millis before{0};  ///< so long before the time limit; also what it has for ending by itself

  friend bool operator==(const WarningSignal&, const WarningSignal&) = default;
};

inline constexpr Millis kUsualWarning{60'000};

/// "USR1@120", "SIGUSR1@2m", "USR2" (kUsualWarning before), "10@30". What no program can handle is
/// refused.
[[nodiscard]] Result<WarningSignal> parse_warning(std::string_view text);
/// Of its two parts.
[[nodiscard]] Result<WarningSignal> make_warning(std::string_view name, Millis before);
/// So that reading it again gives the same; empty: none.
[[nodiscard]] std::string format_warning(const WarningSignal& warning);

struct Payload {
  std::vector<Command> commands;  ///< run in order; the first failure ends the attempt
  std::shared_ptr<const Environment> environment;  ///< shared by the jobs of a batch; never null
  Environment extra_env;                           ///< the job's own `env:`, applied on top
  std::string cwd;
  std::string log;  ///< absolute path the user named; empty: berth names one
  std::uint32_t umask = 022;
  std::int32_t nice = 0;
  Millis time_limit{0};  ///< 0: none
  Millis grace{10'000};  ///< between TERM and KILL
  bool linger = false;   ///< wait for background processes instead of ending them
  WarningSignal warning;
  /// What tells a job from others of its sweep, for people and for grouping results.
  std::map<std::string, std::string> params;
  /// Of name, commands and whatever else makes it the same experiment, see fingerprint(); 0: none.
  std::uint64_t fingerprint = 0;
  /// What `{work_dir}` stands for; empty: `cwd`.
  std::string work_dir;

  friend bool operator==(const Payload& a, const Payload& b);
};

/// 16 hexadecimal digits; 0, which is none, is no text.
[[nodiscard]] std::string format_fingerprint(std::uint64_t fingerprint);
/// What it made; none: it made something else.
[[nodiscard]] std::optional<std::uint64_t> parse_fingerprint(std::string_view text);

inline constexpr std::string_view kDefaultQueue = "default";

struct JobSpec {
  std::string name;
  std::string queue{kDefaultQueue};
  std::int32_t priority = 5;  ///< lower goes first
  Request request;
  std::vector<JobId> after;                ///< must have ended first, as `after_kind` says
  std::vector<std::uint32_t> after_index;  ///< the same, by position in this submission
  After after_kind = After::ok;
  std::uint32_t retries = 0;
  Millis start_at{0};  ///< not before, by the wall clock; 0: at once
  Payload payload;
};

/// What a batch is for others than the scheduler: the files that tell of it in the way of the
/// program it was written for. Carried and kept, never looked at by the core.
struct BatchTraits {
  std::string dialect;    ///< of its job file; empty: native
  std::string state_dir;  ///< absolute; empty: none. Gets uni_id.json, state/{pid}.json and `log`
  std::string log;        ///< a file name in it, such as compete_gpu.log; rotates
  std::string mode;       ///< "single" or "multi", as in state/{pid}.json
  std::string config_file;
  std::uint32_t config_index = 0;
  std::uint64_t pid = 0;  ///< of who submitted it: names state/{pid}.json

  friend bool operator==(const BatchTraits&, const BatchTraits&) = default;
};

/// How an attempt ended, as its supervisor recorded it.
struct Verdict {
  std::optional<FailureClass> failure;  ///< none: succeeded
  std::optional<std::int32_t> exit_code;
  std::optional<std::int32_t> signal;
  bool killed = false;  ///< ended on request
  std::string message;  ///< for people; empty on plain success
  std::optional<Millis> user_time;
  std::optional<Millis> system_time;
  std::optional<Bytes> max_rss;      ///< of the largest process
  std::optional<Bytes> peak_memory;  ///< of all processes together; none where it cannot be known
  std::uint32_t leftover = 0;        ///< processes that had to be ended after the last command
  Bytes log_dropped = 0;             ///< cut out of the middle of its log, because of log_limit
  Millis ended_wall{0};

  friend bool operator==(const Verdict&, const Verdict&) = default;
};

}  // namespace berth
