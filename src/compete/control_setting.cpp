#include "compete/control_setting.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>

#include <fmt/format.h>

#include "base/owned_file.hpp"
#include "base/utf8.hpp"
#include "base/whole_file.hpp"
#include "jobspec/yaml_tree.hpp"

namespace berth::compete {
namespace {

constexpr std::size_t kFileMax = 1024UL * 1024;
constexpr std::string_view kSecret = "secret";
constexpr std::string_view kTarget = "target-yaml-path";

constexpr std::array kDefinitions = {
    SettingDef{kTarget, "../config/gpu_manage.yaml",
               "the configuration that command files are started with, from this file's directory",
               true},
    SettingDef{"log-dir", "./logs/", "berth logs to daemon.log in its own directory"},
    SettingDef{"port", "29214", "see listen in berth.yaml"},
    SettingDef{"allow-lan", "true", "see listen in berth.yaml"},
    SettingDef{"bind-address", "0.0.0.0", "see listen in berth.yaml"},
    SettingDef{"log-level", "info", "see berthd --log-level"},
};

const SettingDef* find_setting(std::string_view key) {
  const auto* const found = std::ranges::find(kDefinitions, key, &SettingDef::key);
  return found == kDefinitions.end() ? nullptr : found;
}

Result<NodePtr> parse_map(std::string_view text, const std::string& file) {
  Diagnostics diagnostics(file);
  NodePtr root = parse_yaml(without_mark(text), diagnostics);
  const auto mistakes = diagnostics.take();
  if (!mistakes.empty()) {
    return fail(ErrorCode::conflict,
                fmt::format("{}:{}:{}: {}", printable(file), mistakes[0].at.line,
                            mistakes[0].at.column, mistakes[0].message));
  }
  if (root != nullptr && root->kind != Node::Kind::map && root->kind != Node::Kind::null) {
    return fail(ErrorCode::conflict,
                fmt::format("{}: expected `key: value` lines", printable(file)));
  }
  return root;
}

Status check_value(const SettingDef& setting, const std::string& value) {
  const auto refuse = [&](std::string_view expected) {
    return fail(ErrorCode::invalid,
                fmt::format("{}: expected {}, got '{}'", setting.key, expected, printable(value)));
  };
  if (setting.key == "port") {
    constexpr std::uint32_t kMost = 65'535;
    std::uint32_t port = 0;
    const char* end = value.data() + value.size();
    const auto [at, error] = std::from_chars(value.data(), end, port);
    return error == std::errc() && at == end && port > 0 && port <= kMost
               ? Status{}
               : refuse("a port from 1 to 65535");
  }
  if (setting.key == "allow-lan") {
    return value == "true" || value == "false" ? Status{} : refuse("true or false");
  }
  const bool clean = std::ranges::none_of(
      value, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == '\x7f'; });
  return clean && !value.empty() && is_utf8(value) ? Status{} : refuse("one line of text");
}

std::string scalar(const std::string& value) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._/";
  if (value.find_first_not_of(kPlain) == std::string::npos) {
    return value;
  }
  std::string quoted = "'";
  for (const char c : value) {
    quoted += c == '\'' ? "''" : std::string(1, c);
  }
  return quoted + "'";
}

/// The line with another value; a comment behind it stays.
std::string with_value(std::string_view line, std::size_t from, const std::string& value) {
  std::size_t to = line.size();
  const char quote = from < line.size() ? line[from] : ' ';
  if (quote == '"' || quote == '\'') {
    const auto close = line.find(quote, from + 1);
    to = close == std::string_view::npos ? line.size() : close + 1;
  } else if (const auto comment = line.find(" #", from); comment != std::string_view::npos) {
    to = comment;
  }
  while (to > from && (line[to - 1] == ' ' || line[to - 1] == '\r')) {
    --to;
  }
  return fmt::format("{}{}{}", line.substr(0, from), scalar(value), line.substr(to));
}

