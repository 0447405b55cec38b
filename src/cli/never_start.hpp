#pragma once
// Jobs that have been submitted and that nothing would ever let start.

#include <string>
#include <vector>

#include "api/idset.hpp"
#include "api/views.hpp"
#include "cli/daemon.hpp"
#include "core/job.hpp"

namespace berth::cli {

/// Jobs of one submission that ask for the same.
struct AlikeJobs {
  Request request;
  IdSet ids;
  std::uint64_t first = 0;
};

/// Of the jobs whose ids begin with `first`; those that ask for nothing are left out, and so are
/// those beyond the first few dozen different requests.
[[nodiscard]] std::vector<AlikeJobs> alike(const std::vector<JobSpec>& jobs, std::uint64_t first);

/// Whether a reason to wait is one that no time cures: the machine is too small, or a rule is in
/// the way.
[[nodiscard]] bool is_for_ever(const ReasonView& reason);

/// One warning for each kind of job that can never start as things are. Waits a moment where the
/// daemon has to look at the GPUs first; says nothing of what it cannot find out.
void warn_of_stuck_jobs(Daemon& daemon, const std::vector<AlikeJobs>& jobs);

}  // namespace berth::cli
