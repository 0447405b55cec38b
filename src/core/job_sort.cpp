#include "core/job_sort.hpp"

#include <algorithm>
#include <charconv>
#include <tuple>

#include <fmt/format.h>

namespace berth {
namespace {

using Named = decltype(kJobSorts)::value_type;

template <class Number>
bool parse(std::string_view digits, Number& out) {
  const char* end = digits.data() + digits.size();
  const auto [at, error] = std::from_chars(digits.data(), end, out);
  return error == std::errc() && at == end;
}

}  // namespace

bool goes_before(const ListPlace& a, const ListPlace& b, bool descending) {
  if (a.key.has_value() != b.key.has_value()) {
    return a.key.has_value();
  }
  return descending ? std::tie(b.key, b.id) < std::tie(a.key, a.id)
                    : std::tie(a.key, a.id) < std::tie(b.key, b.id);
}

std::string_view to_string(JobSort sort) {
  return std::ranges::find(kJobSorts, sort, &Named::second)->first;
}

std::optional<std::pair<JobSort, bool>> job_sort_from(std::string_view text) {
  const bool descending = text.starts_with('-');
  text.remove_prefix(descending ? 1 : 0);
  const auto* known = std::ranges::find(kJobSorts, text, &Named::first);
  return known == kJobSorts.end() ? std::nullopt
                                  : std::optional(std::pair(known->second, descending));
}

std::string to_string(const ListPlace& place) {
  return place.key ? fmt::format("{}.{}", *place.key, place.id.value)
                   : fmt::format("{}", place.id.value);
}

std::optional<ListPlace> list_place_from(std::string_view text) {
  ListPlace place;
  if (const std::size_t dot = text.find('.'); dot != std::string_view::npos) {
    if (!parse(text.substr(0, dot), place.key.emplace())) {
      return std::nullopt;
    }
    text.remove_prefix(dot + 1);
  }
  return parse(text, place.id.value) ? std::optional(place) : std::nullopt;
}

}  // namespace berth
