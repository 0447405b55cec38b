// Two thousand worlds, twenty thousand with BERTH_TEST_LONG=1.

#include <cstdlib>

#include <gtest/gtest.h>

#include "sim/simulation.hpp"

namespace berth::sim {
namespace {

TEST(SimulationSeeds, HoldEveryPromise) {
  name_seed_on_abort();
  const char* asked = std::getenv("BERTH_TEST_LONG");
  const bool many = asked != nullptr && asked[0] == '1';
  const std::uint64_t seeds = many ? 20'000 : 2'000;
  std::uint64_t jobs = 0;
  std::uint64_t restarts = 0;
  std::uint64_t failed = 0;
  for (std::uint64_t seed = 1; seed <= seeds && failed < 5; ++seed) {
    Options options;
    options.seed = seed;
    const Outcome outcome = simulate(options);
    jobs += outcome.jobs;
    restarts += outcome.lives - 1;
    if (outcome.failure) {
      ++failed;
      ADD_FAILURE() << "seed " << seed << ": " << *outcome.failure
                    << "\nreplay: " << how_to_replay(options);
    }
  }
  if (failed == 0) {
    // A world in which nothing happens keeps every promise.
    EXPECT_GT(jobs, 20 * seeds);
    EXPECT_GT(restarts, 2 * seeds);
  }
}

}  // namespace
}  // namespace berth::sim
