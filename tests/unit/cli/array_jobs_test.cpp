#include "submit/array_jobs.hpp"

#include "jobspec/launch_words.hpp"

#include <gtest/gtest.h>

namespace berth {
namespace {

JobView task(std::uint64_t id, std::string number) {
  JobView job;
  job.id = id;
  job.params["task"] = std::move(number);
  return job;
}

/// Job 10 begins an array with the tasks 3, 4 and 5.
Result<std::vector<JobView>> find(std::uint64_t first) {
  return first == 10 ? std::vector{task(10, "3"), task(11, "4"), task(12, "5")}
                     : std::vector<JobView>();
}

std::vector<JobId> followed(std::vector<AfterArray> after) {
  JobFile file;
  JobSpec& job = file.jobs.emplace_back();
  for (const AfterArray& one : after) {
    if (!one.task) {
      job.after.push_back(one.id);
    }
  }
  file.after_arrays = std::move(after);
  EXPECT_TRUE(resolve_arrays(file, find));
  return file.jobs[0].after;
}

TEST(ArrayJobs, AnIdMeansAllTasksOrTheJobItself) {
  EXPECT_EQ(followed({{JobId{10}, {}}, {JobId{2}, {}}}),
            (std::vector<JobId>{JobId{2}, JobId{10}, JobId{11}, JobId{12}}));
  EXPECT_EQ(followed({{JobId{11}, {}}}), std::vector<JobId>{JobId{11}});
  EXPECT_EQ(followed({{JobId{10}, 4U}}), std::vector<JobId>{JobId{11}});
}

TEST(ArrayJobs, ATaskThatIsNotThereIsRefused) {
  JobFile file;
  file.jobs.emplace_back();
  file.after_arrays = {{JobId{10}, 9U}};
  EXPECT_EQ(resolve_arrays(file, find).error().message, "the array 10 has no task 9 to follow");
  file.after_arrays = {{JobId{2}, 9U}};
  EXPECT_EQ(resolve_arrays(file, find).error().message,
            "there is no array 2 whose task 9 could be followed; the id of an array is that of its "
            "first job");
}

TEST(ArrayJobs, OnlyTheFirstTaskBeginsTheArray) {
  std::vector<JobSpec> jobs(2);
  for (JobSpec& job : jobs) {
    job.payload.extra_env = {"SLURM_JOB_ID={job_id}", "SLURM_ARRAY_JOB_ID={first_id}"};
    job.payload.log = "/o-{first_id}-{{first_id}}";
  }
  fill_first_id(jobs);
  EXPECT_TRUE(begins_array(jobs[0].payload.extra_env));
  EXPECT_FALSE(begins_array(jobs[1].payload.extra_env));
  EXPECT_EQ(jobs[1].payload.log, "/o-{job_id~1}-{first_id}");
}

}  // namespace
}  // namespace berth
