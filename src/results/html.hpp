#pragma once
// A report in one HTML file that needs nothing else: no script, no address, light and dark.

#include <string>
#include <string_view>

#include "results/aggregate.hpp"

namespace berth {

struct ReportFacts {
  std::string title;
  std::string made_at;  ///< for people
};

[[nodiscard]] std::string to_html(const Results& results, const ReportFacts& facts);

/// `text` as it may stand in an element or a quoted attribute; malformed bytes become U+FFFD.
[[nodiscard]] std::string html_text(std::string_view text);

}  // namespace berth
