#pragma once
// The file named by BERTH_REPORT: what an attempt says of itself, one JSON object per line. Written
// by `berth report`, or by the program itself; read by the daemon and by whoever collects results.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"
#include "core/self_report.hpp"

namespace berth {

struct ReportLine {
  std::optional<ReportedState> state;
  std::string error_type;
  std::optional<std::uint64_t> pid;
  /// None: it is not a number, as the loss of a run that has diverged.
  std::map<std::string, std::optional<double>> metrics;
  std::optional<std::uint64_t> step;
  std::optional<Millis> wall;  ///< when it was said

  friend bool operator==(const ReportLine&, const ReportLine&) = default;
};

/// With the newline.
[[nodiscard]] std::string encode_report(const ReportLine& line);

/// Total: lines that are none are left out, and so is what is not understood of a line.
[[nodiscard]] std::vector<ReportLine> decode_reports(std::string_view text);

/// The last state that was reported, and its error.
[[nodiscard]] SelfReport last_state(const std::vector<ReportLine>& lines);

}  // namespace berth
