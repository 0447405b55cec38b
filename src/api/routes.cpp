#include "api/routes.hpp"

#include <charconv>

namespace berth {
namespace {

constexpr std::string_view kIdMark = "{id}";

/// Whether `path` has the form `pattern`; sets `id` where the pattern has its mark.
bool matches(std::string_view pattern, std::string_view path, std::uint64_t& id) {
  const auto mark = pattern.find(kIdMark);
  if (mark == std::string_view::npos) {
    return pattern == path;
  }
  const std::string_view tail = pattern.substr(mark + kIdMark.size());
  if (path.size() <= mark + tail.size() || !path.starts_with(pattern.substr(0, mark)) ||
      !path.ends_with(tail)) {
    return false;
  }
  const std::string_view number = path.substr(mark, path.size() - mark - tail.size());
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), id);
  return error == std::errc() && end == number.data() + number.size() && id != 0;
}

}  // namespace

RouteMatch match_route(std::string_view method, std::string_view path) {
  RouteMatch match;
  for (const Route& route : kRoutes) {
    std::uint64_t id = 0;
    if (!matches(route.path, path, id)) {
      continue;
    }
    match.path_exists = true;
    if (route.method == method) {
      match.route = &route;
      match.job_id = id;
      return match;
    }
  }
  return match;
}

}  // namespace berth
