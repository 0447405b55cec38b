#pragma once
// A small instance for the tests of `berth top`.

#include <string>

#include "base/units.hpp"
#include "cli/top_model.hpp"

namespace berth::cli {

inline constexpr Millis kTopNow{1'700'000'000'000};

inline JobView top_job(std::uint64_t id, JobState state, const std::string& name,
                       const std::string& queue = "default") {
  JobView job;
  job.id = id;
  job.name = name;
  job.state = state;
  job.queue = queue;
  job.command = "python " + name + ".py";
  job.submitted_at = kTopNow - std::chrono::minutes(10);
  if (state == JobState::running) {
    job.started_at = kTopNow - std::chrono::minutes(5);
  }
  if (is_terminal(state)) {
    job.started_at = kTopNow - std::chrono::minutes(5);
    job.ended_at = kTopNow - std::chrono::minutes(2);
  }
  return job;
}

inline GpuView top_gpu(std::uint32_t index, const std::string& state) {
  GpuView gpu;
  gpu.index = index;
  gpu.name = "NVIDIA RTX 4090";
  gpu.memory_total = 24 * kGiB;
  gpu.memory_used = 0;
  gpu.memory_free = 24 * kGiB;
  gpu.utilization = 0;
  gpu.temperature = 35;
  gpu.processes.emplace();
  gpu.state = state;
  return gpu;
}

inline GpuProcessView top_process(std::uint32_t pid, const std::string& name, Bytes memory,
                                  std::uint64_t job = 0, std::uint64_t attempt = 0) {
  GpuProcessView process;
  process.pid = pid;
  process.uid = job != 0 ? 1000 : 1001;
  process.name = name;
  process.memory = memory;
  process.job = job;
  process.attempt = attempt;
  return process;
}

inline TopData top_world() {
  TopData data;
  data.complete = true;
  data.answered = kTopNow;
  data.status.node = "lab1";
  data.status.instance = "/home/ada/.local/state/berth/lab1";
  data.running = {top_job(12, JobState::running, "train-resnet"),
                  top_job(13, JobState::running, "训练模型")};
  data.running[0].gpu_indices = {0};
  data.running[1].gpu_indices = {1};
  data.running[1].gpu_memory = 8 * kGiB;
  data.running[1].attempts = 2;
  data.limits[12] = std::chrono::hours(2);
  data.queued = {top_job(14, JobState::queued, "eval", "nightly"),
                 top_job(15, JobState::queued, "sweep-1")};
  data.queued[0].reason = "queue 'nightly' is paused";
  data.queued[1].reason = "asks for 4 GPUs, 1 of 4 have room: GPU 0: taken by job 12";
  data.queued[1].priority = 3;
  data.ended = {top_job(11, JobState::failed, "bad"), top_job(10, JobState::succeeded, "good")};
  data.ended[0].message = "exited with code 3";
  data.status.counts = {{JobState::running, 2},
                        {JobState::queued, 340},
                        {JobState::failed, 1},
                        {JobState::succeeded, 1}};
  data.status.queues = {{"default", 0, 2, false}, {"nightly", 4, 0, true}};
  GpuView whole = top_gpu(0, "claimed");
  whole.memory_used = 18 * kGiB;
  whole.utilization = 93;
  whole.temperature = 86;
  whole.claims = {{12, 1, {}}};
  whole.processes->push_back(top_process(100, "python", 18 * kGiB, 12, 1));
  GpuView shared = top_gpu(1, "claimed");
  shared.memory_used = 10 * kGiB;
  shared.utilization = 40;
  shared.claims = {{13, 2, 8 * kGiB}};
  shared.processes->push_back(top_process(101, "python", 4 * kGiB, 13, 2));
  shared.processes->push_back(top_process(999, "jupyter", 6 * kGiB));
  GpuView silent = top_gpu(3, "unknown");
  silent.memory_total = silent.memory_used = silent.memory_free = std::nullopt;
  silent.utilization = silent.temperature = std::nullopt;
  silent.processes.reset();
  data.status.gpus = {whole, shared, top_gpu(2, "free"), silent};
  return data;
}

}  // namespace berth::cli
