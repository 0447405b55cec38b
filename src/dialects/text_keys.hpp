#pragma once
// Looking for keys in a text that nobody has parsed yet, to tell dialects apart.

#include <string_view>

namespace berth {

/// Whether `key:` stands somewhere, quoted or not.
[[nodiscard]] bool has_key(std::string_view text, std::string_view key);
/// Whether it has a `version` at its top, as every native job file has.
[[nodiscard]] bool has_version(std::string_view text);

}  // namespace berth
