#pragma once
// Tasks, parameters and the machine as gpulimit shows them.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/views.hpp"
#include "cli/gpulimit_words.hpp"
#include "cli/terminal.hpp"

namespace berth::cli::gpulimit {

/// The list of `gpulimit ls`, in the order given. `whole`: commands are not cut.
[[nodiscard]] std::string list_text(const std::vector<JobView>& tasks, bool whole,
                                    const Screen& screen, Millis now);

/// `pid`: of its process, while it runs.
[[nodiscard]] std::string show_text(const JobDetail& task, const std::optional<std::uint32_t>& pid,
                                    const std::string& max_err_times, const Screen& screen,
                                    Millis now);

struct ParameterValue {
  const ParameterDef* parameter = nullptr;
  std::string value;
};
[[nodiscard]] std::string parameters_text(const std::vector<ParameterValue>& values,
                                          const Screen& screen);

struct HostMemory {
  Bytes total = 0;  ///< 0: not known, as below
  Bytes available = 0;
};

/// The machine and how many tasks are in which state.
struct Overview {
  HostMemory memory;
  std::vector<GpuView> gpus;
  std::string gpu_trouble;  ///< why they are not to be seen; empty: nothing is wrong
  std::vector<std::uint64_t> counts = std::vector<std::uint64_t>(kStatusCount, 0);
  std::vector<ParameterValue> parameters;
};
[[nodiscard]] std::string overview_text(const Overview& overview, const Screen& screen);

/// What kept a task from starting, or how it failed, with what helps to find out why. `log_end`:
/// the last lines it wrote.
[[nodiscard]] std::string debug_text(const JobDetail& task, const std::string& log_end);

// For programs.
[[nodiscard]] std::string list_json(const std::vector<JobView>& tasks);
[[nodiscard]] std::string show_json(const JobDetail& task, const std::optional<std::uint32_t>& pid);
[[nodiscard]] std::string parameters_json(const std::vector<ParameterValue>& values);
[[nodiscard]] std::string overview_json(const Overview& overview);

}  // namespace berth::cli::gpulimit
