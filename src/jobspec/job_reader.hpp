#pragma once
// One job of a job file: its keys, and what they mean once the matrix has filled them in.

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

#include "core/job.hpp"
#include "jobspec/matrix.hpp"
#include "jobspec/yaml_tree.hpp"

namespace berth {

/// The keys a job may have, in the order in which they are read.
enum class JobKey : std::uint8_t {
  name,
  matrix,
  run,
  gpus,
  gpu_memory,
  cpus,
  memory,
  resources,
  queue,
  priority,
  after,
  retries,
  time,
  grace,
  env,
  cwd,
  log,
  linger,
  min_free_memory,
  max_utilization,
};

inline constexpr std::array<std::string_view, 20> kJobKeyNames = {
    "name",      "matrix", "run",      "gpus",   "gpu_memory",      "cpus",           "memory",
    "resources", "queue",  "priority", "after",  "retries",         "time",           "grace",
    "env",       "cwd",    "log",      "linger", "min_free_memory", "max_utilization"};

/// Borrows from the tree.
class JobKeys {
 public:
  /// Reports unknown keys. `where` is the map to read, `of` what to call it in messages.
  [[nodiscard]] static JobKeys read(const Node& where, std::string_view of,
                                    Diagnostics& diagnostics);

  [[nodiscard]] const Node* get(JobKey key) const { return nodes_[static_cast<std::size_t>(key)]; }
  void set(JobKey key, const Node* node) { nodes_[static_cast<std::size_t>(key)] = node; }

 private:
  std::array<const Node*, kJobKeyNames.size()> nodes_{};
};

/// What a job has besides its own keys.
struct JobContext {
  JobKeys defaults;
  std::filesystem::path base_dir;
  std::optional<Bytes> min_free_memory;          ///< of the file's rules
  std::optional<std::uint32_t> max_utilization;  ///< likewise
};

/// Reads one instance; `name` and `after` are left to the caller, who sees the other jobs. What is
/// wrong is reported and left at its default.
[[nodiscard]] JobSpec read_job(const JobKeys& keys, const JobContext& context,
                               const Combination& combination, Diagnostics& diagnostics);

}  // namespace berth
