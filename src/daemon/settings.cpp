#include "daemon/settings.hpp"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <system_error>

#include <fmt/format.h>

#include "base/whole_file.hpp"
#include "compete/places.hpp"
#include "core/rule_table.hpp"
#include "jobspec/yaml_tree.hpp"

namespace berth {
namespace {

constexpr std::string_view kCommandDir = "command_dir";
constexpr std::size_t kFileMax = 1024 * 1024;

struct Entry {
  std::string key;
  std::string value;
  Position key_at;
  Position value_at;
  bool scalar = true;
};

void flatten(const Node& map, const std::string& prefix, std::vector<Entry>& out) {
  for (const Node::Entry& entry : map.entries) {
    const std::string key = prefix + entry.key;
    if (entry.value && entry.value->kind == Node::Kind::map) {
      flatten(*entry.value, key + ".", out);
      continue;
    }
    const bool scalar = entry.value && entry.value->kind == Node::Kind::scalar;
    out.push_back({key, scalar ? entry.value->text : "", entry.key_at,
                   entry.value ? entry.value->at : entry.key_at, scalar});
  }
}

/// Entries, or what is wrong with the text as a whole.
std::vector<Entry> entries_of(std::string_view text, std::vector<std::string>& problems) {
  Diagnostics diagnostics("berth.yaml");
  const NodePtr root = parse_yaml(text, diagnostics);
  for (const Diagnostic& diagnostic : diagnostics.take()) {
    problems.push_back(fmt::format("berth.yaml:{}: {}", diagnostic.at.line, diagnostic.message));
  }
  std::vector<Entry> entries;
  if (root && root->kind == Node::Kind::map) {
    flatten(*root, "", entries);
  } else if (root && root->kind != Node::Kind::null) {
    problems.push_back(fmt::format("berth.yaml:{}: expected `key: value` lines", root->at.line));
  }
  return entries;
}

/// Quoted where YAML would take it for something else.
std::string scalar(const std::string& value) {
  const bool plain = !value.empty() && std::ranges::all_of(value, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' ||
           c == '_' || c == '%';
  }) && value.front() != '%';
  if (plain) {
    return value;
  }
  std::string quoted = "'";
  for (const char c : value) {
    quoted += c == '\'' ? "''" : std::string(1, c);
  }
  return quoted + "'";
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

/// Replaces the value on its line and keeps a comment behind it.
Status replace_value(std::string& line, const Entry& entry, const std::string& value) {
  const std::size_t from = entry.value_at.column - 1;
  if (entry.value_at.line != entry.key_at.line || from > line.size()) {
    return fail(ErrorCode::conflict,
                fmt::format("berth.yaml:{}: the value of '{}' stands on a line of its own; change "
                            "it by hand",
                            entry.key_at.line, entry.key));
  }
  std::size_t to = line.size();
  if (const char quote = from < line.size() ? line[from] : ' '; quote == '"' || quote == '\'') {
    const std::size_t close = line.find(quote, from + 1);
    to = close == std::string::npos ? line.size() : close + 1;
  } else if (const std::size_t end = line.find_first_of(",}", from);
             line.find('{') < from && end != std::string::npos) {
    to = end;
  } else if (const std::size_t comment = line.find(" #", from); comment != std::string::npos) {
    to = comment;
  }
  while (to > from && line[to - 1] == ' ') {
    --to;  // what stands behind it stays where it is
  }
  line.replace(from, to - from, scalar(value));
  return {};
}

std::string canonical_key(const Entry& entry) {
  return canonical_rule(entry.key);
}

/// The text without a key, and without maps that held nothing else.
Result<std::string> without(std::string text, const std::string& key) {
  std::vector<std::string> problems;
  const std::vector<Entry> entries = entries_of(text, problems);
  if (!problems.empty()) {
    return fail(ErrorCode::conflict, problems.front() + "; repair it first");
  }
  const auto known = std::ranges::find(entries, key, canonical_key);
  if (known == entries.end()) {
    return text;
  }
  std::vector<std::string> lines = lines_of(text);
  const auto line = lines.begin() + static_cast<std::ptrdiff_t>(known->key_at.line) - 1;
  if ((known->scalar && known->value_at.line != known->key_at.line) ||
      line->find('{') < known->key_at.column) {
    return fail(ErrorCode::conflict,
                fmt::format("berth.yaml:{}: '{}' does not stand on a line of its own; take it out "
                            "by hand",
                            known->key_at.line, key));
  }
  lines.erase(line);
  std::string result;
  for (const std::string& kept : lines) {
    result += kept + "\n";
  }
  // A map that has lost its last entry holds nothing, and is none any more.
  for (const Entry& entry : entries_of(result, problems)) {
    if (!entry.scalar && key.starts_with(entry.key + ".")) {
      return without(std::move(result), canonical_key(entry));
    }
  }
  return result;
}

Status set_command_dir(Settings& settings, const std::string& value) {
  if (const Status usable = compete::check_command_dir(value); !usable) {
    return fail(usable.error().code, fmt::format("{}: {}", kCommandDir, usable.error().message));
  }
  settings.command_dir = value;
  return {};
}

}  // namespace

Settings parse_settings(std::string_view text) {
  Settings settings;
  Rules scratch;
  for (const Entry& entry : entries_of(text, settings.problems)) {
    const bool listen = is_listen_key(entry.key);
    const bool command_dir = entry.key == kCommandDir;
    const Status good =
        !entry.scalar ? fail(ErrorCode::invalid, fmt::format("{}: expected one value", entry.key))
        : listen      ? set_listen(settings.listen, entry.key, entry.value)
        : command_dir ? set_command_dir(settings, entry.value)
                      : set_rule(scratch, entry.key, entry.value);
    if (!good) {
      settings.problems.push_back(
          fmt::format("berth.yaml:{}: {}; ignored", entry.key_at.line, good.error().message));
    } else if (!listen && !command_dir) {
      settings.values.emplace_back(entry.key, entry.value);
    }
  }
  if (const Status usable = check_listen(settings.listen); !usable) {
    settings.problems.push_back(fmt::format("berth.yaml: {}; ignored", usable.error().message));
    settings.listen = {};
    settings.listen.problem = usable.error().message;
  }
  return settings;
}

Settings read_settings(const std::string& path) {
  auto text = read_whole(path, kFileMax);
  if (!text) {
    Settings settings;
    settings.problems.push_back(text.error().message);
    return settings;
  }
  return parse_settings(text->value_or(""));
}

Result<std::string> edit_settings(std::string text, const Settings::Values& values,
                                  const std::vector<std::string>& unset) {
  for (const std::string& key : unset) {
    TRY_ASSIGN(text, without(std::move(text), canonical_rule(key)));
  }
  for (const auto& [key, value] : values) {
    std::vector<std::string> problems;
    const std::vector<Entry> entries = entries_of(text, problems);
    if (!problems.empty()) {
      return fail(ErrorCode::conflict, problems.front() + "; repair it first");
    }
    std::vector<std::string> lines = lines_of(text);
    const auto known = std::ranges::find(entries, canonical_rule(key), canonical_key);
    if (known == entries.end()) {
      lines.push_back(fmt::format("{}: {}", key, scalar(value)));
    } else if (!known->scalar) {
      return fail(ErrorCode::conflict, fmt::format("berth.yaml:{}: '{}' has no single value; "
                                                   "change it by hand",
                                                   known->key_at.line, key));
    } else {
      TRY(replace_value(lines.at(known->key_at.line - 1), *known, value));
    }
    text.clear();
    for (const std::string& line : lines) {
      text += line + "\n";
    }
  }
  // What was written must be what will be read.
  const Settings again = parse_settings(text);
  for (const auto& wanted : values) {
    if (std::ranges::none_of(again.values,
                             [&](const auto& value) {
                               return canonical_rule(value.first) == canonical_rule(wanted.first) &&
                                      value.second == wanted.second;
                             }) &&
        std::ranges::count(values, wanted.first, &std::pair<std::string, std::string>::first) ==
            1) {
      return fail(
          ErrorCode::conflict,
          fmt::format("berth.yaml: '{}' cannot be changed there; do it by hand", wanted.first));
    }
  }
  return text;
}

Status save_settings(const std::string& path, const Settings::Values& values,
                     const std::vector<std::string>& unset) {
  // Where it is a link, into a collection of settings perhaps, what it leads to is changed.
  std::error_code broken;
  const std::filesystem::path file = std::filesystem::weakly_canonical(path, broken);
  const std::string& target = broken ? path : file.native();
  TRY_ASSIGN(std::optional<std::string> text, read_whole(target, kFileMax));
  TRY_ASSIGN(const std::string edited, edit_settings(std::move(text).value_or(""), values, unset));
  return replace_whole(target, edited, 0600);
}

}  // namespace berth
