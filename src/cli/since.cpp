#include "cli/since.hpp"

#include <fmt/format.h>

#include <ctime>
#include <string>

#include "base/units.hpp"
#include "cli/terminal.hpp"

namespace berth::cli {

Millis midnight(Millis now, int days) {
  const std::time_t seconds = static_cast<std::time_t>(now.count() / 1000);
  std::tm local{};
  ::localtime_r(&seconds, &local);
  local.tm_hour = local.tm_min = local.tm_sec = 0;
  local.tm_mday -= days;
  local.tm_isdst = -1;
  return std::chrono::seconds(std::mktime(&local));
}

Result<Millis> parse_since(std::string_view text, Millis now) {
  if (text == "today") {
    return midnight(now, 0);
  }
  if (text == "yesterday") {
    return midnight(now, 1);
  }
  const std::string word(text);
  for (const char* format :
       {"%Y-%m-%d", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S"}) {
    std::tm local{};
    local.tm_isdst = -1;
    const char* end = ::strptime(word.c_str(), format, &local);
    if (end != nullptr && *end == '\0') {
      return std::max(Millis(std::chrono::seconds(std::mktime(&local))), Millis(0));
    }
  }
  const auto ago = parse_duration(text);
  if (!ago) {
    return fail(ErrorCode::invalid,
                fmt::format("'{}' is not a time; write 2h, 3 days, yesterday or 2024-05-01 12:30",
                            printable(text)));
  }
  return std::max(now - *ago, Millis(0));
}

}  // namespace berth::cli
