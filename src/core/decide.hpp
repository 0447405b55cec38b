#pragma once
// The policy: what to start next, and who has to make room for it.
//
// Pure: no clock, I/O, logging or randomness, so equal arguments give equal decisions. It asks the
// same Room as `explain`, so that an explanation cannot contradict a decision.

#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "core/room.hpp"
#include "core/state.hpp"

namespace berth {

struct Placement {
  JobId job;
  std::vector<std::size_t> gpus;  ///< positions in State::gpus

  friend bool operator==(const Placement&, const Placement&) = default;
};

/// An attempt that has to end so that a job of higher priority can start.
struct Preemption {
  AttemptId attempt;
  JobId by;

  friend bool operator==(const Preemption&, const Preemption&) = default;
};

/// A job with a limit to its wait, the first of its lane and shape, that was looked at and waits.
struct Waiting {
  LaneKey lane;
  ShapeId shape;
  JobId job;
  bool only_gpus = false;  ///< nothing but missing GPUs holds it

  friend bool operator==(const Waiting&, const Waiting&) = default;
};

struct Decision {
  std::vector<Placement> start;
  std::vector<Preemption> preempt;
  /// For whom cards are kept from now on. Only if everything was looked at (`complete`).
  std::optional<Hold> hold;
  bool complete = false;
  /// Not everything was looked at, and somebody waits for whom cards may have to be kept.
  bool look_again = false;
  /// Who lacks nothing but the next look; see State::expected.
  std::vector<JobId> expected;
  bool want_sample = false;  ///< a job could not be judged for lack of a fresh look at the GPUs
  Millis look_after{0};      ///< the look that is wanted must not have begun before
  /// How old a look at the GPUs may be for each of those that were looked at and wait for some.
  std::optional<Millis> look_within;
  bool shut = false;  ///< nothing may start, whatever room there is
  std::vector<Waiting> waits;
};

[[nodiscard]] Decision decide(const State& state, Now now);

/// When an attempt will be over at the latest, by the monotonic clock, if that is known.
[[nodiscard]] std::optional<Millis> end_of(const State& state, const Attempt& attempt);

/// What has to be so that a job could have its cards: when, and which.
struct Outlook {
  std::optional<Millis> when;  ///< none: when jobs end of which nobody knows how long they take
  std::vector<std::string> gpus;
  std::set<AttemptId> after;  ///< which have to end for that
};
/// None if it does not fit even when all our own work has ended. As few have to end as possible,
/// the oldest before others.
[[nodiscard]] std::optional<Outlook> outlook(const State& state, const Job& job, Now now);

}  // namespace berth
