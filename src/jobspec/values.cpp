#include "jobspec/values.hpp"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "base/moment.hpp"
#include "base/utf8.hpp"
#include "jobspec/keys.hpp"

namespace berth {
namespace {

/// What the daemon takes, too.
constexpr Millis kLongestTime = std::chrono::hours(24 * 3660);

}  // namespace

std::string made_by(std::string_view text, const Combination& combination) {
  std::string out;
  for (const auto& [axis, value] : combination) {
    if (mentions(text, axis)) {
      out += fmt::format("{}{}={}", out.empty() ? " (with " : ", ", axis, value);
    }
  }
  return out.empty() ? out : out + ")";
}

std::optional<std::string> read_text(const Node& node, std::string_view what,
                                     const Combination& combination, Diagnostics& diagnostics) {
  if (node.kind != Node::Kind::scalar) {
    diagnostics.add_once(
        node.at, fmt::format("'{}' needs a single value, this is {}", what, describe(node.kind)));
    return std::nullopt;
  }
  auto text = substitute(node.text, combination);
  if (text.find('\0') != std::string::npos) {
    diagnostics.add_once(node.at, fmt::format("'{}' contains a NUL character", what));
    return std::nullopt;
  }
  return text;
}

std::optional<std::int64_t> read_integer(const Node& node, std::string_view what, std::int64_t min,
                                         std::int64_t max, const Combination& combination,
                                         Diagnostics& diagnostics) {
  const auto text = read_text(node, what, combination, diagnostics);
  if (!text) {
    return std::nullopt;
  }
  std::int64_t value = 0;
  const auto* end = text->data() + text->size();
  const auto [stop, error] = std::from_chars(text->data(), end, value);
  if (error != std::errc{} || stop != end || value < min || value > max) {
    diagnostics.add_once(
        node.at, fmt::format("'{}' must be a whole number from {} to {}, not '{}'{}", what, min,
                             max, *text, made_by(node.text, combination)));
    return std::nullopt;
  }
  return value;
}

std::optional<Bytes> read_size(const Node& node, std::string_view what,
                               const Combination& combination, Diagnostics& diagnostics) {
  const auto text = read_text(node, what, combination, diagnostics);
  if (!text) {
    return std::nullopt;
  }
  const auto size = parse_size(*text);
  if (!size) {
    diagnostics.add_once(node.at, fmt::format("'{}': {}{}", what, size.error().message,
                                              made_by(node.text, combination)));
    return std::nullopt;
  }
  return *size;
}

std::optional<Millis> read_duration(const Node& node, std::string_view what,
                                    const Combination& combination, Diagnostics& diagnostics) {
  const auto text = read_text(node, what, combination, diagnostics);
  if (!text) {
    return std::nullopt;
  }
  const auto duration = parse_duration(*text);
  if (!duration) {
    diagnostics.add_once(node.at, fmt::format("'{}': {}{}", what, duration.error().message,
                                              made_by(node.text, combination)));
    return std::nullopt;
  }
  if (*duration > kLongestTime) {
    diagnostics.add_once(node.at,
                         fmt::format("'{}' is longer than ten years; write 0 for no limit", what));
    return std::nullopt;
  }
  return *duration;
}

std::optional<Millis> read_moment(const Node& node, std::string_view what, Millis now,
                                  const Combination& combination, Diagnostics& diagnostics) {
  const auto text = read_text(node, what, combination, diagnostics);
  if (!text) {
    return std::nullopt;
  }
  const auto moment = parse_moment(*text, now);
  if (!moment) {
    diagnostics.add_once(node.at, fmt::format("'{}': {}{}", what, moment.error().message,
                                              made_by(node.text, combination)));
    return std::nullopt;
  }
  return *moment;
}

std::optional<bool> read_flag(const Node& node, std::string_view what,
                              const Combination& combination, Diagnostics& diagnostics) {
  const auto value = read_text(node, what, combination, diagnostics);
  if (value && *value != "true" && *value != "false") {
    diagnostics.add_once(node.at,
                         fmt::format("'{}' must be true or false, not '{}'", what, *value));
    return std::nullopt;
  }
  return value ? std::optional(*value == "true") : std::nullopt;
}

std::map<std::string, std::uint64_t> read_resources(const Node& node,
                                                    const Combination& combination,
                                                    Diagnostics& diagnostics) {
  std::map<std::string, std::uint64_t> resources;
  if (node.kind != Node::Kind::map) {
    diagnostics.add_once(node.at, fmt::format("'resources' must be a map such as {{licence: 1}}, "
                                              "this is {}",
                                              describe(node.kind)));
    return resources;
  }
  for (const auto& entry : node.entries) {
    if (!is_label(entry.key)) {
      diagnostics.add_once(entry.key_at, fmt::format("'{}' cannot name a resource", entry.key));
      continue;
    }
    const auto count =
        read_integer(*entry.value, entry.key, 0, kMostOfAResource, combination, diagnostics);
    if (count) {
      resources.emplace(entry.key, static_cast<std::uint64_t>(*count));
    }
  }
  return resources;
}

std::string name_problem(std::string_view name) {
  constexpr std::size_t kLongestName = 200;
  const bool clean = std::none_of(name.begin(), name.end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
  });
  if (name.empty() || !clean || !is_utf8(name)) {
    return "a name must not be empty or have control characters, and must be UTF-8";
  }
  if (name.size() > kLongestName) {
    return fmt::format("the name '{}…' is longer than {} bytes", name.substr(0, 40), kLongestName);
  }
  return {};
}

bool is_label(std::string_view name) {
  constexpr std::size_t kLongest = 100;
  constexpr std::string_view kForbidden = " ,=\x7f";
  return !name.empty() && name.size() <= kLongest && is_utf8(name) &&
         name.find_first_of(kForbidden) == std::string_view::npos &&
         std::none_of(name.begin(), name.end(),
                      [](char c) { return static_cast<unsigned char>(c) < 0x20; });
}

}  // namespace berth
