#pragma once
// The policy: what to start next, and why what waits is waiting.
//
// Pure: no clock, I/O, logging or randomness, so equal arguments give equal decisions. The
// predicates here serve `explain` too, so that an explanation cannot contradict a decision.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/state.hpp"

namespace berth {

struct Placement {
  JobId job;
  std::vector<std::size_t> gpus;  ///< positions in State::gpus

  friend bool operator==(const Placement&, const Placement&) = default;
};

struct Decision {
  std::vector<Placement> start;
  bool want_sample = false;  ///< a job could not be judged for lack of a fresh look at the GPUs
};

/// Why a job cannot have one particular card.
struct GpuObstacle {
  enum class Kind : std::uint8_t {
    stale,        ///< not seen recently enough to decide anything
    trouble,      ///< lost, drained, unreadable
    unknown,      ///< the driver does not say how much memory is free
    claimed,      ///< one of our attempts has it, or a share when the whole is wanted
    ending,       ///< its last attempt has ended; a fresh look must show that it is free
    utilization,  ///< strangers are busy on it
    memory,       ///< not enough is free
    too_small,    ///< never will be enough
  };
  Kind kind = Kind::stale;
  std::uint32_t index = 0;
  Bytes free = 0;  ///< after claims
  Bytes needed = 0;
  Bytes strangers = 0;  ///< memory that processes outside berth hold
  std::uint32_t utilization = 0;
  std::uint32_t utilization_max = 0;
  std::vector<JobId> jobs;  ///< who has claims on it
  std::string detail;

  friend bool operator==(const GpuObstacle&, const GpuObstacle&) = default;
};

/// What is left of everything at one moment; shrinks as a decision places jobs.
class Room {
 public:
  Room(const State& state, Now now);

  /// Cards for the request, best first, or nothing if it does not fit now.
  [[nodiscard]] std::optional<std::vector<std::size_t>> place(const Request& request) const;
  void take(const Request& request, const std::vector<std::size_t>& gpus, JobId job);

  [[nodiscard]] std::optional<GpuObstacle> obstacle(std::size_t gpu, const Request& request) const;
  [[nodiscard]] std::size_t gpu_count() const { return cards_.size(); }
  [[nodiscard]] std::uint64_t cpus_free() const;
  [[nodiscard]] Bytes memory_free() const;
  [[nodiscard]] std::uint64_t resource_free(const std::string& name) const;
  [[nodiscard]] bool host_fits(const Request& request) const;
  /// Whether all that is known of the GPUs is too old to decide on.
  [[nodiscard]] bool stale() const { return stale_; }

 private:
  struct Card {
    std::uint32_t index = 0;
    bool stale = true;
    std::string trouble;
    std::optional<Bytes> total;
    std::optional<Bytes> free;  ///< after claims and margin
    Bytes strangers = 0;
    bool strangers_present = false;  ///< even if what they hold is not known
    std::uint32_t stranger_utilization = 0;
    bool utilization_unknown = false;
    bool whole = false;  ///< one claim covers all of it
    std::uint32_t claims = 0;
    std::vector<JobId> claimants;
    bool ending = false;  ///< all claims are of ended attempts
  };

  const State* state_;
  std::vector<Card> cards_;
  HostUse use_;
  bool stale_ = true;
};

[[nodiscard]] Decision decide(const State& state, Now now);

}  // namespace berth
