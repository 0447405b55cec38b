#pragma once
// One run of the real core and engine in a simulated world, decided by one number.

#include <cstdint>
#include <optional>
#include <string>

#include "sim/plant.hpp"
#include "sim/trace.hpp"

namespace berth::sim {

struct Options {
  std::uint64_t seed = 1;
  std::uint64_t actions = 24;  ///< requests of clients
  Plant plant = Plant::none;
  Trace::Keep keep = Trace::Keep::hash;
};

struct Outcome {
  std::optional<std::string> failure;  ///< what a checker saw, as a sentence
  std::uint64_t trace_hash = 0;
  std::string trace;  ///< only when kept
  std::uint64_t moments = 0;
  std::uint64_t jobs = 0;
  std::uint64_t lives = 0;   ///< of the daemon
  std::uint64_t struck = 0;  ///< how often the planted bug did
};

[[nodiscard]] Outcome simulate(const Options& options);

/// Makes a broken invariant, which ends the process, name the seed it happened in.
void name_seed_on_abort();

/// How to see a run again: a command line.
[[nodiscard]] std::string how_to_replay(const Options& options);

}  // namespace berth::sim
