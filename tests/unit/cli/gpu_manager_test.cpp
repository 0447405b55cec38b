#include "cli/gpu_manager.hpp"

#include <gtest/gtest.h>

namespace berth::cli::gpu_manager {
namespace {

std::string complaint(const Words& words) {
  const auto request = parse_words(words);
  return request ? "" : request.error().message;
}

GpuView a_gpu(const char* state, std::uint64_t job = 0) {
  GpuView gpu;
  gpu.node = "qa-a10-024";
  gpu.state = state;
  if (job != 0) {
    gpu.claims.push_back({job, 1, {}});
  }
  return gpu;
}

JobView a_task(const char* name, JobState state, std::vector<std::uint32_t> gpus) {
  JobView job;
  job.name = std::string("NDFS_") + name;
  job.params["task"] = name;
  job.state = state;
  job.gpu_indices = std::move(gpus);
  job.gpus = {1, 4};
  return job;
}

TEST(GpuManagerWords, AreThoseOfTheGuide) {
  EXPECT_EQ(parse_words({})->deed, Deed::monitor);
  EXPECT_EQ(parse_words({"--monitor-only", "--daemon"})->deed, Deed::monitor);
  EXPECT_EQ(parse_words({"--status"})->deed, Deed::status);
  const auto start =
      parse_words({"--start-program", "exp_train", "--gpus", "4", "--config=c.json"});
  ASSERT_TRUE(start) << start.error().message;
  EXPECT_EQ(start->deed, Deed::start_program);
  EXPECT_EQ(start->task, "exp_train");
  EXPECT_EQ(start->gpus, 4U);
  EXPECT_EQ(start->config, "c.json");
  EXPECT_EQ(parse_words({"--release=a"})->task, "a");
  EXPECT_EQ(parse_words({"--release=a"})->deed, Deed::release);
}

TEST(GpuManagerWords, WhatNeedsLeasesIsRefusedByName) {
  for (const char* word : {"--allocate", "--request", "--quick-get", "--use", "--manage"}) {
    const auto request = parse_words({word, "x"});
    ASSERT_FALSE(request) << word;
    EXPECT_EQ(request.error().code, ErrorCode::refused);
    EXPECT_TRUE(request.error().message.starts_with(std::string(word) + ": "));
    EXPECT_NE(request.error().message.find("comes with leases"), std::string::npos) << word;
  }
}

TEST(GpuManagerWords, MistakesAreTold) {
  EXPECT_EQ(complaint({"--sttus"}), "there is no option '--sttus'; did you mean '--status'?");
  EXPECT_EQ(complaint({"--release"}), "--release needs a value");
  EXPECT_EQ(complaint({"--release", "--gpus"}), "--release needs a value");
  EXPECT_EQ(complaint({"--start-program", "x", "--gpus", "0"}),
            "--gpus: '0' is not a number of GPUs");
  EXPECT_EQ(complaint({"--gpus", "2"}), "--gpus: say for which program: --start-program TASK");
  EXPECT_EQ(complaint({"--status", "--release", "x"}), "--release: one thing at a time");
  EXPECT_EQ(complaint({"--status=now"}), "--status takes no value");
}

TEST(GpuManagerStatus, IsThatOfTheGuide) {
  StatusView status;
  status.node = "qa-a10-024";
  status.gpus = {a_gpu("claimed", 1), a_gpu("claimed", 1), a_gpu("free"), a_gpu("foreign")};
  JobView plain = a_task("x", JobState::running, {});
  plain.params.clear();
  plain.name = "by hand";
  JobView waiting = a_task("training_task_2", JobState::queued, {});
  waiting.reason = "no GPU is free";
  const std::vector<JobView> jobs{a_task("training_task_1", JobState::running, {0, 1}), waiting,
                                  plain};
  EXPECT_EQ(status_text(status, jobs),
            "============================================================\n"
            "GPU Resource Manager Status\n"
            "============================================================\n"
            "Total Nodes: 1\n"
            "Total GPUs: 4\n"
            "Free GPUs: 1\n"
            "Allocated GPUs: 2\n"
            "Active Tasks: 2\n"
            "Waiting Tasks: 1\n"
            "\n"
            "Node Details:\n"
            "----------------------------------------\n"
            "qa-a10-024: 1/4 free (2 allocated, 1 not ours to use)\n"
            "\n"
            "Task Allocations:\n"
            "----------------------------------------\n"
            "Task training_task_1: 2 GPUs on qa-a10-024 (running)\n"
            "Task training_task_2: 1 GPU (waiting: no GPU is free)\n"
            "Task by hand: 0 GPUs on qa-a10-024 (running)\n");
  EXPECT_EQ(gpus_of_tasks(jobs), 3U);
}

}  // namespace
}  // namespace berth::cli::gpu_manager
