#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "sim/random.hpp"
#include "sim/simulation.hpp"
#include "sim/timeline.hpp"

namespace berth::sim {
namespace {

Options of(std::uint64_t seed, Plant plant = Plant::none, Trace::Keep keep = Trace::Keep::hash) {
  Options options;
  options.seed = seed;
  options.plant = plant;
  options.keep = keep;
  return options;
}

TEST(Random, GivesTheSameNumbersEverywhere) {
  Random random(42);
  EXPECT_EQ(random.next(), 0x15780B2E0C2EC716U);
  EXPECT_EQ(random.next(), 0x6104D9866D113A7EU);
  for (int i = 0; i < 1'000; ++i) {
    const std::uint64_t n = random.between(3, 5);
    EXPECT_TRUE(n >= 3 && n <= 5);
    EXPECT_LT(random.skewed(5, 100), Millis{101});
  }
}

TEST(Timeline, ActsInOrderOfTimeAndThenOfAsking) {
  Timeline timeline;
  std::vector<int> seen;
  timeline.after(Millis{20}, Timeline::Of::world, [&] { seen.push_back(3); });
  timeline.after(Millis{10}, Timeline::Of::world, [&] { seen.push_back(1); });
  timeline.after(Millis{10}, Timeline::Of::world, [&] { seen.push_back(2); });
  while (timeline.step()) {
  }
  EXPECT_EQ(seen, (std::vector{1, 2, 3}));
}

TEST(Timeline, ForgetsWhatADeadDaemonHadInMind) {
  Timeline timeline;
  int seen = 0;
  timeline.after(Millis{1}, Timeline::Of::daemon, [&] { seen += 1; });
  timeline.after(Millis{1}, Timeline::Of::world, [&] { seen += 10; });
  timeline.daemon_died();
  timeline.after(Millis{1}, Timeline::Of::daemon, [&] { seen += 100; });
  while (timeline.step()) {
  }
  EXPECT_EQ(seen, 110);
}

TEST(Timeline, CountsFromZeroAfterAReboot) {
  Timeline timeline;
  timeline.after(Millis{5'000}, Timeline::Of::world, [&] { timeline.rebooted(); });
  timeline.after(Millis{5'007}, Timeline::Of::world, [&] { timeline.jump_wall(Millis{-60'000}); });
  timeline.step();
  EXPECT_EQ(timeline.now().mono, Millis{0});
  const Millis wall = timeline.now().wall;
  timeline.step();
  EXPECT_EQ(timeline.now().mono, Millis{7});
  EXPECT_EQ(timeline.now().wall, wall + Millis{7} - Millis{60'000});
}

TEST(Simulation, ReplaysByteForByte) {
  for (const std::uint64_t seed : {1U, 2U, 3U, 77U, 4'711U}) {
    const Outcome first = simulate(of(seed, Plant::none, Trace::Keep::text));
    const Outcome second = simulate(of(seed, Plant::none, Trace::Keep::text));
    EXPECT_EQ(first.failure, std::nullopt) << "seed " << seed;
    EXPECT_FALSE(first.trace.empty());
    EXPECT_TRUE(first.trace == second.trace) << "seed " << seed;
    EXPECT_EQ(first.trace_hash, second.trace_hash);
    EXPECT_EQ(first.moments, second.moments);
    EXPECT_EQ(first.trace_hash, simulate(of(seed)).trace_hash) << "keeping the text changed it";
  }
}

/// A neighbour's memory, users with different shares, shares that change while cards are kept, a
/// job that stands still as its card is lost, parts of a submission that never came.
TEST(Simulation, HoldsWhereItOnceDidNot) {
  for (const std::uint64_t seed : {224U, 3'128U, 3'226U, 4'435U, 6'471U, 7'401U}) {
    EXPECT_EQ(simulate(of(seed)).failure, std::nullopt) << "seed " << seed;
  }
}

TEST(Simulation, DiffersFromSeedToSeed) {
  EXPECT_NE(simulate(of(1)).trace_hash, simulate(of(2)).trace_hash);
}

struct Planted {
  Plant plant;
  /// What a checker's sentence about it may contain.
  std::vector<std::string> says;
};

class PlantedBug : public testing::TestWithParam<Planted> {};

TEST_P(PlantedBug, IsCaughtAndReplays) {
  constexpr std::uint64_t kSeeds = 60;
  std::uint64_t caught = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const Options options = of(seed, GetParam().plant);
    const Outcome outcome = simulate(options);
    // Wherever the bug struck it is seen, and nothing else is.
    EXPECT_EQ(outcome.failure.has_value(), outcome.struck > 0)
        << "seed " << seed << ": struck " << outcome.struck << " times";
    if (!outcome.failure) {
      continue;
    }
    ++caught;
    bool expected = false;
    for (const std::string& part : GetParam().says) {
      expected = expected || outcome.failure->find(part) != std::string::npos;
    }
    EXPECT_TRUE(expected) << "seed " << seed << ": " << *outcome.failure;
    if (caught == 1) {
      const Outcome again = simulate(options);
      EXPECT_EQ(again.failure, outcome.failure);
      EXPECT_EQ(again.trace_hash, outcome.trace_hash);
      EXPECT_EQ(simulate(of(seed)).failure, std::nullopt) << "it fails without the bug, too";
      EXPECT_NE(how_to_replay(options).find(to_string(GetParam().plant)), std::string::npos);
    }
  }
  EXPECT_GT(caught, kSeeds / 2) << "the bug hardly ever strikes";
}

INSTANTIATE_TEST_SUITE_P(
    Simulation, PlantedBug,
    testing::Values(Planted{Plant::lost_exit, {"for ever", "count as running"}},
                    Planted{Plant::double_start, {"ran twice"}},
                    Planted{Plant::leaked_claim, {"still promised", "for ever"}}),
    [](const auto& each) { return std::string(to_string(each.param.plant)); });

}  // namespace
}  // namespace berth::sim
