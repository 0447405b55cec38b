#pragma once
// How the values of rules are read and written. For the definitions of the rules only.

#include <algorithm>
#include <charconv>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/rule_table.hpp"

namespace berth::rule_values {

template <class T>
Result<T> whole_number(std::string_view text, T max = std::numeric_limits<T>::max(), T min = 0) {
  T value{};
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  if (text.empty() || error != std::errc() || at != end || value > max || value < min) {
    return fail(ErrorCode::invalid,
                fmt::format("expected a whole number from {} to {}, got '{}'", min, max, text));
  }
  return value;
}

/// The value that a path of members leads to.
template <auto... Path>
auto& at(auto& rules) {
  return (rules.*....*Path);
}

template <auto... Path>
using ValueAt = std::remove_cvref_t<decltype(at<Path...>(std::declval<Rules&>()))>;

template <auto... Path>
std::string get_number(const Rules& rules) {
  return fmt::format("{}", at<Path...>(rules));
}
template <auto... Path>
Status set_number(Rules& rules, std::string_view text) {
  TRY_ASSIGN(at<Path...>(rules), whole_number<ValueAt<Path...>>(text));
  return {};
}

template <auto... Path>
Status set_positive(Rules& rules, std::string_view text) {
  using Value = ValueAt<Path...>;
  TRY_ASSIGN(at<Path...>(rules),
             whole_number<Value>(text, std::numeric_limits<Value>::max(), Value{1}));
  return {};
}

template <auto... Path>
Status set_percent(Rules& rules, std::string_view text) {
  if (text.ends_with('%')) {
    text.remove_suffix(1);
  }
  TRY_ASSIGN(at<Path...>(rules), whole_number<std::uint32_t>(text, 100));
  return {};
}

template <auto... Path>
std::string get_size(const Rules& rules) {
  return exact_size(at<Path...>(rules));
}
template <auto... Path>
Status set_size(Rules& rules, std::string_view text) {
  TRY_ASSIGN(at<Path...>(rules), parse_size(text));
  return {};
}

template <auto... Path>
std::string get_time(const Rules& rules) {
  return exact_duration(at<Path...>(rules));
}
template <auto... Path>
Status set_time(Rules& rules, std::string_view text) {
  TRY_ASSIGN(at<Path...>(rules), parse_duration(text));
  return {};
}

template <auto... Path>
std::string get_bool(const Rules& rules) {
  return at<Path...>(rules) ? "true" : "false";
}
template <auto... Path>
Status set_bool(Rules& rules, std::string_view text) {
  const bool yes = text == "true" || text == "yes" || text == "on" || text == "1";
  if (!yes && text != "false" && text != "no" && text != "off" && text != "0") {
    return fail(ErrorCode::invalid, fmt::format("expected true or false, got '{}'", text));
  }
  at<Path...>(rules) = yes;
  return {};
}

/// A number, or `default` for none.
template <auto... Path>
std::string get_limit(const Rules& rules) {
  const auto& limit = at<Path...>(rules);
  return limit ? fmt::format("{}", *limit) : "default";
}
template <auto... Path>
Status set_limit(Rules& rules, std::string_view text) {
  if (text == "default") {
    at<Path...>(rules).reset();
    return {};
  }
  const auto limit = whole_number<std::uint32_t>(text);
  if (!limit) {
    return fail(ErrorCode::invalid, limit.error().message + "; `default` for the usual");
  }
  at<Path...>(rules) = *limit;
  return {};
}

/// `Names` is an array of pairs of a value and its name.
template <const auto& Names, auto... Path>
std::string get_choice(const Rules& rules) {
  const auto it =
      std::ranges::find(Names, at<Path...>(rules), [](const auto& pair) { return pair.first; });
  return std::string(it == std::ranges::end(Names) ? "?" : it->second);
}
template <const auto& Names, auto... Path>
Status set_choice(Rules& rules, std::string_view text) {
  std::vector<std::string_view> names;
  for (const auto& [value, name] : Names) {
    if (text == name) {
      at<Path...>(rules) = value;
      return {};
    }
    names.push_back(name);
  }
  return fail(ErrorCode::invalid,
              fmt::format("expected one of {}, got '{}'", fmt::join(names, ", "), text));
}

}  // namespace berth::rule_values
