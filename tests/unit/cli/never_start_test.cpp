#include "cli/never_start.hpp"

#include <gtest/gtest.h>

namespace berth::cli {
namespace {

JobSpec job_for(std::uint32_t gpus, Bytes memory = 0) {
  JobSpec job;
  job.request.gpus = {gpus, gpus};
  if (memory > 0) {
    job.request.gpu_memory = memory;
  }
  return job;
}

TEST(NeverStart, JobsThatAskForTheSameAreAskedAboutOnce) {
  const auto kinds = alike({job_for(1), job_for(9), job_for(0), job_for(1), job_for(1, kGiB)}, 10);
  ASSERT_EQ(kinds.size(), 3U);
  EXPECT_EQ(kinds[0].ids.to_string(), "10,13");
  EXPECT_EQ(kinds[0].first, 10U);
  EXPECT_EQ(kinds[1].ids.to_string(), "11");
  EXPECT_EQ(kinds[2].ids.to_string(), "14");
}

TEST(NeverStart, OnlyFewKindsAreAskedAbout) {
  std::vector<JobSpec> jobs;
  for (std::uint32_t i = 1; i <= 1000; ++i) {
    jobs.push_back(job_for(i));
  }
  EXPECT_LT(alike(jobs, 1).size(), 100U);
}

ObstacleView card(const char* kind) {
  ObstacleView view;
  view.kind = kind;
  return view;
}

TEST(NeverStart, WhatTimeCuresIsNotForEver) {
  struct Case {
    ReasonView reason;
    bool for_ever;
  };
  const std::map<std::string, std::uint64_t> one_of_two = {{"asked", 1}, {"total", 2}};
  for (const Case& one : {
           Case{{"no_gpu", "", {{"asked", 9}, {"total", 4}}}, true},
           Case{{"cpus", "", {{"asked", 9}, {"total", 4}, {"free", 4}}}, true},
           Case{{"cpus", "", {{"asked", 3}, {"total", 4}, {"free", 1}}}, false},
           Case{{"memory", "", {{"asked", 9}, {"total", 4}}}, true},
           Case{{"quota", "", {{"asked", 3}, {"max_gpu", 2}, {"allowed", 2}}}, true},
           Case{{"quota", "", {{"asked", 3}, {"max_gpu", 0}, {"allowed", 2}}}, false},
           Case{{"quota", "", {{"asked", 1}, {"max_gpu", 2}, {"allowed", 2}}}, false},
           Case{{"queue_order", ""}, false},
           Case{{"gpu", "", {}, {{"error", ""}}}, false},
           Case{{"gpu", "", {{"gpu_left", 2}}, {{"gpus", "0,1"}, {"absent", ""}}}, true},
           Case{{"gpu", "", one_of_two, {}, {}, {card("too_small"), card("too_small")}}, true},
           Case{{"gpu", "", one_of_two, {}, {}, {card("too_small"), card("not_allowed")}}, true},
           Case{{"gpu", "", one_of_two, {}, {}, {card("claimed"), card("left")}}, false},
       }) {
    EXPECT_EQ(is_for_ever(one.reason), one.for_ever) << one.reason.kind;
  }
}

}  // namespace
}  // namespace berth::cli
