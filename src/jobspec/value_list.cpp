#include "jobspec/value_list.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>

#include <fmt/format.h>

#include "jobspec/job_file.hpp"

namespace berth {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";
/// More digits would show how doubles are stored, not what was asked for.
constexpr int kDigits = 12;

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) {
    return {};
  }
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

template <class T>
std::optional<T> number(std::string_view text) {
  text = trimmed(text);
  if (text.starts_with('+')) {
    text.remove_prefix(1);
  }
  T value{};
  const auto* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (text.empty() || error != std::errc{} || stop != end) {
    return std::nullopt;
  }
  return value;
}

std::optional<double> finite(std::string_view text) {
  const auto value = number<double>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

/// At commas outside parentheses.
std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> parts;
  std::size_t begin = 0;
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    depth += text[i] == '(' ? 1 : text[i] == ')' && depth > 0 ? -1 : 0;
    if (text[i] == ',' && depth == 0) {
      parts.push_back(trimmed(text.substr(begin, i - begin)));
      begin = i + 1;
    }
  }
  parts.push_back(trimmed(text.substr(begin)));
  return parts;
}

/// "../data" has dots as well; a range begins with a number.
bool is_range(std::string_view part) {
  const auto dots = part.find("..");
  return dots != std::string_view::npos && finite(part.substr(0, dots)).has_value();
}

bool is_scale(std::string_view part) {
  return part.starts_with("linear(") || part.starts_with("log(");
}

std::unexpected<Error> bad(std::string_view part, std::string_view why) {
  return fail(ErrorCode::invalid, fmt::format("'{}' {}", part.substr(0, 100), why));
}

std::unexpected<Error> too_many(std::string_view part) {
  return bad(part, fmt::format("has more than {} values", kJobFileMostJobs));
}

std::string shown(double value) {
  return fmt::format("{:.{}g}", value == 0 ? 0.0 : value, kDigits);
}

/// How many digits numbers between these two are to have: as many as are written where one of them
/// begins with a zero, as in 01..03; else as many as they need.
std::size_t digits_wanted(std::string_view from, std::string_view to) {
  from = trimmed(from);
  to = trimmed(to);
  const auto padded = [](std::string_view text) {
    return text.size() > 1 && text.front() == '0' &&
           text.find_first_not_of("0123456789") == std::string_view::npos;
  };
  return padded(from) || padded(to) ? std::max(from.size(), to.size()) : 0;
}

Status add_whole_range(std::string_view part, std::int64_t from, std::int64_t to,
                       std::uint64_t step, std::size_t digits, std::vector<std::string>& out) {
  // Unsigned, for the distance may be more than a signed number holds.
  const auto distance = from <= to
                            ? static_cast<std::uint64_t>(to) - static_cast<std::uint64_t>(from)
                            : static_cast<std::uint64_t>(from) - static_cast<std::uint64_t>(to);
  if (distance / step >= kJobFileMostJobs) {
    return too_many(part);
  }
  for (std::uint64_t i = 0; i <= distance / step; ++i) {
    const auto offset = i * step;
    const auto value =
        static_cast<std::int64_t>(from <= to ? static_cast<std::uint64_t>(from) + offset
                                             : static_cast<std::uint64_t>(from) - offset);
    out.push_back(fmt::format("{:0{}}", value, digits));
  }
  return {};
}

