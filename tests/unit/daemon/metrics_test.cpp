#include "daemon/metrics.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(MetricsTest, TellsJobsCardsAndTimes) {
  MetricsFacts facts;
  facts.uptime = Millis(1'500);
  facts.counts.at(static_cast<std::size_t>(JobState::queued)) = 7;
  GpuView gpu;
  gpu.index = 3;
  gpu.uuid = "GPU-\"x\"";
  gpu.memory_used = 1024;
  gpu.utilization = 50;
  gpu.state = "free";
  facts.gpus = {gpu};
  facts.queues = {{{"a\\b", 1, 2, false, 5}, {}}};
  facts.probe_age = Millis(250);
  LatencyMeter meter;
  meter.finished(JobState::failed, FailureClass::gpu_oom);
  meter.finished(JobState::succeeded, std::nullopt);
  meter.committing();
  meter.committed();
  const std::string text = format_metrics(facts, meter);
  EXPECT_THAT(text, HasSubstr("berth_uptime_seconds 1.5\n"));
  EXPECT_THAT(text, HasSubstr("berth_jobs{state=\"queued\"} 7\n"));
  EXPECT_THAT(text, HasSubstr("berth_jobs_finished_total{state=\"failed\",class=\"gpu_oom\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("{state=\"succeeded\",class=\"none\"} 1\n"));
  EXPECT_THAT(text,
              HasSubstr("berth_gpu_memory_used_bytes{gpu=\"3\",uuid=\"GPU-\\\"x\\\"\"} 1024\n"));
  EXPECT_THAT(text,
              HasSubstr("berth_gpu_utilization_ratio{gpu=\"3\",uuid=\"GPU-\\\"x\\\"\"} 0.5\n"));
  EXPECT_THAT(text, Not(HasSubstr("berth_gpu_temperature_celsius{"))) << "unknown is not 0";
  EXPECT_THAT(text, HasSubstr("berth_queue_waiting{queue=\"a\\\\b\"} 5\n"));
  EXPECT_THAT(text, HasSubstr("berth_probe_age_seconds 0.25\n"));
  EXPECT_THAT(text, HasSubstr("berth_commit_seconds_count 1\n"));
  EXPECT_THAT(text, HasSubstr("berth_commit_seconds_bucket{le=\"+Inf\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("berth_decision_seconds_count 0\n"));
}

TEST(MetricsTest, AHistogramCountsUpToEachBound) {
  Histogram times;
  times.add(std::chrono::microseconds(40));
  times.add(std::chrono::milliseconds(3));
  times.add(std::chrono::minutes(1));
  EXPECT_EQ(times.up_to(0), 1U);
  EXPECT_EQ(times.up_to(3), 1U);
  EXPECT_EQ(times.up_to(4), 2U);
  EXPECT_EQ(times.up_to(Histogram::kBounds.size() - 1), 2U);
  EXPECT_EQ(times.count(), 3U);
  EXPECT_NEAR(times.sum(), 60.00304, 1e-6);
}

TEST(HealthTest, AllIsWellUntilSomethingIsNot) {
  State state;
  EXPECT_EQ(judge_health(state, {}, {}).status, "ok");
  state.paused = true;
  EXPECT_EQ(judge_health(state, {}, {}).status, "ok") << "somebody wanted it so";
  state.probe_error = "the driver hangs";
  Gpu gpu;
  gpu.facts.index = 1;
  gpu.facts.trouble = "Xid 79";
  gpu.known = true;
  state.gpus = {gpu};
  HealthView health = judge_health(state, {"berth.yaml:3: no such rule"}, {});
  EXPECT_EQ(health.status, "degraded");
  EXPECT_EQ(health.reasons,
            (std::vector<HealthReason>{{"probe", "the driver hangs"},
                                       {"gpu", "GPU 1: Xid 79"},
                                       {"settings", "berth.yaml:3: no such rule"}}));
  state.low_space = true;
  state.space_detail = "1 MiB left";
  health = judge_health(state, {}, {});
  EXPECT_EQ(health.status, "failing");
  EXPECT_EQ(health.reasons.front(), (HealthReason{"space", "1 MiB left"}));
  EXPECT_EQ(judge_health(State{}, {}, Error{ErrorCode::io, "disk"}).status, "failing");
}

TEST(HealthTest, ACardThatFailedIsAnIllnessAndOneThatIsWantedIsNot) {
  State state;
  Gpu gpu;
  gpu.facts.index = 1;
  gpu.facts.uuid = "GPU-1";
  gpu.known = true;
  state.gpus = {gpu};
  state.drains["GPU-1"] = "fan";
  EXPECT_EQ(judge_health(state, {}, {}).status, "ok") << "somebody wanted it so";
  state.drains["GPU-1"] = "the driver reported the hardware error XID 79";
  const HealthView health = judge_health(state, {}, {});
  EXPECT_EQ(health.status, "degraded");
  ASSERT_EQ(health.reasons.size(), 1U);
  EXPECT_EQ(health.reasons[0].what, "gpu");
  EXPECT_THAT(health.reasons[0].message, HasSubstr("XID 79; berth resume --gpu 1"));
}

TEST(HealthTest, WhileTheDriverFailsNoCardIsSaidToBeGone) {
  State state;
  Gpu gpu;
  gpu.known = false;
  state.gpus = {gpu};
  EXPECT_EQ(judge_health(state, {}, {}).reasons,
            (std::vector<HealthReason>{{"gpu", "GPU 0 is gone"}}));
  state.probe_error = "the driver hangs";
  EXPECT_EQ(judge_health(state, {}, {}).reasons,
            (std::vector<HealthReason>{{"probe", "the driver hangs"}}));
}

}  // namespace
}  // namespace berth
