#pragma once
// What the API tells: plain values that the daemon fills, the wire carries and the CLI prints.
//
// Unknown is nullopt (or an empty string) and travels as null. Times are milliseconds since 1970.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/time.hpp"
#include "base/units.hpp"
#include "core/job.hpp"
#include "core/job_sort.hpp"

namespace berth {

/// Why a job waits, as data: what docs/formats/api.md lists for each kind.
struct CauseView {
  std::string kind;
  std::map<std::string, std::uint64_t> numbers = {};
  std::map<std::string, std::string> names = {};
  std::vector<std::uint64_t> jobs = {};  ///< that it is about, the first of them

  friend bool operator==(const CauseView&, const CauseView&) = default;
};

struct JobView {
  std::uint64_t id = 0;
  std::string name;
  JobState state = JobState::queued;
  std::string queue;
  std::int32_t priority = 5;
  GpuCount gpus;     ///< asked for; sent as two numbers, `gpus` (min) and `gpus_max`
  std::string node;  ///< where it runs or ran last; empty: nowhere yet
  std::uint32_t attempts = 0;
  std::optional<std::int32_t> exit_code;
  std::optional<FailureClass> failure_class;
  std::string reason;       ///< why it waits, in one line; empty: it does not wait
  std::uint64_t batch = 0;  ///< 0: none
  std::uint32_t owner = 0;
  Millis submitted_at{0};
  std::optional<Millis> started_at;  ///< of the last attempt
  std::optional<Millis> ended_at;
  std::string message;  ///< how it ended, for people
  std::string command;  ///< see display_commands()
  std::uint32_t retries = 0;
  std::uint32_t retries_used = 0;
  std::uint32_t excused = 0;               ///< further retries, for what was not its fault
  std::optional<Bytes> gpu_memory;         ///< per GPU; none: whole cards
  std::string cwd;                         ///< bytes
  std::string log;                         ///< bytes; of the last attempt; empty: none yet
  std::vector<std::uint32_t> gpu_indices;  ///< of the last attempt
  std::vector<std::string> gpu_uuids;
  bool expedited = false;                          ///< waits, and starts before all others
  std::map<std::string, std::string> params = {};  ///< what tells it from others of its sweep
  std::uint64_t attempt = 0;                       ///< the last one; 0: none yet
  std::optional<CauseView> why = {};               ///< `reason` as data

  friend bool operator==(const JobView&, const JobView&) = default;
};

struct AttemptView {
  std::uint64_t id = 0;
  std::uint64_t job = 0;
  std::uint32_t number = 1;
  std::string state;  ///< "starting" "running" "ending" "succeeded" "failed" "killed" "revoked"
  std::string node;
  std::vector<std::uint32_t> gpu_indices;
  std::vector<std::string> gpu_uuids;
  std::optional<Bytes> gpu_memory;  ///< claimed per GPU; none: whole cards
  std::optional<Millis> started_at;
  std::optional<Millis> ended_at;
  std::optional<FailureClass> failure_class;
  std::optional<std::int32_t> exit_code;
  std::optional<std::int32_t> signal;
  std::string message;
  std::optional<Millis> user_time;
  std::optional<Millis> system_time;
  std::optional<Bytes> max_rss;
  std::optional<Bytes> peak_memory;
  std::uint32_t leftover = 0;
  Bytes log_dropped = 0;  ///< left out of the middle of its log
  std::string log;        ///< bytes, absolute path
  std::string report;     ///< likewise; what it says of itself, if there is such a file

  friend bool operator==(const AttemptView&, const AttemptView&) = default;
};

/// One job with everything that is known of it.
struct JobDetail {
  JobView job;
  std::vector<AttemptView> attempts;  ///< ascending number
  std::vector<Command> commands;
  std::optional<Environment> environment;  ///< only for those who may see it
  Environment extra_env;
  std::vector<std::uint64_t> after;
  After after_kind = After::ok;
  std::optional<Millis> start_at;            ///< it waits until then
  std::map<std::string, std::string> rules;  ///< its own
  std::uint32_t cpus = 0;
  Bytes memory = 0;
  std::map<std::string, std::uint64_t> resources;
  Millis time_limit{0};
  Millis grace{0};
  bool linger = false;
  std::string signal;             ///< the warning before its end, as in USR1@120; empty: none
  std::string work_dir = {};      ///< bytes; empty: cwd
  std::string log = {};           ///< bytes, its placeholders not filled in; empty: its own
  std::uint64_t fingerprint = 0;  ///< 0: none; see DoneQuestion
  BatchTraits batch_traits = {};  ///< of its batch

  friend bool operator==(const JobDetail&, const JobDetail&) = default;
};

struct JobPage {
  std::vector<JobView> jobs;
  std::optional<ListPlace> next;  ///< pass as `after` for the next page

