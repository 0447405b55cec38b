#pragma once
// What bare `berth` shows: what matters now, on one screen.

#include <map>
#include <string>
#include <vector>

#include "api/views.hpp"
#include "cli/terminal.hpp"

namespace berth::cli {

struct Overview {
  StatusView status;
  std::vector<JobView> active;             ///< running and paused; ascending
  std::map<std::uint64_t, Millis> limits;  ///< time limits of those that have one
  std::vector<JobView> queued;             ///< the first ones
  std::vector<JobView> failed;             ///< since yesterday; the newest first
  bool failed_more = false;                ///< there are more than these
};

/// How many jobs of each kind can be of use.
inline constexpr std::size_t kOverviewJobs = 20;

/// At most `screen.height` - 1 lines (24 where that is unknown), so that the prompt fits below.
[[nodiscard]] std::string overview_text(const Overview& overview, const Screen& screen, Millis now);

}  // namespace berth::cli
