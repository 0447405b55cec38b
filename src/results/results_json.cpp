#include <boost/json.hpp>

#include "base/utf8.hpp"
#include "results/sheet.hpp"

namespace berth {
namespace {

namespace json = boost::json;

json::value number_or_null(const std::optional<double>& value) {
  return value ? json::value(*value) : json::value(nullptr);
}

std::string_view end_name(Run::End end) {
  switch (end) {
    case Run::End::succeeded:
      return "succeeded";
    case Run::End::failed:
      return "failed";
    case Run::End::not_yet:
      return "not_ended";
    case Run::End::never:
      return "never_submitted";
  }
  return "";
}

json::object summary_json(const Summary& summary) {
  return {{"n", summary.n},
          {"mean", number_or_null(summary.mean)},
          {"std", number_or_null(summary.deviation)},
          {"min", number_or_null(summary.min)},
          {"max", number_or_null(summary.max)},
          {"missing", summary.missing}};
}

json::object run_json(const Results& results, const Group& group, std::size_t index) {
  const Run& run = results.runs[index];
  json::object params;
  for (const auto& [name, value] : run.params) {
    params[to_utf8(name)] = to_utf8(value);
  }
  json::object values;
  for (std::size_t i = 0; i < results.metrics.size(); ++i) {
    json::value value = nullptr;
    for (const auto& [run_index, taken] : group.summaries[i].values) {
      if (run_index == index) {
        value = taken;
      }
    }
    values[to_utf8(results.metrics[i])] = value;
  }
  return {{"job", run.job == 0 ? json::value(nullptr) : json::value(run.job)},
          {"name", to_utf8(run.name)},
          {"state", end_name(run.end)},
          {"params", std::move(params)},
          {"values", std::move(values)}};
}

json::object group_json(const Results& results, const Group& group) {
  json::object params;
  for (std::size_t i = 0; i < results.by.size(); ++i) {
    params[to_utf8(results.by[i])] = to_utf8(group.key[i]);
  }
  json::object metrics;
  for (std::size_t i = 0; i < results.metrics.size(); ++i) {
    metrics[to_utf8(results.metrics[i])] = summary_json(group.summaries[i]);
  }
  json::array runs;
  for (const std::size_t index : group.runs) {
    runs.push_back(run_json(results, group, index));
  }
  return {{"params", std::move(params)}, {"runs", group.runs.size()},     {"failed", group.failed},
          {"not_ended", group.not_yet},  {"metrics", std::move(metrics)}, {"best", group.best},
          {"jobs", std::move(runs)}};
}

}  // namespace

std::string to_json(const Results& results) {
  json::array by;
  for (const std::string& name : results.by) {
    by.emplace_back(to_utf8(name));
  }
  json::array groups;
  for (const Group& group : results.groups) {
    groups.push_back(group_json(results, group));
  }
  json::value best = nullptr;
  if (results.best_group && results.best_run) {
    best = {{"metric", to_utf8(results.best_rule->metric)},
            {"highest", results.best_rule->highest},
            {"group", *results.best_group},
            {"job", results.runs[*results.best_run].job}};
  }
  const json::object all{
      {"by", std::move(by)}, {"groups", std::move(groups)}, {"best", std::move(best)}};
  return json::serialize(all) + "\n";
}

}  // namespace berth