Result<std::string> edit_one(std::string text, const std::string& key, const std::string& value,
                             const std::string& file) {
  TRY_ASSIGN(const NodePtr root, parse_map(text, file));
  const Node::Entry* known = nullptr;
  if (root != nullptr) {
    const auto found = std::ranges::find(root->entries, key, &Node::Entry::key);
    known = found == root->entries.end() ? nullptr : &*found;
  }
  if (known == nullptr) {
    const bool open_end = !text.empty() && !text.ends_with('\n');
    return fmt::format("{}{}{}: {}\n", text, open_end ? "\n" : "", key, scalar(value));
  }
  if (known->value == nullptr || known->value->kind != Node::Kind::scalar ||
      known->value->at.line != known->key_at.line) {
    return fail(ErrorCode::conflict,
                fmt::format("{}:{}: '{}' has no value on its line; change it by hand",
                            printable(file), known->key_at.line, key));
  }
  std::size_t begin = 0;
  for (std::uint32_t line = 1; line < known->key_at.line; ++line) {
    begin = text.find('\n', begin) + 1;
  }
  const auto end = std::min(text.find('\n', begin), text.size());
  text.replace(begin, end - begin,
               with_value(std::string_view(text).substr(begin, end - begin),
                          known->value->at.column - 1, value));
  return text;
}

}  // namespace

std::span<const SettingDef> setting_definitions() {
  return kDefinitions;
}

Result<ControlSetting> parse_control_setting(std::string_view text, const std::string& file) {
  TRY_ASSIGN(const NodePtr root, parse_map(text, file));
  ControlSetting setting;
  for (const auto& entry : root != nullptr ? root->entries : std::vector<Node::Entry>()) {
    const bool has_value = entry.value != nullptr && entry.value->kind == Node::Kind::scalar;
    if (entry.key == kSecret) {
      setting.secret = has_value && !entry.value->text.empty();
    } else if (has_value && find_setting(entry.key) != nullptr) {
      setting.values[entry.key] = entry.value->text;
    }
  }
  return setting;
}

Result<std::string> edit_control_setting(std::string_view text,
                                         const std::map<std::string, std::string>& values,
                                         const std::string& file) {
  std::string edited(without_mark(text));
  for (const auto& [key, value] : values) {
    const SettingDef* setting = find_setting(key);
    if (key == kSecret) {
      return fail(ErrorCode::refused,
                  "secret: berth has no password that everybody knows; it gives out tokens");
    }
    if (setting == nullptr) {
      return fail(ErrorCode::invalid, fmt::format("there is no setting '{}'", printable(key)));
    }
    TRY(check_value(*setting, value));
    TRY_ASSIGN(edited, edit_one(std::move(edited), key, value, file));
  }
  // What was written must be what will be read.
  TRY_ASSIGN(const ControlSetting again, parse_control_setting(edited, file));
  for (const auto& [key, value] : values) {
    if (const auto read = again.values.find(key);
        read == again.values.end() || read->second != value) {
      return fail(
          ErrorCode::conflict,
          fmt::format("{}: '{}' cannot be changed there; do it by hand", printable(file), key));
    }
  }
  return edited;
}

Result<ControlSetting> read_control_setting(const std::string& file) {
  TRY_ASSIGN(const auto text, read_owned(file, ::getuid(), FileOf::owner, kFileMax));
  return parse_control_setting(text.value_or(std::string()), file);
}

Status save_control_setting(const std::string& file,
                            const std::map<std::string, std::string>& values) {
  const auto dir = std::filesystem::path(file).parent_path();
  std::error_code error;
  std::filesystem::create_directories(dir, error);
  if (error) {
    return fail(ErrorCode::io, fmt::format("cannot make the directory '{}': {}",
                                           printable(dir.native()), error.message()));
  }
  TRY_ASSIGN(const FileLock lock, FileLock::take(file));
  TRY_ASSIGN(const auto old, read_owned(file, ::getuid(), FileOf::owner, kFileMax));
  TRY_ASSIGN(const std::string fresh,
             edit_control_setting(old.value_or(std::string()), values, file));
  return old == fresh ? Status{} : replace_whole(file, fresh, 0600);
}

std::string target_yaml(const ControlSetting& setting, const std::string& file) {
  const auto value = setting.values.find(std::string(kTarget));
  if (value == setting.values.end() || value->second.empty()) {
    return {};
  }
  const auto path = (std::filesystem::path(file).parent_path() / value->second).lexically_normal();
  std::error_code error;
  const bool usual = value->second == find_setting(kTarget)->usual;
  return usual && !std::filesystem::exists(path, error) ? std::string() : path.native();
}

std::string missing_target(const ControlSetting& setting, const std::string& file) {
  const std::string target = target_yaml(setting, file);
  std::error_code error;
  const auto found = std::filesystem::status(target, error);
  return found.type() == std::filesystem::file_type::not_found ? target : std::string();
}

}  // namespace berth::compete
