#include "cli/progress.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::cli {
namespace {

using ::testing::HasSubstr;

JobView a_job(std::uint64_t id, JobState state) {
  JobView job;
  job.id = id;
  job.name = "job-" + std::to_string(id);
  job.state = state;
  if (state != JobState::queued) {
    job.started_at = Millis(0);
    job.gpu_indices = {static_cast<std::uint32_t>(id)};
  }
  return job;
}

TEST(ProgressTest, CountsFollowTheJobs) {
  Progress progress;
  progress.update(a_job(1, JobState::queued));
  progress.update(a_job(2, JobState::queued));
  EXPECT_FALSE(progress.done());
  progress.update(a_job(1, JobState::running));
  EXPECT_EQ(progress.count(JobState::queued), 1U);
  EXPECT_EQ(progress.first_waiting()->id, 2U);
  progress.update(a_job(1, JobState::succeeded));
  progress.update(a_job(1, JobState::succeeded));
  progress.update(a_job(2, JobState::failed));
  EXPECT_TRUE(progress.done());
  EXPECT_FALSE(progress.all_succeeded());
  EXPECT_EQ(progress.first_waiting(), nullptr);
  progress.update(a_job(2, JobState::running));  // a retry
  EXPECT_FALSE(progress.done());
  progress.update(a_job(2, JobState::succeeded));
  EXPECT_TRUE(progress.done());
  EXPECT_TRUE(progress.all_succeeded());
}

TEST(ProgressTest, TheBlockTellsWhatRunsWhereAndWhyTheNextWaits) {
  Progress progress;
  progress.update(a_job(1, JobState::succeeded));
  progress.update(a_job(2, JobState::running));
  JobView waiting = a_job(3, JobState::queued);
  waiting.reason = "GPU 0 is busy";
  progress.update(waiting);
  Screen screen;
  screen.width = 100;
  const auto lines = progress.block(screen, Millis(12'000));
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_THAT(lines[0], HasSubstr("1/3 done, 1 running, 1 waiting, 2 left"));
  EXPECT_THAT(lines[1], HasSubstr("GPU 2"));
  EXPECT_THAT(lines[1], HasSubstr("12 s"));
  EXPECT_THAT(lines[1], HasSubstr("job-2"));
  EXPECT_THAT(lines[2], HasSubstr("next: 3 job-3, waits: GPU 0 is busy"));
}

TEST(ProgressTest, TheBlockFitsTheScreen) {
  Progress progress;
  for (std::uint64_t id = 1; id <= 100; ++id) {
    progress.update(a_job(id, id <= 50 ? JobState::running : JobState::queued));
  }
  for (const std::size_t height : {1U, 8U, 24U, 200U}) {
    Screen screen;
    screen.width = 40;
    screen.height = height;
    const auto lines = progress.block(screen, Millis(0));
    EXPECT_LE(lines.size(), std::max<std::size_t>(height, 6) - 2);
    for (const auto& line : lines) {
      EXPECT_LE(display_width(line), 40U) << line;
    }
  }
}

TEST(ProgressTest, EventsBecomeLines) {
  EventView event;
  event.kind = "started";
  event.job = 3;
  JobView job = a_job(3, JobState::running);
  job.name = "lr=0.1-s1";
  job.gpu_indices = {0, 1};
  EXPECT_THAT(event_line(event, job), ::testing::EndsWith(" job 3 lr=0.1-s1 started on GPU 0,1"));
  event.kind = "failed";
  event.detail = "";
  job.state = JobState::failed;
  job.exit_code = 7;
  EXPECT_THAT(event_line(event, job), ::testing::EndsWith("job 3 lr=0.1-s1 failed: exit 7"));
}

}  // namespace
}  // namespace berth::cli
