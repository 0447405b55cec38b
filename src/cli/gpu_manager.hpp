#pragma once
// gpu_resource_manager, and gpu_manager as it came to be called: berth in the words of the GPU
// resource manager. Its tasks are jobs that have `task` among their parameters.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/views.hpp"
#include "base/result.hpp"

namespace berth::cli::gpu_manager {

using Words = std::vector<std::string>;

enum class Deed : std::uint8_t { monitor, status, start_program, release, help, version };

/// What was asked for.
struct Request {
  Deed deed = Deed::monitor;
  std::string task;
  std::optional<std::uint32_t> gpus;
  std::string config = "gpu_manager_config.json";
  bool config_named = false;  ///< it was given, so it has to be there
};
/// Options that need leases are refused by name, as is whatever nobody knows.
[[nodiscard]] Result<Request> parse_words(const Words& words);

[[nodiscard]] std::string help_text(std::string_view program);

/// The task that a job is; empty: none.
[[nodiscard]] std::string task_of(const JobView& job);
/// Jobs that have not ended, as the guide shows them, with the nodes they are on.
[[nodiscard]] std::string status_text(const StatusView& status, const std::vector<JobView>& jobs);
/// GPUs that tasks have, or wait for.
[[nodiscard]] std::uint32_t gpus_of_tasks(const std::vector<JobView>& jobs);

/// `gpu_resource_manager WORDS…`; prints errors; the exit code.
[[nodiscard]] int run(const std::string& program, const Words& words);

}  // namespace berth::cli::gpu_manager
