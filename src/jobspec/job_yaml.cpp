#include "jobspec/job_yaml.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/moment.hpp"
#include "base/utf8.hpp"
#include "jobspec/fingerprint.hpp"
#include "jobspec/job_writer.hpp"
#include "jobspec/json_text.hpp"

namespace berth {
namespace {

constexpr std::size_t kLongestFlow = 90;

bool is_alnum(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool is_control(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
}

/// Whether YAML reads the text as itself without quotes, at the end of a line.
bool is_plain(std::string_view text) {
  constexpr std::array<std::string_view, 3> kNothing = {"null", "Null", "NULL"};
  if (text.empty() || text.back() == ' ' || text.back() == ':' ||
      (!is_alnum(text.front()) && text.front() != '_' && text.front() != '/' &&
       text.front() != '.')) {
    return false;
  }
  return std::none_of(text.begin(), text.end(), is_control) && is_utf8(text) &&
         text.find(": ") == std::string_view::npos && text.find(" #") == std::string_view::npos &&
         std::find(kNothing.begin(), kNothing.end(), text) == kNothing.end();
}

/// The same between brackets, where more characters mean something.
bool is_plain_word(std::string_view text) {
  return is_plain(text) && std::all_of(text.begin(), text.end(), [](char c) {
           return is_alnum(c) || std::string_view("_./=+-").find(c) != std::string_view::npos;
         });
}

/// Whether a block of lines can hold the text as it is.
bool is_block(std::string_view text) {
  if (text.find('\n') == std::string_view::npos || text.front() == '\n' || text.front() == ' ' ||
      text.front() == '\t' || !is_utf8(text)) {
    return false;
  }
  for (std::size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find('\n', at), text.size());
    const auto line = text.substr(at, end - at);
    const bool blank = !line.empty() && line.find_first_not_of(" \t") == std::string_view::npos;
    if (blank ||
        std::any_of(line.begin(), line.end(), [](char c) { return is_control(c) && c != '\t'; })) {
      return false;
    }
    at = end + 1;
  }
  return true;
}

/// Writes keys and values at growing depth.
class YamlWriter {
 public:
  explicit YamlWriter(std::size_t depth = 0) : indent_(2 * depth, ' ') {}

  void key(std::string_view name) {
    line_begin();
    out_ += is_plain_word(name) ? std::string(name) : json_string(name);
    out_ += ':';
  }
  void text(std::string_view name, std::string_view value) {
    key(name);
    scalar(value);
  }
  template <class T>
  void number(std::string_view name, T value) {
    key(name);
    out_ += fmt::format(" {}\n", value);
  }
  /// What follows is indented below the last key.
  void open() {
    out_ += '\n';
    indent_ += "  ";
  }
  void close() { indent_.resize(indent_.size() - 2); }
  /// An item of a list: the next key, item or text stands on its line.
  void item() {
    line_begin();
    out_ += "-";
    in_item_ = true;
    indent_ += "  ";
  }
  void close_item() {
    indent_.resize(indent_.size() - 2);
    in_item_ = false;
  }
  /// A text behind a key or a dash.
  void scalar(std::string_view value) {
    const bool behind_dash = std::exchange(in_item_, false);
    if (is_block(value)) {
      block(value, behind_dash ? indent_ : indent_ + "  ");
    } else {
      out_ += fmt::format(" {}\n", is_plain(value) ? std::string(value) : json_string(value));
    }
  }
  /// [a, b] behind a key or a dash, if it is short.
  bool flow(const std::vector<std::string>& values) {
    std::string line = "[";
    for (const auto& value : values) {
      line += line.size() > 1 ? ", " : "";
      line += is_plain_word(value) ? value : json_string(value);
      if (line.size() > kLongestFlow) {
        return false;
      }
    }
    in_item_ = false;
    out_ += fmt::format(" {}]\n", line);
    return true;
  }
  void list(const std::vector<std::string>& values) {
    if (flow(values)) {
      return;
    }
    if (!in_item_) {
      out_ += '\n';
    }
    for (const auto& value : values) {
      item();
      scalar(value);
      close_item();
    }
  }
  void raw(std::string_view text) { out_ += text; }

  [[nodiscard]] std::string take() { return std::move(out_); }

 private:
  void line_begin() {
    out_ += in_item_ ? " " : indent_;
    in_item_ = false;
  }
  void block(std::string_view value, const std::string& indent) {
    const auto last = value.find_last_not_of('\n');
    const auto ends = value.size() - last - 1;
    out_ += ends == 0 ? " |-\n" : ends == 1 ? " |\n" : " |+\n";
    for (std::size_t at = 0; at < value.size();) {
      const auto end = std::min(value.find('\n', at), value.size());
      const auto line = value.substr(at, end - at);
      out_ += line.empty() ? "\n" : fmt::format("{}{}\n", indent, line);
      at = end + 1;
    }
  }

