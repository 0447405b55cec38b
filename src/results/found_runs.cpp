#include "results/found_runs.hpp"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <charconv>

#include "base/utf8.hpp"

namespace berth {
namespace {

namespace json = boost::json;

json::value number(double value) {
  return json::value(fmt::format("{}", value));  // the shortest text that is read as the same
}

json::object series_json(const Series& series, Curves curves) {
  Series::Facts facts = series.facts();
  json::object out{{"count", facts.count},         {"finite", facts.finite},
                   {"first", number(facts.first)}, {"last", number(facts.last)},
                   {"min", number(facts.min)},     {"max", number(facts.max)},
                   {"sum", number(facts.sum)}};
  if (curves == Curves::told) {
    json::array points;
    for (const Series::Point& point : facts.points) {
      points.push_back(json::array{number(point.x), number(point.y)});
    }
    out["points"] = std::move(points);
  }
  return out;
}

/// Reads what `encode` has written; whatever is not so is remembered and stands for nothing.
class FoundReader {
 public:
  FoundRuns read(const json::value& value) {
    FoundRuns found;
    const json::object& all = object(value);
    for (const json::value& one : array(all, "runs")) {
      FoundRuns::One& run = found.runs.emplace_back();
      run.job = count(object(one), "job");
      for (const auto& [name, series] : object(field(object(one), "metrics"))) {
        run.metrics.emplace(name, series_of(object(series)));
      }
    }
    if (!field(all, "next").is_null()) {
      found.next = count(all, "next");
    }
    for (const json::value& warning : array(all, "warnings")) {
      found.warnings.push_back(text(warning));
    }
    return found;
  }
  [[nodiscard]] bool good() const { return good_; }

 private:
  const json::object& object(const json::value& value) {
    static const json::object kNone;
    good_ = good_ && value.is_object();
    return value.is_object() ? value.get_object() : kNone;
  }
  static const json::value& field(const json::object& in, std::string_view key) {
    static const json::value kNull;
    const auto* value = in.if_contains(key);
    return value == nullptr ? kNull : *value;
  }
  const json::array& array(const json::object& in, std::string_view key) {
    static const json::array kNone;
    const json::value& value = field(in, key);
    good_ = good_ && value.is_array();
    return value.is_array() ? value.get_array() : kNone;
  }
  std::string text(const json::value& value) {
    good_ = good_ && value.is_string();
    return value.is_string() ? std::string(value.get_string()) : std::string();
  }
  std::uint64_t count(const json::object& in, std::string_view key) {
    json::error_code error;
    const auto number = field(in, key).to_number<std::uint64_t>(error);
    good_ = good_ && !error;
    return error ? 0 : number;
  }
  double number(const json::value& value) {
    const std::string digits = text(value);
    double out = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), out);
    good_ = good_ && error == std::errc() && end == digits.data() + digits.size();
    return out;
  }
  Series series_of(const json::object& in) {
    Series::Facts facts;
    facts.count = count(in, "count");
    facts.finite = count(in, "finite");
    facts.first = number(field(in, "first"));
    facts.last = number(field(in, "last"));
    facts.min = number(field(in, "min"));
    facts.max = number(field(in, "max"));
    facts.sum = number(field(in, "sum"));
    if (in.contains("points")) {
      for (const json::value& value : array(in, "points")) {
        const json::array* pair = value.if_array();
        good_ = good_ && pair != nullptr && pair->size() == 2;
        if (good_) {
          facts.points.push_back({number((*pair)[0]), number((*pair)[1])});
        }
      }
    }
    return Series(std::move(facts));
  }

  bool good_ = true;
};

}  // namespace

std::string encode(const FoundRuns& found, Curves curves) {
  json::array runs;
  for (const FoundRuns::One& run : found.runs) {
    json::object metrics;
    for (const auto& [name, series] : run.metrics) {
      metrics[to_utf8(name)] = series_json(series, curves);
    }
    runs.push_back(json::object{{"job", run.job}, {"metrics", std::move(metrics)}});
  }
  json::array warnings;
  for (const std::string& warning : found.warnings) {
    warnings.emplace_back(to_utf8(warning));
  }
  return json::serialize(
      json::object{{"runs", std::move(runs)},
                   {"next", found.next ? json::value(*found.next) : json::value(nullptr)},
                   {"warnings", std::move(warnings)}});
}

Result<FoundRuns> decode_found_runs(std::string_view body) {
  json::error_code error;
  const json::value value = json::parse(body, error);
  FoundReader reader;
  FoundRuns found = reader.read(value);
  if (error || !reader.good()) {
    return fail(ErrorCode::invalid,
                "cannot understand what the daemon tells of metrics; is it of another version?");
  }
  return found;
}

}  // namespace berth
