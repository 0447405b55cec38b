#pragma once

#include <string>
#include <string_view>

namespace berth {

/// Appends `text` as a JSON string. JSON is UTF-8: malformed bytes become U+FFFD.
void append_json_string(std::string& out, std::string_view text);

[[nodiscard]] inline std::string json_string(std::string_view text) {
  std::string out;
  append_json_string(out, text);
  return out;
}

}  // namespace berth
