#pragma once
// Bytes, text and numbers on the wire: base64, strings of JSON, and UTF-8 from base.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/utf8.hpp"

namespace berth {

/// The largest whole number that a client without integers of 64 bits can write.
inline constexpr std::uint64_t kNumberMax = (std::uint64_t{1} << 53) - 1;

[[nodiscard]] std::string base64_encode(std::string_view bytes);
/// Strict: padded, no white space. None when malformed.
[[nodiscard]] std::optional<std::string> base64_decode(std::string_view text);

/// Adds the text, which must be UTF-8, as JSON has it: in quotes, with what cannot stand there
/// escaped.
void append_json_string(std::string& out, std::string_view text);

}  // namespace berth