Status add_range(std::string_view part, std::vector<std::string>& out) {
  constexpr std::string_view kForms =
      "is not a range; write 1..3, or 0..10..2 for every second number";
  const auto dots = part.find("..");
  const auto from = part.substr(0, dots);
  auto to = part.substr(dots + 2);
  std::string_view step = "1";
  if (const auto more = to.find(".."); more != std::string_view::npos) {
    step = to.substr(more + 2);
    to = to.substr(0, more);
  }
  const auto first = finite(from);
  const auto last = finite(to);
  const auto by = finite(step);
  if (!first || !last || !by) {
    return bad(part, kForms);
  }
  const bool down = *last < *first;
  if (*by == 0 || (*by < 0 && !down)) {
    return bad(part, *by == 0 ? "has a step of 0, which leads nowhere"
                              : "has a step that leads away from its end");
  }
  if (*first != *last && std::abs(*by) > std::abs(*last - *first) * (1 + 1e-9)) {
    return bad(part, fmt::format("has a step of {}, which is more than the whole range; write for "
                                 "example 0..1..0.25, or linear(0, 1, 5)",
                                 step));
  }
  const auto whole_first = number<std::int64_t>(from);
  const auto whole_last = number<std::int64_t>(to);
  const auto whole_step = number<std::int64_t>(step);
  if (whole_first && whole_last && whole_step) {
    const auto size = *whole_step < 0 ? 0 - static_cast<std::uint64_t>(*whole_step)
                                      : static_cast<std::uint64_t>(*whole_step);
    return add_whole_range(part, *whole_first, *whole_last, size, digits_wanted(from, to), out);
  }
  // A little more, for 0..1..0.1 ends at 1 although ten tenths are less.
  const double count = std::floor(std::abs(*last - *first) / std::abs(*by) + 1e-9);
  if (!(count < static_cast<double>(kJobFileMostJobs))) {
    return too_many(part);
  }
  for (std::uint64_t i = 0; i <= static_cast<std::uint64_t>(count); ++i) {
    const double offset = static_cast<double>(i) * std::abs(*by);
    out.push_back(shown(down ? *first - offset : *first + offset));
  }
  return {};
}

Status add_scale(std::string_view part, std::vector<std::string>& out) {
  const bool logarithmic = part.starts_with("log(");
  const auto open = part.find('(');
  const auto inner = part.ends_with(')') ? split(part.substr(open + 1, part.size() - open - 2))
                                         : std::vector<std::string_view>();
  const auto first = inner.size() == 3 ? finite(inner[0]) : std::nullopt;
  const auto last = inner.size() == 3 ? finite(inner[1]) : std::nullopt;
  const auto count = inner.size() == 3 ? number<std::uint64_t>(inner[2]) : std::nullopt;
  if (!first || !last || !count) {
    return bad(part,
               logarithmic
                   ? "is not a scale; write log(FROM, TO, HOW MANY), as in log(1e-5, 1e-1, 5)"
                   : "is not a scale; write linear(FROM, TO, HOW MANY), as in linear(0, 1, 5)");
  }
  if (*count < 2) {
    return bad(part, "needs at least 2 values, its two ends");
  }
  if (*count > kJobFileMostJobs) {
    return too_many(part);
  }
  if (logarithmic && (*first <= 0 || *last <= 0)) {
    return bad(part, "needs two numbers above 0");
  }
  for (std::uint64_t i = 0; i < *count; ++i) {
    const double share = static_cast<double>(i) / static_cast<double>(*count - 1);
    // In this form the last value is exact and no difference can overflow.
    const double value = logarithmic
                             ? std::exp(std::log(*first) * (1 - share) + std::log(*last) * share)
                             : *first * (1 - share) + *last * share;
    out.push_back(shown(i == 0 ? *first : i + 1 == *count ? *last : value));
  }
  return {};
}

}  // namespace

bool is_value_list(std::string_view text) {
  const auto parts = split(text);
  return parts.size() > 1 || is_range(parts[0]) || is_scale(parts[0]);
}

Result<std::vector<std::string>> expand_values(std::string_view text) {
  std::vector<std::string> values;
  for (const auto part : split(text)) {
    if (part.empty()) {
      return fail(ErrorCode::invalid, "there is an empty value; write for example 1,2,3");
    }
    if (is_range(part)) {
      TRY(add_range(part, values));
    } else if (is_scale(part)) {
      TRY(add_scale(part, values));
    } else {
      values.emplace_back(part);
    }
    if (values.size() > kJobFileMostJobs) {
      return too_many(text);
    }
  }
  return values;
}

}  // namespace berth
