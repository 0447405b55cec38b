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
  std::string name;             ///< shell pattern; empty: any
  std::optional<Millis> since;  ///< wall time
  std::optional<std::uint32_t> limit;
  std::optional<IdSet> ids;
  bool json = false;
  std::optional<Millis> watch;
};
[[nodiscard]] Outcome run_ls(const LsOptions& options);

struct ShowOptions {
  std::optional<std::uint64_t> id;  ///< none: the last job
  bool json = false;
};
[[nodiscard]] Outcome run_show(const ShowOptions& options);

struct LogOptions {
  std::optional<IdSet> ids;              ///< none: the last job
  std::optional<std::uint32_t> attempt;  ///< none: the last one
  std::optional<std::uint64_t> lines;    ///< only so many at the end
  bool follow = false;
  bool json = false;  ///< about the logs, not what is in them
};
[[nodiscard]] Outcome run_log(const LogOptions& options);

struct WaitOptions {
  std::optional<IdSet> ids;  ///< none: the last job
  bool all = false;          ///< all that have not ended
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

struct RemoveOptions {
  std::optional<IdSet> ids;  ///< none: finished jobs by what follows
  std::vector<JobState> states;
  std::string queue;
  Millis older{0};
  std::uint64_t keep = 0;
  bool dry_run = false;
  bool json = false;
};
/// berth rm and berth clean.
[[nodiscard]] Outcome run_remove(const RemoveOptions& options);

struct HistoryOptions {
  std::optional<IdSet> ids;
  std::vector<std::string> kinds;
  std::optional<Millis> since;  ///< before now
  std::uint32_t limit = 50;
  bool follow = false;
  bool json = false;
};
[[nodiscard]] Outcome run_history(const HistoryOptions& options);

struct BackupOptions {
  std::string file;
  bool force = false;
  bool json = false;
};
[[nodiscard]] Outcome run_backup(const BackupOptions& options);
[[nodiscard]] Outcome run_restore(const std::string& file);

struct MachineOptions {
  bool json = false;
  std::optional<Millis> watch;
};
[[nodiscard]] Outcome run_gpus(const MachineOptions& options);
[[nodiscard]] Outcome run_status(const MachineOptions& options);
[[nodiscard]] Outcome run_stop();
/// Bare `berth`.
[[nodiscard]] Outcome run_overview(const std::optional<Millis>& watch);
/// What is wrong with this machine; starts nothing. Exit code 1 if something is.
[[nodiscard]] Outcome run_doctor(bool json);
/// What a shell offers: "jobs" or "queues", one per line with a description behind a tab. Never
/// starts a daemon, and rather says nothing than takes long.
[[nodiscard]] Outcome run_complete(const std::string& what);

/// Parses the command line, runs the command, prints errors; the exit code.
[[nodiscard]] int run_cli(std::vector<std::string> arguments);

}  // namespace berth::cli
