#pragma once
// Whether two jobs are the same experiment.

#include <cstdint>
#include <string_view>

#include "core/job.hpp"

namespace berth {

/// Of its name, commands, own variables and directory, and of `more`, such as the content of its
/// configuration. Never 0; equal on every machine.
[[nodiscard]] std::uint64_t fingerprint(const JobSpec& job, std::string_view more = {});

}  // namespace berth
