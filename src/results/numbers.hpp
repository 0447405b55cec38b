#pragma once
// Numbers as people read them: as many digits as mean something.

#include <optional>
#include <string>

namespace berth {

/// "0.9312", "12.4", "1234567", "3.2e-05": four significant digits, or all of a whole number.
[[nodiscard]] std::string format_value(double value);
/// The mean and how far runs lie apart, to the same place: the second digit of the latter.
struct Spread {
  std::string mean;
  std::string deviation;  ///< empty: not known, as of a single run
};
[[nodiscard]] Spread format_spread(double mean, std::optional<double> deviation);
/// So that reading it again gives the same number.
[[nodiscard]] std::string exact(double value);

}  // namespace berth
