#pragma once
// The description of the API, docs/openapi.yaml, as the daemon serves it.

#include <string>
#include <string_view>

#include "base/result.hpp"

namespace berth {

/// The file as it was when the daemon was built.
[[nodiscard]] std::string_view openapi_yaml();

/// The same as JSON; once made, kept. From any thread.
[[nodiscard]] const std::string& openapi_json();
/// The same for one instance, whose login has a cookie of this name.
[[nodiscard]] std::string openapi_json(std::string_view cookie);
/// To be read by people: HTML without any script.
[[nodiscard]] const std::string& openapi_page();

}  // namespace berth
