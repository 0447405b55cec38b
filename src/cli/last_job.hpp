#pragma once
// The last jobs, where none is named or one is named by how long ago it was submitted.

#include <cstdint>
#include <string>

#include "api/idset.hpp"
#include "base/result.hpp"
#include "cli/daemon.hpp"

namespace berth::cli {

/// The job submitted last; `not_found` if there is none. On a terminal, a note tells which it is.
[[nodiscard]] Result<JobView> last_job(Daemon& daemon);

/// Ids as "3,5-9", where @ stands for the job this user submitted last and @~N for the N-th before
/// it. Asks the daemon if there is an @.
[[nodiscard]] Result<IdSet> parse_ids(const std::string& text);

}  // namespace berth::cli
