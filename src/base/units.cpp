#include "base/units.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include <fmt/format.h>

namespace berth {
namespace {

constexpr std::string_view kSizeForms = "write for example 8GiB, 8000MB, 1.5G or 1024 (bytes)";
constexpr std::string_view kDurationForms =
    "write for example 90s, 15m, 2h30m, 1.5h, 2 days, 01:30:00, 1-12:00:00 or 90 (seconds)";

struct Unit {
  std::string_view name;  // lower case
  std::uint64_t factor = 0;
};

constexpr std::uint64_t kThousand = 1000;
constexpr auto kSizeUnits = std::to_array<Unit>({
    {"b", 1},
    {"byte", 1},
    {"bytes", 1},
    {"k", kKiB},
    {"ki", kKiB},
    {"kib", kKiB},
    {"kb", kThousand},
    {"m", kMiB},
    {"mi", kMiB},
    {"mib", kMiB},
    {"mb", kThousand* kThousand},
    {"g", kGiB},
    {"gi", kGiB},
    {"gib", kGiB},
    {"gb", kThousand* kThousand* kThousand},
    {"t", kTiB},
    {"ti", kTiB},
    {"tib", kTiB},
    {"tb", kThousand* kThousand* kThousand* kThousand},
    {"p", 1024 * kTiB},
    {"pi", 1024 * kTiB},
    {"pib", 1024 * kTiB},
    {"pb", kThousand* kThousand* kThousand* kThousand* kThousand},
});

constexpr std::uint64_t kSecond = 1000;
constexpr std::uint64_t kMinute = 60 * kSecond;
constexpr std::uint64_t kHour = 60 * kMinute;
constexpr std::uint64_t kDay = 24 * kHour;
constexpr auto kDurationUnits = std::to_array<Unit>({
    {"ms", 1},           {"msec", 1},          {"millisecond", 1},
    {"milliseconds", 1}, {"s", kSecond},       {"sec", kSecond},
    {"secs", kSecond},   {"second", kSecond},  {"seconds", kSecond},
    {"m", kMinute},      {"min", kMinute},     {"mins", kMinute},
    {"minute", kMinute}, {"minutes", kMinute}, {"h", kHour},
    {"hr", kHour},       {"hrs", kHour},       {"hour", kHour},
    {"hours", kHour},    {"d", kDay},          {"day", kDay},
    {"days", kDay},      {"w", 7 * kDay},      {"week", 7 * kDay},
    {"weeks", 7 * kDay},
});

// The C locale's answers, whatever the process's locale is.
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_space(char c) {
  return c == ' ' || c == '\t';
}
bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
char to_lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && is_space(text.front())) {
    text.remove_prefix(1);
  }
  while (!text.empty() && is_space(text.back())) {
    text.remove_suffix(1);
  }
  return text;
}

template <class Predicate>
std::string_view take_while(std::string_view& text, Predicate predicate) {
  const auto end = std::find_if_not(text.begin(), text.end(), predicate);
  const auto taken = text.substr(0, static_cast<std::size_t>(end - text.begin()));
  text.remove_prefix(taken.size());
  return taken;
}

/// An unsigned decimal number, kept as its digits so that nothing is rounded on the way.
struct Number {
  std::string_view whole;
  std::string_view fraction;
};

std::optional<Number> take_number(std::string_view& text) {
  Number number;
  number.whole = take_while(text, is_digit);
  if (!text.empty() && text.front() == '.') {
    text.remove_prefix(1);
    number.fraction = take_while(text, is_digit);
    if (number.fraction.empty()) {
      return std::nullopt;  // "1." and "." are typing errors
    }
  }
  if (number.whole.empty() && number.fraction.empty()) {
    return std::nullopt;
  }
  return number;
}

/// number × factor, rounded down; nullopt when it does not fit into `limit`.
std::optional<std::uint64_t> multiply(const Number& number, std::uint64_t factor,
                                      std::uint64_t limit) {
  std::uint64_t whole = 0;
  for (const char c : number.whole) {
    if (__builtin_mul_overflow(whole, std::uint64_t{10}, &whole) ||
        __builtin_add_overflow(whole, static_cast<std::uint64_t>(c - '0'), &whole)) {
      return std::nullopt;
    }
  }
  // From the last digit to the first: rounding down at each digit is rounding down once, and no
  // intermediate value exceeds ten factors, however many digits there are.
  std::uint64_t part = 0;
  for (auto digit = number.fraction.rbegin(); digit != number.fraction.rend(); ++digit) {
    part = (static_cast<std::uint64_t>(*digit - '0') * factor + part) / 10;
  }
  std::uint64_t total = 0;
  if (__builtin_mul_overflow(whole, factor, &total) ||
      __builtin_add_overflow(total, part, &total) || total > limit) {
    return std::nullopt;
  }
  return total;
}

