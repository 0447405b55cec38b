#include "base/moment.hpp"

#include <array>
#include <charconv>
#include <ctime>
#include <optional>

#include <fmt/format.h>

namespace berth {
namespace {

constexpr std::string_view kTomorrow = "tomorrow";

std::tm local_day(Millis now, int days) {
  const auto seconds = static_cast<std::time_t>(now.count() / 1000);
  std::tm local{};
  ::localtime_r(&seconds, &local);
  local.tm_hour = local.tm_min = local.tm_sec = 0;
  local.tm_mday += days;
  local.tm_isdst = -1;
  return local;
}

Millis as_millis(std::tm time, bool utc) {
  return std::chrono::seconds(utc ? ::timegm(&time) : std::mktime(&time));
}

/// "12:30" or "12:30:05" into a day; false: it is neither.
bool read_time(const std::string& word, std::tm& day) {
  for (const char* format : {"%H:%M", "%H:%M:%S"}) {
    std::tm time = day;
    const char* end = ::strptime(word.c_str(), format, &time);
    if (end != nullptr && *end == '\0') {
      day = time;
      return true;
    }
  }
  return false;
}

/// Milliseconds of ".25"; none: it is no such thing.
std::optional<Millis> fraction(std::string_view text) {
  if (text.empty()) {
    return Millis{0};
  }
  if (text.front() != '.' || text.size() < 2 || text.size() > 10) {
    return std::nullopt;
  }
  std::int64_t millis = 0;
  for (std::size_t i = 1; i < text.size(); ++i) {
    if (text[i] < '0' || text[i] > '9') {
      return std::nullopt;
    }
    millis = i <= 3 ? millis * 10 + (text[i] - '0') : millis;
  }
  for (std::size_t digits = text.size() - 1; digits < 3; ++digits) {
    millis *= 10;
  }
  return Millis(millis);
}

std::optional<Millis> read_date(const std::string& word) {
  for (const char* format :
       {"%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M", "%Y-%m-%d"}) {
    std::tm time{};
    time.tm_isdst = -1;
    const char* end = ::strptime(word.c_str(), format, &time);
    if (end == nullptr) {
      continue;
    }
    std::string_view rest = end;
    const bool utc = rest.ends_with('Z');
    rest.remove_suffix(utc ? 1 : 0);
    if (const auto millis = fraction(rest)) {
      return as_millis(time, utc) + *millis;
    }
  }
  return std::nullopt;
}

}  // namespace

Result<Millis> parse_moment(std::string_view text, Millis now) {
  const std::string word(text);
  std::tm today = local_day(now, 0);
  if (read_time(word, today)) {
    const Millis moment = as_millis(today, false);
    if (moment > now) {
      return moment;
    }
    ++today.tm_mday;
    today.tm_isdst = -1;
    return as_millis(today, false);
  }
  if (text.starts_with(kTomorrow)) {
    std::tm day = local_day(now, 1);
    text.remove_prefix(kTomorrow.size());
    if (text.empty() || (text.front() == ' ' && read_time(std::string(text.substr(1)), day))) {
      return as_millis(day, false);
    }
  }
  if (const auto date = read_date(word); date && *date >= Millis{0}) {
    return *date;
  }
  return fail(
      ErrorCode::invalid,
      fmt::format("'{}' is not a time; write 12:30, tomorrow 8:00 or 2026-05-01 12:30", word));
}

std::string exact_moment(Millis wall) {
  const auto seconds = static_cast<std::time_t>(wall.count() / 1000);
  std::tm utc{};
  ::gmtime_r(&seconds, &utc);
  std::array<char, 40> buffer{};
  const std::size_t size = std::strftime(buffer.data(), buffer.size(), "%Y-%m-%dT%H:%M:%S", &utc);
  const auto millis = wall.count() % 1000;
  return std::string(buffer.data(), size) +
         (millis == 0 ? std::string() : fmt::format(".{:03}", millis)) + "Z";
}

}  // namespace berth
