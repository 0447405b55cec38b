#include "jobspec/job_writer.hpp"

#include <iterator>

#include <fmt/format.h>

#include "base/moment.hpp"
#include "jobspec/fingerprint.hpp"
#include "jobspec/json_text.hpp"

namespace berth {
namespace {

template <class... T>
void append(std::string& out, fmt::format_string<T...> format, T&&... values) {
  fmt::format_to(std::back_inserter(out), format, std::forward<T>(values)...);
}

/// ", " between the items of a list or a map.
class Commas {
 public:
  explicit Commas(std::string& out) : out_(out) {}
  std::string& next() {
    if (!first_) {
      out_ += ", ";
    }
    first_ = false;
    return out_;
  }

 private:
  std::string& out_;
  bool first_ = true;
};

void append_texts(std::string& out, const std::vector<std::string>& texts) {
  out += '[';
  Commas commas(out);
  for (const auto& text : texts) {
    append_json_string(commas.next(), text);
  }
  out += ']';
}

void append_counts(std::string& out, const std::map<std::string, std::uint64_t>& counts) {
  out += '{';
  Commas commas(out);
  for (const auto& [name, count] : counts) {
    append_json_string(commas.next(), name);
    append(out, ": {}", count);
  }
  out += '}';
}

void append_rules(std::string& out, const Overrides& rules) {
  out += '{';
  Commas commas(out);
  for (const auto& [key, text] : rules) {
    append_json_string(commas.next(), key);
    out += ": ";
    append_json_string(out, text);
  }
  out += '}';
}

void append_commands(std::string& out, const std::vector<Command>& commands) {
  if (commands.size() == 1 && commands.front().shell) {
    return append_json_string(out, commands.front().argv.front());
  }
  out += '[';
  Commas commas(out);
  for (const auto& command : commands) {
    commas.next();
    if (command.shell) {
      append_json_string(out, command.argv.front());
    } else {
      append_texts(out, command.argv);
    }
  }
  out += ']';
}

void append_seconds(std::string& out, Millis time) {
  const auto millis = time.count();
  append(out, "{}", millis / 1000);
  if (millis % 1000 != 0) {
    append(out, ".{:03}", millis % 1000);
  }
}

void append_environment(std::string& out, const Environment& environment) {
  out += '{';
  Commas commas(out);
  for (const std::string_view entry : environment) {
    const auto equals = entry.find('=');
    append_json_string(commas.next(), entry.substr(0, equals));
    out += ": ";
    append_json_string(out, entry.substr(equals + 1));
  }
  out += '}';
}

/// A key and its text, unless that is empty.
void append_text(std::string& out, std::string_view key, std::string_view text) {
  if (!text.empty()) {
    append(out, R"(, "{}": )", key);
    append_json_string(out, text);
  }
}

void append_traits(std::string& out, const JobFile& file) {
  const auto& traits = file.traits;
  if (file.skip_done) {
    out += R"(, "resume": true)";
  }
  BatchTraits told = traits;
  told.pid = 0;  // of who submits it
  if (told == BatchTraits{} && file.derived.empty()) {
    return;
  }
  append(out, R"(, "files": {{"config_index": {})", traits.config_index);
  append_text(out, "dialect", traits.dialect);
  append_text(out, "state_dir", traits.state_dir);
  append_text(out, "log", traits.log);
  append_text(out, "mode", traits.mode);
  append_text(out, "config_file", traits.config_file);
  if (!file.derived.empty()) {
    out += R"(, "derived": {)";
    Commas commas(out);
    for (const auto& derived : file.derived) {
      append_json_string(commas.next(), derived.path);
      out += ": ";
      append_json_string(out, derived.content);
    }
    out += '}';
  }
  out += '}';
}

void append_ids(std::string& out, const std::vector<JobId>& ids) {
  out += R"(, "after_ids": [)";
  Commas commas(out);
  for (const JobId id : ids) {
    append(commas.next(), "{}", id.value);
  }
  out += ']';
}

}  // namespace

std::string gpu_count_text(GpuCount gpus) {
  return gpus.min == gpus.max ? fmt::format("{}", gpus.min)
                              : fmt::format("{}..{}", gpus.min, gpus.max);
}

std::string job_file_head(const JobFile& file) {
  std::string out = R"({"version": 1, "name": )";
  append_json_string(out, file.name);
  append(out, R"(, "rules": {{"max_concurrent": {}, "resources": )", file.max_concurrent);
  append_counts(out, file.resources);
  for (const auto& [key, text] : file.rules) {
    out += ", ";
    append_json_string(out, key);
    out += ": ";
    append_json_string(out, text);
  }
  out += R"(}, "queues": {)";
  Commas commas(out);
  for (const auto& queue : file.queues) {
    append_json_string(commas.next(), queue.name);
    if (queue.rules.empty()) {
      append(out, ": {}", queue.limit);
    } else {
      append(out, R"(: {{"limit": {}, "rules": )", queue.limit);
      append_rules(out, queue.rules);
      out += '}';
    }
  }
  out += '}';
  append_traits(out, file);
  return out + R"(, "jobs": [)";
}

void append_job(std::string& out, const JobSpec& job, std::span<const JobSpec> jobs,
                std::string_view from) {
  const auto& request = job.request;
  const auto& payload = job.payload;
  out += '{';
  if (!from.empty()) {
    out += R"("file": )";
    append_json_string(out, from);
    out += ", ";
  }
  out += R"("name": )";
  append_json_string(out, job.name);
  out += R"(, "run": )";
  append_commands(out, payload.commands);
  const bool exact = request.gpus.min == request.gpus.max;
  append(out, R"(, "gpus": {0}{1}{0})", exact ? "" : "\"", gpu_count_text(request.gpus));
  if (request.gpu_memory) {
    append(out, R"(, "gpu_memory": {})", *request.gpu_memory);
  }
  append(out, R"(, "cpus": {}, "memory": {}, "resources": )", request.cpus, request.memory);
  append_counts(out, request.resources);
  out += R"(, "queue": )";
  append_json_string(out, job.queue);
  append(out, R"(, "priority": {}, "{}": [)", job.priority,
         job.after_kind == After::any      ? "after_any"
         : job.after_kind == After::failed ? "after_failed"
                                           : "after");
  Commas commas(out);
  for (const auto index : job.after_index) {
    append_json_string(commas.next(), jobs[index].name);
  }
  out += ']';
  if (!job.after.empty()) {
    append_ids(out, job.after);
  }
  append(out, R"(, "retries": {}, "time": )", job.retries);
  append_seconds(out, payload.time_limit);
  out += R"(, "grace": )";
  append_seconds(out, payload.grace);
  out += R"(, "env": )";
  append_environment(out, payload.extra_env);
  if (payload.environment != nullptr) {
    out += R"(, "env_keep": )";
    append_texts(out, *payload.environment);
  }
  out += R"(, "cwd": )";
  append_json_string(out, payload.cwd);
  if (!payload.log.empty()) {
    out += R"(, "log": )";
    append_json_string(out, payload.log);
  }
  append_text(out, "work_dir", payload.work_dir);
  append(out, R"(, "linger": {})", payload.linger);
  if (!payload.params.empty()) {
    out += R"(, "params": )";
    append_rules(out, payload.params);
  }
  if (payload.fingerprint != 0 && payload.fingerprint != fingerprint(job)) {
    append(out, R"(, "fingerprint": "{:016x}")", payload.fingerprint);
  }
  if (payload.warning.signal != 0) {
    out += R"(, "signal": )";
    append_json_string(out, format_warning(payload.warning));
  }
  if (job.start_at != Millis{0}) {
    out += R"(, "start_at": )";
    append_json_string(out, exact_moment(job.start_at));
  }
  if (!request.rules.empty()) {
    out += R"(, "rules": )";
    append_rules(out, request.rules);
  }
  out += '}';
}

}  // namespace berth
