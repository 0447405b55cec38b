#pragma once
// In which order jobs are listed.

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/ids.hpp"

namespace berth {

/// What a list of jobs is sorted by. Equal ones come by id, and those that have no such value at
/// the end, whichever the direction.
enum class JobSort : std::uint8_t {
  id,        ///< of submission
  priority,  ///< the number itself
  state,     ///< as the states are named: first those that wait, then what runs, then what ended
  started,   ///< when the latest attempt began
  ended,
};

inline constexpr std::array<std::pair<std::string_view, JobSort>, 6> kJobSorts = {
    {{"id", JobSort::id},
     {"submitted", JobSort::id},  // ids are given out in that order
     {"priority", JobSort::priority},
     {"state", JobSort::state},
     {"started", JobSort::started},
     {"ended", JobSort::ended}}};

/// A job's place in a sorted list, and with it where a page ends and the next goes on.
struct ListPlace {
  JobId id;                              ///< none: before all
  std::optional<std::int64_t> key = {};  ///< what it is sorted by; none: by id, or it has none
  friend auto operator<=>(const ListPlace&, const ListPlace&) = default;
};

/// Whether `a` is listed before `b`.
[[nodiscard]] bool goes_before(const ListPlace& a, const ListPlace& b, bool descending);

[[nodiscard]] std::string_view to_string(JobSort sort);
/// "-ended": by the end, descending.
[[nodiscard]] std::optional<std::pair<JobSort, bool>> job_sort_from(std::string_view text);

/// "17", or "KEY.17".
[[nodiscard]] std::string to_string(const ListPlace& place);
[[nodiscard]] std::optional<ListPlace> list_place_from(std::string_view text);

}  // namespace berth
