#pragma once
// The rules jobs are scheduled by. Each value comes from the closest layer that has one: the job,
// its batch, its queue, the instance, the built-in default. rule_table.hpp knows them by name.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/time.hpp"
#include "base/units.hpp"

namespace berth {

/// One layer of rules: values as they were written, by canonical key.
using Overrides = std::map<std::string, std::string>;

/// Which cards `gpu_left` leaves to others.
enum class LeftMode : std::uint8_t {
  last,  ///< those with the highest indices
  any,   ///< whichever are free, so many at all times
};

/// Which of the cards that fit is taken.
enum class Strategy : std::uint8_t {
  most_free,       ///< the most free memory
  least_utilized,  ///< the least busy over the last seconds
  round_robin,     ///< after the one that was taken last
  best_fit,        ///< the least free memory that is enough
  pack,            ///< one that is in use already, to keep others empty
  spread,          ///< the fewest jobs
  memory_save,     ///< the least of load times free memory
  fragmentation,   ///< the one that keeps the most of what usually waits feasible
  memory_spend,    ///< the least of load times used memory
};

/// The order of jobs of equal standing.
enum class Order : std::uint8_t { fifo, random, largest_first };

/// What processes outside berth mean for a card.
enum class Foreign : std::uint8_t {
  grade,   ///< by owner, memory, utilisation and age
  ignore,  ///< only the memory they hold counts
  share,   ///< only busy ones are in the way
  wait,    ///< any of them is in the way
};

/// What processes of one's own outside berth mean.
enum class ForeignOwn : std::uint8_t {
  as_others,  ///< for placing, what anybody's would; no running job gives way to them
  ignore,     ///< only the memory they hold counts
  wait,       ///< any of them is in the way, also of running jobs that give way
};

/// What a running job does when a stranger comes to its card.
enum class GiveWay : std::uint8_t {
  no,
  requeue,  ///< ends, after its checkpoint signal, and waits again
  pause,    ///< stands still and keeps its memory
};

/// Whether later jobs may overtake one that waits for cards.
enum class Backfill : std::uint8_t {
  easy,  ///< if that does not delay it
  any,   ///< always
  none,  ///< never
};

/// How the time between retries grows.
enum class Backoff : std::uint8_t {
  steps,        ///< none, and a long one after every so many
  exponential,  ///< each a multiple of the one before
};

/// When a failed attempt is followed by another. See retry.hpp.
struct RetryRules {
  Backoff backoff = Backoff::steps;
  std::uint32_t max_retry_before_backoff = 3;  ///< steps; 0: none is long
  Millis backoff_duration{600'000};            ///< steps
  Millis backoff_first{10'000};                ///< exponential
  std::uint32_t backoff_factor = 2;
  Millis backoff_max{3'600'000};
  std::uint32_t jitter = 10;  ///< percent more or less
  /// Retries for what a job cannot help, besides those it has asked for.
  std::uint32_t not_its_fault = 3;
  bool raise_memory = true;         ///< out of GPU memory: again with more
  bool requeue_on_timeout = false;  ///< for jobs that go on where they were
  // Instead of what the job asks for, by class.
  std::optional<std::uint32_t> exit;
  std::optional<std::uint32_t> gpu_oom;
  std::optional<std::uint32_t> host_oom;
  std::optional<std::uint32_t> timeout;
  std::optional<std::uint32_t> cannot_start;
  std::optional<std::uint32_t> gpu_lost;
  std::optional<std::uint32_t> node_lost;
  std::optional<std::uint32_t> preempted;

  friend bool operator==(const RetryRules&, const RetryRules&) = default;
};

struct ForeignRules {
  Foreign policy = Foreign::grade;
  ForeignOwn own = ForeignOwn::as_others;
  /// A process that holds no more than this, is idle and not young is as good as not there.
  Bytes small_memory = kGiB;
  std::uint32_t idle_utilization = 5;  ///< percent; inclusive
  Millis young{10'000};                ///< what is younger may be about to begin

  friend bool operator==(const ForeignRules&, const ForeignRules&) = default;
};

struct Rules {
  // --- placing ---

  /// Memory that must be free on a card for a job that does not say what it needs. None: the
  /// smaller of 8000 MiB and 90 % of the card.
  std::optional<Bytes> min_free_memory;
  /// A card on which strangers use more than this is left alone. Percent, inclusive.
  std::uint32_t max_utilization = 30;
  /// Kept free beyond what jobs claim, per card.
  Bytes memory_margin = 0;
  /// No job is added to a card of which more than this is in use. Percent; 100: no limit.
  std::uint32_t keep_gpu_memory = 100;
  /// Host memory that must stay available for a job to start; 0: none.
  Bytes keep_host_memory = 0;
  /// Allowed cards by index or UUID; empty: all.
  std::vector<std::string> gpus;
  std::uint32_t gpu_left = 0;
  LeftMode gpu_left_mode = LeftMode::last;
  /// The quota of cards in use at once, see Room::quota; max_gpu 0: no limit.
  std::uint32_t min_gpu = 0;
  std::uint32_t max_gpu = 0;
  Strategy strategy = Strategy::most_free;
  /// Cards of one job close to each other, before the strategy's choice.
  bool topology = true;
  /// Several of one's own jobs may share a card; otherwise one's own processes keep it.
  bool maximize_resource_utilization = true;
  /// Memory in use has not grown for so long: the rest of the claim is released; 0: never.
  Millis shrink_claims{0};
  ForeignRules foreign;
  GiveWay opportunistic = GiveWay::no;
  /// So long a card must have been without strangers before it is used again by who gave way.
  Millis quiet_time{60'000};
  bool preemptible = false;  ///< jobs of higher priority may end it; it waits again
  bool cpu_affinity = false;

  // --- ordering ---

  /// Running jobs at most, of the whole instance; 0: no limit.
  std::uint32_t max_concurrent = 0;
  Order order = Order::fifo;
  std::uint64_t seed = 1;  ///< of the random order
  bool fair_share = true;
  Millis half_life{7LL * 24 * 3600 * 1000};
  Millis aging{24LL * 3600 * 1000};  ///< who has waited so long goes first
  Backfill backfill = Backfill::easy;
  /// Cards are kept for a job whose start cannot be foretold once it has waited so long.
  Millis hold_after{10LL * 60 * 1000};
  /// A job that nothing but missing GPUs has held so long is cancelled; 0: it waits for ever.
  Millis max_wait{0};

  RetryRules retry;

  // --- the instance ---

  /// A sample older than this decides nothing.
  Millis sample_age_max{5'000};
  /// How many of each named resource there are.
  std::map<std::string, std::uint64_t> resources;
  /// Finished jobs older than this may be removed; 0: age removes nothing.
  Millis keep_finished{30LL * 24 * 3600 * 1000};
  /// Of finished jobs this many are kept, the newest; 0: their number removes nothing.
  std::uint64_t keep_jobs = 100'000;
  /// What one log that berth names may grow to, head and tail kept; 0: no limit.
  Bytes log_limit = 1024 * kMiB;

  friend bool operator==(const Rules&, const Rules&) = default;
};

/// What the machine has besides GPUs.
struct HostCapacity {
  std::uint32_t cpus = 0;
  Bytes memory = 0;
  std::optional<std::uint32_t> uid = {};  ///< whose processes are our own

  friend bool operator==(const HostCapacity&, const HostCapacity&) = default;
};

}  // namespace berth
