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
#include "core/shape.hpp"
#include "core/usage.hpp"

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
  std::uint32_t excused = 0;  ///< further retries, for what was not its fault
  std::uint32_t attempts = 0;
  std::uint32_t waiting_for = 0;  ///< dependencies that have not ended as they must
  JobState state = JobState::queued;
  After after_kind = After::ok;
  Order order = Order::fifo;  ///< by which it stands in its lane
  bool kill_requested = false;
  bool expedited = false;  ///< starts before all others; kept until an attempt has run
  bool aged = false;       ///< has waited as long as anybody should
  bool delayed = false;    ///< not before the moment in State::delays
  bool clocked = false;    ///< it has begun to wait in line, `since`
  Millis since{0};         ///< by the monotonic clock

  /// Not running: queued, or held.
  [[nodiscard]] bool waits() const {
    return state == JobState::queued || (state == JobState::paused && !attempt);
  }
  /// Waits, and does not start before somebody says so.
  [[nodiscard]] bool held() const { return state == JobState::paused && !attempt; }
  /// Stands in line.
  [[nodiscard]] bool ready() const {
    return state == JobState::queued && waiting_for == 0 && !delayed;
  }
};

struct Attempt {
  AttemptId id;
  JobId job;
  std::uint32_t number = 1;
  std::vector<std::string> gpus;  ///< UUIDs
  Bytes gpu_memory = 0;           ///< per GPU; 0: whole cards
  /// With which it was told to end; none: not told so, or with the job's own.
  std::optional<Millis> kill_grace;
  Millis started{0};  ///< by the monotonic clock
  std::optional<GivesWay> gives_way;
  std::vector<std::uint32_t> xids;  ///< application errors the driver reported on its cards
  std::string sick_card = {};       ///< why one of its cards was taken out of use; empty: none
  /// The most that others were seen to hold of one of its cards while it ran, beyond what they were
  /// promised; none: nobody has looked.
  std::optional<Bytes> company = {};
  bool company_hidden = false;  ///< at some time that could not be told
  bool for_own = false;         ///< with `gives_way`: for a process of its owner outside berth

  /// Its job is paused, by berth, until a stranger has left its card.
  [[nodiscard]] bool parked() const { return gives_way == GivesWay::parked; }
  /// It was told to end for somebody else's sake.
  [[nodiscard]] bool leaves() const { return gives_way && !parked(); }
};

/// Until when a job is not to start.
struct Delay {
  Millis due{0};             ///< by the monotonic clock
  Millis wall{0};            ///< the same moment, for people and for the store
  bool backing_off = false;  ///< a retry; in a serial queue it keeps its place
};

struct Queue {
  QueueId id;
  std::string name;
  std::uint32_t limit = 0;
  std::uint32_t running = 0;
  bool paused = false;  ///< starts nothing
  Overrides rules = {};
  std::set<JobId> backing_off = {};  ///< its jobs that wait to be tried again

  [[nodiscard]] bool has_room() const { return limit == 0 || running < limit; }
  /// In a serial queue nobody overtakes a job that is to be tried again.
  [[nodiscard]] bool waits_for_retry() const { return limit == 1 && !backing_off.empty(); }
  [[nodiscard]] bool open() const { return !paused && has_room() && !waits_for_retry(); }
};

struct Batch {
  BatchId id;
  std::string name;
  std::uint32_t max_concurrent = 0;
  std::uint32_t running = 0;
  std::uint64_t live = 0;  ///< jobs not finished
  /// Its jobs still arrive, in parts, and none of them may start; or it was given up and they go.
  bool open = false;
  std::uint32_t owner = 0;
  Overrides rules = {};

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

/// Waiting jobs whose place in line is to be found anew, because the rule `order` has changed.
struct Reordering {
  BatchId batch;  ///< none: of all
  JobId next;
  JobId last;
};

/// Cards kept for a job that waits, so that those behind it do not take them for ever.
struct Hold {
  JobId job;
  std::vector<std::string> gpus;  ///< UUIDs
  std::optional<Millis> until;    ///< when it will start, by the monotonic clock, if that is known

  friend bool operator==(const Hold&, const Hold&) = default;
};

/// How long nothing but missing GPUs has held the jobs of one lane and shape that do not wait for
/// ever. The clock runs while that is so; a job's own time is the difference to when it came.
struct GpuWait {
  Millis reading{0};
  std::optional<Millis> running_since;
  std::set<std::pair<Millis, JobId>> jobs;  ///< by the reading when they came
  std::unordered_map<JobId, Millis> came;

