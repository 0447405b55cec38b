#include "jobspec/values.hpp"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "base/utf8.hpp"
#include "jobspec/keys.hpp"

namespace berth {
namespace {

/// What the daemon takes, too.
constexpr Millis kLongestTime = std::chrono::hours(24 * 3660);

/// " (with lr=0.1)": said when it is the matrix that made the value what it is.
std::string with(const Node& node, const Combination& combination) {
  std::string out;
  for (const auto& [axis, value] : combination) {
    if (mentions(node.text, axis)) {
      out += fmt::format("{}{}={}", out.empty() ? " (with " : ", ", axis, value);
    }
  }
  return out.empty() ? out : out + ")";
}

}  // namespace

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
                             max, *text, with(node, combination)));
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
    diagnostics.add_once(
        node.at, fmt::format("'{}': {}{}", what, size.error().message, with(node, combination)));
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
                                              with(node, combination)));
    return std::nullopt;
  }
  if (*duration > kLongestTime) {
    diagnostics.add_once(node.at,
                         fmt::format("'{}' is longer than ten years; write 0 for no limit", what));
    return std::nullopt;
  }
  return *duration;
}

std::optional<std::uint32_t> read_percent(const Node& node, std::string_view what,
                                          const Combination& combination,
                                          Diagnostics& diagnostics) {
  auto text = read_text(node, what, combination, diagnostics);
  if (!text) {
    return std::nullopt;
  }
  if (text->ends_with('%')) {
    text->pop_back();
  }
  std::uint32_t value = 0;
  const auto* end = text->data() + text->size();
  const auto [stop, error] = std::from_chars(text->data(), end, value);
  if (error != std::errc{} || stop != end || value > 100) {
    diagnostics.add_once(node.at, fmt::format("'{}' must be a percentage from 0 to 100, not '{}'{}",
                                              what, *text, with(node, combination)));
    return std::nullopt;
  }
  return value;
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

bool is_label(std::string_view name) {
  constexpr std::size_t kLongest = 100;
  constexpr std::string_view kForbidden = " ,=\x7f";
  return !name.empty() && name.size() <= kLongest && is_utf8(name) &&
         name.find_first_of(kForbidden) == std::string_view::npos &&
         std::none_of(name.begin(), name.end(),
                      [](char c) { return static_cast<unsigned char>(c) < 0x20; });
}

}  // namespace berth
