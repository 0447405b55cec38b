#pragma once
// Sizes and times as people write them.

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "base/time.hpp"

namespace berth {

/// A plain number of bytes.
using Bytes = std::uint64_t;

inline constexpr Bytes kKiB = 1024;
inline constexpr Bytes kMiB = 1024 * kKiB;
inline constexpr Bytes kGiB = 1024 * kMiB;
inline constexpr Bytes kTiB = 1024 * kGiB;

/// Parses "8GiB", "8000 MB", "8G", "8Gi", "1.5 gib", "512M", "1024" (bytes). GB and MB are decimal,
/// GiB, Gi, G and M binary. The error names the text and shows the accepted forms.
[[nodiscard]] Result<Bytes> parse_size(std::string_view text);

/// Parses "90", "90s", "2h30m", "1.5h", "2 days", "01:30:00", "1-12:00:00", "PT2H30M", "250ms". A
/// bare number is seconds. "01:30" is refused: it means minutes to some and hours to others.
[[nodiscard]] Result<Millis> parse_duration(std::string_view text);

/// "5.1 GiB", "600 MiB", "0 B": at most three significant digits, never longer than 9 characters.
[[nodiscard]] std::string format_size(Bytes bytes);

/// "0.3 s", "42 s", "3m 20s", "2h 05m", "3d 04h".
[[nodiscard]] std::string format_duration(Millis duration);

}  // namespace berth
