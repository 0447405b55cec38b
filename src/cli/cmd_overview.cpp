// Bare `berth`.

#include <fmt/format.h>

#include <algorithm>

#include "cli/commands.hpp"
#include "cli/daemon.hpp"
#include "cli/overview.hpp"
#include "cli/since.hpp"
#include "cli/watch.hpp"

namespace berth::cli {
namespace {

constexpr Millis kGpuPatience{5'000};

Result<Overview> look(Daemon& daemon) {
  Overview out;
  TRY_ASSIGN(out.status, daemon.get<StatusView>("/api/status"));
  // A look of now: an idle daemon has not looked for a while. A driver that hangs is not waited
  // for.
  if (auto gpus = daemon.get<std::vector<GpuView>>("/api/gpus", kGpuPatience)) {
    out.status.gpus = std::move(*gpus);
  }
  JobQuery query;
  query.states = {JobState::running, JobState::paused};
  TRY_ASSIGN(out.active, daemon.jobs(query, kOverviewJobs));
  for (const JobView& job : out.active) {
    const auto detail = daemon.get<JobDetail>(fmt::format("/api/jobs/{}", job.id));
    if (detail && detail->time_limit > Millis(0)) {
      out.limits[job.id] = detail->time_limit;
    }
  }
  query.states = {JobState::queued};
  TRY_ASSIGN(out.queued, daemon.jobs(query, kOverviewJobs));
  query.states = {JobState::failed};
  query.since = midnight(read_clock().wall, 1);
  query.descending = true;
  TRY_ASSIGN(out.failed, daemon.jobs(query, kOverviewJobs + 1));
  if (out.failed.size() > kOverviewJobs) {
    out.failed.resize(kOverviewJobs);
    out.failed_more = true;
  }
  return out;
}

}  // namespace

Outcome run_overview(const std::optional<Millis>& watch) {
  return show_picture(watch, "berth",
                      [&](Daemon& daemon, const Screen& screen) -> Result<std::string> {
                        TRY_ASSIGN(const Overview overview, look(daemon));
                        Screen fits = screen;
                        fits.height -= watch ? 1 : 0;  // the headline of the watch
                        return overview_text(overview, fits, read_clock().wall);
                      });
}

}  // namespace berth::cli
