// Any pattern is taken or refused with a message, and any log and file is read, in any pieces, with
// the same outcome.

#include <algorithm>

#include "results/file_metrics.hpp"
#include "results/log_metrics.hpp"
#include "support.hpp"

namespace {

using berth::LogMetric;
using berth::LogScanner;
using berth::Observations;
using berth::Pattern;

Observations scan(std::string_view text, const std::vector<LogMetric>& metrics, std::size_t piece) {
  LogScanner scanner(metrics);
  while (!text.empty()) {
    scanner.feed(text.substr(0, piece));
    text.remove_prefix(std::min(piece, text.size()));
  }
  return std::move(scanner).take();
}

void check_same(const Observations& a, const Observations& b) {
  BERTH_ASSERT(a.size() == b.size());
  for (const auto& [name, series] : a) {
    const auto other = b.find(name);
    BERTH_ASSERT(other != b.end() && other->second.count() == series.count());
    BERTH_ASSERT(other->second.points() == series.points());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const std::string_view text = berth::fuzz::text_of(data, size);
  const auto end = text.find('\n');
  std::vector<LogMetric> metrics;
  if (auto pattern = Pattern::compile(text.substr(0, std::min<std::size_t>(end, 100)))) {
    metrics.push_back({"m", std::move(*pattern)});
  } else {
    berth::fuzz::check_error(pattern.error());
  }
  const std::string_view rest = end == std::string_view::npos ? text : text.substr(end + 1);
  check_same(scan(rest, metrics, rest.size()), scan(rest, metrics, 3));
  for (const std::string_view name : {"x.json", "x.jsonl", "x.csv", "x"}) {
    if (const auto found = berth::metrics_of_file(rest, name); !found) {
      berth::fuzz::check_error(found.error());
    }
  }
  (void)berth::metrics_of_report(rest);
  return 0;
}
