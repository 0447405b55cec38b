#pragma once
// What runs have told, on its way from the machine that has their logs to the one that makes a
// table of it. Numbers travel as text: read again, each is the same to the last digit.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "results/observations.hpp"

namespace berth {

struct FoundRuns {
  struct One {
    std::uint64_t job = 0;
    Observations metrics;
  };
  std::vector<One> runs;              ///< by job
  std::optional<std::uint64_t> next;  ///< there may be more beyond this job
  std::vector<std::string> warnings;
};

enum class Curves : bool { left_out, told };
[[nodiscard]] std::string encode(const FoundRuns& found, Curves curves);
[[nodiscard]] Result<FoundRuns> decode_found_runs(std::string_view body);

}  // namespace berth