template <std::size_t N>
const Unit* find_unit(const std::array<Unit, N>& units, std::string_view name) {
  const auto same = [&](const Unit& unit) {
    return std::equal(name.begin(), name.end(), unit.name.begin(), unit.name.end(),
                      [](char a, char b) { return to_lower(a) == b; });
  };
  const auto found = std::find_if(units.begin(), units.end(), same);
  return found == units.end() ? nullptr : &*found;
}

/// Quotes what the user wrote, shortened and made printable, so that it can stand in a terminal.
std::string quoted(std::string_view text) {
  constexpr std::size_t kShown = 40;
  std::string out = "'";
  for (const char c : text.substr(0, kShown)) {
    const auto byte = static_cast<unsigned char>(c);
    out += byte < 0x20 || byte == 0x7f ? '?' : c;
  }
  out += text.size() > kShown ? "…'" : "'";
  return out;
}

std::unexpected<Error> bad_size(std::string_view text, std::string_view why) {
  return fail(ErrorCode::invalid,
              fmt::format("{} is not a size: {}; {}", quoted(text), why, kSizeForms));
}

std::unexpected<Error> bad_duration(std::string_view text, std::string_view why) {
  return fail(ErrorCode::invalid,
              fmt::format("{} is not a duration: {}; {}", quoted(text), why, kDurationForms));
}

constexpr auto kMaxMillis = static_cast<std::uint64_t>(std::numeric_limits<Millis::rep>::max());

/// Adds up the parts of a duration; false when it does not fit.
class Total {
 public:
  [[nodiscard]] bool add(const Number& number, std::uint64_t factor) {
    const auto part = multiply(number, factor, kMaxMillis - millis_);
    millis_ += part.value_or(0);
    return part.has_value();
  }
  [[nodiscard]] Millis value() const { return Millis(static_cast<Millis::rep>(millis_)); }

 private:
  std::uint64_t millis_ = 0;
};

/// Takes ":59" off the front; nullopt when it is not there.
std::optional<Number> take_colon_pair(std::string_view& rest) {
  if (rest.size() < 3 || rest[0] != ':' || !is_digit(rest[1]) || !is_digit(rest[2])) {
    return std::nullopt;
  }
  const Number number{rest.substr(1, 2), {}};
  rest.remove_prefix(3);
  return number;
}

/// "HH:MM:SS", hours as large as they like, and Slurm's "D-HH", "D-HH:MM", "D-HH:MM:SS". Without
/// days two parts are refused: to some MM:SS is minutes, to others hours.
Result<Millis> parse_clock(std::string_view text, std::string_view rest) {
  Total total;
  const auto first = take_while(rest, is_digit);
  const bool has_days = rest.starts_with('-');
  auto hours = first;
  if (has_days) {
    rest.remove_prefix(1);
    hours = take_while(rest, is_digit);
  }
  const auto minutes = take_colon_pair(rest);
  const auto seconds = minutes ? take_colon_pair(rest) : std::nullopt;
  if (first.empty() || hours.empty() || !rest.empty() || (!has_days && !seconds)) {
    return bad_duration(text,
                        "a time with colons has the form HH:MM:SS, with days D-HH:MM:SS or D-HH");
  }
  if (has_days && (hours.size() > 2 || (hours.size() == 2 && hours > "23"))) {
    return bad_duration(text, "behind days, hours go up to 23");
  }
  if ((minutes && minutes->whole > "59") || (seconds && seconds->whole > "59")) {
    return bad_duration(text, "minutes and seconds go up to 59");
  }
  if (!total.add({has_days ? first : "0", {}}, kDay) || !total.add({hours, {}}, kHour) ||
      !total.add(minutes.value_or(Number{}), kMinute) ||
      !total.add(seconds.value_or(Number{}), kSecond)) {
    return bad_duration(text, "too long");
  }
  return total.value();
}

/// ISO 8601: "PT2H30M", "P1DT12H", "P2W". Years and months have no fixed length.
Result<Millis> parse_iso(std::string_view text, std::string_view rest) {
  constexpr std::string_view kForm = "ISO 8601 durations look like PT2H30M, P1DT12H or P2W";
  rest.remove_prefix(1);
  Total total;
  std::uint64_t previous = std::numeric_limits<std::uint64_t>::max();
  bool in_time = false;
  bool any = false;
  while (!rest.empty()) {
    if (!in_time && to_lower(rest.front()) == 't') {
      in_time = true;
      any = false;  // "P1DT" is not complete
      rest.remove_prefix(1);
      continue;
    }
    const auto number = take_number(rest);
    if (!number || rest.empty()) {
      return bad_duration(text, kForm);
    }
    const char letter = to_lower(rest.front());
    rest.remove_prefix(1);
    if (letter == 'y' || (letter == 'm' && !in_time)) {
      return bad_duration(text, "years and months have no fixed length");
    }
    const std::string_view letters = in_time ? "hms" : "wd";
    const auto* unit = letters.find(letter) == std::string_view::npos
                           ? nullptr
                           : find_unit(kDurationUnits, {&letter, 1});
    if (unit == nullptr || unit->factor >= previous) {
      return bad_duration(text, kForm);
    }
    previous = unit->factor;
    any = true;
    if (!total.add(*number, unit->factor)) {
      return bad_duration(text, "too long");
    }
  }
  return any ? Result<Millis>(total.value()) : bad_duration(text, kForm);
}

}  // namespace

