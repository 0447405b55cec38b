#pragma once
// What is left of the machine at one moment, and whether a job fits into it.
//
// The predicates here serve decisions and explanations alike, so that the two cannot disagree.

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/foreign.hpp"
#include "core/state.hpp"

namespace berth {

struct CardChoice;

/// Who wants room, and under which rules.
struct Wish {
  const Request* request = nullptr;
  const Rules* rules = nullptr;
  JobId job;
  BatchId batch;
  bool forced = false;       ///< started by hand: neither limits nor busy strangers count
  bool before_hold = false;  ///< goes before the job that cards are kept for
  const std::vector<Avoided>* avoid = nullptr;  ///< cards on which it failed
  Millis look_after{0};  ///< a look at the cards that began before tells it nothing
};

[[nodiscard]] Wish wish_of(const State& state, const Job& job);

/// Why a job cannot have one particular card.
struct GpuObstacle {
  enum class Kind : std::uint8_t {
    stale,        ///< not seen recently enough to decide anything
    trouble,      ///< lost, unreadable
    drained,      ///< taken out of use
    not_allowed,  ///< by the rule `gpus`
    left,         ///< left to others by the rule `gpu_left`
    other_berth,  ///< another user's berth has it
    unknown,      ///< the driver does not say how much memory is free
    claimed,      ///< one of our attempts has it, or a share when the whole is wanted
    ending,       ///< its last attempt has ended; a fresh look must show that it is free
    own_process,  ///< a process of ours outside berth is on it
    avoided,      ///< the job failed there, and not through its own fault
    strangers,    ///< somebody is on it whom the rules wait for
    quiet,        ///< strangers have left it only just now
    utilization,  ///< strangers are busy on it
    keep_memory,  ///< too much of it is in use, by the rule `keep_gpu_memory`
    memory,       ///< not enough is free
    too_small,    ///< never will be enough
    held,         ///< kept for a job that goes first
  };
  Kind kind = Kind::stale;
  std::uint32_t index = 0;
  Bytes free = 0;  ///< after claims and margin
  Bytes needed = 0;
  Bytes margin = 0;     ///< that is kept free besides, by the rule `memory_margin`
  Bytes in_use = 0;     ///< or promised, where a rule minds that
  Bytes total = 0;      ///< of the card, likewise
  std::string rule;     ///< `needed` follows from it; empty: the job has asked for so much
  Bytes strangers = 0;  ///< memory that processes outside berth hold
  bool own = false;     ///< those that are in the way are our own
  std::uint32_t utilization = 0;
  std::uint32_t utilization_max = 0;
  std::vector<JobId> jobs;  ///< who has claims on it
  std::string detail;

  friend bool operator==(const GpuObstacle&, const GpuObstacle&) = default;
};

/// How many cards may be in use at once, and how many are.
struct Quota {
  std::uint32_t allowed = 0;
  std::uint32_t used = 0;
  bool of_batch = false;
  // What it follows from.
  std::uint32_t available = 0;
  std::uint32_t gpu_left = 0;  ///< with `gpu_left_mode` any
  std::uint32_t min_gpu = 0;
  std::uint32_t max_gpu = 0;

  [[nodiscard]] std::uint32_t left() const { return allowed > used ? allowed - used : 0; }
};

/// Shrinks as a decision places jobs.
class Room {
 public:
  /// `without`: as if these attempts had ended.
  Room(const State& state, Now now, const std::set<AttemptId>* without = nullptr);

  /// Cards for the wish, best first, or nothing if it does not fit now.
  [[nodiscard]] std::optional<std::vector<std::size_t>> place(const Wish& wish) const;
  void take(const Wish& wish, const std::vector<std::size_t>& gpus);
  /// Keeps cards for a job; others may have them if they are gone by `until`.
  void hold(Hold hold) { hold_ = std::move(hold); }
  void release_hold() { hold_.reset(); }
  [[nodiscard]] const std::optional<Hold>& held() const { return hold_; }

