#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/commands.hpp"

namespace berth::cli {
namespace {

using What = SetPlan::What;

SetPlan plan(std::vector<std::string> words) {
  SetOptions options;
  options.words = std::move(words);
  return plan_set(options).value();
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
                                 4,     kGiB,  2,  Millis(2 * 3600'000), Millis(90'000),
                                 {},    {}};
  EXPECT_EQ(full.patch, expected);
  const event::JobPatch whole = plan({"3", "gpu_memory=all"}).patch;
  EXPECT_TRUE(whole.gpu_memory.has_value() && !whole.gpu_memory->has_value());
  EXPECT_EQ(plan({"3", "name="}).patch.name, "");
}

TEST(SetTest, RulesOfJobsStandBesideTheirKeys) {
  const SetPlan both = plan({"3", "priority=1", "gpu_left=2", "rules.gpus=0,1", "gpus=2"});
  EXPECT_EQ(both.what, What::jobs);
  EXPECT_EQ(both.patch.rules, (Overrides{{"gpu_left", "2"}, {"gpus", "0,1"}}));
  EXPECT_EQ(both.patch.gpus, (GpuCount{2, 2}));
  EXPECT_EQ(plan({"7"}).what, What::show);
  EXPECT_EQ(plan({"7"}).job, 7U);
  EXPECT_EQ(plan({"7", "gpu_left"}).key, "gpu_left");
}

TEST(SetTest, WhatMakesNoSenseIsWrongUsage) {
  const auto refused = [](auto change) {
    SetOptions options;
    change(options);
    return !plan_set(options).has_value();
  };
  EXPECT_TRUE(refused([](auto& o) { o.words = {"3-4"}; }));
  EXPECT_TRUE(refused([](auto& o) { o.words = {"3", "order=random"}; })) << "not for a job";
  EXPECT_TRUE(refused([](auto& o) { o.words = {"3", "gpu_left=x"}; }));
  EXPECT_TRUE(refused([](auto& o) {
    o.words = {"3", "gpu_left=1"};
    o.queue = "car";
  }));
  EXPECT_TRUE(refused([](auto& o) {
    o.words = {"gpu_left=1"};
    o.queue = "car";
    o.save = true;
  }));
  EXPECT_TRUE(refused([](auto& o) { o.save = true; }));
  EXPECT_FALSE(refused([](auto& o) { o.unset = {"gpu_left"}; }));
  EXPECT_FALSE(refused([](auto& o) {
    o.words = {"3-4"};
    o.unset = {"gpu_left"};
  }));
}

}  // namespace
}  // namespace berth::cli
