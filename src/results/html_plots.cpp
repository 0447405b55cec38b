#include "results/html_plots.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "results/html.hpp"
#include "results/numbers.hpp"

namespace berth {
namespace {

constexpr double kWidth = 720;
constexpr double kLeft = 220;  ///< room for the names of groups
constexpr double kBarHeight = 26;
constexpr double kTop = 10;
constexpr double kCurveHeight = 320;
constexpr double kCurveLeft = 70;
constexpr double kBottom = 36;
constexpr std::size_t kBarsMax = 200;
constexpr std::size_t kCurvesMax = 64;
constexpr std::size_t kLabelMax = 34;

/// From a range of values to a range of the picture.
class Scale {
 public:
  Scale(double low, double high, double from, double to)
      : low_(low), high_(high > low ? high : low + 1), from_(from), to_(to) {}
  [[nodiscard]] double at(double value) const {
    return from_ + (value - low_) / (high_ - low_) * (to_ - from_);
  }
  [[nodiscard]] double low() const { return low_; }
  [[nodiscard]] double high() const { return high_; }

 private:
  double low_;
  double high_;
  double from_;
  double to_;
};

/// Round numbers between low and high, not closer together than `least`.
std::vector<double> ticks(double low, double high, double least = 0) {
  const double rough = std::max((high - low) / 5, least);
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double step = power;
  for (const double factor : {1.0, 2.0, 5.0, 10.0}) {
    step = power * factor;
    if (step >= rough) {
      break;
    }
  }
  std::vector<double> out;
  for (int i = 0; i < 20; ++i) {
    const double value = (std::ceil(low / step) + i) * step;
    if (value > high + step * 1e-9) {
      break;
    }
    out.push_back(std::abs(value) < step * 1e-9 ? 0 : value);
  }
  return out;
}

std::string svg_begin(double height, std::string_view label) {
  return fmt::format("<svg viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" aria-label=\"{}\">\n", kWidth,
                     height, html_text(label));
}

std::string text_at(double x, double y, std::string_view anchor, std::string_view text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor,
                     html_text(text));
}

std::string line(double x1, double y1, double x2, double y2, std::string_view css) {
  return fmt::format(
      "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" class=\"{}\"/>\n", x1, y1, x2,
      y2, css);
}

/// The beginning of a label, by characters.
std::string cut(std::string_view text) {
  std::size_t characters = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0U) != 0x80U && characters++ == kLabelMax) {
      return std::string(text.substr(0, i)) + "…";
    }
  }
  return std::string(text);
}

std::string bar(const Results& results, const Group& group, const Summary& summary, double y,
                const Scale& x, std::size_t color) {
  const std::string label = group_label(results, group);
  std::string out = "<g><title>" + html_text(label) + "</title>\n";
  out += text_at(kLeft - 8, y + kBarHeight * 0.62, "end", cut(label));
  if (!summary.mean) {
    return out + text_at(kLeft + 6, y + kBarHeight * 0.62, "start", "no value") + "</g>\n";
  }
  const double zero = x.at(std::clamp(0.0, x.low(), x.high()));
  const double end = x.at(*summary.mean);
  out += fmt::format(
      "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" class=\"s{}\"/>\n",
      std::min(zero, end), y + 4, std::max(std::abs(end - zero), 1.0), kBarHeight - 8, color);
  const double middle = y + kBarHeight / 2;
  double behind = end;
  if (summary.deviation && *summary.deviation > 0) {
    const double from = x.at(*summary.mean - *summary.deviation);
    behind = x.at(*summary.mean + *summary.deviation);
    out += line(from, middle, behind, middle, "error");
    out += line(from, middle - 4, from, middle + 4, "error");
    out += line(behind, middle - 4, behind, middle + 4, "error");
  }
  const Spread spread = format_spread(*summary.mean, summary.deviation);
  out += text_at(std::max(behind, zero) + 6, y + kBarHeight * 0.62, "start",
                 spread.deviation.empty() ? spread.mean : spread.mean + " ± " + spread.deviation);
  return out + "</g>\n";
}

