#pragma once
// What can be read back of the store, as values. Shared by the SQLite reader and the in-memory
// twin.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/change.hpp"
#include "core/event.hpp"
#include "core/job.hpp"

namespace berth {

inline constexpr std::size_t kJobStates = 7;
/// Number of jobs in each state, indexed by JobState.
using StateCounts = std::array<std::uint64_t, kJobStates>;

struct JobRow {
  JobId id;
  std::string name;
  JobState state = JobState::queued;
  QueueId queue_id;
  std::string queue;
  std::int32_t priority = 5;
  BatchId batch;
  std::uint32_t owner = 0;
  Request request;
  std::vector<JobId> after;  ///< all dependencies, ascending
  Millis submitted{0};
  std::optional<Millis> started;  ///< of the latest attempt
  std::optional<Millis> ended;    ///< set while the job is in a final state
  std::uint32_t attempts = 0;
  std::uint32_t retries = 0;
  std::uint32_t retries_used = 0;
  std::uint32_t excused = 0;  ///< further ones, for what was not its fault
  std::optional<std::int32_t> exit_code;
  std::optional<FailureClass> failure;
  std::string message;
  bool kill_requested = false;
  std::optional<Millis> kill_grace;  ///< none: the job's own
  std::int64_t rank = 0;             ///< 0: by submission
  bool expedited = false;
  After after_kind = After::ok;
  Millis not_before{0};  ///< by the wall clock; 0: at once
  std::string log;       ///< the path the user named; empty: berth names one
  AttemptId last_attempt;
  std::vector<std::string> gpus;  ///< of the last attempt
  std::vector<std::uint32_t> gpu_indices;

  friend bool operator==(const JobRow&, const JobRow&) = default;
};

/// The column `kill_requested`: 0 no, 1 with the job's own grace, else 2 and the grace in ms.
[[nodiscard]] constexpr std::int64_t stored_kill(bool requested, std::optional<Millis> grace) {
  return !requested ? 0 : grace ? 2 + grace->count() : 1;
}
[[nodiscard]] constexpr std::optional<Millis> stored_kill_grace(std::int64_t column) {
  return column < 2 ? std::nullopt : std::optional(Millis(column - 2));
}

struct AttemptRow {
  AttemptId id;
  JobId job;
  std::uint32_t number = 1;
  std::vector<std::string> gpus;
  std::vector<std::uint32_t> gpu_indices;
  Bytes gpu_memory = 0;
  std::string boot_id;
  Millis started{0};
  std::optional<Millis> ended;  ///< none: still open
  bool revoked = false;
  Verdict verdict;
  std::optional<GivesWay> gives_way;

  friend bool operator==(const AttemptRow&, const AttemptRow&) = default;
};

/// An attempt with the name of its job.
struct AttemptSpan {
  AttemptRow attempt;  ///< of the verdict only how it ended
  std::string name;
};

struct AttemptSpans {
  std::vector<AttemptSpan> spans;
  bool more = false;  ///< there may be others
};

struct HistoryRow {
  std::uint64_t seq = 0;  ///< ascending, never reused
  std::string kind;
  JobId job;
  AttemptId attempt;
  BatchId batch;
  std::string detail;
  Millis wall{0};

  friend bool operator==(const HistoryRow&, const HistoryRow&) = default;
};

struct BatchRow {
  BatchId id;
  std::string name;
  std::uint32_t owner = 0;
  std::uint32_t max_concurrent = 0;
  std::uint64_t jobs = 0;
  Millis submitted{0};
  StateCounts counts{};
  bool in_parts = false;  ///< arrived in parts
  bool open = false;      ///< still being submitted
  Overrides rules;
  BatchTraits traits;

  friend bool operator==(const BatchRow&, const BatchRow&) = default;
};

/// Jobs of one fingerprint and name.
struct SameJobs {
  JobId succeeded;  ///< the newest that ran and has ended, if it has; 0: none
  JobId alive;      ///< the newest that has not ended; 0: none

  friend bool operator==(const SameJobs&, const SameJobs&) = default;
};

/// What a submission's key once was answered with belongs to.
struct KeyRow {
  std::uint32_t owner = 0;
  std::string key;
  JobId first;
  std::uint64_t count = 0;

  friend bool operator==(const KeyRow&, const KeyRow&) = default;
};

/// What nobody needs any more and nothing in memory knows of.
struct Trim {
  std::vector<std::uint64_t> history;  ///< sequence numbers
  std::vector<KeyRow> keys;
  /// A look for environments without users begins; those found go with `environments`, but for
  /// those that new jobs were given meanwhile.
  bool begin_environments = false;
  std::vector<std::int64_t> environments;

  [[nodiscard]] bool empty() const {
    return history.empty() && keys.empty() && !begin_environments && environments.empty();
  }
};

struct QueueRow {
  QueueId id;
  QueueSpec spec;
  bool paused = false;
  StateCounts counts{};  ///< of the jobs that are in it, those that have ended among them

  friend bool operator==(const QueueRow&, const QueueRow&) = default;
};

}  // namespace berth
