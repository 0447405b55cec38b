#include "cli/show.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::cli {
namespace {

using ::testing::HasSubstr;

std::string shown(const std::string& reason, std::optional<std::size_t> width) {
  JobDetail detail;
  detail.job.id = 7;
  detail.job.queue = "default";
  WhyView why;
  why.job = detail.job;
  why.reasons = {{"gpu", reason}};
  Screen screen;
  screen.width = width;
  return show_text(detail, why, screen, Millis{1'700'000'000'000});
}

TEST(WhyText, OnAScreenEachCardHasALineOfItsOwn) {
  const std::string reason =
      "no GPU has room: GPU 0: 5.1 GiB free, 8 GiB needed, others hold 18 GiB; GPU 1: taken by "
      "job 3";
  EXPECT_THAT(shown(reason, 80), HasSubstr("  - no GPU has room:\n"
                                           "    GPU 0: 5.1 GiB free, 8 GiB needed, others hold 18 "
                                           "GiB\n"
                                           "    GPU 1: taken by job 3\n"));
  EXPECT_THAT(shown(reason, 40), HasSubstr("    GPU 0: 5.1 GiB free, 8 GiB needed,\n"
                                           "    others hold 18 GiB\n"));
}

TEST(WhyText, ProgramsGetOneLine) {
  const std::string reason = "no GPU has room: GPU 0: taken by job 3; GPU 1: taken by job 4";
  EXPECT_THAT(shown(reason, std::nullopt), HasSubstr("  - " + reason + "\n"));
}

TEST(WhyText, WhatIsNotAboutCardsIsWrappedOnly) {
  EXPECT_THAT(shown("held; `berth resume 7` lets it wait for its turn again", 40),
              HasSubstr("  - held; `berth resume 7` lets it wait\n    for its turn again\n"));
}

TEST(ShowText, TellsOfCardsThatAJobWasNotGiven) {
  std::vector<GpuView> gpus(3);
  for (std::uint32_t index = 0; index < 3; ++index) {
    gpus[index].index = index;
    gpus[index].processes.emplace(1).front().job = 7;
  }
  gpus[1].claims = {{7, 9, {}}};
  gpus[2].processes->front().job = 8;
  EXPECT_EQ(strays_of(7, gpus), std::vector<std::uint32_t>{0});
  gpus[0].processes.reset();
  EXPECT_TRUE(strays_of(7, gpus).empty());
  JobDetail detail;
  detail.job.state = JobState::running;
  EXPECT_THAT(show_text(detail, {}, {}, Millis(0), {0}),
              HasSubstr("strays       seen on GPU 0, which it was not given\n"));
}

}  // namespace
}  // namespace berth::cli