struct Curve {
  const Run* run = nullptr;
  const Series* series = nullptr;
  std::size_t group = 0;
};

std::vector<Curve> curves_of(const Results& results, std::size_t metric) {
  std::vector<Curve> curves;
  for (std::size_t g = 0; g < results.groups.size(); ++g) {
    for (const std::size_t index : results.groups[g].runs) {
      const Run& run = results.runs[index];
      const auto series = run.metrics.find(results.metrics[metric]);
      if (series != run.metrics.end() && series->second.points().size() > 1 &&
          curves.size() < kCurvesMax) {
        curves.push_back({&run, &series->second, g});
      }
    }
  }
  return curves;
}

std::string curve(const Results& results, const Curve& one, const Scale& x, const Scale& y) {
  std::string points;
  for (const Series::Point& point : one.series->points()) {
    points += fmt::format("{:.1f},{:.1f} ", x.at(point.x), y.at(point.y));
  }
  points.pop_back();
  return fmt::format("<polyline points=\"{}\" class=\"c{}\"><title>job {} {}</title></polyline>\n",
                     points, one.group % kPlotColors, one.run->job,
                     html_text(group_label(results, results.groups[one.group])));
}

}  // namespace

std::string bar_plot(const Results& results, std::size_t metric) {
  double low = 0;
  double high = 0;
  bool any = false;
  for (const Group& group : results.groups) {
    const Summary& summary = group.summaries[metric];
    if (summary.mean) {
      any = true;
      low = std::min(low, *summary.mean - summary.deviation.value_or(0));
      high = std::max(high, *summary.mean + summary.deviation.value_or(0));
    }
  }
  if (!any) {
    return {};
  }
  const std::size_t count = std::min(results.groups.size(), kBarsMax);
  const double bottom = kTop + kBarHeight * static_cast<double>(count);
  const Scale x(low, high, kLeft, kWidth - 110);
  std::string out = svg_begin(bottom + kBottom, results.metrics[metric] + " by group");
  for (const double tick : ticks(x.low(), x.high())) {
    out += line(x.at(tick), kTop, x.at(tick), bottom, "grid");
    out += text_at(x.at(tick), bottom + 18, "middle", format_value(tick));
  }
  for (std::size_t i = 0; i < count; ++i) {
    out += bar(results, results.groups[i], results.groups[i].summaries[metric],
               kTop + kBarHeight * static_cast<double>(i), x, i % kPlotColors);
  }
  return out + "</svg>\n";
}

std::string curve_plot(const Results& results, std::size_t metric) {
  const std::vector<Curve> curves = curves_of(results, metric);
  if (curves.empty()) {
    return {};
  }
  Series::Point low = curves[0].series->points()[0];
  Series::Point high = low;
  bool whole = true;  // where nothing is told of half an epoch, the axis tells of none either
  for (const Curve& one : curves) {
    for (const Series::Point& point : one.series->points()) {
      low = {std::min(low.x, point.x), std::min(low.y, point.y)};
      high = {std::max(high.x, point.x), std::max(high.y, point.y)};
      whole = whole && point.x == std::floor(point.x);
    }
  }
  const Scale x(low.x, high.x, kCurveLeft, kWidth - 20);
  const Scale y(low.y, high.y, kCurveHeight, kTop);
  std::string out =
      svg_begin(kCurveHeight + kBottom, results.metrics[metric] + " over epochs or steps");
  for (const double tick : ticks(y.low(), y.high())) {
    out += line(kCurveLeft, y.at(tick), kWidth - 20, y.at(tick), "grid");
    out += text_at(kCurveLeft - 8, y.at(tick) + 4, "end", format_value(tick));
  }
  for (const double tick : ticks(x.low(), x.high(), whole ? 1 : 0)) {
    out += text_at(x.at(tick), kCurveHeight + 20, "middle", format_value(tick));
  }
  for (const Curve& one : curves) {
    out += curve(results, one, x, y);
  }
  return out + "</svg>\n";
}

}  // namespace berth
