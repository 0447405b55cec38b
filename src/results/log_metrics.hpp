#pragma once
// Metrics out of what a program has printed.

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "results/observations.hpp"
#include "results/patience.hpp"
#include "results/pattern.hpp"

namespace berth {

/// A metric and how to find it in a line.
struct LogMetric {
  std::string name;
  Pattern pattern;
};

/// Reads a log piece by piece, of any size in bounded memory. Colours are taken out, and what a
/// progress bar has written over counts as lines of its own. Beyond kLineMax a line is looked at
/// in parts.
class LogScanner {
 public:
  /// `metrics` must outlive it; a name among them is not looked for in any other way.
  explicit LogScanner(const std::vector<LogMetric>& metrics, Patience patience = {})
      : metrics_(metrics), patience_(std::move(patience)) {}

  /// After patience has ended nothing more is looked at.
  void feed(std::string_view text);
  [[nodiscard]] bool gave_up() const { return patience_.ended(); }
  /// What has been found; ends the last line.
  [[nodiscard]] Observations take() &&;

  static constexpr std::size_t kLineMax = 64 * 1024;

 private:
  void line(std::string_view text);
  void note(const std::string& name, double value);

  const std::vector<LogMetric>& metrics_;
  Patience patience_;
  std::string partial_;
  std::string plain_;  ///< the line without colours
  std::optional<double> epoch_;
  Observations found_;
};

/// The number that `text` begins with, sign, fraction and exponent included, and how long it is;
/// also nan and inf. None: it is no number.
struct NumberAt {
  double value = 0;
  std::size_t length = 0;
  bool fraction = false;  ///< it was written with one
};
[[nodiscard]] std::optional<NumberAt> number_at(std::string_view text);

/// All of `text`, but for blanks and a percent sign.
[[nodiscard]] std::optional<double> parse_value(std::string_view text);

}  // namespace berth
