#pragma once
// The target of an HTTP request: a path and a query, percent-encoded.

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace berth {

struct Target {
  std::string path;
  std::map<std::string, std::string> query;
};

/// None when the target is not an absolute path or has a broken percent sequence.
[[nodiscard]] std::optional<Target> parse_target(std::string_view target);

/// Percent-encodes all but unreserved characters and ",".
[[nodiscard]] std::string percent_encode(std::string_view text);

}  // namespace berth
