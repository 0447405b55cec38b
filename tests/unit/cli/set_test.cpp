#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/commands.hpp"

namespace berth::cli {
namespace {

using What = SetPlan::What;

SetPlan plan(std::vector<std::string> words) {
  return plan_set({std::move(words), false, false}).value();
}

TEST(SetTest, TellsJobsFromRules) {
  EXPECT_EQ(plan({}).what, What::list);
  EXPECT_EQ(plan({"log_limit"}).what, What::show);
  EXPECT_EQ(plan({"log_limit"}).key, "log_limit");
  const SetPlan rules = plan({"max_concurrent=4", "queue.a=b.limit=1"});
  EXPECT_EQ(rules.what, What::rules);
  EXPECT_EQ(rules.values[0], std::pair(std::string("max_concurrent"), std::string("4")));
  EXPECT_EQ(rules.values[1].second, "b.limit=1");
  EXPECT_EQ(plan({"all", "priority=1"}).ids, std::nullopt);
  EXPECT_EQ(plan({"3,5-6", "9", "priority=1"}).ids->to_string(), "3,5-6,9");
}

TEST(SetTest, ReadsEveryKeyOfAJob) {
  const SetPlan full =
      plan({"3", "name=a b", "queue=car", "priority=-1", "gpus=1..2", "gpu_memory=8GiB", "cpus=4",
            "memory=1GiB", "retries=2", "time=2h", "grace=90"});
  const event::JobPatch expected{"a b", "car", -1, GpuCount{1, 2},       std::optional(8 * kGiB),
                                 4,     kGiB,  2,  Millis(2 * 3600'000), Millis(90'000)};
  EXPECT_EQ(full.patch, expected);
  const event::JobPatch whole = plan({"3", "gpu_memory=all"}).patch;
  EXPECT_TRUE(whole.gpu_memory.has_value() && !whole.gpu_memory->has_value());
  EXPECT_EQ(plan({"3", "name="}).patch.name, "");
}

}  // namespace
}  // namespace berth::cli
