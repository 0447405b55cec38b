#pragma once
// Bytes and text: base64, and UTF-8 from base.

#include <optional>
#include <string>
#include <string_view>

#include "base/utf8.hpp"

namespace berth {

[[nodiscard]] std::string base64_encode(std::string_view bytes);
/// Strict: padded, no white space. None when malformed.
[[nodiscard]] std::optional<std::string> base64_decode(std::string_view text);

}  // namespace berth
