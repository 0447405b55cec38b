#pragma once
// The values a run has told of its metrics, one after the other.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace berth {

/// Which of a run's values stands for it.
enum class Take : std::uint8_t { last, best, max, min, first, mean };
[[nodiscard]] std::optional<Take> take_from(std::string_view text);

/// One metric of one run. Keeps what a Take may ask for, and as many points as a curve needs,
/// however long the run was.
class Series {
 public:
  struct Point {
    double x = 0;
    double y = 0;
    friend bool operator==(const Point&, const Point&) = default;
  };

  /// What is known of it, to be told elsewhere.
  struct Facts {
    std::uint64_t count = 0;
    std::uint64_t finite = 0;  ///< of `count`; the others are in neither min, max, sum nor points
    double first = 0;
    double last = 0;
    double min = 0;
    double max = 0;
    double sum = 0;
    std::vector<Point> points;
  };

  Series() = default;
  explicit Series(Facts facts);
  [[nodiscard]] Facts facts() const;

  /// `x` is the epoch or step where one is known. Of several values at one x the last counts.
  void add(double value, std::optional<double> x);

  /// None: there was no number, or it was not finite. `lower_is_better` decides what is best.
  [[nodiscard]] std::optional<double> taken(Take take, bool lower_is_better) const;
  [[nodiscard]] std::uint64_t count() const { return count_; }
  [[nodiscard]] const std::vector<Point>& points() const { return points_; }

 private:
  void thin_out();

  std::uint64_t count_ = 0;
  std::uint64_t finite_ = 0;
  double first_ = 0;
  double last_ = 0;
  double min_ = 0;
  double max_ = 0;
  double sum_ = 0;
  std::vector<Point> points_;
  std::uint64_t stride_ = 1;   ///< of so many values one is kept
  std::uint64_t skipped_ = 0;  ///< since the last that was
};

/// All metrics of one run from one source.
using Observations = std::map<std::string, Series>;

/// Adds what `more` knows of metrics that `to` does not have: sources come in order of trust.
void add_missing(Observations& to, Observations more);

}  // namespace berth
