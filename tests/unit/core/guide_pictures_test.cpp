// What the pictures of docs/guide tell happens so. Who changes a case here changes the picture, too
// (docs/guide/pictures).

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/room.hpp"
#include "core/usage.hpp"
#include "unit/core/world.hpp"

namespace berth::testing {
namespace {

constexpr Millis kMinute{60'000};
constexpr Millis kHour = 60 * kMinute;
constexpr Millis kDay = 24 * kHour;
constexpr Millis kWeek = 7 * kDay;

/// What a new job finds free on the first card.
Bytes free_on_card(const World& world, Bytes margin = 0) {
  Request request;
  request.gpu_memory = 24 * kGiB;
  Rules rules;
  rules.memory_margin = margin;
  Wish wish;
  wish.request = &request;
  wish.rules = &rules;
  const auto obstacle = Room(world.state, world.now).obstacle(0, wish);
  return obstacle ? obstacle->free : 24 * kGiB;
}

TEST(GuidePictures, Room) {
  World world;
  world.see_idle(1);
  world.submit({a_job().memory(8 * kGiB)});
  EXPECT_EQ(world.decide(), "1:0");
  const AttemptId job = world.attempt_of(1);
  world.see({a_gpu(0)
                 .with(a_stranger().memory(4 * kGiB))
                 .with(a_process_of(job.value).memory(5 * kGiB))});
  EXPECT_EQ(free_on_card(world, kGiB), 11 * kGiB);
}

TEST(GuidePictures, Claim) {
  World world;
  world.see_idle(1);
  world.submit({a_job().memory(10 * kGiB).rule("shrink_claims", "10m")});
  EXPECT_EQ(world.decide(), "1:0");
  const std::uint64_t attempt = world.attempt_of(1).value;
  EXPECT_EQ(free_on_card(world), 14 * kGiB) << "all of it counts at once";
  struct Look {
    int minute;
    Bytes used;
    Bytes counted;
  };
  const Millis begin = world.now.mono - kMinute;  // it is decided in minute 1
  for (const Look& look : {Look{2, 2, 10}, Look{4, 4, 10}, Look{6, 6, 10}, Look{15, 6, 10},
                           Look{16, 6, 6}, Look{24, 6, 6}, Look{25, 8, 10}, Look{27, 11, 11}}) {
    world.wait(begin + look.minute * kMinute - world.now.mono);
    world.see({a_gpu(0).with(a_process_of(attempt).memory(look.used * kGiB))});
    EXPECT_EQ(24 * kGiB - free_on_card(world), look.counted * kGiB) << "minute " << look.minute;
  }
}

TEST(GuidePictures, GiveWay) {
  for (const std::string how : {"requeue", "pause"}) {
    World world;
    world.see_idle(1);
    world.submit({a_job().rule("opportunistic", how)});
    EXPECT_EQ(world.decide(), "1:0");
    const Millis begin = world.now.mono;
    std::string told;
    for (int minute = 1; minute <= 7; ++minute) {
      world.wait(begin + minute * kMinute - world.now.mono);
      GpuBuilder card = a_gpu(0);
      if (minute >= 3 && minute <= 6) {
        GpuProcess trains = a_stranger().memory(4 * kGiB).utilization(95);
        trains.age = (minute - 3) * kMinute + Millis{1};
        card.with(trains);
      }
      world.see({card});
      if (!world.effects().empty()) {
        told += fmt::format("{}:{} ", minute, world.effects());
      }
    }
    EXPECT_EQ(told, how == "pause" ? "3:pause 7:resume " : "3:kill ");
  }
}

TEST(GuidePictures, Backfill) {
  World world;
  world.see_idle(4);
  world.submit({a_job().time(3 * kHour), a_job().time(4 * kHour)});
  EXPECT_EQ(world.decide(), "1:0 2:1");
  const Millis eleven = world.now.mono;
  world.wait(kHour);
  world.see_again();
  world.submit({a_job().gpus(4), a_job().time(2 * kHour), a_job().time(4 * kHour), a_job()});
  EXPECT_EQ(world.decide(), "4:2");
  ASSERT_TRUE(world.state.hold);
  EXPECT_EQ(world.state.hold->job, JobId{3});
  EXPECT_EQ(world.state.hold->gpus.size(), 4);
  EXPECT_EQ(world.state.hold->until, eleven + 4 * kHour);
}

TEST(GuidePictures, Topology) {
  std::vector<GpuFacts> gpus;
  for (std::uint32_t i = 0; i < 8; ++i) {
    GpuFacts facts = a_gpu(i);
    for (std::uint32_t other = 0; other < 8; ++other) {
      facts.links[fmt::format("GPU-{}", other)] = i / 2 == other / 2   ? GpuLink::nvlink
                                                  : i / 4 == other / 4 ? GpuLink::numa
                                                                       : GpuLink::system;
    }
    gpus.push_back(std::move(facts));
  }
  World world;
  world.see(gpus);
  world.submit({a_job().gpus(2).rule("gpus", "0,3,6,7"), a_job().gpus(2).rule("gpus", "0,3,6")});
  EXPECT_EQ(world.decide(), "1:6+7 2:0+3");
}

TEST(GuidePictures, FairShare) {
  // Cards that come and go are settled often; here, every three hours.
  const auto used = [](int days, int busy_days, double cards) {
    Usage usage;
    for (Millis at{0}; at < days * kDay; at += 3 * kHour) {
      usage.settle(at, kWeek);
      usage.gpu_ms += at < busy_days * kDay ? cards * static_cast<double>((3 * kHour).count()) : 0;
    }
    usage.settle(days * kDay, kWeek);
    return usage.gpu_ms;
  };
  EXPECT_GT(used(12, 4, 4), used(12, 28, 0.75));
  EXPECT_LT(used(14, 4, 4), used(14, 28, 0.75));
  EXPECT_NEAR(used(18, 4, 4), used(11, 4, 4) / 2, 1);
}

}  // namespace
}  // namespace berth::testing
