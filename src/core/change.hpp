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

/// Why an attempt makes room: it was told to end and its job waits again, or it stands still.
enum class GivesWay : std::uint8_t {
  preempted,  ///< to a job of higher priority
  stranger,   ///< to somebody outside berth
  gpu_lost,   ///< its card is gone
  parked,     ///< to somebody outside berth, as a paused job that goes on when that one has left
};

[[nodiscard]] std::string_view to_string(GivesWay why);
[[nodiscard]] std::optional<GivesWay> gives_way_from(std::string_view text);

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
  Overrides rules = {};
  BatchTraits traits = {};
};

/// The rules of a batch, all of them, and its limit.
struct BatchRules {
  BatchId id;
  Overrides rules;
  std::uint32_t max_concurrent = 0;
};

/// What concerns the whole instance.
struct InstancePut {
  bool paused = false;
};

/// A card was taken out of use, or given back.
struct DrainPut {
  std::string gpu;  ///< UUID
  bool drained = true;
  std::string why;
  Millis wall{0};
};

/// So many uncorrectable errors of a card are known.
struct EccPut {
  std::string gpu;  ///< UUID
  std::uint64_t errors = 0;
};

/// What a user or a batch has used: GPU milliseconds, decayed to the moment `wall`.
struct UsagePut {
  bool batch = false;
  std::uint64_t id = 0;  ///< uid or batch
  double gpu_ms = 0;
  Millis wall{0};
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
  Millis not_before{0};                   ///< waits until then, by the wall clock; 0: does not
  std::uint32_t excused = 0;              ///< retries for what was not its fault
  bool revived = false;                   ///< it had ended
};

/// An attempt makes room, and not because somebody wants its job to end or to pause.
struct AttemptGivesWay {
  AttemptId id;
  std::optional<GivesWay> why;  ///< none: no longer
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
    std::variant<change::QueuePut, change::ResourcePut, change::BatchPut, change::BatchRules,
                 change::BatchRemove, change::InstancePut, change::DrainPut, change::EccPut,
                 change::UsagePut, change::JobPut, change::JobsRemove, change::JobUpdate,
                 change::JobSet, change::AttemptPut, change::AttemptGivesWay, change::AttemptEnd,
                 change::ClientKey, change::History>;
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
    After after_kind = After::ok;
    Millis submitted{0};       ///< by the wall clock
    Millis not_before{0};      ///< likewise; 0: at once
    bool backing_off = false;  ///< it is a retry that waits for `not_before`
    std::uint32_t excused = 0;
    /// When the last of those it followed, and of its own attempts, ended, as far as the store
    /// still knows them; by the wall clock.
    Millis last_end{0};
  };
  struct OpenAttempt {
    AttemptId id;
    JobId job;
    std::uint32_t number = 1;
    std::vector<std::string> gpus;
    Bytes gpu_memory = 0;
    std::string boot_id;
    Millis started{0};  ///< by the wall clock
    std::optional<GivesWay> gives_way = {};
  };
  struct Batch {
    BatchId id;
    std::string name;
    std::uint32_t max_concurrent = 0;
    bool in_parts = false;
    Overrides rules = {};
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
  bool paused = false;                        ///< the instance
  std::map<std::string, std::string> drains;  ///< UUID, why
  std::map<std::string, std::uint64_t> ecc;   ///< UUID, errors that are known
  std::vector<change::UsagePut> usage;
  JobId last_job;          ///< highest id ever issued
  AttemptId last_attempt;  ///< likewise
  BatchId last_batch;
  QueueId last_queue;
};

}  // namespace berth
