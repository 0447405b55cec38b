// What gpulimit tells programs.

#include <boost/json.hpp>

#include "api/text.hpp"
#include "cli/describe.hpp"
#include "cli/gpulimit_view.hpp"

namespace berth::cli::gpulimit {
namespace {

namespace json = boost::json;

json::value seconds(const std::optional<Millis>& time) {
  return time ? json::value(static_cast<double>(time->count()) / 1000.0) : json::value(nullptr);
}

json::value text_or_null(const std::string& text) {
  return text.empty() ? json::value(nullptr) : json::value(to_utf8(text));
}

template <class T>
json::value or_null(const std::optional<T>& value) {
  return value ? json::value(*value) : json::value(nullptr);
}

json::object task_object(const JobView& task) {
  json::array gpus;
  for (const std::uint32_t index : task.gpu_indices) {
    gpus.push_back(index);
  }
  return {{"id", task.id},
          {"status", to_string(status_of(task))},
          {"run_times", task.attempts},
          {"priority", task.priority},
          {"gpu", std::move(gpus)},
          {"pwd", to_utf8(task.cwd)},
          {"cmds", to_utf8(task.command)},
          {"logpath", text_or_null(task.log)},
          {"reason", text_or_null(remark(task))},
          {"added", seconds(task.submitted_at)},
          {"started", seconds(task.started_at)},
          {"ended", seconds(task.ended_at)}};
}

json::value number_of(const std::string& value) {
  boost::system::error_code error;
  json::value parsed = json::parse(value, error);
  return error ? json::value(value) : parsed;
}

json::object parameters_object(const std::vector<ParameterValue>& values) {
  json::object out;
  for (const auto& [parameter, value] : values) {
    out[parameter->name] = number_of(value);
  }
  return out;
}

}  // namespace

std::string list_json(const std::vector<JobView>& tasks) {
  json::array out;
  for (const JobView& task : tasks) {
    out.push_back(task_object(task));
  }
  return json::serialize(out) + "\n";
}

std::string show_json(const JobDetail& task, const std::optional<std::uint32_t>& pid) {
  json::object out = task_object(task.job);
  out["pid"] = or_null(pid);
  json::array words;
  if (task.commands.size() == 1) {
    for (const std::string& word : task.commands[0].argv) {
      words.push_back(json::value(to_utf8(word)));
    }
  }
  out["argv"] = std::move(words);
  out["exit_code"] = or_null(task.job.exit_code);
  return json::serialize(out) + "\n";
}

std::string parameters_json(const std::vector<ParameterValue>& values) {
  return json::serialize(parameters_object(values)) + "\n";
}

std::string overview_json(const Overview& overview) {
  json::array gpus;
  for (const GpuView& gpu : overview.gpus) {
    gpus.push_back({{"id", gpu.index},
                    {"name", gpu.name},
                    {"total", or_null(gpu.memory_total)},
                    {"free", or_null(gpu.memory_free)},
                    {"used", or_null(gpu.memory_used)},
                    {"utilization", or_null(gpu.utilization)},
                    {"tasks", gpu.claims.size()}});
  }
  json::object tasks;
  for (std::size_t i = 0; i < kStatusCount; ++i) {
    tasks[to_string(static_cast<TaskStatus>(i))] = overview.counts[i];
  }
  const json::object memory{{"total", overview.memory.total}, {"free", overview.memory.available}};
  return json::serialize(json::object{{"memory", memory},
                                      {"gpus", std::move(gpus)},
                                      {"tasks", std::move(tasks)},
                                      {"parameters", parameters_object(overview.parameters)}}) +
         "\n";
}

}  // namespace berth::cli::gpulimit
