#pragma once
// What a step wants written down: the store's whole input, and nothing the store must interpret.

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "core/event.hpp"
#include "core/job.hpp"

namespace berth {

namespace change {

struct QueuePut {
  QueueId id;
  QueueSpec spec;
  bool paused = false;
};

struct ResourcePut {
  std::string name;
  std::uint64_t total = 0;
};

struct BatchPut {
  BatchId id;
  std::string name;
  std::uint32_t owner = 0;
  std::uint32_t max_concurrent = 0;
  std::uint64_t jobs = 0;
  Millis wall{0};
  bool in_parts = false;  ///< arrives, or arrived, in parts
  bool open = false;      ///< and more are to come
  JobId reserved{};       ///< ids up to this one are set aside for it
};

/// A batch without jobs, as if it had never been.
struct BatchRemove {
  BatchId id;
};

/// Jobs and all that is known of them. Those that are not there are passed over.
struct JobsRemove {
  std::vector<JobId> ids;
};

/// A new job. `spec` is shared so that a large batch is never copied on its way to disk.
struct JobPut {
  JobId id;
  BatchId batch;
  QueueId queue;
  std::uint32_t owner = 0;
  Millis wall{0};
  std::shared_ptr<const JobSpec> spec;
  std::vector<JobId> after;  ///< resolved ids
};

/// A job changed state. What it says of the outcome replaces what was known: a retry that succeeds
/// has no failure left over.
struct JobUpdate {
  JobId id;
  JobState state = JobState::queued;
  std::optional<std::int32_t> exit_code;
  std::optional<FailureClass> failure;
  std::string message;
  std::uint32_t attempts = 0;
  std::uint32_t retries_used = 0;
  bool kill_requested = false;
  Millis wall{0};
  std::optional<Millis> kill_grace = {};  ///< with kill_requested; none: the job's own
};

/// Somebody changed what a job asks for or where it stands. What is not set stays.
struct JobSet {
  JobId id;
  std::optional<std::string> name;
  std::optional<QueueId> queue;
  std::optional<std::int32_t> priority;
  std::optional<std::int64_t> rank;  ///< 0: by submission
  std::optional<bool> expedited;
  std::optional<Request> request;
  std::optional<std::uint32_t> retries;
  std::optional<Millis> time_limit;
  std::optional<Millis> grace;
};

/// An attempt is about to start. Its record file exists before this is durable.
struct AttemptPut {
  AttemptId id;
  JobId job;
  std::uint32_t number = 1;       ///< 1 for the first attempt of the job
  std::vector<std::string> gpus;  ///< UUIDs
  std::vector<std::uint32_t> gpu_indices;
  Bytes gpu_memory = 0;  ///< claimed per GPU; 0: the whole card
  Millis wall{0};
};

struct AttemptEnd {
  AttemptId id;
  bool revoked = false;
  Verdict verdict;
  Millis wall{0};
};

struct ClientKey {
  std::string key;
  std::uint32_t owner = 0;
  BatchId batch;
  JobId first;
  std::uint64_t count = 0;
};

/// One line of history.
struct History {
  std::string kind;  ///< "submitted", "started", "succeeded", "failed", "retried", "killed", …
  JobId job;
  AttemptId attempt;
  BatchId batch;
  std::string detail;  ///< for people
  Millis wall{0};
};

}  // namespace change

/// The spec of a job after somebody changed it; where it stands is not part of it.
[[nodiscard]] JobSpec changed(JobSpec spec, const change::JobSet& set);

using Change =
    std::variant<change::QueuePut, change::ResourcePut, change::BatchPut, change::BatchRemove,
                 change::JobPut, change::JobsRemove, change::JobUpdate, change::JobSet,
                 change::AttemptPut, change::AttemptEnd, change::ClientKey, change::History>;
using Changes = std::vector<Change>;

/// What a store gives back after a restart: everything that is not finished, and the counters.
struct Snapshot {
  struct LiveJob {
    JobId id;
    BatchId batch;
    QueueId queue;
    std::uint32_t owner = 0;
    std::int32_t priority = 5;
    Request request;
    std::vector<JobId> after;  ///< those not yet succeeded
    std::uint32_t retries = 0;
    std::uint32_t retries_used = 0;
    std::uint32_t attempts = 0;
    JobState state = JobState::queued;
    bool kill_requested = false;
    std::optional<Millis> kill_grace = {};  ///< with kill_requested; none: the job's own
    std::int64_t rank = 0;                  ///< 0: by submission
    bool expedited = false;
  };
  struct OpenAttempt {
    AttemptId id;
    JobId job;
    std::uint32_t number = 1;
    std::vector<std::string> gpus;
    Bytes gpu_memory = 0;
    std::string boot_id;
  };
  struct Batch {
    BatchId id;
    std::string name;
    std::uint32_t max_concurrent = 0;
    bool in_parts = false;
  };
  std::vector<std::pair<QueueId, QueueSpec>> queues;
  std::set<QueueId> paused_queues;
  std::vector<Batch> batches;  ///< those with live jobs
  std::vector<LiveJob> jobs;   ///< ascending id
  /// Jobs that live ones were to follow and that did not succeed: the last daemon ended before it
  /// could cancel all followers.
  std::vector<std::pair<JobId, JobState>> failed_dependencies;
  /// Batches whose submission was cut off, with the first and last id that arrived (0: none did).
  /// Their jobs are not in `jobs`.
  struct OpenBatch {
    BatchId id;
    JobId first;
    JobId last;
  };
  std::vector<OpenBatch> open_batches;
  std::vector<OpenAttempt> attempts;
  std::map<std::string, std::uint64_t> resources;
  JobId last_job;          ///< highest id ever issued
  AttemptId last_attempt;  ///< likewise
  BatchId last_batch;
  QueueId last_queue;
};

}  // namespace berth
