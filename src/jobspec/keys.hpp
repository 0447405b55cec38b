#pragma once
// Every key of a job file: what it is called, what it may hold, what to tell people about it. The
// parser accepts these and no others, and the schema that editors read is written from them, so the
// two cannot disagree.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace berth {

/// What a value looks like.
enum class ValueShape : std::uint8_t {
  version,
  text,
  commands,   ///< a text, or a list of texts and lists of texts
  matrix,     ///< a map of axes, or a list of combinations
  gpu_count,  ///< 2, 1..4
  size,
  duration,
  integer,    ///< between KeyInfo::min and max
  moment,     ///< 12:30, 2026-05-01 12:30
  counts,     ///< a map of names to whole numbers
  names,      ///< a text, or a list of texts
  after,      ///< the same, or a map of the kind of dependency to it
  variables,  ///< a map of names to texts
  flag,
  fingerprint,  ///< sixteen hexadecimal digits
  files,        ///< a map of kFilesKeys
  warning,      ///< a signal and a time: USR1@120, or a map of both
  queues,       ///< a map of names to limits
  job,          ///< a map of the keys of a job
  rules,        ///< of the batch
  own_rules,    ///< of a job or queue
  jobs,
};

struct KeyInfo {
  std::string_view name;
  ValueShape shape = ValueShape::text;
  std::string_view help;      ///< one sentence or two, plain text
  std::string_view fallback;  ///< the default as JSON; empty: none that can be written down
  std::int64_t min = 0;       ///< of an integer
  std::int64_t max = 0;
};

inline constexpr std::int64_t kMostConcurrent = 1'000'000;
inline constexpr std::int64_t kMostOfAResource = 1'000'000'000;
inline constexpr std::uint32_t kMostGpus = 1024;

/// The keys a job may have, in the order in which they are read: `log` needs `cwd`.
enum class JobKey : std::uint8_t {
  name,
  matrix,
  run,
  gpus,
  gpu_memory,
  cpus,
  memory,
  resources,
  queue,
  priority,
  after,
  after_any,
  after_failed,
  after_ids,
  retries,
  time,
  grace,
  signal,
  requeue,
  env,
  env_keep,
  cwd,
  work_dir,
  log,
  linger,
  params,
  fingerprint,
  start_at,
  at,
  in,
  rules,
};

inline constexpr auto kJobKeys = std::to_array<KeyInfo>({
    {"name",
     ValueShape::text,
     "Unique in the file, at most 200 bytes. Axes of the matrix that it does not mention are "
     "appended. Without it: job-N, N its place in the file.",
     {}},
    {"matrix",
     ValueShape::matrix,
     "Makes one job for each combination of the values; {axis} in the texts of the job stands for "
     "the value. 'include' adds combinations; a list of maps gives all of them.",
     {}},
    {"run",
     ValueShape::commands,
     "A command for bash, or a list of commands that run in order until one fails. A list in the "
     "list is one command with its arguments, run without a shell.",
     {}},
    {"gpus", ValueShape::gpu_count,
     "How many GPUs: 2, or 1..4 for at least and at most, or 0 for none.", "1"},
    {"gpu_memory",
     ValueShape::size,
     "Memory on each GPU, so that jobs share cards. Without it: whole cards.",
     {}},
    {"cpus", ValueShape::integer, "Processors to count for it; 0: not counted.", "0", 0, 1'000'000},
    {"memory", ValueShape::size, "Host memory to count for it; 0: not counted.", "0"},
    {"resources", ValueShape::counts, "Named resources it needs, such as licences.", "{}"},
    {"queue", ValueShape::text, "The queue it waits in; made if there is none.", "\"default\""},
    {"priority", ValueShape::integer, "Lower goes first.", "5", INT32_MIN, INT32_MAX},
    {"after",
     ValueShape::after,
     "Names of jobs in this file that must succeed first; a matrix job's name means all of its "
     "instances. {any: …} and {failed: …} are after_any and after_failed.",
     {}},
    {"after_any", ValueShape::names, "Likewise, but they only have to end.", {}},
    {"after_failed",
     ValueShape::names,
     "Likewise, but they must not succeed; if one does, the job is cancelled.",
     {}},
    {"after_ids",
     ValueShape::names,
     "Ids of jobs that this instance has already and that must have ended as well, in the way that "
     "'after', 'after_any' or 'after_failed' says.",
     {}},
    {"retries", ValueShape::integer, "How often a failure is tried again.", "0", 0, 1'000'000},
    {"time", ValueShape::duration, "An attempt is ended after this time; 0: no limit.", "0"},
    {"grace", ValueShape::duration, "The time between TERM and KILL.", "\"10s\""},
    {"signal",
     ValueShape::warning,
     "A signal that tells a run that its end is near, that long before the time limit or before it "
     "gives way: USR1@120, or {name: USR1, before: 2m}.",
     {}},
    {"requeue",
     ValueShape::flag,
     "At its time limit the job waits again, to go on where it was; for jobs that save what they "
     "have. The same as the rule retry_config.requeue_on_timeout.",
     {}},
    {"env", ValueShape::variables,
     "Variables on top of the submitter's environment; joined with those of 'defaults'.", "{}"},
    {"env_keep",
     ValueShape::names,
     "Of the submitter's environment only these variables, besides HOME, USER, LOGNAME, SHELL, "
     "PATH, LANG and BERTH_DIR. Without it: all.",
     {}},
    {"cwd",
     ValueShape::text,
     "Where it runs, relative to the folder of the file. Without it: that folder.",
     {}},
    {"work_dir",
     ValueShape::text,
     "What {work_dir} stands for, relative to the folder of the file. Without it: cwd.",
     {}},
    {"log",
     ValueShape::text,
     "Where its output goes, relative to cwd. Without it: berth keeps the log.",
     {}},
    {"linger", ValueShape::flag,
     "Wait for background processes behind the last command instead of ending them.", "false"},
    {"params", ValueShape::variables,
     "What tells it from others of its sweep, for grouping results. Axes of the matrix are there "
     "already.",
     "{}"},
    {"fingerprint",
     ValueShape::fingerprint,
     "Which experiment it is, where that is more than its name and commands: written by berth "
     "convert.",
     {}},
    {"start_at",
     ValueShape::moment,
     "It does not start before: 12:30, tomorrow 8:00, 2026-05-01 12:30.",
     {}},
    {"at", ValueShape::moment, "The same as start_at.", {}},
    {"in", ValueShape::duration, "It does not start before so much time has passed.", {}},
    {"rules", ValueShape::own_rules,
     "Rules of this job. Each may also be a key of the job itself, but for 'gpus', which there is "
     "a number of cards.",
     "{}"},
});

