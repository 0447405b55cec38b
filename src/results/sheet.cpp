#include "results/sheet.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/utf8.hpp"
#include "results/numbers.hpp"

namespace berth {
namespace {

constexpr std::size_t kNamedJobs = 8;

std::string value_or_dash(const std::optional<double>& value) {
  return value ? format_value(*value) : "-";
}

std::string spread_text(const Summary& summary) {
  if (!summary.mean) {
    return "-";
  }
  const Spread spread = format_spread(*summary.mean, summary.deviation);
  return spread.deviation.empty() ? spread.mean
                                  : fmt::format("{} ± {}", spread.mean, spread.deviation);
}

std::vector<std::string> key_cells(const Group& group) {
  std::vector<std::string> cells;
  for (const std::string& value : group.key) {
    cells.push_back(to_utf8(value));
  }
  return cells;
}

void add_tall(const Results& results, Sheet& sheet) {
  sheet.columns.insert(sheet.columns.end(), {{"metric"},
                                             {"mean ± std", true},
                                             {"min", true},
                                             {"max", true},
                                             {"n", true},
                                             {"runs", true},
                                             {"failed", true},
                                             {"missing", true}});
  for (const Group& group : results.groups) {
    for (std::size_t i = 0; i < results.metrics.size(); ++i) {
      const Summary& summary = group.summaries[i];
      Sheet::Row row{key_cells(group),
                     group.best && results.metrics[i] == results.best_rule->metric};
      row.cells.insert(row.cells.end(),
                       {to_utf8(results.metrics[i]), spread_text(summary),
                        value_or_dash(summary.min), value_or_dash(summary.max),
                        fmt::format("{}", summary.n), fmt::format("{}", group.runs.size()),
                        fmt::format("{}", group.failed), fmt::format("{}", summary.missing)});
      sheet.rows.push_back(std::move(row));
    }
  }
}

void add_wide(const Results& results, Sheet& sheet) {
  for (const std::string& metric : results.metrics) {
    sheet.columns.push_back({to_utf8(metric), true});
  }
  sheet.columns.insert(sheet.columns.end(), {{"runs", true}, {"failed", true}, {"missing", true}});
  for (const Group& group : results.groups) {
    Sheet::Row row{key_cells(group), group.best};
    std::uint64_t missing = 0;
    for (const Summary& summary : group.summaries) {
      row.cells.push_back(spread_text(summary));
      missing = std::max(missing, summary.missing);
    }
    row.cells.insert(row.cells.end(),
                     {fmt::format("{}", group.runs.size()), fmt::format("{}", group.failed),
                      fmt::format("{}", missing)});
    sheet.rows.push_back(std::move(row));
  }
}

/// "3, 5 and 2 more".
std::string some_jobs(const std::vector<std::uint64_t>& jobs) {
  const std::size_t shown = std::min(jobs.size(), kNamedJobs);
  std::string out = fmt::format(
      "{}", fmt::join(jobs.begin(), jobs.begin() + static_cast<std::ptrdiff_t>(shown), ", "));
  return jobs.size() > shown ? out + fmt::format(" and {} more", jobs.size() - shown) : out;
}

std::vector<std::uint64_t> jobs_where(const Results& results, const auto& test) {
  std::vector<std::uint64_t> jobs;
  for (std::size_t i = 0; i < results.runs.size(); ++i) {
    if (test(i)) {
      jobs.push_back(results.runs[i].job);
    }
  }
  return jobs;
}

void add_best(const Results& results, std::vector<std::string>& out) {
  if (!results.best_group || !results.best_run) {
    return;
  }
  const std::string& metric = results.best_rule->metric;
  const auto at = static_cast<std::size_t>(std::ranges::find(results.metrics, metric) -
                                           results.metrics.begin());
  const Group& group = results.groups[*results.best_group];
  const Summary& summary = group.summaries[at];
  out.push_back(to_utf8(fmt::format("best {} ({}): {}: {} (n={})", metric,
                                    results.best_rule->highest ? "highest mean" : "lowest mean",
                                    group_label(results, group), spread_text(summary), summary.n)));
  const Run& run = results.runs[*results.best_run];
  std::string value;
  for (const Group& any : results.groups) {
    for (const auto& [index, taken] : any.summaries[at].values) {
      value = index == *results.best_run ? format_value(taken) : value;
    }
  }
  std::string params;
  for (const auto& [name, text] : run.params) {
    params += fmt::format(" {}={}", name, text);
  }
  out.push_back(to_utf8(fmt::format("best run: job {}{}{}: {}", run.job,
                                    run.name.empty() ? "" : " " + run.name, params, value)));
}

}  // namespace

Sheet make_sheet(const Results& results, SheetShape shape) {
  Sheet sheet;
  for (const std::string& name : results.by) {
    sheet.columns.push_back({to_utf8(name)});
  }
  shape == SheetShape::tall ? add_tall(results, sheet) : add_wide(results, sheet);
  return sheet;
}

std::vector<std::string> remarks(const Results& results) {
  std::vector<std::string> out;
  add_best(results, out);
  const auto with = [&](Run::End end) {
    return jobs_where(results, [&](std::size_t i) { return results.runs[i].end == end; });
  };
  const auto add = [&](const std::vector<std::uint64_t>& jobs, std::string_view what) {
    if (!jobs.empty()) {
      out.push_back(fmt::format("{} of {} runs {}: job{} {}", jobs.size(), results.runs.size(),
                                what, jobs.size() == 1 ? "" : "s", some_jobs(jobs)));
    }
  };
  add(with(Run::End::failed), "failed");
  add(with(Run::End::not_yet), "have not ended");
  const std::size_t never = with(Run::End::never).size();
  if (never > 0) {
    out.push_back(fmt::format("{} of {} runs were never submitted", never, results.runs.size()));
  }
  add(jobs_where(results,
                 [&](std::size_t i) {
                   return results.runs[i].end == Run::End::succeeded &&
                          results.runs[i].metrics.empty();
                 }),
      "succeeded without a metric");
  if (!results.other_metrics.empty()) {
    out.push_back(to_utf8(fmt::format("not shown: {}; --metric NAME chooses",
                                      fmt::join(results.other_metrics, ", "))));
  }
  return out;
}

}  // namespace berth
