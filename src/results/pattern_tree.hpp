#pragma once
// What a regular expression says, before it becomes steps.

#include <memory>
#include <string_view>
#include <vector>

#include "results/pattern.hpp"

namespace berth {

struct PatternNode {
  enum class Kind : std::uint8_t { empty, bytes, check, sequence, either, repeat, group };
  Kind kind = Kind::empty;
  Pattern::Bytes256 bytes;
  Pattern::Step::Check check = Pattern::Step::Check::begin;
  std::vector<PatternNode> children;
  std::uint32_t least = 0;
  std::uint32_t most = 0;  ///< kNoMost: any number
  bool lazy = false;
  std::uint32_t number = 0;  ///< of a group that catches, from 1

  static constexpr std::uint32_t kNoMost = UINT32_MAX;
};

struct PatternTree {
  PatternNode root;
  std::uint32_t groups = 0;
};

/// The error names the place, counted in characters from 1.
[[nodiscard]] Result<PatternTree> parse_pattern(std::string_view text);

}  // namespace berth
