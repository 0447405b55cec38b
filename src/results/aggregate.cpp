#include "results/aggregate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>
#include <utility>

#include "base/utf8.hpp"
#include "results/known_metrics.hpp"

namespace berth {
namespace {

constexpr std::size_t kShownMetrics = 4;
constexpr std::string_view kNone = "-";
/// Stands for the run itself where jobs have no parameters.
constexpr std::string_view kName = "name";

bool contains(const std::vector<std::string>& list, std::string_view one) {
  return std::ranges::find(list, one) != list.end();
}

std::string joined(const std::vector<std::string>& words) {
  return words.empty() ? "none" : to_utf8(fmt::format("{}", fmt::join(words, ", ")));
}

/// Names in the order in which runs bring them, then by the alphabet.
std::vector<std::string> all_params(const std::vector<Run>& runs) {
  std::set<std::string> names;
  for (const Run& run : runs) {
    for (const auto& [name, value] : run.params) {
      names.insert(name);
    }
  }
  return {names.begin(), names.end()};
}

std::vector<std::string> all_metrics(const std::vector<Run>& runs) {
  std::set<std::string> names;
  for (const Run& run : runs) {
    for (const auto& [name, series] : run.metrics) {
      names.insert(name);
    }
  }
  std::vector<std::string> out(names.begin(), names.end());
  std::ranges::sort(out, {}, [](const std::string& name) {
    return std::pair(metric_rank(name), std::string_view(name));
  });
  return out;
}

Result<std::vector<std::string>> choose_params(const std::vector<Run>& runs,
                                               const ResultsRequest& request) {
  const std::vector<std::string> all = all_params(runs);
  std::vector<std::string> by;
  if (request.by) {
    for (const std::string& name : *request.by) {
      if (name != kName && !contains(all, name)) {
        return fail(ErrorCode::invalid, fmt::format("no run has a parameter '{}'; there are {}",
                                                    to_utf8(name), joined(all)));
      }
      by.push_back(name);
    }
    return by;
  }
  std::ranges::copy_if(all, std::back_inserter(by),
                       [&](const std::string& name) { return !contains(request.over, name); });
  if (all.empty()) {
    by.emplace_back(kName);
  }
  return by;
}

/// Accuracy under either of its usual names.
std::optional<std::string> find_metric(const std::vector<std::string>& all, std::string_view name) {
  if (contains(all, name)) {
    return std::string(name);
  }
  const std::string_view other = name == "acc" ? "accuracy" : name == "accuracy" ? "acc" : "";
  return contains(all, other) ? std::optional(std::string(other)) : std::nullopt;
}

Result<std::string> require_metric(const std::vector<std::string>& all, const std::string& name) {
  auto found = find_metric(all, name);
  if (!found) {
    return fail(ErrorCode::not_found,
                fmt::format("no run tells of '{}'; there are {}", to_utf8(name), joined(all)));
  }
  return std::move(*found);
}

Status choose_metrics(Results& results, const ResultsRequest& request) {
  const std::vector<std::string> all = all_metrics(results.runs);
  for (const std::string& name : request.metrics) {
    // A metric that is asked for is shown as missing, even from every run.
    const std::string found = find_metric(all, name).value_or(name);
    if (!contains(results.metrics, found)) {
      results.metrics.push_back(found);
    }
  }
  if (request.best) {
    TRY_ASSIGN(const std::string metric, require_metric(all, request.best->metric));
    results.best_rule = BestRule{request.best->highest, metric};
    if (!contains(results.metrics, metric)) {
      results.metrics.insert(results.metrics.begin(), metric);
    }
  }
  for (const std::string& name : all) {
    const bool room = request.metrics.empty() && results.metrics.size() < kShownMetrics;
    if (!contains(results.metrics, name)) {
      (room ? results.metrics : results.other_metrics).push_back(name);
    }
  }
  return {};
}

std::vector<std::string> key_of(const Run& run, const std::vector<std::string>& by) {
  std::vector<std::string> key;
  for (const std::string& name : by) {
    const auto param = run.params.find(name);
    std::string value(kNone);
    if (param != run.params.end()) {
      value = param->second;
    } else if (name == kName) {
      value = !run.name.empty() ? run.name : fmt::format("job {}", run.job);
    }
    key.push_back(std::move(value));
  }
  return key;
}

std::optional<double> value_of(const Run& run, const std::string& metric,
                               const ResultsRequest& request) {
  if (run.end != Run::End::succeeded && !request.partial) {
    return std::nullopt;
  }
  const auto series = run.metrics.find(metric);
  return series == run.metrics.end() ? std::nullopt
                                     : series->second.taken(request.take, lower_is_better(metric));
}

Summary summarise(const std::vector<Run>& runs, const Group& group, const std::string& metric,
                  const ResultsRequest& request) {
  Summary out;
  double squares = 0;
  double mean = 0;
  for (const std::size_t index : group.runs) {
    const auto value = value_of(runs[index], metric, request);
    if (!value) {
      out.missing += runs[index].end != Run::End::failed ? 1 : 0;
      continue;
    }
    ++out.n;
    const double step = *value - mean;
    mean += step / static_cast<double>(out.n);
    squares += step * (*value - mean);
    out.min = std::min(out.min.value_or(*value), *value);
    out.max = std::max(out.max.value_or(*value), *value);
    out.values.emplace_back(index, *value);
  }
  if (out.n > 0) {
    out.mean = mean;
  }
  if (out.n > 1) {
    out.deviation = std::sqrt(squares / static_cast<double>(out.n - 1));
  }
  return out;
}

void find_best(Results& results) {
  if (!results.best_rule) {
    return;
  }
  const auto metric = static_cast<std::size_t>(
      std::ranges::find(results.metrics, results.best_rule->metric) - results.metrics.begin());
  const auto better = [&](double a, double b) {
    return results.best_rule->highest ? a > b : a < b;
  };
  std::optional<double> best_mean;
  std::optional<double> best_value;
  for (std::size_t i = 0; i < results.groups.size(); ++i) {
    const Summary& summary = results.groups[i].summaries[metric];
    if (summary.mean && (!best_mean || better(*summary.mean, *best_mean))) {
      best_mean = summary.mean;
      results.best_group = i;
    }
    for (const auto& [run, value] : summary.values) {
      if (!best_value || better(value, *best_value)) {
        best_value = value;
        results.best_run = run;
      }
    }
  }
  if (results.best_group) {
    results.groups[*results.best_group].best = true;
  }
}

}  // namespace

Result<BestRule> parse_best(std::string_view text) {
  const auto colon = text.find(':');
  BestRule rule{true, std::string(colon == std::string_view::npos ? text : text.substr(colon + 1))};
  const std::string_view which = colon == std::string_view::npos ? "" : text.substr(0, colon);
  if (rule.metric.empty() ||
      (colon != std::string_view::npos && which != "max" && which != "min")) {
    return fail(ErrorCode::invalid,
                fmt::format("'{}' is not max:METRIC, min:METRIC or METRIC", to_utf8(text)));
  }
  rule.highest = which.empty() ? !lower_is_better(rule.metric) : which == "max";
  return rule;
}

Result<Results> aggregate(std::vector<Run> runs, const ResultsRequest& request) {
  Results results;
  results.runs = std::move(runs);
  TRY_ASSIGN(results.by, choose_params(results.runs, request));
  TRY(choose_metrics(results, request));
  std::map<std::vector<std::string>, std::size_t> index;
  for (std::size_t i = 0; i < results.runs.size(); ++i) {
    const auto [at, fresh] =
        index.try_emplace(key_of(results.runs[i], results.by), results.groups.size());
    if (fresh) {
      results.groups.emplace_back();
      results.groups.back().key = at->first;
    }
    Group& group = results.groups[at->second];
    group.runs.push_back(i);
    group.failed += results.runs[i].end == Run::End::failed ? 1 : 0;
    group.not_yet += results.runs[i].end == Run::End::not_yet ? 1 : 0;
  }
  for (Group& group : results.groups) {
    for (const std::string& metric : results.metrics) {
      group.summaries.push_back(summarise(results.runs, group, metric, request));
    }
  }
  find_best(results);
  return results;
}

std::map<std::string, std::string> path_values(const Run& run) {
  auto values = run.params;
  values["name"] = run.name;
  values["job_id"] = fmt::format("{}", run.job);
  return values;
}

std::string group_label(const Results& results, const Group& group) {
  if (results.by.size() == 1 && results.by[0] == kName) {
    return group.key[0];
  }
  std::string out;
  for (std::size_t i = 0; i < results.by.size(); ++i) {
    out += fmt::format("{}{}={}", i > 0 ? " " : "", results.by[i], group.key[i]);
  }
  return out.empty() ? "all" : out;
}

}  // namespace berth
