#include "compete/log_bindings.hpp"

#include <unistd.h>

#include <ctime>
#include <filesystem>

#include <fmt/format.h>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>

#include "base/owned_file.hpp"
#include "base/utf8.hpp"
#include "base/whole_file.hpp"

namespace berth::compete {
namespace {

namespace json = boost::json;

constexpr std::size_t kFileMax = 16UL * 1024 * 1024;

Result<json::object> read_object(std::string_view text, const std::string& file) {
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) {
    return json::object();
  }
  boost::system::error_code wrong;
  json::value value = json::parse(text, wrong);
  if (wrong || !value.is_object()) {
    return fail(ErrorCode::conflict,
                fmt::format("'{}' is no JSON object; repair it, or remove it", printable(file)));
  }
  return std::move(value.get_object());
}

std::optional<std::uint32_t> number(const json::object& entry, std::string_view key) {
  const json::value* value = entry.if_contains(key);
  if (value == nullptr) {
    return std::nullopt;
  }
  boost::system::error_code wrong;
  const auto found = value->to_number<std::uint32_t>(wrong);
  return wrong ? std::nullopt : std::optional(found);
}

std::string text(const json::object& entry, std::string_view key) {
  const json::value* value = entry.if_contains(key);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : std::string();
}

std::optional<LogBinding> binding_of(const json::value& value) {
  if (!value.is_object()) {
    return std::nullopt;
  }
  const json::object& entry = value.get_object();
  const auto mode = mode_from(text(entry, "mode"));
  const auto config = number(entry, "config_index");
  const auto queue = number(entry, "queue_id");
  const auto process = number(entry, "process_index");
  std::string path = text(entry, "log_path");
  if (!mode || !config || !queue || !process || path.empty()) {
    return std::nullopt;
  }
  return LogBinding{{*mode, *config, *queue, *process}, std::move(path), text(entry, "bound_at")};
}

/// One binding per line: people look at it, and `diff` does.
std::string write(const json::object& all) {
  std::string out = "{";
  bool first = true;
  for (const auto& [key, entry] : all) {
    out += first ? "\n  " : ",\n  ";
    first = false;
    out += json::serialize(json::value(key)) + ": " + json::serialize(entry);
  }
  return out + (first ? "}\n" : "\n}\n");
}

/// Makes the directory of a file.
Status make_room(const std::string& file) {
  const auto dir = std::filesystem::path(file).parent_path();
  std::error_code error;
  std::filesystem::create_directories(dir, error);
  if (error) {
    return fail(ErrorCode::io, fmt::format("cannot make the directory '{}': {}",
                                           printable(dir.native()), error.message()));
  }
  return {};
}

/// Changes the file under its lock; an edit that changes nothing writes nothing.
template <class Edit>
Status change(const std::string& file, const Edit& edit) {
  TRY(make_room(file));
  TRY_ASSIGN(const FileLock lock, FileLock::take(file));
  TRY_ASSIGN(const auto old, read_owned(file, ::getuid(), FileOf::owner, kFileMax));
  TRY_ASSIGN(const std::string fresh, edit(old.value_or(std::string())));
  return old == fresh ? Status{} : replace_whole(file, fresh);
}

}  // namespace

std::string ProcessPlace::key() const {
  return fmt::format("{}_{}_{}_{}", to_string(mode), config_index, queue_id, process_index);
}

Result<std::map<std::string, LogBinding>> parse_bindings(std::string_view text,
                                                         const std::string& file) {
  TRY_ASSIGN(const json::object all, read_object(text, file));
  std::map<std::string, LogBinding> bindings;
  for (const auto& [key, entry] : all) {
    if (auto binding = binding_of(entry)) {
      bindings.emplace(key, std::move(*binding));
    }
  }
  return bindings;
}

Result<std::string> with_binding(std::string_view text, const LogBinding& binding,
                                 const std::string& file) {
  TRY_ASSIGN(json::object all, read_object(text, file));
  json::value& slot = all[binding.place.key()];
  json::object& entry = slot.is_object() ? slot.get_object() : slot.emplace_object();
  entry["mode"] = to_string(binding.place.mode);
  entry["config_index"] = binding.place.config_index;
  entry["queue_id"] = binding.place.queue_id;
  entry["process_index"] = binding.place.process_index;
  entry["log_path"] = binding.log_path;
  entry["bound_at"] = binding.bound_at;
  return write(all);
}

Result<std::string> without_binding(std::string_view text, const std::string& key,
                                    const std::string& file) {
  TRY_ASSIGN(json::object all, read_object(text, file));
  if (all.erase(key) == 0) {
    return std::string(text);
  }
  return write(all);
}

Result<std::map<std::string, LogBinding>> LogBindings::read() const {
  // It says which of our files are shown, so nobody else may have written it.
  TRY_ASSIGN(const auto text, read_owned(file_, ::getuid(), FileOf::owner, kFileMax));
  return parse_bindings(text.value_or(std::string()), file_);
}

Status LogBindings::bind(const LogBinding& binding) const {
  return change(file_, [&](const std::string& old) { return with_binding(old, binding, file_); });
}

Result<bool> LogBindings::unbind(const ProcessPlace& place) const {
  TRY_ASSIGN(const auto bindings, read());
  if (!bindings.contains(place.key())) {
    return false;
  }
  TRY(change(file_,
             [&](const std::string& old) { return without_binding(old, place.key(), file_); }));
  return true;
}

Status LogBindings::unbind_config(Cards mode, std::uint32_t index) const {
  TRY_ASSIGN(const auto bindings, read());
  for (const auto& [key, binding] : bindings) {
    if (binding.place.mode == mode && binding.place.config_index == index) {
      TRY(change(file_, [&](const std::string& old) { return without_binding(old, key, file_); }));
    }
  }
  return {};
}

std::string iso_time(Millis wall) {
  const auto seconds = static_cast<std::time_t>(wall.count() / 1000);
  std::tm parts{};
  ::localtime_r(&seconds, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}", parts.tm_year + 1900, parts.tm_mon + 1,
                     parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec);
}

}  // namespace berth::compete
