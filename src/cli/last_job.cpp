#include "cli/last_job.hpp"

#include <fmt/format.h>

#include "cli/describe.hpp"
#include "cli/terminal.hpp"

namespace berth::cli {

Result<JobView> last_job(Daemon& daemon) {
  JobQuery query;
  query.descending = true;
  TRY_ASSIGN(auto jobs, daemon.jobs(query, 1));
  if (jobs.empty()) {
    return fail(ErrorCode::not_found, "there are no jobs yet; try: berth add python train.py");
  }
  note(fmt::format("job {} {}, the last one", jobs.front().id, shorten(label(jobs.front()), 50)));
  return std::move(jobs.front());
}

}  // namespace berth::cli