  [[nodiscard]] Millis now(Millis mono) const {
    return reading + (running_since ? mono - *running_since : Millis{0});
  }
};

/// What an attempt has been promised of one GPU.
struct Claim {
  AttemptId attempt;
  JobId job;
  Bytes memory = 0;  ///< 0: the whole card
  /// Set when the attempt has ended: the claim stays until a sample that began later no longer
  /// shows the attempt's processes.
  std::optional<Millis> ended;
  Millis made{0};       ///< what an older sample shows cannot be this attempt's doing
  Bytes peak = 0;       ///< the most it was seen to use
  Millis grown{0};      ///< when that was first seen
  bool shrunk = false;  ///< it keeps only the most it has used
};

/// When somebody who is in the way by these rules was last seen on a card.
struct StrangerSeen {
  ForeignRules foreign;
  std::uint32_t max_utilization = 0;
  Millis when{0};
};

struct Gpu {
  GpuFacts facts;
  Millis sampled{0};   ///< when the sample that gave `facts` began
  Millis seen{0};      ///< when it arrived: a slow driver's answer is fresh when it comes
  bool known = false;  ///< the last sample showed this card
  std::vector<Claim> claims;
  /// When somebody who is in the way by anybody's rules was last seen; none: no job has made room.
  std::optional<Millis> stranger_seen;
  std::vector<StrangerSeen> seen_by_rules;  ///< the same for each of those who ask
};

/// A card on which an attempt failed through no fault of its job.
struct Avoided {
  std::string gpu;      ///< UUID
  bool broken = false;  ///< the card failed; otherwise others left too little memory on it
  Bytes held = 0;       ///< what they held of it; 0: not known
};

/// What is used of the things that are merely counted.
struct HostUse {
  std::uint64_t cpus = 0;
  Bytes memory = 0;
  std::map<std::string, std::uint64_t> resources;
};

class State {
 public:
  Rules base_rules;      ///< built in, or given to the program
  Overrides file_rules;  ///< of berth.yaml
  Overrides set_rules;   ///< of `berth set`, for this run
  Rules rules;           ///< of the instance: all of that
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
  Millis looked{0};            ///< when that began
  /// A look that began before decides nothing: nobody had wanted any for a while, see Room.
  Millis look_after{0};

  std::optional<Bytes> host_available;
  std::optional<Millis> host_seen;  ///< when that was looked at

  bool low_space = false;
  std::string space_detail;
  bool paused = false;  ///< the instance starts nothing

  std::map<std::string, std::string> drains;      ///< cards taken out of use: UUID, why
  std::map<std::string, std::uint64_t> ecc_seen;  ///< errors that somebody knows of, by UUID
  std::map<std::string, std::string> board;       ///< cards other users' berths hold: UUID, who
  std::set<std::pair<AttemptId, std::string>> strays;  ///< seen on a card they did not claim
  std::string last_gpu;                                ///< the one taken last
  std::optional<Hold> hold;
  /// Who go first and lack nothing but the next look at their cards, of which those that have ended
  /// must be seen to be gone: until then their places among those that may run are theirs. Found
  /// anew by each complete decision.
  std::vector<JobId> expected;
  /// All is to be looked at again though nothing has happened since the last decision.
  bool looks_again = false;
  /// How old a look at the GPUs may be for all who wait for some; none: nobody does. Follows from
  /// the decisions, and says how often to look.
  std::optional<Millis> look_within;
  std::map<std::uint32_t, Usage> used_by_owner;
  std::map<BatchId, Usage> used_by_batch;

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
  std::deque<Reordering> reordering;
  bool continuing = false;  ///< somebody has been asked to come back for the next slice

  /// Of jobs that were moved, never 0; all others stand by usual_rank().
  std::unordered_map<JobId, std::int64_t> ranks;
  std::multiset<std::int64_t> ranks_in_order;

  Shapes shapes;

  std::set<JobId> held;  ///< who do not start before somebody says so
  std::unordered_map<JobId, Delay> delays;
  std::set<std::pair<Millis, JobId>> delays_in_order;
  /// Who began to wait when; jobs that have left or aged since are passed over.
  std::deque<std::pair<Millis, JobId>> wait_clocks;
  std::map<std::pair<LaneKey, ShapeId>, GpuWait> gpu_waits;
  std::unordered_map<JobId, Millis> waited;  ///< so far, of those that do not stand in line now
  /// Cards on which a job is tried again only if that is better than to wait.
  std::unordered_map<JobId, std::vector<Avoided>> avoiding;
  /// When jobs lost a card or its memory: only a look that began later tells what is left for them.
  std::unordered_map<JobId, Millis> bereft;
  std::optional<Millis> waking;  ///< for when somebody has been asked to come back

  /// What has to be looked at again. Set by apply, used and cleared around a decision.
  bool recheck_all = false;
  std::vector<ShapeId> recheck_shapes;

  [[nodiscard]] const Job* job(JobId id) const;
  [[nodiscard]] const Request& request(const Job& job) const;
  /// Of all layers.
  [[nodiscard]] const Rules& rules_of(const Job& job) const;
  [[nodiscard]] const Gpu* gpu(const std::string& uuid) const;
  [[nodiscard]] LaneKey lane(const Job& job) const;
  [[nodiscard]] std::int64_t rank(const Job& job) const;
  [[nodiscard]] OrderKey order(const Job& job) const;
  /// Whether somebody wants to know about GPUs: a GPU job waits, runs, or has just ended.
  [[nodiscard]] bool wants_samples() const;
};

/// Where a job stands by the order `random`: the same for the same seed and job.
[[nodiscard]] std::int64_t random_turn(std::uint64_t seed, JobId job);

/// The State a restarted daemon begins with. Open attempts keep their claims until somebody has
/// found out what became of them.
[[nodiscard]] State restore(const Snapshot& snapshot, Rules rules, HostCapacity host, Now now = {});

/// When time alone will change something, by the monotonic clock: a delay ends, a wait has been
/// long enough, a card has been quiet.
[[nodiscard]] std::optional<Millis> next_wake(const State& state, Now now);

/// A canonical text of everything that matters, for comparing two States.
[[nodiscard]] std::string fingerprint(const State& state);

}  // namespace berth
