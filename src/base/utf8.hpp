#pragma once
// Well-formed UTF-8, as Unicode defines it.

#include <cstddef>
#include <string>
#include <string_view>

namespace berth {

/// Whether `text` is well-formed UTF-8.
[[nodiscard]] bool is_utf8(std::string_view text);
/// `text` with every malformed byte replaced by U+FFFD.
[[nodiscard]] std::string to_utf8(std::string_view text);
/// `text` as valid UTF-8 in one line: control characters are written out (\n, \x1b).
[[nodiscard]] std::string printable(std::string_view text);
/// The length of the well-formed sequence that `text` begins with; 0: none.
[[nodiscard]] std::size_t utf8_length(std::string_view text);

}  // namespace berth
