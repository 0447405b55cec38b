#include "results/numbers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace berth {
namespace {

constexpr double kGreatest = 1e7;
constexpr double kSmallest = 1e-4;
constexpr int kPlacesMax = 8;

bool needs_exponent(double value) {
  const double size = std::abs(value);
  return size != 0 && (size >= kGreatest || size < kSmallest);
}

}  // namespace

std::string format_value(double value) {
  if (needs_exponent(value)) {
    return fmt::format("{:.3g}", value);
  }
  if (value == std::trunc(value)) {
    return fmt::format("{:.0f}", value == 0 ? 0.0 : value);
  }
  return std::abs(value) >= 1000 ? fmt::format("{:.1f}", value) : fmt::format("{:.4g}", value);
}

Spread format_spread(double mean, std::optional<double> deviation) {
  if (!deviation) {
    return {format_value(mean), ""};
  }
  if (*deviation == 0 || needs_exponent(mean) || needs_exponent(*deviation)) {
    return {format_value(mean), format_value(*deviation)};
  }
  const int places =
      std::clamp(1 - static_cast<int>(std::floor(std::log10(*deviation))), 0, kPlacesMax);
  return {fmt::format("{:.{}f}", mean, places), fmt::format("{:.{}f}", *deviation, places)};
}

std::string exact(double value) {
  return fmt::format("{}", value);
}

}  // namespace berth
