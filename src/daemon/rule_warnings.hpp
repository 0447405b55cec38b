#pragma once
// What is odd about rules, seen beside the machine they are for.

#include <string>
#include <vector>

#include "core/rules.hpp"
#include "core/state.hpp"

namespace berth {

/// For people. Nothing is said of cards before the first look at them.
[[nodiscard]] std::vector<std::string> rule_warnings(const State& state, const Rules& rules);

}  // namespace berth
