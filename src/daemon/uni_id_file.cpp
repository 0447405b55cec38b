#include "daemon/uni_id_file.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>

#include <algorithm>

namespace berth {
namespace {

namespace json = boost::json;

std::string text_of(const json::object& object, std::string_view key) {
  const auto* value = object.if_contains(key);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : std::string();
}

std::optional<json::object> read_object(std::string_view text) {
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) {
    return json::object();  // a script made the file and has not written to it yet
  }
  boost::system::error_code wrong;
  json::value value = json::parse(text, wrong);
  return wrong || !value.is_object() ? std::nullopt : std::optional(std::move(value.get_object()));
}

void put(json::object& entry, const UniEntry& known) {
  const auto* pid = entry.if_contains("pid");
  if (pid == nullptr || pid->is_null()) {
    entry["pid"] = known.pid ? json::value(*known.pid) : json::value();
  }
  const auto said = reported_state_from(text_of(entry, "state")).value_or(ReportedState::none);
  // What it says of its own end stands, unless it ended worse than it says.
  const ReportedState state =
      known.state == ReportedState::running ? std::max(said, known.state) : known.state;
  entry["state"] = to_string(state);
  if (!entry.contains("retry_count")) {
    entry["retry_count"] = known.retry_count;
  }
  if (known.state == ReportedState::abnormal_exit && text_of(entry, "error_type").empty()) {
    entry["error_type"] = known.error_type;
  } else if (!entry.contains("error_type")) {
    entry["error_type"] = nullptr;
  }
}

/// One attempt per line: people look at it, and `diff` does.
std::string write(const json::object& all) {
  std::string out = "{";
  bool first = true;
  for (const auto& [name, entry] : all) {
    out += first ? "\n  " : ",\n  ";
    first = false;
    out += json::serialize(json::value(name)) + ": " + json::serialize(entry);
  }
  out += first ? "}\n" : "\n}\n";
  return out;
}

}  // namespace

SelfReport entry_of(std::string_view text, std::string_view uni_id) {
  const auto all = read_object(text);
  const auto* entry = all ? all->if_contains(uni_id) : nullptr;
  if (entry == nullptr || !entry->is_object()) {
    return {};
  }
  const json::object& object = entry->get_object();
  return {reported_state_from(text_of(object, "state")).value_or(ReportedState::none),
          text_of(object, "error_type")};
}

std::optional<std::string> merge_entries(std::string_view text,
                                         const std::vector<UniEntry>& entries) {
  auto all = read_object(text);
  if (!all) {
    return std::nullopt;
  }
  for (const UniEntry& known : entries) {
    json::value& entry = (*all)[known.uni_id];
    if (!entry.is_object()) {
      entry = json::object();
    }
    put(entry.get_object(), known);
  }
  return write(*all);
}

}  // namespace berth
