#pragma once
// Keeps what may take very long from taking longer than somebody waits.

#include <cstddef>
#include <functional>
#include <utility>

namespace berth {

/// Asked at every step whether to go on, it looks at the clock once in a while.
class Patience {
 public:
  Patience() = default;  ///< without end
  /// `over` is not asked again once it has said so.
  explicit Patience(std::function<bool()> over) : over_(std::move(over)) {}

  /// Whether to give up, now that so many more steps have been taken.
  [[nodiscard]] bool ends_after(std::size_t steps) {
    if (ended_ || !over_) {
      return ended_;
    }
    if (steps < left_) {
      left_ -= steps;
      return false;
    }
    left_ = kStepsBetween;
    return ended_ = over_();
  }
  [[nodiscard]] bool ended() const { return ended_; }

 private:
  static constexpr std::size_t kStepsBetween = 100'000;  ///< about a millisecond

  std::function<bool()> over_;
  std::size_t left_ = kStepsBetween;
  bool ended_ = false;
};

}  // namespace berth
