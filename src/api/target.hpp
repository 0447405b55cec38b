#pragma once
// The target of an HTTP request: a path and a query, percent-encoded.

#include <map>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace berth {

struct Target {
  std::string path;
  std::map<std::string, std::string> query;
};

/// An error when the target is not an absolute path, has a broken percent sequence or a parameter
/// twice.
[[nodiscard]] Result<Target> parse_target(std::string_view target);

/// Percent-encodes all but unreserved characters and ",".
[[nodiscard]] std::string percent_encode(std::string_view text);

}  // namespace berth
