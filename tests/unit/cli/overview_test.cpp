#include "cli/overview.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "base/units.hpp"

namespace berth::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr Millis kNow{1'700'000'000'000};

JobView a_job(std::uint64_t id, JobState state, const std::string& name = "") {
  JobView job;
  job.id = id;
  job.name = name.empty() ? "job-" + std::to_string(id) : name;
  job.state = state;
  return job;
}

Overview busy(std::size_t running, std::size_t queued, std::size_t failed, std::size_t gpus) {
  Overview out;
  for (std::size_t i = 0; i < gpus; ++i) {
    GpuView gpu;
    gpu.index = static_cast<std::uint32_t>(i);
    gpu.memory_total = 24 * kGiB;
    gpu.memory_used = 12 * kGiB;
    gpu.utilization = 97;
    gpu.state = "claimed";
    gpu.claims = {{i + 1, i + 1, {}}};
    out.status.gpus.push_back(gpu);
  }
  std::uint64_t id = 1;
  for (std::size_t i = 0; i < running; ++i, ++id) {
    JobView job = a_job(id, JobState::running);
    job.started_at = kNow - std::chrono::minutes(30);
    job.gpu_indices = {0, 1};
    out.active.push_back(job);
    out.limits[id] = std::chrono::hours(1);
  }
  for (std::size_t i = 0; i < queued; ++i, ++id) {
    JobView job = a_job(id, JobState::queued);
    job.reason = "reason " + std::to_string(i / 3);
    out.queued.push_back(job);
  }
  for (std::size_t i = 0; i < failed; ++i, ++id) {
    JobView job = a_job(id, JobState::failed);
    job.exit_code = 3;
    job.ended_at = kNow - std::chrono::minutes(5);
    out.failed.push_back(job);
  }
  out.status.counts[JobState::running] = running;
  out.status.counts[JobState::queued] = queued;
  out.status.counts[JobState::failed] = failed;
  return out;
}

Screen a_screen(std::size_t width, std::size_t height) {
  Screen screen;
  screen.terminal = true;
  screen.width = width;
  screen.height = height;
  return screen;
}

TEST(OverviewTest, FitsWhateverThereIs) {
  for (const std::size_t width : {20U, 40U, 80U, 120U, 300U}) {
    for (const std::size_t height : {16U, 24U, 40U}) {
      for (const std::size_t jobs : {0U, 1U, 5U, 20U}) {
        for (const std::size_t gpus : {0U, 1U, 8U, 64U}) {
          const std::string text =
              overview_text(busy(jobs, jobs, jobs, gpus), a_screen(width, height), kNow);
          std::istringstream lines(text);
          std::size_t count = 0;
          for (std::string line; std::getline(lines, line); ++count) {
            EXPECT_LE(display_width(line), std::max<std::size_t>(width, 34)) << text;
          }
          EXPECT_LE(count, height - 1) << width << "x" << height << "\n" << text;
        }
      }
    }
  }
}

TEST(OverviewTest, TellsWhatRunsWhatWaitsAndWhatFailed) {
  Overview overview = busy(1, 4, 1, 1);
  overview.queued[3].reason.clear();
  const std::string text = overview_text(overview, a_screen(80, 24), kNow);
  EXPECT_THAT(text, HasSubstr("1 running, 4 queued, 1 failed since yesterday"));
  EXPECT_THAT(text, HasSubstr("GPU  0 ███░░░ 12/24 GiB  97% job 1\n"));
  EXPECT_THAT(text, HasSubstr("\nRunning (1)\n      1 job-1  GPU 0,1  ███░░░ 30m 00s of 1h 00m\n"));
  // Those that wait for the same are one line.
  EXPECT_THAT(text, HasSubstr("\nWaiting (4)\n      2 job-2  and 2 like it: reason 0\n"
                              "      5 job-5  starts next\n"));
  EXPECT_THAT(text, HasSubstr("Failed since yesterday (1)\n      6 job-6  exit 3, 5m ago\n"));
  EXPECT_THAT(text, HasSubstr("berth log 6 shows what it wrote"));
}

TEST(OverviewTest, WhatIsLeftOutIsCounted) {
  Overview overview = busy(20, 0, 0, 0);
  overview.status.counts[JobState::running] = 500;
  const std::string text = overview_text(overview, a_screen(80, 24), kNow);
  EXPECT_THAT(text, HasSubstr("Running (500)"));
  EXPECT_THAT(text, HasSubstr(" more: berth ls --state running"));
}

TEST(OverviewTest, CardsOutOfTheOrdinaryAreNeverLeftOut) {
  Overview overview = busy(0, 0, 0, 8);
  auto& gpus = overview.status.gpus;
  gpus[5].claims.clear();
  gpus[5].state = "reserved";
  gpus[5].reserved = "held by the berth of user alice";
  gpus[7].claims.clear();
  gpus[7].state = "drained";
  gpus[7].trouble = "out of use: the fan is being replaced until Friday";
  std::string text = overview_text(overview, a_screen(80, 24), kNow);
  for (const char* told : {" 0 ", " 5 ", "reserved", " 7 ", "drained"}) {
    EXPECT_THAT(text, HasSubstr(told));
  }
  EXPECT_THAT(text, Not(HasSubstr("more: berth gpus"))) << "all of them in words";
  overview = busy(0, 0, 0, 16);
  overview.status.gpus[15].state = "trouble";
  overview.status.gpus[15].trouble = "GPU is lost";
  overview.status.gpus[15].lost = true;
  text = overview_text(overview, a_screen(80, 24), kNow);
  EXPECT_THAT(text, HasSubstr("15 ███░░░ 12/24 GiB  97% lost"));
  EXPECT_THAT(text, HasSubstr("… and 8 more: berth gpus"));
}

TEST(OverviewTest, APausedInstanceIsNotOverlooked) {
  for (const std::size_t waiting : {0U, 3U}) {
    Overview overview = busy(0, waiting, 0, 1);
    overview.status.paused = true;
    EXPECT_THAT(overview_text(overview, a_screen(80, 24), kNow),
                HasSubstr("berth is paused and starts nothing; berth resume --instance"));
  }
}

TEST(OverviewTest, HintsAtTheNextStep) {
  Overview overview;
  EXPECT_THAT(overview_text(overview, {}, kNow), HasSubstr("berth add python train.py"));
  overview.status.counts[JobState::succeeded] = 3;
  EXPECT_THAT(overview_text(overview, {}, kNow), HasSubstr("nothing runs and nothing waits"));
  EXPECT_THAT(overview_text(busy(2, 1, 0, 1), {}, kNow), HasSubstr("berth log -f 2"));
  EXPECT_THAT(overview_text(busy(0, 1, 0, 1), {}, kNow), HasSubstr("berth why 1"));
}

TEST(OverviewTest, TroubleIsTold) {
  Overview overview;
  overview.status.probe.error = "the driver is gone";
  overview.status.space.low = true;
  overview.status.space.detail = "3 MiB left";
  const std::string text = overview_text(overview, {}, kNow);
  EXPECT_THAT(text, HasSubstr("GPU probe: the driver is gone"));
  EXPECT_THAT(text, HasSubstr("disk space is low: 3 MiB left"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
}

}  // namespace
}  // namespace berth::cli
