#include "daemon/compete_json.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>

#include "api/wire.hpp"
#include "base/utf8.hpp"

namespace berth {
namespace {

namespace json = boost::json;
using compete::Cards;
using compete::CommandProcess;
using compete::CommandQueue;
using compete::ConfigFile;

constexpr int kUnprocessable = 422;
constexpr std::uint32_t kMostQueue = 999'999'999;  // as in command files
constexpr std::uint32_t kMostGpus = 1'024;
constexpr double kMostMemory = 65'536;

std::string config_name(std::uint32_t index) {
  return fmt::format("configuration {}", index + 1);
}

json::object file_object(const ConfigFile& file) {
  json::object out;
  out["index"] = file.index;
  out["name"] = config_name(file.index);
  out["file_path"] = to_utf8(file.path);
  out["file_name"] = file.file_name;
  out["exists"] = file.exists;
  return out;
}

/// 20 rather than 20.0, as it stands in the file.
json::value memory_value(double gib) {
  return gib == std::floor(gib) ? json::value(static_cast<std::uint64_t>(gib)) : json::value(gib);
}

json::array queues_array(const std::vector<CommandQueue>& queues) {
  json::array out;
  for (const CommandQueue& queue : queues) {
    json::array processes;
    for (const CommandProcess& process : queue.processes) {
      json::array commands;
      for (const std::string& command : process.commands) {
        commands.emplace_back(to_utf8(command));
      }
      json::object one;
      one["id"] = processes.size() + 1;
      one["index"] = processes.size();
      one["commands"] = std::move(commands);
      one["gpu_count"] = process.gpus;
      one["memory"] = memory_value(process.memory_gib);
      one["line"] = process.line;
      processes.push_back(std::move(one));
    }
    json::object one;
    one["id"] = queue.id;
    one["processes"] = std::move(processes);
    out.push_back(std::move(one));
  }
  return out;
}

/// Of the command file itself, or of another that it is started with.
bool is_of(const ConfigFile& file, const Diagnostic& mistake) {
  return mistake.file == file.path || mistake.file == file.file_name;
}

json::array problems_array(const ConfigFile& file, const std::vector<Diagnostic>& mistakes) {
  const auto place = [](std::uint32_t number) {
    return number == 0 ? json::value() : json::value(number);
  };
  json::array out;
  for (const Diagnostic& mistake : mistakes) {
    json::object one;
    one["severity"] = "error";
    one["file"] = is_of(file, mistake) ? json::value() : json::value(to_utf8(mistake.file));
    one["line"] = place(mistake.at.line);
    one["column"] = place(mistake.at.column);
    one["message"] = to_utf8(mistake.message);
    out.push_back(std::move(one));
  }
  return out;
}

/// What a command file holds, as all answers tell it.
void add_content(json::object& out, Cards mode, const ConfigText& config) {
  const std::string text = config.text.value_or(std::string());
  auto tree = compete::read_tree(text, config.file.file_name, mode);
  if (!config.trouble.empty()) {
    tree.mistakes.push_back({config.file.file_name, {1, 1}, config.trouble});
  }
  out["queues"] = queues_array(tree.queues);
  out["problems"] = problems_array(config.file, tree.mistakes);
  out["version"] = compete::version_of(text);
}

// --- what comes in

std::unexpected<Error> wrong(std::string_view where, std::string_view expected) {
  return fail(ErrorCode::invalid, fmt::format("{}: expected {}", where, expected));
}

Result<json::object> parse_object(std::string_view body) {
  boost::system::error_code error;
  json::value value = json::parse(body, error);
  if (error || !value.is_object()) {
    return fail(ErrorCode::invalid, "the body is no JSON object");
  }
  return std::move(value.get_object());
}

Status check_names(const json::object& object, std::string_view where,
                   std::initializer_list<std::string_view> known) {
  for (const auto& [name, value] : object) {
    if (std::ranges::find(known, std::string_view(name)) == known.end()) {
      return fail(ErrorCode::invalid,
                  fmt::format("{}'{}' is not known here", where, printable(name)));
    }
  }
  return {};
}

Result<std::uint32_t> number_at(const json::object& object, std::string_view name,
                                const std::string& where, std::uint32_t least, std::uint32_t most) {
  const json::value* value = object.if_contains(name);
  boost::system::error_code error;
  const auto number =
      value == nullptr ? 0 : value->to_number<std::uint32_t>(error);  // of 1.0, too, but not of 1.5
  if (value == nullptr || error || number < least || number > most) {
    return wrong(fmt::format("{}.{}", where, name),
                 fmt::format("a whole number from {} to {}", least, most));
  }
  return number;
}

Result<CommandProcess> decode_process(const json::value& value, const std::string& where,
                                      Cards mode) {
  if (!value.is_object()) {
    return wrong(where, "an object");
  }
  const json::object& object = value.get_object();
  TRY(check_names(object, where + ": ",
                  {"id", "index", "line", "commands", "gpu_count", "memory"}));
  CommandProcess process;
  const json::value* commands = object.if_contains("commands");
  if (commands == nullptr || !commands->is_array() || commands->get_array().empty()) {
    return wrong(where + ".commands", "a list of commands");
  }
  for (const json::value& command : commands->get_array()) {
    if (!command.is_string()) {
      return wrong(where + ".commands", "texts");
    }
    process.commands.emplace_back(command.get_string());
  }
  if (mode == Cards::multi || object.contains("gpu_count")) {
    TRY_ASSIGN(process.gpus, number_at(object, "gpu_count", where, 1, kMostGpus));
  }
  if (mode == Cards::single && process.gpus != 1) {
    return wrong(where + ".gpu_count", "1: in mode single each process has one GPU");
  }
  const json::value* memory = object.if_contains("memory");
  boost::system::error_code error;
  process.memory_gib = memory == nullptr ? 0 : memory->to_number<double>(error);
  if (memory == nullptr || error || !(process.memory_gib > 0) || process.memory_gib > kMostMemory) {
    return wrong(where + ".memory", "a number of GiB");
  }
  return process;
}

Result<CommandQueue> decode_queue(const json::value& value, const std::string& where, Cards mode) {
  if (!value.is_object()) {
    return wrong(where, "an object");
  }
  const json::object& object = value.get_object();
  TRY(check_names(object, where + ": ", {"id", "processes"}));
  CommandQueue queue;
  TRY_ASSIGN(queue.id, number_at(object, "id", where, 0, kMostQueue));
  const json::value* processes = object.if_contains("processes");
  if (processes == nullptr || !processes->is_array()) {
    return wrong(where + ".processes", "a list");
  }
  for (const json::value& process : processes->get_array()) {
    TRY_ASSIGN(CommandProcess one,
               decode_process(
                   process, fmt::format("{}.processes[{}]", where, queue.processes.size()), mode));
    queue.processes.push_back(std::move(one));
  }
  return queue;
}

Result<std::vector<CommandQueue>> decode_queues(const json::value& value, Cards mode) {
  if (!value.is_array()) {
    return wrong("queues", "a list");
  }
  std::vector<CommandQueue> queues;
  for (const json::value& one : value.get_array()) {
    TRY_ASSIGN(CommandQueue queue,
               decode_queue(one, fmt::format("queues[{}]", queues.size()), mode));
    if (std::ranges::find(queues, queue.id, &CommandQueue::id) != queues.end()) {
      return wrong(fmt::format("queues[{}].id", queues.size()),
                   fmt::format("each queue once, and {} is there twice", queue.id));
    }
    queues.push_back(std::move(queue));
  }
  return queues;
}

/// What was read somewhere else is not to be written here.
Status check_meant(const json::object& object, Cards mode, std::uint32_t index) {
  if (const json::value* named = object.if_contains("mode");
      named != nullptr && *named != json::value(compete::to_string(mode))) {
    return wrong("mode", fmt::format("{}, as in the path", compete::to_string(mode)));
  }
  if (const json::value* named = object.if_contains("config_index");
      named != nullptr && *named != json::value(index)) {
    return wrong("config_index", fmt::format("{}, as in the query", index));
  }
  return {};
}

json::array ids(const std::vector<std::uint64_t>& values) {
  return json::array(values.begin(), values.end());
}

json::object binding_object(const compete::LogBinding& binding) {
  json::object out;
  out["mode"] = compete::to_string(binding.place.mode);
  out["config_index"] = binding.place.config_index;
  out["queue_id"] = binding.place.queue_id;
  out["process_index"] = binding.place.process_index;
  out["log_path"] = to_utf8(binding.log_path);
  out["bound_at"] = to_utf8(binding.bound_at);
  return out;
}

json::object done(std::string_view message) {
  json::object out;
  out["success"] = true;
  out["message"] = message;
  return out;
}

}  // namespace

std::string encode_configs(Cards mode, const std::vector<ConfigFile>& files) {
  json::object out;
  out["mode"] = compete::to_string(mode);
  json::array& configs = out["configs"].emplace_array();
  for (const ConfigFile& file : files) {
    configs.push_back(file_object(file));
  }
  return json::serialize(out);
}

std::string encode_all(Cards mode, const std::vector<ConfigText>& configs) {
  json::object out;
  out["mode"] = compete::to_string(mode);
  json::array& all = out["configs"].emplace_array();
  for (const ConfigText& config : configs) {
    json::object one = file_object(config.file);
    add_content(one, mode, config);
    all.push_back(std::move(one));
  }
  return json::serialize(out);
}

std::string encode_config(Cards mode, const ConfigText& config, bool with_text) {
  json::object out;
  out["mode"] = compete::to_string(mode);
  out["config_index"] = config.file.index;
  out["config_name"] = config_name(config.file.index);
  out["file_path"] = to_utf8(config.file.path);
  out["file_name"] = config.file.file_name;
  out["exists"] = config.text.has_value();
  add_content(out, mode, config);
  if (with_text) {
    out["text"] = to_utf8(config.text.value_or(std::string()));
  }
  return json::serialize(out);
}

std::string encode_created(const ConfigFile& file) {
  json::object out = done(fmt::format("{} is '{}'", config_name(file.index), file.file_name));
  out["config"] = file_object(file);
  return json::serialize(out);
}

Result<ConfigEdit> decode_config(std::string_view body, Cards mode, std::uint32_t index) {
  TRY_ASSIGN(const json::object object, parse_object(body));
  TRY(check_names(object, "",
                  {"queues", "text", "version", "mode", "config_index", "config_name", "file_path",
                   "file_name", "exists", "problems"}));
  TRY(check_meant(object, mode, index));
  ConfigEdit edit;
  const json::value* text = object.if_contains("text");
  const json::value* queues = object.if_contains("queues");
  if ((text == nullptr) == (queues == nullptr)) {
    return fail(ErrorCode::invalid, "give either queues or text");
  }
  if (text != nullptr && !text->is_string()) {
    return wrong("text", "a text");
  }
  if (text != nullptr) {
    edit.text = std::string(text->get_string());
  } else {
    TRY_ASSIGN(edit.queues, decode_queues(*queues, mode));
  }
  if (const json::value* version = object.if_contains("version"); version != nullptr) {
    if (!version->is_string()) {
      return wrong("version", "a text");
    }
    edit.version = std::string(version->get_string());
  }
  return edit;
}

HttpResponse mistakes_response(const ConfigFile& file, const std::vector<Diagnostic>& mistakes) {
  const Diagnostic& first = mistakes.front();
  const std::string place =
      first.at.line == 0 ? std::string() : fmt::format(":{}:{}", first.at.line, first.at.column);
  const std::string text =
      fmt::format("{}{}: {}", to_utf8(first.file), place, to_utf8(first.message));
  const Error error{ErrorCode::invalid, mistakes.size() == 1
                                            ? text
                                            : fmt::format("'{}' has {} mistakes; the first: {}",
                                                          file.file_name, mistakes.size(), text)};
  HttpResponse response = error_response(error);
  json::value body = json::parse(response.body);
  body.get_object()["problems"] = problems_array(file, mistakes);
  response.status = kUnprocessable;
  response.body = json::serialize(body);
  return response;
}

std::string encode_bindings(const std::map<std::string, compete::LogBinding>& bindings) {
  json::object out;
  for (const auto& [key, binding] : bindings) {
    out[to_utf8(key)] = binding_object(binding);
  }
  return json::serialize(out);
}

std::string encode_bound(const compete::LogBinding& binding) {
  json::object out =
      done(fmt::format("'{}' is the log of process {} of queue {}", to_utf8(binding.log_path),
                       binding.place.process_index, binding.place.queue_id));
  out["key"] = binding.place.key();
  out["binding"] = binding_object(binding);
  return json::serialize(out);
}

std::string encode_log(const std::string& path, const compete::LogText& log) {
  json::object out = done("");
  out["log_path"] = to_utf8(path);
  out["content"] = log.content;
  out["offset"] = log.offset;
  out["next_offset"] = log.next;
  out["size"] = log.size;
  out["total_lines"] = log.total_lines ? json::value(*log.total_lines) : json::value();
  return json::serialize(out);
}

std::string encode_settings(const compete::ControlSetting& setting, const std::string& file) {
  json::object out;
  for (const compete::SettingDef& def : compete::setting_definitions()) {
    const auto found = setting.values.find(std::string(def.key));
    json::object one;
    one["value"] = to_utf8(found == setting.values.end() ? def.usual : found->second);
    one["set"] = found != setting.values.end();
    one["used"] = def.used;
    one["requires_restart"] = false;
    one["description"] = def.meaning;
    out[def.key] = std::move(one);
  }
  json::object secret;
  secret["value"] = nullptr;
  secret["set"] = setting.secret;
  secret["used"] = false;
  secret["requires_restart"] = false;
  secret["description"] = "never told; berth gives out tokens instead";
  out["secret"] = std::move(secret);
  json::object all;
  all["file_path"] = to_utf8(file);
  all["settings"] = std::move(out);
  return json::serialize(all);
}

Result<std::map<std::string, std::string>> decode_settings(std::string_view body) {
  TRY_ASSIGN(const json::object object, parse_object(body));
  std::map<std::string, std::string> values;
  for (const auto& [name, value] : object) {
    if (!value.is_string() && !value.is_number() && !value.is_bool()) {
      return wrong(printable(name), "one value");
    }
    values[std::string(name)] =
        value.is_string() ? std::string(value.get_string()) : json::serialize(value);
  }
  return values;
}

std::string encode_saved_settings(const std::map<std::string, std::string>& values,
                                  const std::string& missing) {
  json::object out = done(fmt::format("{} saved", values.size()));
  out["requires_restart"].emplace_array();
  json::array& warnings = out["warnings"].emplace_array();  // last: others would move it
  for (const compete::SettingDef& def : compete::setting_definitions()) {
    if (!def.used && values.contains(std::string(def.key))) {
      warnings.emplace_back(fmt::format("{} changes nothing here: {}", def.key, def.meaning));
    }
  }
  if (!missing.empty()) {
    warnings.emplace_back(to_utf8(fmt::format(
        "target-yaml-path: there is no file '{}'; nothing can be started until it is there",
        missing)));
  }
  return json::serialize(out);
}

std::string encode_started(const StartedConfig& started) {
  const std::uint64_t count = started.last - started.first + 1;
  json::object out = done(fmt::format("submitted {} job{}", count, count == 1 ? "" : "s"));
  out["pid"] = started.traits.pid;
  out["mode"] = started.traits.mode;
  out["config_index"] = started.traits.config_index;
  out["config_file"] = to_utf8(started.traits.config_file);
  out["log_file"] = to_utf8(fmt::format("{}/{}", started.traits.state_dir, started.traits.log));
  out["batch"] = started.batch;
  out["ids"] = json::array{started.first, started.last};
  json::array& warnings = out["warnings"].emplace_array();
  for (const std::string& warning : started.warnings) {
    warnings.emplace_back(to_utf8(warning));
  }
  return json::serialize(out);
}

std::string encode_stopped(const StoppedConfig& stopped) {
  json::object out = done(fmt::format("cancelled {}, ended {}, {} go on", stopped.cancelled.size(),
                                      stopped.killed.size(), stopped.running.size()));
  out["pid"] = stopped.pid;
  out["batch"] = stopped.batch;
  out["cancelled"] = ids(stopped.cancelled);
  out["killed"] = ids(stopped.killed);
  out["running"] = ids(stopped.running);
  return json::serialize(out);
}

std::string encode_state(const BatchReport& batch, Millis wall) {
  json::value state = json::parse(state_json(batch, wall));
  json::object& out = state.get_object();
  const auto waiting = [](const BatchJob& job) { return job.row.state == JobState::queued; };
  const auto cancelled = [](const BatchJob& job) { return job.row.state == JobState::cancelled; };
  out["running"] = !has_ended(batch);
  out["stopped"] =
      std::ranges::none_of(batch.jobs, waiting) && std::ranges::any_of(batch.jobs, cancelled);
  return json::serialize(state);
}

std::string encode_idle(Cards mode, const ConfigFile& file, Millis wall) {
  BatchReport none;
  none.traits.mode = compete::to_string(mode);
  none.traits.config_index = file.index;
  none.traits.config_file = file.path;
  json::value state = json::parse(state_json(none, wall));
  json::object& out = state.get_object();
  out["pid"] = nullptr;
  out["batch"] = nullptr;
  out["state"] = "idle";
  out["running"] = false;
  out["stopped"] = false;
  return json::serialize(state);
}

}  // namespace berth
