#pragma once
// What was measured of one thing at one moment: a card, or an attempt on its cards.

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/time.hpp"
#include "base/units.hpp"

namespace berth {

struct RingSample {
  Millis time{0};         ///< by the wall clock
  std::uint64_t key = 0;  ///< of what; see ring_key
  std::optional<Bytes> memory;
  std::optional<std::uint32_t> utilization;  ///< percent
  std::optional<std::uint32_t> temperature;  ///< Celsius
  std::optional<std::uint32_t> power_mw;

  friend bool operator==(const RingSample&, const RingSample&) = default;
};

/// A key for something with a name.
[[nodiscard]] std::uint64_t ring_key(std::string_view name);

/// The mean of each value, as far as it is known, and of the times; `samples` is not empty.
[[nodiscard]] RingSample mean(const std::vector<RingSample>& samples);

/// No more than so many: samples of equal parts of the time from `from` to `to` become one.
[[nodiscard]] std::vector<RingSample> thin_out(const std::vector<RingSample>& samples, Millis from,
                                               Millis to, std::size_t points);

}  // namespace berth
