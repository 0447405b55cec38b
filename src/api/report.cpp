#include "api/report.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>

#include <cmath>

namespace berth {
namespace {

namespace json = boost::json;

std::string text_of(const json::object& object, std::string_view key) {
  const auto* value = object.if_contains(key);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : std::string();
}

std::optional<double> number_of(const json::value& value) {
  boost::system::error_code wrong;
  const auto number = value.to_number<double>(wrong);
  return wrong || !std::isfinite(number) ? std::nullopt : std::optional(number);
}

std::optional<std::uint64_t> count_of(const json::object& object, std::string_view key) {
  const auto* value = object.if_contains(key);
  boost::system::error_code wrong;
  const auto number = value == nullptr ? 0 : value->to_number<std::uint64_t>(wrong);
  return value == nullptr || wrong ? std::nullopt : std::optional(number);
}

std::optional<ReportLine> decode_line(std::string_view text) {
  boost::system::error_code wrong;
  const json::value value = json::parse(text, wrong);
  if (wrong || !value.is_object()) {
    return std::nullopt;
  }
  const json::object& object = value.get_object();
  ReportLine line;
  line.state = reported_state_from(text_of(object, "state"));
  line.error_type = text_of(object, "error_type");
  line.pid = count_of(object, "pid");
  line.step = count_of(object, "step");
  if (const auto wall = count_of(object, "wall")) {
    line.wall = Millis(*wall);
  }
  if (const auto* metrics = object.if_contains("metrics"); metrics && metrics->is_object()) {
    for (const auto& [name, number] : metrics->get_object()) {
      line.metrics[std::string(name)] = number_of(number);
    }
  }
  return line;
}

}  // namespace

std::string encode_report(const ReportLine& line) {
  json::object object;
  if (line.state) {
    object["state"] = to_string(*line.state);
  }
  if (!line.error_type.empty()) {
    object["error_type"] = line.error_type;
  }
  if (line.pid) {
    object["pid"] = *line.pid;
  }
  if (!line.metrics.empty()) {
    json::object metrics;
    for (const auto& [name, value] : line.metrics) {
      metrics[name] = value ? json::value(*value) : json::value();
    }
    object["metrics"] = std::move(metrics);
  }
  if (line.step) {
    object["step"] = *line.step;
  }
  if (line.wall) {
    object["wall"] = line.wall->count();
  }
  return json::serialize(object) + "\n";
}

std::vector<ReportLine> decode_reports(std::string_view text) {
  std::vector<ReportLine> lines;
  while (!text.empty()) {
    const auto newline = text.find('\n');
    if (auto line = decode_line(text.substr(0, newline))) {
      lines.push_back(std::move(*line));
    }
    text.remove_prefix(newline == std::string_view::npos ? text.size() : newline + 1);
  }
  return lines;
}

SelfReport last_state(const std::vector<ReportLine>& lines) {
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    if (line->state) {
      return {*line->state, line->error_type};
    }
  }
  return {};
}

}  // namespace berth
