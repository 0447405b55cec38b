#pragma once
// A seed in a configuration file that somebody else reads.

#include <string>
#include <string_view>

#include "base/result.hpp"

namespace berth {

/// The YAML or JSON `text` with its top-level `seed` set to `seed`, or added; all else, comments
/// included, stays as it was. An error where that cannot be done by changing one place.
[[nodiscard]] Result<std::string> with_seed(std::string_view text, std::string_view seed);

}  // namespace berth
