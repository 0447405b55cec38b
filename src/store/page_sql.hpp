#pragma once
// What the statements for pages of jobs have in common. Private to reader_pages.cpp and
// reader_sorted.cpp.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "store/reader.hpp"

namespace berth::pages {

using IdRanges = std::vector<std::pair<JobId, JobId>>;

/// Each once, in order; none: all of them, which is no condition.
[[nodiscard]] std::vector<JobState> distinct(std::vector<JobState> states);
[[nodiscard]] std::vector<JobState> all_states();
/// "0,3,4"
[[nodiscard]] std::string state_list(const std::vector<JobState>& states);
/// Ascending, without overlap.
[[nodiscard]] IdRanges merged(IdRanges ranges);

/// Whether a row matches, as far as the index that led to it does not say so: an expression over
/// it. ?1 is the pattern of the name. Empty: every row matches.
[[nodiscard]] std::string match(const std::vector<JobState>& states, BatchId batch,
                                std::optional<QueueId> queue, const JobFilter& query);
[[nodiscard]] inline std::string column(const std::string& matches) {
  return matches.empty() ? "1" : matches;
}

}  // namespace berth::pages
