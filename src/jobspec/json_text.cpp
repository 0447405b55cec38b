#include "jobspec/json_text.hpp"

#include <iterator>

#include <fmt/format.h>

#include "base/utf8.hpp"

namespace berth {

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  while (!text.empty()) {
    const auto c = static_cast<unsigned char>(text.front());
    std::size_t length = 1;
    if (c == '"' || c == '\\') {
      out += '\\';
      out += text.front();
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (c < 0x20 || c == 0x7f) {
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", c);
    } else if (c < 0x80) {
      out += text.front();
    } else if (length = utf8_length(text); length > 0) {
      out += text.substr(0, length);
    } else {
      out += "\xEF\xBF\xBD";
      length = 1;
    }
    text.remove_prefix(length);
  }
  out += '"';
}

}  // namespace berth
