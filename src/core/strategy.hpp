#pragma once
// Which of the cards that fit are taken.

#include <cstdint>
#include <optional>
#include <vector>

#include "core/gpu.hpp"
#include "core/rules.hpp"
#include "core/shape.hpp"

namespace berth {

/// A card that fits.
struct CardChoice {
  std::size_t gpu = 0;  ///< its position
  const GpuFacts* facts = nullptr;
  Bytes free = 0;
  Bytes total = 0;
  std::uint32_t claims = 0;
  std::uint32_t costs = 0;  ///< the quotas it counts against, a bit for each
};

/// How many more cards each quota allows. A card that costs nothing is within all of them.
class Allowances {
 public:
  void add(std::uint32_t cards) { left_.push_back(cards); }
  [[nodiscard]] std::size_t count() const { return left_.size(); }
  /// Whether the card is within all quotas; then it is paid for.
  bool pay(const CardChoice& card);
  [[nodiscard]] bool can_pay(const CardChoice& card) const;

 private:
  std::vector<std::uint32_t> left_;
};

/// Best first. `last`: index of the card that was taken last. `need`: memory per card, 0 for whole
/// cards. `shapes`: what usually is asked for.
void rank(std::vector<CardChoice>& cards, Strategy strategy, std::optional<std::uint32_t> last,
          Bytes need, const Shapes& shapes);

/// Of cards in order of preference, `count` that are close to each other and within the quotas, in
/// that order. There must be so many.
[[nodiscard]] std::vector<CardChoice> closest(const std::vector<CardChoice>& cards,
                                              std::size_t count, const Allowances& allowances);

}  // namespace berth
