#pragma once
// `after:` by name becomes `after_index` by position; unknown names and circles are reported.

#include <cstdint>
#include <string>
#include <vector>

#include "core/job.hpp"
#include "jobspec/matrix.hpp"
#include "jobspec/yaml_tree.hpp"

namespace berth {

/// One entry of `jobs:`, and where its instances stand in the list of all jobs.
struct JobEntry {
  std::string name;  ///< as written, placeholders and all
  Position name_at;
  const Node* after = nullptr;
  After after_kind = After::ok;
  Matrix matrix;
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};

/// Names must be unique, over instances and entries together: each is a possible `after`.
/// `entries` are in the order of their instances in `jobs`.
void resolve_dependencies(const std::vector<JobEntry>& entries, std::vector<JobSpec>& jobs,
                          Diagnostics& diagnostics);

}  // namespace berth
