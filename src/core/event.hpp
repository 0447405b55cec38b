#pragma once
// Everything that can happen to State, as values.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/gpu.hpp"
#include "core/job.hpp"
#include "core/rules.hpp"

namespace berth {

struct QueueSpec {
  std::string name;
  std::uint32_t limit = 0;  ///< running jobs at most; 1: strictly serial, in order; 0: no limit
  Overrides rules = {};

  friend bool operator==(const QueueSpec&, const QueueSpec&) = default;
};

/// A job that has ended and left memory, as far as beginning anew needs it.
struct EndedJob {
  JobId id;
  JobState state = JobState::failed;
  BatchId batch;
  QueueId queue;
  std::uint32_t owner = 0;
  std::int32_t priority = 5;
  Request request;
  std::vector<JobId> after;
  After after_kind = After::ok;
  std::uint32_t retries = 0;
  std::uint32_t attempts = 0;
  std::int64_t rank = 0;  ///< 0: by submission
  bool expedited = false;
  // Of its batch, which may have left memory, too.
  std::string batch_name = {};
  std::uint32_t batch_max_concurrent = 0;
  Overrides batch_rules = {};

  friend bool operator==(const EndedJob&, const EndedJob&) = default;
};

namespace event {

/// Jobs submitted together. They are accepted all or none.
struct Submit {
  std::string client_key;  ///< repeating it returns the same ids; empty: none
  std::uint32_t owner = 0;
  std::string batch_name;  ///< empty and one job: no batch is made
  std::uint32_t batch_max_concurrent = 0;
  Overrides batch_rules;
  BatchTraits traits;
  std::vector<QueueSpec> queues;                   ///< created, or their limit and rules changed
  std::map<std::string, std::uint64_t> resources;  ///< totals to set for the instance
  std::vector<JobSpec> jobs;
  /// Outcomes of dependencies that have left memory, looked up by the engine.
  std::map<JobId, JobState> finished_dependencies;
};

/// The beginning of a submission that arrives in parts because it is large. Ids are set aside for
/// all of it; none of its jobs starts before SubmitEnd, and SubmitAbort or a restart takes back
/// those that have arrived.
struct SubmitBegin {
  std::string client_key;
  std::uint32_t owner = 0;
  std::string batch_name;
  std::uint32_t batch_max_concurrent = 0;
  Overrides batch_rules;
  BatchTraits traits;
  std::vector<QueueSpec> queues;
  std::map<std::string, std::uint64_t> resources;
  std::uint64_t count = 0;  ///< jobs to come
};

/// The next jobs of it. `after_index` counts from the submission's first job.
struct SubmitPart {
  BatchId batch;
  std::vector<JobSpec> jobs;
  std::map<JobId, JobState> finished_dependencies;  ///< as in Submit
};

/// All have arrived.
struct SubmitEnd {
  BatchId batch;
};

struct SubmitAbort {
  BatchId batch;
};

struct Kill {
  std::vector<JobId> jobs;
  std::uint32_t by_uid = 0;
  std::optional<Millis> grace;
};

/// Running jobs are stopped where they are, waiting ones do not start.
struct Pause {
  std::vector<JobId> jobs;
};

/// The reverse of Pause.
struct Resume {
  std::vector<JobId> jobs;
};

/// A paused queue starts nothing; what runs goes on.
struct PauseQueue {
  std::string queue;
  bool paused = true;
};

/// A paused instance starts nothing; what runs goes on. Pausing it is how one drains a machine.
struct PauseInstance {
  bool paused = true;
};

/// Takes a card out of use, or gives it back, whatever it was taken out for.
struct DrainGpu {
  std::string gpu;  ///< index or UUID
  bool drained = true;
  std::string why;
};

/// What other users' berths hold, by UUID, with a name for whoever it is.
struct BoardRead {
  std::map<std::string, std::string> held;
};

/// Changes where waiting jobs stand. Together they keep their order.
struct Move {
  enum class To : std::uint8_t { first, last, before, queue, priority };
  std::vector<JobId> jobs;  ///< ascending
  To to = To::first;
  JobId before;
  std::string queue;
  std::int32_t priority = 5;
  /// How many jobs of the same request come in later events; they need room, too.
  std::uint64_t following = 0;
};

/// Lets jobs start before all others, whatever their queue says.
struct Expedite {
  std::vector<JobId> jobs;
};

/// New values for some of what a job asks for. What is not set stays.
struct JobPatch {
  std::optional<std::string> name;
  std::optional<std::string> queue;
  std::optional<std::int32_t> priority;
  std::optional<GpuCount> gpus;
  std::optional<std::optional<Bytes>> gpu_memory;  ///< set and none: whole cards
  std::optional<std::uint32_t> cpus;
  std::optional<Bytes> memory;
  std::optional<std::uint32_t> retries;
  std::optional<Millis> time_limit;
  std::optional<Millis> grace;
  Overrides rules;                 ///< the job's own, added to those it has
  std::vector<std::string> unset;  ///< and taken away