  friend bool operator==(const JobPage&, const JobPage&) = default;
};

/// Why not this card.
struct ObstacleView {
  std::uint32_t gpu = 0;  ///< its index
  std::string kind;
  std::string text;  ///< for people
  Bytes free = 0;    ///< after claims and margin; 0 as below: of no importance
  Bytes needed = 0;
  Bytes margin = 0;  ///< kept free besides
  Bytes in_use = 0;
  Bytes total = 0;
  std::string rule;     ///< that `needed` follows from
  Bytes strangers = 0;  ///< memory that processes outside berth hold
  bool own = false;     ///< those of them that are in the way are the user's own
  std::uint32_t utilization = 0;
  std::uint32_t utilization_max = 0;
  std::vector<std::uint64_t> jobs;  ///< who has claims on it
  std::string detail;

  friend bool operator==(const ObstacleView&, const ObstacleView&) = default;
};

struct ReasonView {
  std::string kind;  ///< for programs: "gpu", "queue_limit", "dependency", …
  std::string text;  ///< for people
  std::map<std::string, std::uint64_t> numbers = {};  ///< as in CauseView
  std::map<std::string, std::string> names = {};
  std::vector<std::uint64_t> jobs = {};
  std::vector<ObstacleView> gpus = {};  ///< one per card that is in the way

  friend bool operator==(const ReasonView&, const ReasonView&) = default;
};

/// When it can have cards, as data.
struct OutlookView {
  std::vector<std::uint32_t> gpus;
  std::vector<std::uint64_t> jobs;  ///< that have to end first
  std::optional<Millis> within;

  friend bool operator==(const OutlookView&, const OutlookView&) = default;
};

struct WhyView {
  JobView job;
  std::vector<ReasonView> reasons;           ///< most important first; empty: it does not wait
  std::optional<std::uint64_t> ahead = {};   ///< jobs of its queue that go first; none: not in line
  std::string outlook = {};                  ///< what would have to end, and when; empty: not known
  std::optional<OutlookView> foreseen = {};  ///< the same as data

  friend bool operator==(const WhyView&, const WhyView&) = default;
};

/// Jobs that wait for the same reason.
struct HoldupView {
  std::string kind;
  std::string text;
  std::uint64_t first = 0;  ///< the first of them
  std::uint64_t jobs = 0;
  ReasonView why = {};

  friend bool operator==(const HoldupView&, const HoldupView&) = default;
};

/// What holds up all that waits.
struct BacklogView {
  std::uint64_t waiting = 0;
  std::vector<HoldupView> holdups;  ///< what holds up the most jobs first

  friend bool operator==(const BacklogView&, const BacklogView&) = default;
};

struct GpuProcessView {
  std::uint32_t pid = 0;
  std::optional<std::uint32_t> uid;
  std::string user;  ///< empty: not known, or not yet
  std::string name;
  std::string command;          ///< its command line; empty: not known, or not yet
  std::optional<Millis> since;  ///< its start, since 1970
  std::optional<Bytes> memory;
  std::uint64_t job = 0;  ///< 0: not one of ours
  std::uint64_t attempt = 0;

  friend bool operator==(const GpuProcessView&, const GpuProcessView&) = default;
};

struct ClaimView {
  std::uint64_t job = 0;
  std::uint64_t attempt = 0;
  std::optional<Bytes> memory;  ///< none: the whole card

  friend bool operator==(const ClaimView&, const ClaimView&) = default;
};

struct GpuView {
  std::uint32_t index = 0;
  std::string uuid;
  std::string name;
  std::string node;
  std::optional<Bytes> memory_total;
  std::optional<Bytes> memory_used;
  std::optional<Bytes> memory_free;
  std::optional<Bytes> memory_left = {};     ///< of memory_free, what no job has claimed
  std::optional<std::uint32_t> utilization;  ///< percent
  std::optional<std::uint32_t> temperature;  ///< Celsius
  std::optional<std::uint32_t> power_mw;
  std::optional<std::vector<GpuProcessView>> processes;
  /// "free" "claimed" "foreign" "reserved" "unknown" "drained" "trouble"
  std::string state;
  std::string trouble;             ///< why it cannot be used; empty: healthy
  std::string reserved;            ///< why it is kept from our jobs while healthy; empty: it is not
  std::string reserved_kind = {};  ///< the same as data: "left", "not_allowed", "other_berth"
  std::string reserved_detail = {};  ///< the rule, or whose berth
  std::string drained_why = {};      ///< given with `berth pause --gpu`; empty: it is in use
  bool lost = false;                 ///< with `trouble`: it is gone, or must be reset
  std::vector<ClaimView> claims;

  friend bool operator==(const GpuView&, const GpuView&) = default;
};

struct QueueView {
  std::string name;
  std::uint32_t limit = 0;  ///< 0: none
  std::uint32_t running = 0;
  bool paused = false;
  std::optional<std::uint64_t> waiting = {};  ///< in its line; none: not counted

