#pragma once
// The commands. Each has a struct of its options, filled by options.cpp, and a function that does
// it and returns the exit code: 0, or 1 for a failure of what was asked for. An Error is printed
// as "berth: …" and makes the exit code 1, or 2 where the request itself was wrong usage.

#include <optional>
#include <string>
#include <vector>

#include "api/idset.hpp"
#include "api/views.hpp"
#include "base/result.hpp"
#include "cli/terminal.hpp"
#include "core/event.hpp"
#include "core/job.hpp"

namespace berth::cli {

/// What a command does; the exit code or why there is none.
using Outcome = Result<int>;

struct AddOptions {
  JobSpec job;  ///< all but the command
  std::string cwd;
  std::string log;
  std::vector<std::string> command;
  bool gpus_given = false;
  bool json = false;
};
[[nodiscard]] Outcome run_add(AddOptions options);

struct RunOptions {
  std::vector<std::string> files;
  bool detach = false;
  bool json = false;  ///< with --detach: print the ids
};
[[nodiscard]] Outcome run_run(const RunOptions& options);

struct CheckOptions {
  std::vector<std::string> files;
  bool json = false;
  bool schema = false;  ///< print the schema instead
};
[[nodiscard]] Outcome run_check(const CheckOptions& options);

struct LsOptions {
  bool all = false;
  std::vector<JobState> states;
  std::string queue;
  std::uint64_t batch = 0;
  std::optional<std::uint32_t> limit;
  std::optional<IdSet> ids;
  bool json = false;
};
[[nodiscard]] Outcome run_ls(const LsOptions& options);

struct ShowOptions {
  std::uint64_t id = 0;
  bool json = false;
};
[[nodiscard]] Outcome run_show(const ShowOptions& options);

struct LogOptions {
  std::optional<std::uint64_t> id;       ///< none: the last job
  std::optional<std::uint32_t> attempt;  ///< none: the last one
  bool follow = false;
};
[[nodiscard]] Outcome run_log(const LogOptions& options);

struct WaitOptions {
  std::optional<IdSet> ids;  ///< none: all that have not ended
  std::optional<Millis> timeout;
  bool json = false;
};
[[nodiscard]] Outcome run_wait(const WaitOptions& options);

struct KillOptions {
  std::optional<IdSet> ids;  ///< none: all
  std::optional<Millis> grace;
  bool json = false;
};
[[nodiscard]] Outcome run_kill(const KillOptions& options);

struct ControlOptions {
  std::optional<IdSet> ids;  ///< none: all, or a queue
  std::string queue;         ///< not empty: the queue instead of jobs
  bool json = false;
};
[[nodiscard]] Outcome run_pause(const ControlOptions& options);
[[nodiscard]] Outcome run_resume(const ControlOptions& options);
[[nodiscard]] Outcome run_start(const ControlOptions& options);

struct MoveOptions {
  std::optional<IdSet> ids;  ///< none: all
  event::Move::To to = event::Move::To::first;
  std::uint64_t before = 0;
  std::string queue;
  std::int32_t priority = 5;
  bool json = false;
};
[[nodiscard]] Outcome run_move(const MoveOptions& options);

struct SetOptions {
  /// Ids and key=value; key=value; a key; or nothing.
  std::vector<std::string> words;
  bool save = false;
  bool json = false;
};
/// What the words of `berth set` ask for. An error is wrong usage.
struct SetPlan {
  enum class What : std::uint8_t { list, show, rules, jobs };
  What what = What::list;
  std::string key;                                          ///< to show
  std::vector<std::pair<std::string, std::string>> values;  ///< rules
  std::optional<IdSet> ids;                                 ///< none: all
  event::JobPatch patch;
};
[[nodiscard]] Result<SetPlan> plan_set(const SetOptions& options);
[[nodiscard]] Outcome run_set(const SetOptions& options);

struct WhyOptions {
  std::optional<std::uint64_t> id;  ///< none: every waiting job
  bool json = false;
};
[[nodiscard]] Outcome run_why(const WhyOptions& options);

[[nodiscard]] Outcome run_gpus(bool json);
[[nodiscard]] Outcome run_status(bool json);
[[nodiscard]] Outcome run_stop();
/// Bare `berth`.
[[nodiscard]] Outcome run_overview();

/// Parses the command line, runs the command, prints errors; the exit code.
[[nodiscard]] int run_cli(std::vector<std::string> arguments);

}  // namespace berth::cli
