#include "daemon/rule_warnings.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/room.hpp"

namespace berth {

std::vector<std::string> rule_warnings(const State& state, const Rules& rules) {
  if (!state.seen) {
    return {};
  }
  const auto absent = Room(state, {}).absent(rules);
  if (absent.empty()) {
    return {};
  }
  return {fmt::format("the rule gpus names {}, which {} not there; `berth gpus` lists the cards",
                      fmt::join(absent, ", "), absent.size() == 1 ? "is" : "are")};
}

}  // namespace berth
