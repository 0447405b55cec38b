#pragma once
// Points in the past as people write them.

#include <string_view>

#include "base/result.hpp"
#include "base/time.hpp"

namespace berth::cli {

/// "2h", "90m", "3 days" before `now`; "today" and "yesterday" from midnight on; "2024-05-01",
/// "2024-05-01 12:30", "2024-05-01T12:30:05" in local time. Never before 1970.
[[nodiscard]] Result<Millis> parse_since(std::string_view text, Millis now);

/// Midnight, local time, `days` days before the day of `now`.
[[nodiscard]] Millis midnight(Millis now, int days);

}  // namespace berth::cli
