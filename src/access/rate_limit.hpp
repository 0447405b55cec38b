#pragma once
// How much one address may ask in a second.

#include <cstddef>
#include <string>
#include <unordered_map>

#include "base/time.hpp"

namespace berth {

/// A bucket for every address, which fills steadily. `now` counts steadily, too.
class RateLimit {
 public:
  struct Settings {
    double per_second = 4'000;  ///< far above what pages, scripts and dashboards do together
    double burst = 8'000;
    std::size_t addresses = 10'000;  ///< remembered at most
  };
  RateLimit() = default;
  explicit RateLimit(Settings settings) : settings_(settings) {}

  /// Whether this address may have one more.
  bool take(const std::string& address, Millis now);

 private:
  struct Bucket {
    double level = 0;
    Millis at{0};
  };
  void forget_full(Millis now);
  [[nodiscard]] double level_at(const Bucket& bucket, Millis now) const;

  Settings settings_;
  std::unordered_map<std::string, Bucket> buckets_;
};

}  // namespace berth