inline constexpr auto kTopKeys = std::to_array<KeyInfo>({
    {"version", ValueShape::version, "Of the format: 1.", {}},
    {"name", ValueShape::text, "Of the batch. Without it: the name of the file.", {}},
    {"defaults", ValueShape::job, "Keys for all jobs that do not have them.", "{}"},
    {"rules", ValueShape::rules, "What holds for the batch as a whole, and rules for its jobs.",
     "{}"},
    {"queues", ValueShape::queues,
     "Queues to make or change: how many jobs of each may run at once, and their rules.", "{}"},
    {"files", ValueShape::files,
     "Files that the batch writes in the way of other programs; written by berth convert.", "{}"},
    {"resume", ValueShape::flag, "Leave out jobs that have succeeded before, as --resume does.",
     "false"},
    {"jobs", ValueShape::jobs, "The jobs.", {}},
});

inline constexpr auto kFilesKeys = std::to_array<KeyInfo>({
    {"dialect", ValueShape::text, "The format it was converted from.", {}},
    {"state_dir", ValueShape::text, "The folder of uni_id.json, state/ and 'log'.", {}},
    {"log", ValueShape::text, "A log of the batch in it, such as compete_gpu.log.", {}},
    {"mode", ValueShape::text, "single or multi, as the state files say.", {}},
    {"config_file", ValueShape::text, "As the state files say.", {}},
    {"config_index", ValueShape::integer, "As the state files say.", "0", 0, kMostConcurrent},
    {"derived", ValueShape::variables,
     "Files to write before the jobs are submitted: a map of paths to contents.", "{}"},
});

inline constexpr auto kRuleKeys = std::to_array<KeyInfo>({
    {"max_concurrent", ValueShape::integer, "Jobs of this batch that run at once; 0: no limit.",
     "0", 0, kMostConcurrent},
    {"resources", ValueShape::counts, "How many of each there are on this instance.", "{}"},
});

inline constexpr auto kQueueKeys = std::to_array<KeyInfo>({
    {"limit", ValueShape::integer, "Jobs that run at once: 1 is strictly in order, 0 no limit.",
     "0", 0, kMostConcurrent},
    {"rules", ValueShape::own_rules,
     "Rules of its jobs. Each may also be a key of the queue itself.", "{}"},
});

template <std::size_t N>
constexpr std::array<std::string_view, N> names_of(const std::array<KeyInfo, N>& keys) {
  std::array<std::string_view, N> names;
  for (std::size_t i = 0; i < N; ++i) {
    names[i] = keys[i].name;
  }
  return names;
}

inline constexpr auto kJobKeyNames = names_of(kJobKeys);
inline constexpr auto kTopKeyNames = names_of(kTopKeys);
inline constexpr auto kRuleKeyNames = names_of(kRuleKeys);
inline constexpr auto kQueueKeyNames = names_of(kQueueKeys);
inline constexpr auto kFilesKeyNames = names_of(kFilesKeys);

static_assert(kJobKeyNames[static_cast<std::size_t>(JobKey::rules)] == "rules");
static_assert(kJobKeyNames[static_cast<std::size_t>(JobKey::after)] == "after");
static_assert(kJobKeyNames.size() == static_cast<std::size_t>(JobKey::rules) + 1);

}  // namespace berth
