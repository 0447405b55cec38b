#pragma once
// Sets of ids as people write them: "3,5-9".

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"

namespace berth {

/// Inclusive ranges, ascending, neither touching nor overlapping.
class IdSet {
 public:
  IdSet() = default;

  /// Parses "3", "3,5-9", "3 5-9". The error names the part that is wrong.
  static Result<IdSet> parse(std::string_view text);

  void add(std::uint64_t first, std::uint64_t last);
  void add(std::uint64_t id) { add(id, id); }

  [[nodiscard]] bool empty() const { return ranges_.empty(); }
  [[nodiscard]] bool contains(std::uint64_t id) const;
  [[nodiscard]] std::uint64_t size() const;
  [[nodiscard]] const std::vector<std::pair<std::uint64_t, std::uint64_t>>& ranges() const {
    return ranges_;
  }
  /// All ids, ascending; an error when there are more than `max`.
  [[nodiscard]] Result<std::vector<std::uint64_t>> expand(std::size_t max = 1'000'000) const;
  [[nodiscard]] std::string to_string() const;  ///< "3,5-9"

  friend bool operator==(const IdSet&, const IdSet&) = default;

 private:
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges_;
};

}  // namespace berth
