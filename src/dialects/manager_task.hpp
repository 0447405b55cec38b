#pragma once
// A program of gpu_manager_config.json that is started by hand, as a task.

#include <cstdint>
#include <optional>
#include <string>

#include "dialects/dialect.hpp"

namespace berth {

struct ManagerTask {
  std::string name;
  std::optional<std::uint32_t> gpus;  ///< exactly so many; none: what the file says
  std::uint32_t held = 0;             ///< by the tasks that have not ended
};

/// The file as one job of that name. What the guide says of such tasks holds where the file says
/// nothing else: a prefix of the name, and limits for one task and for all of them together.
[[nodiscard]] Parsed parse_manager_task(const Source& source, const ManagerTask& task);

}  // namespace berth
