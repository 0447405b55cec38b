#pragma once
// `files:` of a job file: what its batch leaves on disk besides logs.

#include <filesystem>
#include <vector>

#include "core/job.hpp"
#include "jobspec/job_file.hpp"
#include "jobspec/yaml_tree.hpp"

namespace berth {

/// Relative paths start at `base_dir`. Mistakes are reported and left out.
void read_traits(const Node& node, const std::filesystem::path& base_dir, BatchTraits& traits,
                 std::vector<DerivedFile>& derived, Diagnostics& diagnostics);

}  // namespace berth
