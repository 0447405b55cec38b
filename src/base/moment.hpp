#pragma once
// Points in the future as people write them.

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "base/time.hpp"

namespace berth {

/// "2026-05-01", "2026-05-01 12:30", "2026-05-01T12:30:05.250Z": local time unless it ends in Z.
/// "12:30", "12:30:05": the next time the clock shows that; "tomorrow", "tomorrow 12:30". By the
/// wall clock, as `now` is.
[[nodiscard]] Result<Millis> parse_moment(std::string_view text, Millis now);

/// In a form that parse_moment gives back exactly: "2026-05-01T12:30:05Z".
[[nodiscard]] std::string exact_moment(Millis wall);

}  // namespace berth
