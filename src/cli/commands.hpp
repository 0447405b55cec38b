#pragma once
// The commands. Each has a struct of its options, filled by options.cpp, and a function that does
// it and returns the exit code: 0, or 1 for a failure of what was asked for. An Error is printed
// as "berth: …" and makes the exit code 1, or 2 where the request itself was wrong usage.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/idset.hpp"
#include "api/report.hpp"
#include "api/views.hpp"
#include "base/result.hpp"
#include "cli/snapshot_jobs.hpp"
#include "cli/terminal.hpp"
#include "core/event.hpp"
#include "core/job.hpp"
#include "core/job_sort.hpp"
#include "dialects/dialect.hpp"
#include "results/aggregate.hpp"
#include "results/log_metrics.hpp"

namespace berth::cli {

class Daemon;

/// What a command does; the exit code or why there is none.
using Outcome = Result<int>;

struct AddOptions {
  JobSpec job;  ///< all but the command
  std::string cwd;
  std::string log;
  std::vector<std::string> command;
  bool gpus_given = false;
  SnapshotOptions snapshot;
  bool json = false;
};
[[nodiscard]] Outcome run_add(AddOptions options);
/// The parts of it that a sweep has as well: its command and paths, and whether it goes without a
/// GPU because there is none.
[[nodiscard]] Status complete_job(AddOptions& options);
[[nodiscard]] Status choose_gpus(AddOptions& options, Daemon& daemon);

struct SweepOptions {
  AddOptions job;                  ///< what each job is like, with {axis} in its texts
  std::vector<std::string> grid;   ///< "lr=1e-3,1e-4"
  std::vector<std::string> zip;    ///< the same, of axes that go together
  std::vector<std::string> list;   ///< "a=1 b=2": one combination
  std::vector<std::string> table;  ///< CSV files
  std::uint32_t max_concurrent = 0;
  bool dry_run = false;
  bool detach = false;
};
[[nodiscard]] Outcome run_sweep(SweepOptions options);

struct ConvertOptions {
  std::vector<std::string> files;
  DialectOptions reading;
  std::string out;  ///< empty: standard output
  bool force = false;
};
[[nodiscard]] Outcome run_convert(const ConvertOptions& options);

struct RunOptions {
  std::vector<std::string> files;
  DialectOptions reading;
  bool resume = false;  ///< leave out what has succeeded before
  bool redo = false;    ///< nothing is left out, whatever the dialect usually does
  SnapshotOptions snapshot;
  bool detach = false;
  bool json = false;  ///< with --detach: print the ids
};
[[nodiscard]] Outcome run_run(const RunOptions& options);

struct CheckOptions {
  std::vector<std::string> files;
  DialectOptions reading;
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
  std::optional<std::pair<JobSort, bool>> sort;  ///< true: descending
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

enum class ResultsFormat : std::uint8_t { table, markdown, latex, csv, json };

struct ResultsOptions {
  std::optional<IdSet> ids;            ///< none: what follows, or the last batch
  std::uint64_t batch = 0;             ///< 0: none
  std::vector<std::string> job_files;  ///< whose experiments are looked for by name and command
  DialectOptions reading;
  std::vector<LogMetric> log_metrics;
  std::vector<std::string> files_of_runs;  ///< paths with {name}, {job_id}, {parameter}
  ResultsRequest request;
  ResultsFormat format = ResultsFormat::table;
  bool wide = false;
  std::string output;  ///< empty: standard output
  std::string html;    ///< empty: no report
  std::string title;   ///< of the report
};
[[nodiscard]] Outcome run_results(const ResultsOptions& options);

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
  std::optional<IdSet> ids;         ///< none: all, or what follows
  std::vector<std::string> queues;  ///< not empty: these instead of jobs
  bool instance = false;            ///< everything instead of jobs
  std::vector<std::string> gpus;    ///< not empty: these cards instead of jobs
  std::string why;                  ///< they are taken out of use
  bool json = false;
};
[[nodiscard]] Outcome run_pause(const ControlOptions& options);
[[nodiscard]] Outcome run_resume(const ControlOptions& options);
[[nodiscard]] Outcome run_start(const ControlOptions& options);

struct RetryOptions {
  IdSet ids;                ///< empty: all that failed
  std::uint64_t batch = 0;  ///< only of this one; 0: any
  bool succeeded = false;
  bool json = false;
};
[[nodiscard]] Outcome run_retry(const RetryOptions& options);

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
  std::vector<std::string> unset;
  std::string queue;        ///< not empty: its rules
  std::uint64_t batch = 0;  ///< not 0: its rules
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
  std::uint64_t job = 0;                                    ///< whose rules to show
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

struct TopOptions {
  Millis every{2'000};
};
/// The live view. Refused where there is no terminal that can be drawn on.
[[nodiscard]] Outcome run_top(const TopOptions& options);

struct MachineOptions {
  bool json = false;
  std::optional<Millis> watch;
};
[[nodiscard]] Outcome run_gpus(const MachineOptions& options);
[[nodiscard]] Outcome run_status(const MachineOptions& options);
[[nodiscard]] Outcome run_stop();

struct UiOptions {
  std::uint16_t port = 0;  ///< 0: the usual one
  bool print = false;      ///< only
  bool read_only = false;
  bool stop = false;
};
[[nodiscard]] Outcome run_ui(const UiOptions& options);

struct TokenAddOptions {
  std::string name;
  bool read_only = false;
  std::optional<Millis> lifetime;  ///< none: the usual; 0: for ever
  bool json = false;
};
[[nodiscard]] Outcome run_token_add(const TokenAddOptions& options);
[[nodiscard]] Outcome run_token_ls(bool json);
[[nodiscard]] Outcome run_token_rm(const std::vector<std::uint64_t>& ids);
/// Bare `berth`.
[[nodiscard]] Outcome run_overview(const std::optional<Millis>& watch);
/// Adds to the file BERTH_REPORT of the job it runs in.
[[nodiscard]] Outcome run_report(ReportLine line);
/// What is wrong with this machine; starts nothing. Exit code 1 if something is.
[[nodiscard]] Outcome run_doctor(bool json);
/// What a shell offers: "jobs" or "queues", one per line with a description behind a tab. Never
/// starts a daemon, and rather says nothing than takes long.
[[nodiscard]] Outcome run_complete(const std::string& what);

/// Parses the command line, runs the command, prints errors; the exit code.
[[nodiscard]] int run_cli(std::vector<std::string> arguments);

/// The same under the name of a program that berth stands in for, such as gpu_scheduler; under any
/// other name it is berth.
[[nodiscard]] int run_as(std::string_view program, std::vector<std::string> arguments);

}  // namespace berth::cli