  std::string indent_;
  std::string out_;
  bool in_item_ = false;
};

std::string seconds(Millis time) {
  const auto millis = time.count();
  return millis % 1000 == 0 ? fmt::format("{}", millis / 1000) : fmt::format("{}ms", millis);
}

std::string size_text(Bytes bytes) {
  for (const auto& [unit, name] : {std::pair{kGiB, "GiB"}, {kMiB, "MiB"}}) {
    if (bytes >= unit && bytes % unit == 0) {
      return fmt::format("{}{}", bytes / unit, name);
    }
  }
  return fmt::format("{}", bytes);
}

template <class Map>
void map(YamlWriter& w, std::string_view name, const Map& values) {
  if (values.empty()) {
    return;
  }
  w.key(name);
  w.open();
  for (const auto& [key, value] : values) {
    w.text(key, fmt::format("{}", value));
  }
  w.close();
}

void write_commands(YamlWriter& w, const std::vector<Command>& commands) {
  w.key("run");
  if (commands.size() == 1 && commands.front().shell) {
    return w.scalar(commands.front().argv.front());
  }
  w.open();
  for (const auto& command : commands) {
    w.item();
    if (command.shell) {
      w.scalar(command.argv.front());
    } else {
      w.list(command.argv);
    }
    w.close_item();
  }
  w.close();
}

void write_env(YamlWriter& w, const Payload& payload) {
  if (!payload.extra_env.empty()) {
    w.key("env");
    w.open();
    for (const std::string_view entry : payload.extra_env) {
      const auto equals = entry.find('=');
      w.text(entry.substr(0, equals), entry.substr(equals + 1));
    }
    w.close();
  }
  if (payload.environment != nullptr) {
    w.key("env_keep");
    w.list(*payload.environment);
  }
}

/// What a job needs.
void write_request(YamlWriter& w, const JobSpec& job) {
  const auto& request = job.request;
  if (request.gpus != GpuCount{}) {
    w.text("gpus", gpu_count_text(request.gpus));
  }
  if (request.gpu_memory) {
    w.text("gpu_memory", size_text(*request.gpu_memory));
  }
  if (request.cpus != 0) {
    w.number("cpus", request.cpus);
  }
  if (request.memory != 0) {
    w.text("memory", size_text(request.memory));
  }
  map(w, "resources", request.resources);
}

void write_after(YamlWriter& w, const JobSpec& job, const std::vector<JobSpec>& jobs) {
  if (!job.after_index.empty() || (!job.after.empty() && job.after_kind != After::ok)) {
    std::vector<std::string> names;
    for (const auto index : job.after_index) {
      names.push_back(jobs[index].name);
    }
    w.key(job.after_kind == After::any      ? "after_any"
          : job.after_kind == After::failed ? "after_failed"
                                            : "after");
    w.list(names);
  }
  if (!job.after.empty()) {
    std::vector<std::string> ids;
    for (const JobId id : job.after) {
      ids.push_back(fmt::format("{}", id.value));
    }
    w.key("after_ids");
    w.list(ids);
  }
}

/// One key of a job as it will stand in the file.
using Part = std::pair<std::string_view, std::string>;

/// The keys that jobs may share, at the depth of `defaults`.
std::vector<Part> shared_parts(const JobSpec& job) {
  const JobSpec usual;
  const auto& payload = job.payload;
  std::vector<Part> parts;
  const auto add = [&](std::string_view name, const auto& write) {
    YamlWriter w(1);
    write(w);
    if (auto text = w.take(); !text.empty()) {
      parts.emplace_back(name, std::move(text));
    }
  };
  const auto add_if = [&](bool given, std::string_view name, std::string_view value) {
    if (given) {
      add(name, [&](YamlWriter& w) { w.text(name, value); });
    }
  };
  add("gpus", [&](YamlWriter& w) { write_request(w, job); });
  add_if(job.queue != usual.queue, "queue", job.queue);
  add_if(job.priority != usual.priority, "priority", fmt::format("{}", job.priority));
  add_if(job.retries != 0, "retries", fmt::format("{}", job.retries));
  add_if(payload.time_limit != Millis{0}, "time", seconds(payload.time_limit));
  add_if(payload.grace != usual.payload.grace, "grace", seconds(payload.grace));
  add_if(payload.warning.signal != 0, "signal", format_warning(payload.warning));
  add("env", [&](YamlWriter& w) { write_env(w, payload); });
  add_if(true, "cwd", payload.cwd);
  add_if(!payload.work_dir.empty(), "work_dir", payload.work_dir);
  add_if(!payload.log.empty(), "log", payload.log);
  add_if(payload.linger, "linger", "true");
  add_if(job.start_at != Millis{0}, "start_at", exact_moment(job.start_at));
  add("rules", [&](YamlWriter& w) { map(w, "rules", job.request.rules); });
  return parts;
}

std::vector<Part> common_parts(const std::vector<JobSpec>& jobs) {
  if (jobs.size() < 2) {
    return {};
  }
  std::vector<Part> common = shared_parts(jobs.front());
  for (std::size_t i = 1; i < jobs.size() && !common.empty(); ++i) {
    const auto parts = shared_parts(jobs[i]);
    std::erase_if(common, [&](const Part& part) {
      return std::find(parts.begin(), parts.end(), part) == parts.end();
    });
  }
  return common;
}

/// `lines`, which begin at depth 1, at depth 2.
std::string deeper(std::string_view lines) {
  std::string out;
  for (std::size_t at = 0; at < lines.size();) {
    const auto end = lines.find('\n', at);
    const auto line = lines.substr(at, end - at);
    out += line.empty() ? "\n" : fmt::format("  {}\n", line);
    at = end + 1;
  }
  return out;
}

void write_job(std::string& out, const JobSpec& job, const std::vector<JobSpec>& jobs,
               const std::vector<Part>& common) {
  YamlWriter w(1);
  w.item();
  w.text("name", job.name);
  map(w, "params", job.payload.params);
  write_commands(w, job.payload.commands);
  write_after(w, job, jobs);
  if (job.payload.fingerprint != 0 && job.payload.fingerprint != fingerprint(job)) {
    w.key("fingerprint");
    w.raw(fmt::format(" \"{:016x}\"\n", job.payload.fingerprint));
  }
  out += w.take();
  for (const auto& part : shared_parts(job)) {
    if (std::find(common.begin(), common.end(), part) == common.end()) {
      out += deeper(part.second);
    }
  }
}

void write_queues(YamlWriter& w, const std::vector<QueueSpec>& queues) {
  if (queues.empty()) {
    return;
  }
  w.key("queues");
  w.open();
  for (const auto& queue : queues) {
    if (queue.rules.empty()) {
      w.number(queue.name, queue.limit);
      continue;
    }
    w.key(queue.name);
    w.open();
    w.number("limit", queue.limit);
    map(w, "rules", queue.rules);
    w.close();
  }
  w.close();
}

void write_rules(YamlWriter& w, const JobFile& file) {
  if (file.max_concurrent == 0 && file.resources.empty() && file.rules.empty()) {
    return;
  }
  w.key("rules");
  w.open();
  if (file.max_concurrent != 0) {
    w.number("max_concurrent", file.max_concurrent);
  }
  map(w, "resources", file.resources);
  for (const auto& [key, value] : file.rules) {
    w.text(key, value);
  }
  w.close();
}

void write_files(YamlWriter& w, const JobFile& file) {
  const auto& traits = file.traits;
  BatchTraits told = traits;
  told.pid = 0;  // of who submits it
  if (told == BatchTraits{} && file.derived.empty()) {
    return;
  }
  w.key("files");
  w.open();
  for (const auto& [key, value] : {std::pair{"dialect", traits.dialect},
                                   {"state_dir", traits.state_dir},
                                   {"log", traits.log},
                                   {"mode", traits.mode},
                                   {"config_file", traits.config_file}}) {
    if (!value.empty()) {
      w.text(key, value);
    }
  }
  if (traits.config_index != 0) {
    w.number("config_index", traits.config_index);
  }
  if (!file.derived.empty()) {
    w.key("derived");
    w.open();
    for (const auto& derived : file.derived) {
      w.text(derived.path, derived.content);
    }
    w.close();
  }
  w.close();
}

}  // namespace

std::string to_yaml(const JobFile& file) {
  YamlWriter w;
  w.number("version", 1);
  w.text("name", file.name);
  if (file.skip_done) {
    w.text("resume", "true");
  }
  write_rules(w, file);
  write_queues(w, file.queues);
  write_files(w, file);
  std::string out = w.take();
  const auto common = common_parts(file.jobs);
  if (!common.empty()) {
    out += "defaults:\n";
    for (const auto& part : common) {
      out += part.second;
    }
  }
  out += "jobs:\n";
  for (const auto& job : file.jobs) {
    write_job(out, job, file.jobs, common);
  }
  return out;
}

bool same_submission(const JobFile& a, const JobFile& b) {
  const auto same_job = [](const JobSpec& one, const JobSpec& other) {
    const bool same_after =
        one.after == other.after && one.after_index == other.after_index &&
        (one.after_kind == other.after_kind || (one.after.empty() && one.after_index.empty()));
    return one.name == other.name && one.queue == other.queue && one.priority == other.priority &&
           one.request == other.request && same_after && one.retries == other.retries &&
           one.start_at == other.start_at && one.payload == other.payload;
  };
  auto traits = a.traits;
  traits.pid = b.traits.pid;
  return a.name == b.name && a.queues == b.queues && a.max_concurrent == b.max_concurrent &&
         a.resources == b.resources && a.rules == b.rules &&
         std::ranges::equal(a.jobs, b.jobs, same_job) && traits == b.traits &&
         a.derived == b.derived && a.skip_done == b.skip_done;
}

}  // namespace berth