  friend bool operator==(const QueueView&, const QueueView&) = default;
};

struct StatusView {
  std::string version;
  std::uint32_t pid = 0;
  std::string instance;  ///< bytes; the directory that holds its state
  std::string node;
  Millis uptime{0};
  std::map<JobState, std::uint64_t> counts;  ///< every state appears on the wire
  std::vector<GpuView> gpus;
  struct Probe {
    std::string driver;
    std::optional<Millis> age;  ///< of the last sample; none: there was none
    std::string error;
    bool simulated = false;
    friend bool operator==(const Probe&, const Probe&) = default;
  } probe;
  /// How long the daemon's loop was held; see docs/performance.md.
  struct LoopTimes {
    std::uint64_t tasks = 0;
    std::uint64_t over_limit = 0;       ///< held it for more than 5 ms of processor time
    std::uint64_t longest_us = 0;       ///< processor time
    std::uint64_t longest_wall_us = 0;  ///< with whatever else the machine did meanwhile
    friend bool operator==(const LoopTimes&, const LoopTimes&) = default;
  } loop;
  struct Space {
    bool low = false;
    std::string detail;
    friend bool operator==(const Space&, const Space&) = default;
  } space;
  std::vector<QueueView> queues;
  bool paused = false;                ///< the instance starts nothing
  std::vector<std::string> problems;  ///< with the instance's settings

  friend bool operator==(const StatusView&, const StatusView&) = default;
};

/// One line of history.
struct EventView {
  std::uint64_t seq = 0;
  Millis time{0};
  std::string kind;
  std::uint64_t job = 0;  ///< 0: none; likewise below
  std::uint64_t attempt = 0;
  std::uint64_t batch = 0;
  std::string detail;

  friend bool operator==(const EventView&, const EventView&) = default;
};

struct EventPage {
  std::vector<EventView> events;
  std::uint64_t last = 0;  ///< pass as `after` to go on
  bool more = false;       ///< there may be more beyond `last` already

  friend bool operator==(const EventPage&, const EventPage&) = default;
};

struct SubmitAnswer {
  std::uint64_t batch = 0;  ///< 0: none was made
  std::uint64_t first = 0;  ///< ids of one submission are consecutive
  std::uint64_t last = 0;

  friend bool operator==(const SubmitAnswer&, const SubmitAnswer&) = default;
};

/// Every id asked for appears in exactly one list.
struct KillAnswer {
  std::vector<std::uint64_t> killed;     ///< were running; are being ended
  std::vector<std::uint64_t> cancelled;  ///< were waiting; will not start
  std::vector<std::uint64_t> finished;   ///< had ended before
  std::vector<std::uint64_t> unknown;

  friend bool operator==(const KillAnswer&, const KillAnswer&) = default;
};

/// What became of a part of those asked for. Every job of it is in `removed` or in the list that
/// says why not.
struct RemoveAnswer {
  std::vector<std::uint64_t> removed;
  std::vector<std::uint64_t> cancelled;  ///< those of `removed` that were waiting
  std::vector<std::uint64_t> running;    ///< to be killed first
  std::vector<std::uint64_t> needed;     ///< waiting jobs follow them
  std::uint64_t logs = 0;                ///< log files that went with them
  std::optional<std::uint64_t> next;     ///< pass as `after` for the next part

  friend bool operator==(const RemoveAnswer&, const RemoveAnswer&) = default;
};

/// The last backup of this daemon.
struct BackupView {
  std::string path;  ///< bytes; empty: there was none
  bool running = false;
  std::uint64_t pages = 0;  ///< copied so far
  std::uint64_t total = 0;  ///< 0: not known yet
  Bytes size = 0;           ///< when done
  std::string error;        ///< why it failed; empty: it did not
  std::string code;         ///< of that error

  friend bool operator==(const BackupView&, const BackupView&) = default;
};

/// The last time this daemon was asked to start again from a backup.
struct RestoreView {
  std::string path;  ///< bytes; empty: never
  std::string key;   ///< of who asked
  bool running = false;
  std::string message;  ///< what was done, in lines
  std::string error;    ///< why it failed; empty: it did not. All is as it was then
  std::string code;     ///< of that error

  friend bool operator==(const RestoreView&, const RestoreView&) = default;
};

struct WaitAnswer {
  bool done = false;
  std::vector<JobView> jobs;
  std::vector<std::uint64_t> unknown;  ///< of those asked for, if they are no more than a page

  friend bool operator==(const WaitAnswer&, const WaitAnswer&) = default;
};

/// Whether an experiment has been done before, or is under way. Both must be the same for two jobs
/// to be the same experiment.
struct DoneQuestion {
  std::uint64_t fingerprint = 0;
  std::string name;

  friend bool operator==(const DoneQuestion&, const DoneQuestion&) = default;
};

struct DoneView {
  std::uint64_t succeeded = 0;  ///< the newest job that ran and has ended, if it has; 0: none
  std::string log;              ///< bytes; of its last attempt
  std::uint64_t alive = 0;      ///< the newest job that has not ended; 0: none

  friend bool operator==(const DoneView&, const DoneView&) = default;
};

/// One for each question, in the same order.
struct DoneAnswer {
  std::vector<DoneView> jobs;

  friend bool operator==(const DoneAnswer&, const DoneAnswer&) = default;
};

/// The commands in one line as one would type them into bash: words quoted where needed, several
/// commands joined by "; ". At most `max_bytes` long, then cut with "…".
[[nodiscard]] std::string display_commands(const std::vector<Command>& commands,
                                           std::size_t max_bytes = 4096);

}  // namespace berth
