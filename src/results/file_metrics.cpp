#include "results/file_metrics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>
#include <optional>
#include <vector>

#include "base/utf8.hpp"
#include "results/known_metrics.hpp"
#include "results/log_metrics.hpp"

namespace berth {
namespace {

namespace json = boost::json;

constexpr int kDepthMax = 32;

std::optional<double> number_of(const json::value& value) {
  if (value.is_double()) {
    return value.get_double();
  }
  if (value.is_int64()) {
    return static_cast<double>(value.get_int64());
  }
  if (value.is_uint64()) {
    return static_cast<double>(value.get_uint64());
  }
  return std::nullopt;
}

std::optional<double> counter_in(const json::object& object) {
  for (const auto& [key, value] : object) {
    if (is_counter(key)) {
      if (const auto number = number_of(value)) {
        return number;
      }
    }
  }
  return std::nullopt;
}

void collect(const json::value& value, const std::string& name, std::optional<double> x,
             Observations& out, int depth = 0) {
  if (depth > kDepthMax) {
    return;
  }
  if (const auto number = number_of(value)) {
    if (!name.empty()) {
      out[name].add(*number, x);
    }
  } else if (const auto* object = value.if_object()) {
    const auto own = counter_in(*object);
    for (const auto& [key, inner] : *object) {
      if (own && is_counter(key)) {
        continue;
      }
      const std::string inner_name =
          name.empty() ? std::string(key) : fmt::format("{}.{}", name, std::string_view(key));
      collect(inner, inner_name, own ? own : x, out, depth + 1);
    }
  } else if (const auto* array = value.if_array()) {
    for (const json::value& inner : *array) {
      collect(inner, name, number_of(inner) ? std::nullopt : x, out, depth + 1);
    }
  }
}

Result<json::value> parse_json(std::string_view text) {
  json::parse_options options;
  options.allow_invalid_utf8 = true;
  options.allow_comments = true;
  json::error_code error;
  json::value value = json::parse(text, error, {}, options);
  if (error) {
    return fail(ErrorCode::invalid, fmt::format("is not JSON: {}", error.message()));
  }
  return value;
}

/// Calls `each` with every line, without its end, and its number.
void each_line(std::string_view text, const auto& each) {
  for (std::size_t number = 1; !text.empty(); ++number) {
    const auto end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.ends_with('\r')) {
      line.remove_suffix(1);
    }
    each(line, number);
  }
}

Result<Observations> metrics_of_json_lines(std::string_view text) {
  Observations out;
  std::optional<Error> wrong;
  each_line(text, [&](std::string_view line, std::size_t number) {
    if (line.find_first_not_of(" \t") == std::string_view::npos || wrong) {
      return;
    }
    const auto value = parse_json(line);
    if (value) {
      collect(*value, "", std::nullopt, out);
    } else if (line.data() + line.size() < text.data() + text.size()) {
      wrong = Error{ErrorCode::invalid, fmt::format("line {} {}", number, value.error().message)};
    }  // a last line without end is still being written
  });
  if (wrong) {
    return std::unexpected(std::move(*wrong));
  }
  return out;
}

std::vector<std::string> csv_fields(std::string_view line, char separator) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (c == '"') {
      if (quoted && i + 1 < line.size() && line[i + 1] == '"') {
        fields.back() += line[++i];
      } else {
        quoted = !quoted;
      }
    } else if (c == separator && !quoted) {
      fields.emplace_back();
    } else {
      fields.back() += c;
    }
  }
  return fields;
}

Observations metrics_of_csv(std::string_view text, char separator) {
  Observations out;
  std::vector<std::string> header;
  std::optional<std::size_t> counter;
  each_line(text, [&](std::string_view line, std::size_t /*number*/) {
    if (line.empty()) {
      return;
    }
    const auto fields = csv_fields(line, separator);
    if (header.empty()) {
      header = fields;
      const auto at = std::ranges::find_if(header, is_counter);
      counter = at == header.end() ? std::nullopt
                                   : std::optional(static_cast<std::size_t>(at - header.begin()));
      return;
    }
    const auto x =
        counter && *counter < fields.size() ? parse_value(fields[*counter]) : std::nullopt;
    for (std::size_t i = 0; i < std::min(fields.size(), header.size()); ++i) {
      const auto value = is_counter(header[i]) ? std::nullopt : parse_value(fields[i]);
      if (value && !header[i].empty()) {
        out[header[i]].add(*value, x);
      }
    }
  });
  return out;
}

}  // namespace

Result<Observations> metrics_of_file(std::string_view text, std::string_view path) {
  if (text.starts_with("\xef\xbb\xbf")) {
    text.remove_prefix(3);
  }
  if (path.ends_with(".json")) {
    TRY_ASSIGN(const json::value value, parse_json(text));
    Observations out;
    collect(value, "", std::nullopt, out);
    return out;
  }
  const auto first = text.find_first_not_of(" \t\r\n");
  if (path.ends_with(".csv") || path.ends_with(".tsv")) {
    return metrics_of_csv(text, path.ends_with(".tsv") ? '\t' : ',');
  }
  if (path.ends_with(".jsonl") || path.ends_with(".ndjson") ||
      (first != std::string_view::npos && text[first] == '{')) {
    return metrics_of_json_lines(text);
  }
  return metrics_of_csv(text, ',');
}

Observations metrics_of_report(std::string_view text) {
  Observations out;
  each_line(text, [&](std::string_view line, std::size_t /*number*/) {
    const auto value = parse_json(line);
    const auto* object = value ? value->if_object() : nullptr;
    const json::value* metrics = object != nullptr ? object->if_contains("metrics") : nullptr;
    if (metrics != nullptr) {
      collect(*metrics, "", counter_in(*object), out);
    }
  });
  return out;
}

Result<std::string> fill_in(std::string_view path,
                            const std::map<std::string, std::string>& values) {
  std::string out;
  while (!path.empty()) {
    const auto open = path.find('{');
    const auto close = path.find('}', open == std::string_view::npos ? 0 : open);
    if (open == std::string_view::npos || close == std::string_view::npos) {
      break;
    }
    const std::string word(path.substr(open + 1, close - open - 1));
    const auto value = values.find(word);
    if (value == values.end()) {
      std::string known;
      for (const auto& [name, unused] : values) {
        known += (known.empty() ? "{" : ", {") + name + "}";
      }
      return fail(ErrorCode::invalid,
                  fmt::format("{{{}}} is not known; there are {}", to_utf8(word), to_utf8(known)));
    }
    out += path.substr(0, open);
    out += value->second;
    path.remove_prefix(close + 1);
  }
  return out + std::string(path);
}

}  // namespace berth
