#pragma once
// Everything berth knows that is not finished. One thread owns it; `apply` alone changes it.
//
// Finished jobs are not here: they live in the store, and whoever waits for them has been told.

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/sharded_map.hpp"
#include "core/change.hpp"
#include "core/gpu.hpp"
#include "core/job.hpp"
#include "core/ready_index.hpp"
#include "core/rules.hpp"

namespace berth {

/// A queued or running job, as small as it can be: there may be a million.
struct Job {
  JobId id;
  BatchId batch;
  QueueId queue;
  ShapeId shape;
  AttemptId attempt;  ///< the open one, while running or paused in the middle of it
  std::uint32_t owner = 0;
  std::int32_t priority = 5;
  std::uint32_t retries = 0;
  std::uint32_t retries_used = 0;
  std::uint32_t attempts = 0;
  std::uint32_t waiting_for = 0;  ///< dependencies that have not succeeded yet
  JobState state = JobState::queued;
  bool kill_requested = false;
  bool expedited = false;  ///< starts before all others; kept until an attempt has run

  /// Not running: queued, or held.
  [[nodiscard]] bool waits() const {
    return state == JobState::queued || (state == JobState::paused && !attempt);
  }
  /// Waits, and does not start before somebody says so.
  [[nodiscard]] bool held() const { return state == JobState::paused && !attempt; }
};

struct Attempt {
  AttemptId id;
  JobId job;
  std::uint32_t number = 1;
  std::vector<std::string> gpus;  ///< UUIDs
  Bytes gpu_memory = 0;           ///< per GPU; 0: whole cards
  /// With which it was told to end; none: not told so, or with the job's own.
  std::optional<Millis> kill_grace;
};

struct Queue {
  QueueId id;
  std::string name;
  std::uint32_t limit = 0;
  std::uint32_t running = 0;
  bool paused = false;  ///< starts nothing

  [[nodiscard]] bool has_room() const { return limit == 0 || running < limit; }
  [[nodiscard]] bool open() const { return !paused && has_room(); }
};

struct Batch {
  BatchId id;
  std::string name;
  std::uint32_t max_concurrent = 0;
  std::uint32_t running = 0;
  std::uint64_t live = 0;  ///< jobs not finished
  /// Its jobs still arrive, in parts, and none of them may start; or it was given up and they go.
  bool open = false;
  /// Its jobs stand in lanes of their own: it has a limit, or arrived in parts.
  bool own_lanes = false;

  [[nodiscard]] bool has_room() const { return max_concurrent == 0 || running < max_concurrent; }
};

/// A submission of which parts are still to come.
struct OpenSubmission {
  event::SubmitBegin head;
  JobId first;                ///< ids are set aside for all of it
  std::uint64_t arrived = 0;  ///< how many jobs are there
};

/// A job that has ended, and those of its followers that do not know it yet. One job may be
/// followed by any number, so they are told a slice at a time.
struct Settling {
  JobId ended;
  JobState as = JobState::succeeded;
  std::vector<JobId> followers;
  std::size_t next = 0;
};

/// A batch that was given up before it was complete; its jobs are taken away a slice at a time.
struct Dropping {
  BatchId batch;
  JobId next;
  JobId last;
};

/// What an attempt has been promised of one GPU.
struct Claim {
  AttemptId attempt;
  JobId job;
  Bytes memory = 0;  ///< 0: the whole card
  /// Set when the attempt has ended: the claim stays until a sample that began later no longer
  /// shows the attempt's processes.
  std::optional<Millis> ended;
  Millis made{0};  ///< what an older sample shows cannot be this attempt's doing
};

struct Gpu {
  GpuFacts facts;
  Millis sampled{0};   ///< when the sample that gave `facts` began
  Millis seen{0};      ///< when it arrived: a slow driver's answer is fresh when it comes
  bool known = false;  ///< the last sample showed this card
  std::vector<Claim> claims;
};

/// What is used of the things that are merely counted.
struct HostUse {
  std::uint64_t cpus = 0;
  Bytes memory = 0;
  std::map<std::string, std::uint64_t> resources;
};

class State {
 public:
  Rules rules;
  HostCapacity host;
  HostUse use;

  ShardedMap<JobId, Job> jobs;
  std::unordered_map<AttemptId, Attempt> attempts;
  std::map<QueueId, Queue> queues;
  std::map<std::string, QueueId, std::less<>> queue_names;
  std::unordered_map<BatchId, Batch> batches;
  std::vector<Gpu> gpus;  ///< by index of the driver
  std::string probe_error;
  std::string driver;
  std::optional<Millis> seen;  ///< when the last good look at the GPUs arrived

  bool low_space = false;
  std::string space_detail;

  std::uint32_t running = 0;
  JobId last_job;
  AttemptId last_attempt;
  BatchId last_batch;
  QueueId last_queue;

  ReadyIndex ready;
  ShardedMap<JobId, std::vector<JobId>> dependents;  ///< who waits for the key
  ShardedMap<JobId, std::vector<JobId>> pending;     ///< what a waiting job waits for
  std::map<BatchId, OpenSubmission> submissions;
  std::deque<Settling> settling;
  std::deque<Dropping> dropping;
  bool continuing = false;  ///< somebody has been asked to come back for the next slice

  /// Of jobs that were moved, never 0; all others stand by usual_rank().
  std::unordered_map<JobId, std::int64_t> ranks;
  std::multiset<std::int64_t> ranks_in_order;

  /// Requests seen so far, interned; ShapeId is 1 + index.
  std::vector<Request> shapes;
  std::map<Request, ShapeId> shape_ids;

  /// What has to be looked at again. Set by apply, used and cleared around a decision.
  bool recheck_all = false;
  std::vector<ShapeId> recheck_shapes;

  [[nodiscard]] const Job* job(JobId id) const;
  [[nodiscard]] const Request& request(const Job& job) const;
  [[nodiscard]] const Gpu* gpu(const std::string& uuid) const;
  [[nodiscard]] LaneKey lane(const Job& job) const;
  [[nodiscard]] std::int64_t rank(const Job& job) const;
  [[nodiscard]] OrderKey order(const Job& job) const;
  /// Whether somebody wants to know about GPUs: a GPU job waits, runs, or has just ended.
  [[nodiscard]] bool wants_samples() const;
};

/// The State a restarted daemon begins with. Open attempts keep their claims until somebody has
/// found out what became of them.
[[nodiscard]] State restore(const Snapshot& snapshot, Rules rules, HostCapacity host);

/// A canonical text of everything that matters, for comparing two States.
[[nodiscard]] std::string fingerprint(const State& state);

}  // namespace berth
