// The status of gpu_resource_manager.

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "cli/describe.hpp"
#include "cli/gpu_manager.hpp"

namespace berth::cli::gpu_manager {
namespace {

constexpr std::size_t kWide = 60;
constexpr std::size_t kNarrow = 40;

struct NodeCount {
  std::size_t all = 0;
  std::size_t free = 0;
  std::size_t allocated = 0;

  void add(const GpuView& gpu) {
    ++all;
    if (!gpu.claims.empty()) {
      ++allocated;
    } else if (gpu.state == "free") {
      ++free;
    }
  }
  /// Used by somebody else, out of order, or not known.
  [[nodiscard]] std::size_t others() const { return all - free - allocated; }
};

std::string gpus_text(std::uint64_t count) {
  return fmt::format("{} GPU{}", count, count == 1 ? "" : "s");
}

std::string task_line(const JobView& job, const std::string& node) {
  const std::string task = task_of(job);
  const std::string name = printable(task.empty() ? label(job) : task);
  if (job.state == JobState::queued) {
    return fmt::format("Task {}: {} (waiting: {})\n", name, gpus_text(job.gpus.min),
                       job.reason.empty() ? "it is about to start" : printable(job.reason));
  }
  return fmt::format("Task {}: {} on {} ({})\n", name, gpus_text(job.gpu_indices.size()),
                     job.node.empty() ? node : job.node, to_string(job.state));
}

}  // namespace

std::string task_of(const JobView& job) {
  const auto found = job.params.find("task");
  return found != job.params.end() ? found->second : "";
}

std::uint32_t gpus_of_tasks(const std::vector<JobView>& jobs) {
  std::uint32_t sum = 0;
  for (const JobView& job : jobs) {
    if (!task_of(job).empty() && !is_terminal(job.state)) {
      sum += job.state == JobState::queued ? job.gpus.min
                                           : static_cast<std::uint32_t>(job.gpu_indices.size());
    }
  }
  return sum;
}

std::string status_text(const StatusView& status, const std::vector<JobView>& jobs) {
  std::map<std::string, NodeCount> nodes;
  NodeCount total;
  for (const GpuView& gpu : status.gpus) {
    nodes[gpu.node.empty() ? status.node : gpu.node].add(gpu);
    total.add(gpu);
  }
  nodes.try_emplace(status.node);
  const auto active =
      std::ranges::count_if(jobs, [](const JobView& job) { return job.state != JobState::queued; });
  const std::string line(kWide, '=');
  const std::string thin(kNarrow, '-');
  std::string out = fmt::format("{0}\nGPU Resource Manager Status\n{0}\n", line);
  out += fmt::format("Total Nodes: {}\nTotal GPUs: {}\nFree GPUs: {}\nAllocated GPUs: {}\n",
                     nodes.size(), total.all, total.free, total.allocated);
  out += fmt::format("Active Tasks: {}\nWaiting Tasks: {}\n", active,
                     static_cast<std::ptrdiff_t>(jobs.size()) - active);
  out += fmt::format("\nNode Details:\n{}\n", thin);
  for (const auto& [name, count] : nodes) {
    out +=
        fmt::format("{}: {}/{} free ({} allocated{})\n", printable(name), count.free, count.all,
                    count.allocated,
                    count.others() > 0 ? fmt::format(", {} not ours to use", count.others()) : "");
  }
  if (!status.probe.error.empty()) {
    out += printable(status.probe.error) + "\n";
  }
  out += fmt::format("\nTask Allocations:\n{}\n", thin);
  for (const JobView& job : jobs) {
    out += task_line(job, status.node);
  }
  return out;
}

}  // namespace berth::cli::gpu_manager
