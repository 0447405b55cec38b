#include "submit/array_jobs.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace berth {
namespace {

/// As many as a job file may have.
constexpr std::size_t kMostEdges = 5'000'000;

/// The ids that one dependency means.
Result<std::vector<JobId>> ids_of(const AfterArray& after, const FindTasks& find) {
  TRY_ASSIGN(const auto tasks, find(after.id.value));
  std::vector<JobId> ids;
  for (const JobView& job : tasks) {
    const auto task = job.params.find("task");
    const bool is_task = task != job.params.end();
    if (is_task && (!after.task || task->second == fmt::format("{}", *after.task))) {
      ids.push_back(JobId{job.id});
    }
  }
  if (after.task && ids.empty()) {
    return fail(ErrorCode::not_found,
                tasks.empty() ? fmt::format("there is no array {0} whose task {1} could be "
                                            "followed; the id of an array is that of its first job",
                                            after.id.value, *after.task)
                              : fmt::format("the array {} has no task {} to follow", after.id.value,
                                            *after.task));
  }
  return ids;
}

}  // namespace

bool begins_array(const Environment& extra_env) {
  // Of the others it is the id of a job before them, see fill_first_id().
  constexpr std::array<std::string_view, 2> kFirst = {"SLURM_ARRAY_JOB_ID={job_id}",
                                                      "BERTH_ARRAY_JOB_ID={job_id}"};
  return std::ranges::any_of(extra_env, [&](const std::string& entry) {
    return std::ranges::find(kFirst, entry) != kFirst.end();
  });
}

Status resolve_arrays(JobFile& file, const FindTasks& find) {
  std::vector<JobId> ids;
  for (const AfterArray& after : std::exchange(file.after_arrays, {})) {
    TRY_ASSIGN(const auto meant, ids_of(after, find));
    ids.insert(ids.end(), meant.begin(), meant.end());
  }
  if (ids.size() * file.jobs.size() > kMostEdges) {
    return fail(
        ErrorCode::invalid,
        fmt::format("{} jobs that each follow {} are too many dependencies; let them follow "
                    "one job without GPUs that follows the others",
                    file.jobs.size(), ids.size()));
  }
  for (JobSpec& job : file.jobs) {
    job.after.insert(job.after.end(), ids.begin(), ids.end());
    std::ranges::sort(job.after);
    const auto twice = std::ranges::unique(job.after);
    job.after.erase(twice.begin(), twice.end());
  }
  return {};
}

}  // namespace berth
