#include "api/routes.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

namespace berth {
namespace {

constexpr std::string_view kIdName = "id";

/// Takes the part up to the next slash off the front of a path, and that slash.
std::string_view take_segment(std::string_view& path) {
  const std::size_t end = std::min(path.find('/'), path.size());
  const std::string_view segment = path.substr(0, end);
  path.remove_prefix(std::min(end + 1, path.size()));
  return segment;
}

bool parse_id(std::string_view text, std::uint64_t& id) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  return error == std::errc() && end == text.data() + text.size() && id != 0;
}

/// Whether a segment is what the pattern has at this place; notes what stands for a name.
bool fits(std::string_view pattern, std::string_view segment, RouteMatch& match) {
  if (!pattern.starts_with('{')) {
    return pattern == segment;
  }
  const std::string_view name = pattern.substr(1, pattern.size() - 2);
  if (segment.empty() || (name == kIdName && !parse_id(segment, match.id))) {
    return false;
  }
  match.params.push_back({name, std::string(segment)});
  return true;
}

/// Whether `path` has the form `pattern`.
bool matches(std::string_view pattern, std::string_view path, RouteMatch& match) {
  if (std::ranges::count(pattern, '/') != std::ranges::count(path, '/')) {
    return false;
  }
  while (!pattern.empty()) {
    if (!fits(take_segment(pattern), take_segment(path), match)) {
      return false;
    }
  }
  return path.empty();
}

/// Whether the route answers a HEAD as it would a GET. A login spends its code, so a look at what
/// it would do cannot be had.
bool answers_head(const Route& route) {
  return route.method == "GET" && route.id != RouteId::login;
}

}  // namespace

std::string_view RouteMatch::param(std::string_view name) const {
  const auto found = std::ranges::find(params, name, &PathParam::name);
  return found == params.end() ? std::string_view() : std::string_view(found->value);
}

RouteMatch match_route(std::string_view method, std::string_view path) {
  RouteMatch none;
  std::string_view pattern;
  for (const Route& route : kRoutes) {
    RouteMatch match;
    // The first that fits is the one meant: "list" is no {index}, whatever the method.
    if ((!pattern.empty() && route.path != pattern) || !matches(route.path, path, match)) {
      continue;
    }
    pattern = route.path;
    if (route.method == method || (method == "HEAD" && answers_head(route))) {
      match.route = &route;
      return match;
    }
    none.allowed += none.allowed.empty() ? "" : ", ";
    none.allowed += route.method;
    none.allowed += answers_head(route) ? ", HEAD" : "";
  }
  return none;
}

}  // namespace berth
