#pragma once
// The pictures of a report, as SVG inside HTML. Colours come from the classes s0 to s7.

#include <string>

#include "results/aggregate.hpp"

namespace berth {

inline constexpr std::size_t kPlotColors = 8;

/// A bar for each group, with its deviation. Empty: no group has a value.
[[nodiscard]] std::string bar_plot(const Results& results, std::size_t metric);
/// A line for each run, coloured by its group. Empty: no run has two points.
[[nodiscard]] std::string curve_plot(const Results& results, std::size_t metric);

}  // namespace berth
