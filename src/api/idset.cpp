#include "api/idset.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "api/text.hpp"

namespace berth {
namespace {

constexpr std::string_view kSeparators = ", \t\n";

bool parse_number(std::string_view text, std::uint64_t& out) {
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, out);
  return !text.empty() && error == std::errc() && at == end && out > 0;
}

}  // namespace

Result<IdSet> IdSet::parse(std::string_view text) {
  IdSet set;
  std::string_view rest = text;
  while (true) {
    const auto begin = rest.find_first_not_of(kSeparators);
    if (begin == std::string_view::npos) {
      break;
    }
    rest.remove_prefix(begin);
    const std::string_view part = rest.substr(0, rest.find_first_of(kSeparators));
    rest.remove_prefix(part.size());
    const auto dash = part.find('-');
    std::uint64_t first = 0;
    std::uint64_t last = 0;
    if (!parse_number(part.substr(0, dash), first) ||
        !parse_number(dash == std::string_view::npos ? part : part.substr(dash + 1), last)) {
      return fail(
          ErrorCode::invalid,
          fmt::format("'{}' is not an id or a range of ids; write 3, 5-9 or 3,5-9", to_utf8(part)));
    }
    if (last < first) {
      return fail(
          ErrorCode::invalid,
          fmt::format("the range '{}' is the wrong way round; write {}-{}", part, last, first));
    }
    set.add(first, last);
  }
  if (set.empty()) {
    return fail(ErrorCode::invalid, "no id given; write 3, 5-9 or 3,5-9");
  }
  return set;
}

void IdSet::add(std::uint64_t first, std::uint64_t last) {
  constexpr auto kMax = std::numeric_limits<std::uint64_t>::max();
  // The ranges that touch the new one, from `begin` to `end`, are merged into it.
  const auto begin = std::ranges::find_if(ranges_, [&](const auto& range) {
    return range.second == kMax || range.second + 1 >= first;
  });
  auto end = begin;
  while (end != ranges_.end() && (last == kMax || end->first <= last + 1)) {
    first = std::min(first, end->first);
    last = std::max(last, end->second);
    ++end;
  }
  ranges_.insert(ranges_.erase(begin, end), {first, last});
}

bool IdSet::contains(std::uint64_t id) const {
  const auto it = std::ranges::lower_bound(ranges_, id, {}, [](const auto& r) { return r.second; });
  return it != ranges_.end() && it->first <= id;
}

std::uint64_t IdSet::size() const {
  std::uint64_t total = 0;
  for (const auto& [first, last] : ranges_) {
    // Ids start at 1, so no sum of disjoint ranges overflows.
    total += last - first + 1;
  }
  return total;
}

Result<std::vector<std::uint64_t>> IdSet::expand(std::size_t max) const {
  if (size() > max) {
    return fail(ErrorCode::invalid,
                fmt::format("'{}' names {} ids; at most {} at once", to_string(), size(), max));
  }
  std::vector<std::uint64_t> ids;
  ids.reserve(static_cast<std::size_t>(size()));
  for (const auto& [first, last] : ranges_) {
    for (std::uint64_t id = first;; ++id) {
      ids.push_back(id);
      if (id == last) {
        break;
      }
    }
  }
  return ids;
}

std::string IdSet::to_string() const {
  std::string out;
  for (const auto& [first, last] : ranges_) {
    out += out.empty() ? "" : ",";
    out += first == last ? fmt::format("{}", first) : fmt::format("{}-{}", first, last);
  }
  return out;
}

}  // namespace berth
