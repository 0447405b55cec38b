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
  integer,  ///< between KeyInfo::min and max
  percent,
  counts,     ///< a map of names to whole numbers
  names,      ///< a text, or a list of texts
  variables,  ///< a map of names to texts
  flag,
  queues,  ///< a map of names to limits
  job,     ///< a map of the keys of a job
  rules,
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
  retries,
  time,
  grace,
  env,
  cwd,
  log,
  linger,
  min_free_memory,
  max_utilization,
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
     ValueShape::names,
     "Names of jobs in this file that must succeed first; a matrix job's name means all of its "
     "instances.",
     {}},
    {"retries", ValueShape::integer, "How often a failure is tried again.", "0", 0, 1'000'000},
    {"time", ValueShape::duration, "An attempt is ended after this time; 0: no limit.", "0"},
    {"grace", ValueShape::duration, "The time between TERM and KILL.", "\"10s\""},
    {"env", ValueShape::variables,
     "Variables on top of the submitter's environment; joined with those of 'defaults'.", "{}"},
    {"cwd",
     ValueShape::text,
     "Where it runs, relative to the folder of the file. Without it: that folder.",
     {}},
    {"log",
     ValueShape::text,
     "Where its output goes, relative to cwd. Without it: berth keeps the log.",
     {}},
    {"linger", ValueShape::flag,
     "Wait for background processes behind the last command instead of ending them.", "false"},
    {"min_free_memory",
     ValueShape::size,
     "A card counts as free from this much free memory on, for this job.",
     {}},
    {"max_utilization",
     ValueShape::percent,
     "A card counts as free up to this utilization, for this job.",
     {}},
});

inline constexpr auto kTopKeys = std::to_array<KeyInfo>({
    {"version", ValueShape::version, "Of the format: 1.", {}},
    {"name", ValueShape::text, "Of the batch. Without it: the name of the file.", {}},
    {"defaults", ValueShape::job, "Keys for all jobs that do not have them.", "{}"},
    {"rules", ValueShape::rules, "What holds for the batch as a whole.", "{}"},
    {"queues", ValueShape::queues,
     "Queues to make or change: how many jobs of each may run at once.", "{}"},
    {"jobs", ValueShape::jobs, "The jobs.", {}},
});

inline constexpr auto kRuleKeys = std::to_array<KeyInfo>({
    {"max_concurrent", ValueShape::integer, "Jobs of this batch that run at once; 0: no limit.",
     "0", 0, kMostConcurrent},
    {"min_free_memory", ValueShape::size, "For jobs that do not say it themselves.", {}},
    {"max_utilization", ValueShape::percent, "For jobs that do not say it themselves.", {}},
    {"resources", ValueShape::counts, "How many of each there are on this instance.", "{}"},
});

inline constexpr auto kQueueKeys = std::to_array<KeyInfo>({
    {"limit", ValueShape::integer, "Jobs that run at once: 1 is strictly in order, 0 no limit.",
     "0", 0, kMostConcurrent},
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

static_assert(kJobKeyNames[static_cast<std::size_t>(JobKey::max_utilization)] == "max_utilization");
static_assert(kJobKeyNames[static_cast<std::size_t>(JobKey::after)] == "after");
static_assert(kJobKeyNames.size() == static_cast<std::size_t>(JobKey::max_utilization) + 1);

}  // namespace berth
