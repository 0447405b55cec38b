#include "results/observations.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace berth {
namespace {

constexpr std::size_t kPointsMax = 512;

}  // namespace

std::optional<Take> take_from(std::string_view text) {
  constexpr std::pair<std::string_view, Take> kTakes[] = {
      {"last", Take::last}, {"best", Take::best},   {"max", Take::max},
      {"min", Take::min},   {"first", Take::first}, {"mean", Take::mean}};
  for (const auto& [name, take] : kTakes) {
    if (name == text) {
      return take;
    }
  }
  return std::nullopt;
}

Series::Series(Facts facts)
    : count_(facts.count),
      finite_(facts.finite),
      first_(facts.first),
      last_(facts.last),
      min_(facts.min),
      max_(facts.max),
      sum_(facts.sum),
      points_(std::move(facts.points)) {}

Series::Facts Series::facts() const {
  return {count_, finite_, first_, last_, min_, max_, sum_, points_};
}

void Series::add(double value, std::optional<double> x) {
  if (count_ == 0) {
    first_ = value;
  }
  last_ = value;
  ++count_;
  if (!std::isfinite(value)) {
    return;  // it has neither a place in a curve nor in a mean
  }
  min_ = finite_ == 0 ? value : std::min(min_, value);
  max_ = finite_ == 0 ? value : std::max(max_, value);
  sum_ += value;
  ++finite_;
  const Point point{x && std::isfinite(*x) ? *x : static_cast<double>(count_), value};
  if (!points_.empty() && points_.back().x == point.x) {
    points_.back() = point;
  } else if (++skipped_ >= stride_ || points_.empty()) {
    points_.push_back(point);
    skipped_ = 0;
    if (points_.size() > kPointsMax) {
      thin_out();
    }
  }
}

void Series::thin_out() {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < points_.size(); i += 2) {
    points_[kept++] = points_[i];
  }
  points_.resize(kept);
  stride_ *= 2;
}

std::optional<double> Series::taken(Take take, bool lower_is_better) const {
  if (finite_ == 0) {
    return std::nullopt;
  }
  const auto finite = [](double value) {
    return std::isfinite(value) ? std::optional(value) : std::nullopt;
  };
  switch (take) {
    case Take::last:
      return finite(last_);
    case Take::first:
      return finite(first_);
    case Take::min:
      return min_;
    case Take::max:
      return max_;
    case Take::best:
      return lower_is_better ? min_ : max_;
    case Take::mean:
      return sum_ / static_cast<double>(finite_);
  }
  return std::nullopt;
}

void add_missing(Observations& to, Observations more) {
  to.merge(more);
}

}  // namespace berth
