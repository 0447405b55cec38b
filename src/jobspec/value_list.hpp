#pragma once
// The values of an axis in one line: "1e-3, 1e-4", "1..3", "0..10..2", "linear(0, 1, 5)",
// "log(1e-5, 1e-1, 5)".

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace berth {

/// Parts between commas, in order: a range with both its ends (downwards where it begins higher), a
/// number of steps from one number to another, or the text itself. What begins like a range or a
/// scale and is none is an error that says how to write it.
[[nodiscard]] Result<std::vector<std::string>> expand_values(std::string_view text);

/// Whether `text` stands for more than itself: it has a comma, or is a range or a scale, right or
/// wrong.
[[nodiscard]] bool is_value_list(std::string_view text);

}  // namespace berth