  [[nodiscard]] std::optional<GpuObstacle> obstacle(std::size_t gpu, const Wish& wish) const;
  /// The memory of a card that is free after claims; none: the driver does not say.
  [[nodiscard]] std::optional<Bytes> left_on(std::size_t gpu) const;
  /// Whether the wish could have the card if only others left it.
  [[nodiscard]] bool others_alone_keep(std::size_t gpu, const Wish& wish) const;
  /// Whether others of its own batch have a card that it could use.
  [[nodiscard]] bool own_batch_keeps(const Wish& wish) const;
  /// The quotas that count for the wish.
  [[nodiscard]] std::vector<Quota> quotas(const Wish& wish) const;
  /// The quota that keeps the wish from starting, if one does; its cards are another matter.
  [[nodiscard]] std::optional<Quota> full_quota(const Wish& wish) const;
  [[nodiscard]] std::size_t gpu_count() const { return cards_.size(); }
  [[nodiscard]] std::uint64_t cpus_free() const;
  [[nodiscard]] Bytes memory_free() const;
  [[nodiscard]] std::uint64_t resource_free(const std::string& name) const;
  [[nodiscard]] bool host_fits(const Wish& wish) const;
  /// Whether the rules mind the memory of the host, and what is known of it is too old.
  [[nodiscard]] bool host_stale(const Wish& wish) const;
  /// Whether `keep_host_memory` lets it start.
  [[nodiscard]] bool keeps_host_memory(const Wish& wish) const;
  [[nodiscard]] Now now() const { return now_; }
  /// Whether all that is known of the GPUs is too old to decide on by these rules.
  [[nodiscard]] bool stale(const Rules& rules) const;
  /// The same for one job.
  [[nodiscard]] bool stale(const Wish& wish) const;
  /// Whether a job that would do without a card has to wait for a look that may show it one.
  [[nodiscard]] bool awaits_look(const Wish& wish) const;
  /// What began before decides nothing. While nobody runs or waits nobody looks, so who comes then
  /// would be decided on by what was so for somebody else.
  [[nodiscard]] Millis look_after() const { return look_after_; }
  /// The cards the rule `gpus` names that are not there.
  [[nodiscard]] std::vector<std::string> absent(const Rules& rules) const;
  [[nodiscard]] const std::string& uuid(std::size_t gpu) const {
    return cards_[gpu].gpu->facts.uuid;
  }

 private:
  struct Card {
    const Gpu* gpu = nullptr;
    std::optional<Bytes> free;    ///< after claims
    bool whole = false;           ///< one claim covers all of it
    bool claimed_before = false;  ///< an attempt of ours may have been at work when it was seen
    std::uint32_t claims = 0;
    std::vector<JobId> claimants;
    std::vector<BatchId> batches;  ///< of the claimants
    Bytes held = 0;                ///< by the processes on it
    bool ending = false;           ///< all claims are of ended attempts
  };

  [[nodiscard]] bool is_stale(const Card& card, const Rules& rules) const;
  [[nodiscard]] bool is_allowed(const Card& card, const Rules& rules) const;
  /// The cards that `gpu_left` leaves to others, by position.
  [[nodiscard]] bool is_left(std::size_t gpu, const Rules& rules) const;
  /// Whether it is in use by us, of all or of one batch.
  [[nodiscard]] bool is_ours(const Card& card, BatchId batch) const;
  /// Whether it is ours or could be.
  [[nodiscard]] bool is_available(std::size_t gpu, const Rules& rules) const;
  [[nodiscard]] Quota quota_of(const Rules& rules, BatchId batch) const;
  /// What stays free at all times, whoever uses the others; a batch's `min_gpu` lifts it.
  [[nodiscard]] Quota fence_of(const Rules& rules, BatchId batch) const;
  /// Whether the card would do for the wish if nobody were on it.
  [[nodiscard]] bool would_do(std::size_t gpu, const Wish& wish) const;
  /// Whether the wish had better wait than be tried there again.
  [[nodiscard]] const Avoided* avoided(std::size_t gpu, const Wish& wish) const;
  /// The best of these cards, as many as are wanted and allowed.
  [[nodiscard]] std::optional<std::vector<std::size_t>> choose(std::vector<CardChoice> cards,
                                                               const Wish& wish) const;
  [[nodiscard]] bool is_held(std::size_t gpu, const Wish& wish) const;
  [[nodiscard]] Bytes needed(const Card& card, const Wish& wish) const;
  /// Whether that is what the rule `min_free_memory` says, not what the job has asked for.
  [[nodiscard]] static bool needs_by_rule(const Wish& wish);
  [[nodiscard]] std::optional<GpuObstacle::Kind> excluded(std::size_t gpu, const Wish& wish,
                                                          GpuObstacle& result) const;
  [[nodiscard]] std::optional<GpuObstacle::Kind> strangers_obstacle(const Card& card,
                                                                    const Wish& wish,
                                                                    GpuObstacle& result) const;

  const State* state_;
  Now now_;
  Millis look_after_{0};
  std::vector<Card> cards_;
  std::string last_gpu_;
  HostUse use_;
  std::optional<Hold> hold_;
};

/// The cards that jobs wait for whom nothing but others keeps from them, by UUID.
[[nodiscard]] std::set<std::string> awaited_cards(const State& state, Now now);

}  // namespace berth
