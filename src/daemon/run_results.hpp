#pragma once
// The table of `berth results`, made by the daemon: what runs have told in their reports and logs.
// May block, and take long.

#include <stop_token>
#include <string>
#include <vector>

#include "api/remote.hpp"
#include "api/resources.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "daemon/shown_files.hpp"

namespace berth {

/// Until when, by the monotonic clock.
struct ResultsTime {
  Millis enough{0};          ///< then no further run is begun
  Millis end{0};             ///< then it has taken too long
  std::stop_token given_up;  ///< nobody waits for it any more
};

struct ResultsPlaces {
  std::string logs;
  ShownFiles files;
};

[[nodiscard]] Result<std::string> make_results(const std::vector<JobView>& jobs,
                                               const ResultsQuery& query,
                                               const ResultsPlaces& places,
                                               const ResultsTime& time);

/// What the runs of these jobs, which are in order, have told. `more`: there are others behind
/// them.
[[nodiscard]] Result<std::string> tell_runs(const std::vector<JobView>& jobs, bool more,
                                            const RunsRequest& request, const ResultsPlaces& places,
                                            const ResultsTime& time);

}  // namespace berth