  friend bool operator==(const JobPatch&, const JobPatch&) = default;
};

struct SetJobs {
  std::vector<JobId> jobs;
  JobPatch patch;
};

/// Rules by their keys, see rule_table.hpp. All or none.
struct SetRules {
  enum class Layer : std::uint8_t {
    instance,  ///< for this run of the daemon
    file,      ///< berth.yaml: `values` are all that it says, others are no longer said
    queue,
    batch,
  };
  std::vector<std::pair<std::string, std::string>> values;
  Layer layer = Layer::instance;
  std::string queue = {};  ///< made if there is none
  BatchId batch = {};
  std::vector<std::string> unset = {};  ///< keys that this layer no longer says anything of
  bool saved = false;                   ///< of the instance: berth.yaml is to say the same
  std::string by = {};                  ///< who, for people; empty: the owner, on this machine
};

/// Jobs to be forgotten, ids included in no list any more. Waiting ones are cancelled. Those that
/// are not in memory have ended, as far as whoever asks knows; naming one that never was does
/// nothing.
struct Remove {
  std::vector<JobId> jobs;
  bool ended = false;  ///< only those that have ended; others are told of as running
};

/// Jobs that have ended wait again, under the ids they have. Their attempts go on counting, their
/// retries begin anew. Whoever was cancelled because of them is not touched.
struct Revive {
  std::vector<JobId> jobs;
  bool succeeded = false;  ///< those that succeeded, too
  /// What the store knows of them, looked up by the engine, as are the outcomes of what they
  /// follow.
  std::vector<EndedJob> ended = {};
  std::map<JobId, JobState> finished_dependencies = {};
};

/// The supervisor of an attempt is gone and has told how it went.
struct AttemptExited {
  AttemptId attempt;
  Verdict verdict;
  std::string log_end = {};  ///< the last of what it wrote, for finding out what went wrong
};

/// An attempt was given up before its command could have run; nobody is to blame.
struct AttemptRevoked {
  AttemptId attempt;
  std::string why;
};

struct Sampled {
  GpuSample sample;
};

/// No look at the GPUs was possible; what was known is no longer trusted.
struct ProbeFailed {
  std::string why;
  std::optional<Bytes> host_available{};  ///< what the host has is known all the same
};

/// The disk filled up, or has room again.
struct SpaceChanged {
  bool low = false;
  std::string detail;  ///< for people: which file system, how much is left
};

struct SetHost {
  HostCapacity host;
};

/// Goes on with what was too long for one event.
struct Continue {};

/// Nothing but time has passed.
struct Tick {};

}  // namespace event

using Event =
    std::variant<event::Submit, event::SubmitBegin, event::SubmitPart, event::SubmitEnd,
                 event::SubmitAbort, event::Kill, event::Pause, event::Resume, event::PauseQueue,
                 event::PauseInstance, event::DrainGpu, event::BoardRead, event::Move,
                 event::Expedite, event::SetJobs, event::SetRules, event::Remove, event::Revive,
                 event::AttemptExited, event::AttemptRevoked, event::Sampled, event::ProbeFailed,
                 event::SpaceChanged, event::SetHost, event::Continue, event::Tick>;

}  // namespace berth
