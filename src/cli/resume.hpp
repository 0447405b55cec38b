#pragma once
// Running a job file again: what has succeeded before is left out.

#include "base/result.hpp"
#include "cli/daemon.hpp"
#include "submit/leave_out.hpp"

namespace berth::cli {

/// Takes out of `file` what the daemon knows to be done or under way.
[[nodiscard]] Result<LeftOut> leave_out_done(JobFile& file, Daemon& daemon);

}  // namespace berth::cli
