#include "jobspec/job_writer.hpp"

#include <iterator>

#include <fmt/format.h>

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
  out += R"(}, "queues": {)";
  Commas commas(out);
  for (const auto& queue : file.queues) {
    append_json_string(commas.next(), queue.name);
    append(out, ": {}", queue.limit);
  }
  return out + R"(}, "jobs": [)";
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
  append(out, R"(, "priority": {}, "after": [)", job.priority);
  Commas commas(out);
  for (const auto index : job.after_index) {
    append_json_string(commas.next(), jobs[index].name);
  }
  append(out, R"(], "retries": {}, "time": )", job.retries);
  append_seconds(out, payload.time_limit);
  out += R"(, "grace": )";
  append_seconds(out, payload.grace);
  out += R"(, "env": )";
  append_environment(out, payload.extra_env);
  out += R"(, "cwd": )";
  append_json_string(out, payload.cwd);
  if (!payload.log.empty()) {
    out += R"(, "log": )";
    append_json_string(out, payload.log);
  }
  append(out, R"(, "linger": {})", payload.linger);
  if (request.min_free_memory) {
    append(out, R"(, "min_free_memory": {})", *request.min_free_memory);
  }
  if (request.max_utilization) {
    append(out, R"(, "max_utilization": {})", *request.max_utilization);
  }
  out += '}';
}

}  // namespace berth
