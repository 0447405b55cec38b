#pragma once
// Commands that mean the last job when none is named.

#include <cstdint>

#include "base/result.hpp"
#include "cli/daemon.hpp"

namespace berth::cli {

/// The job submitted last; `not_found` if there is none. On a terminal, a note tells which it is.
[[nodiscard]] Result<JobView> last_job(Daemon& daemon);

}  // namespace berth::cli