Result<Bytes> parse_size(std::string_view text) {
  auto rest = trim(text);
  if (rest.empty()) {
    return bad_size(text, "it is empty");
  }
  if (rest.front() == '-') {
    return bad_size(text, "it is negative");
  }
  const auto number = take_number(rest);
  if (!number) {
    return bad_size(text, "it does not start with a number");
  }
  rest = trim(rest);
  const auto* unit = find_unit(kSizeUnits, rest.empty() ? "b" : rest);
  if (unit == nullptr) {
    return bad_size(text, fmt::format("unknown unit {}", quoted(rest)));
  }
  if (rest.empty() && !number->fraction.empty()) {
    return bad_size(text, "a fraction needs a unit");
  }
  const auto bytes = multiply(*number, unit->factor, std::numeric_limits<Bytes>::max());
  if (!bytes) {
    return bad_size(text, "too large");
  }
  return *bytes;
}

Result<Millis> parse_duration(std::string_view text) {
  auto rest = trim(text);
  if (rest.empty()) {
    return bad_duration(text, "it is empty");
  }
  if (rest.front() == '-') {
    return bad_duration(text, "it is negative");
  }
  if (rest.find_first_of(":-") != std::string_view::npos) {
    return parse_clock(text, rest);
  }
  if (to_lower(rest.front()) == 'p') {
    return parse_iso(text, rest);
  }
  Total total;
  std::uint64_t previous = std::numeric_limits<std::uint64_t>::max();
  for (bool first = true; !rest.empty(); first = false) {
    const auto number = take_number(rest);
    if (!number) {
      return bad_duration(
          text, first ? "it does not start with a number" : "a number is expected after each unit");
    }
    rest = trim(rest);
    const auto name = take_while(rest, is_letter);
    if (name.empty() && !(first && rest.empty())) {
      return bad_duration(text, "a unit is missing");
    }
    const auto* unit = find_unit(kDurationUnits, name.empty() ? "s" : name);
    if (unit == nullptr) {
      return bad_duration(text, fmt::format("unknown unit {}", quoted(name)));
    }
    if (unit->factor >= previous) {
      return bad_duration(text, "units go from large to small, each once");
    }
    previous = unit->factor;
    if (!total.add(*number, unit->factor)) {
      return bad_duration(text, "too long");
    }
    rest = trim(rest);
  }
  return total.value();
}

std::string format_size(Bytes bytes) {
  static constexpr auto kNames =
      std::to_array<std::string_view>({"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"});
  std::size_t unit = 0;
  auto value = static_cast<double>(bytes);
  // 999.5 would be shown as 1000: four digits.
  while (value >= 999.5 && unit + 1 < kNames.size()) {
    value /= 1024;
    ++unit;
  }
  const int decimals = value >= 99.95 ? 0 : value >= 0.995 || bytes == 0 ? 1 : 2;
  auto digits = fmt::format("{:.{}f}", value, decimals);
  if (digits.ends_with(".0")) {
    digits.resize(digits.size() - 2);
  }
  return fmt::format("{} {}", digits, kNames[unit]);
}

std::string format_duration(Millis duration) {
  const bool negative = duration.count() < 0;
  auto millis = static_cast<std::uint64_t>(duration.count());
  if (negative) {
    millis = 0 - millis;  // also right for the smallest value, which has no positive twin
  }
  const auto* sign = negative ? "-" : "";
  // Rounded down throughout: a job never seems to have run longer than it has.
  if (millis == 0) {
    return "0 s";
  }
  if (millis < 10 * kSecond) {
    return fmt::format("{}{}.{} s", sign, millis / kSecond, millis % kSecond / 100);
  }
  if (millis < kMinute) {
    return fmt::format("{}{} s", sign, millis / kSecond);
  }
  if (millis < kHour) {
    return fmt::format("{}{}m {:02}s", sign, millis / kMinute, millis % kMinute / kSecond);
  }
  if (millis < kDay) {
    return fmt::format("{}{}h {:02}m", sign, millis / kHour, millis % kHour / kMinute);
  }
  return fmt::format("{}{}d {:02}h", sign, millis / kDay, millis % kDay / kHour);
}

}  // namespace berth
