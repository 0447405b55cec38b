#pragma once
// What holds up everything that waits, and where one job stands in it. Computed when asked for.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/reason.hpp"
#include "core/state.hpp"

namespace berth {

/// Jobs that wait for the same reason.
struct Holdup {
  Reason reason;  ///< of the first of them that was looked at
  JobId first;    ///< whoever goes first
  std::uint64_t jobs = 0;
};

struct Backlog {
  std::uint64_t waiting = 0;
  std::vector<Holdup> holdups;  ///< what holds up the most jobs first
};

/// One look per lane and shape, not per job.
[[nodiscard]] Backlog backlog(const State& state, Now now);

/// Whether those behind it in its line wait for it, not for what it waits for: its queue is serial.
[[nodiscard]] bool waits_for_its_turn_alone(const State& state, const Job& job);

/// How many jobs of its queue go before it; none: it does not stand in line. Counts no further than
/// `most`.
[[nodiscard]] std::optional<std::uint64_t> jobs_ahead(const State& state, const Job& job,
                                                      std::uint64_t most);

/// When a job that waits for cards can have them.
struct Prospect {
  std::vector<std::uint32_t> gpus;  ///< indices, ascending
  std::vector<JobId> jobs;          ///< that have to end first, ascending
  std::optional<Millis> within;     ///< none: not known
};

[[nodiscard]] std::string describe(const Prospect& prospect);

/// None: nobody knows, or it does not wait for them.
[[nodiscard]] std::optional<Prospect> foretell(const State& state, const Job& job, Now now);

}  // namespace berth
