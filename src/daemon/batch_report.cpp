#include "daemon/batch_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>

#include <algorithm>
#include <array>
#include <ctime>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "api/views.hpp"
#include "base/utf8.hpp"

namespace berth {
namespace {

namespace json = boost::json;

constexpr std::size_t kCommandInLog = 300;

/// Whole numbers as people write them, not as 2E1.
json::value gib_of(std::optional<Bytes> memory) {
  if (!memory) {
    return nullptr;
  }
  return *memory % kGiB == 0
             ? json::value(*memory / kGiB)
             : json::value(static_cast<double>(*memory) / static_cast<double>(kGiB));
}

enum class TaskStatus : std::uint8_t { pending, running, completed, failed };

TaskStatus status_of(const JobRow& row) {
  switch (row.state) {
    case JobState::queued:
      return TaskStatus::pending;
    case JobState::paused:
      return row.ended || !row.last_attempt ? TaskStatus::pending : TaskStatus::running;
    case JobState::running:
      return TaskStatus::running;
    case JobState::succeeded:
      return TaskStatus::completed;
    case JobState::failed:
    case JobState::killed:
    case JobState::cancelled:
      break;
  }
  return TaskStatus::failed;
}

std::string_view word_of(TaskStatus status) {
  constexpr std::array<std::string_view, 4> kWords{"pending", "running", "completed", "failed"};
  return kWords[static_cast<std::size_t>(status)];
}

struct Counts {
  std::array<std::uint64_t, 4> of{};

  void add(TaskStatus status) { ++of[static_cast<std::size_t>(status)]; }
  [[nodiscard]] std::uint64_t operator[](TaskStatus status) const {
    return of[static_cast<std::size_t>(status)];
  }
  [[nodiscard]] std::uint64_t total() const { return of[0] + of[1] + of[2] + of[3]; }
  void write(json::object& out) const {
    for (const TaskStatus status :
         {TaskStatus::pending, TaskStatus::running, TaskStatus::completed, TaskStatus::failed}) {
      out[fmt::format("{}_tasks", word_of(status))] = (*this)[status];
    }
    out["total_tasks"] = total();
  }
};

Counts count(const BatchReport& batch) {
  Counts counts;
  for (const BatchJob& job : batch.jobs) {
    counts.add(status_of(job.row));
  }
  return counts;
}

std::tm local_time(Millis wall) {
  const auto seconds = static_cast<std::time_t>(wall.count() / 1000);
  std::tm parts{};
  ::localtime_r(&seconds, &parts);
  return parts;
}

std::string clock_text(Millis wall) {
  const std::tm t = local_time(wall);
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02}", t.tm_year + 1900, t.tm_mon + 1,
                     t.tm_mday, t.tm_hour, t.tm_min, t.tm_sec);
}

json::value moment(std::optional<Millis> wall) {
  return wall ? json::value(clock_text(*wall)) : json::value();
}

json::array numbers(const std::vector<std::uint32_t>& indices) {
  json::array out;
  for (const std::uint32_t index : indices) {
    out.emplace_back(index);
  }
  return out;
}

json::object process(const BatchJob& job, std::uint64_t index) {
  const JobRow& row = job.row;
  const TaskStatus status = status_of(row);
  json::object out;
  out["index"] = index;
  out["job_id"] = row.id.value;
  out["name"] = to_utf8(row.name);
  json::array commands;
  for (const Command& command : job.commands) {
    commands.emplace_back(to_utf8(command.shell && !command.argv.empty()
                                      ? command.argv.front()
                                      : display_commands({command})));
  }
  out["commands"] = std::move(commands);
  out["memory_gb"] = gib_of(row.request.gpu_memory);
  out["gpu_count"] = row.request.gpus.min;
  out["status"] = word_of(status);
  out["gpus"] = status == TaskStatus::pending ? json::array() : numbers(row.gpu_indices);
  out["retry_count"] = row.attempts > 0 ? row.attempts - 1 : 0;
  out["started_at"] = moment(row.started);
  out["finished_at"] = moment(row.ended);
  return out;
}

struct QueueReport {
  Counts counts;
  const BatchJob* current = nullptr;
  std::string last_error;
  Millis last_error_at{-1};
  json::array processes;

  void add(const BatchJob& job) {
    const TaskStatus status = status_of(job.row);
    counts.add(status);
    processes.push_back(process(job, processes.size()));
    if (status == TaskStatus::running) {
      current = &job;
    }
    // A job that waits to be tried again has a message, too.
    const Millis at = job.row.ended.value_or(job.row.started.value_or(Millis{0}));
    const bool told = job.row.failure || status == TaskStatus::failed;
    if (told && !job.row.message.empty() && at >= last_error_at) {
      last_error = to_utf8(job.row.message);
      last_error_at = at;
    }
  }
  [[nodiscard]] json::object take() && {
    json::object out;
    counts.write(out);
    out["current_task"] = current == nullptr
                              ? json::value()
                              : json::value(to_utf8(display_commands(current->commands)));
    out["current_gpu"] =
        current == nullptr ? json::value() : json::value(numbers(current->row.gpu_indices));
    out["last_error"] = last_error.empty() ? json::value() : json::value(last_error);
    out["processes"] = std::move(processes);
    return out;
  }
};

const BatchJob* find_job(const BatchReport& batch, JobId id) {
  const auto it =
      std::ranges::lower_bound(batch.jobs, id, {}, [](const BatchJob& job) { return job.row.id; });
  return it != batch.jobs.end() && it->row.id == id ? &*it : nullptr;
}

/// On one line, whatever somebody's message contains.
std::string one_line(std::string_view text) {
  std::string out = to_utf8(text);
  std::ranges::replace_if(out, [](char c) { return static_cast<unsigned char>(c) < 0x20; }, ' ');
  return out;
}

std::string line(Millis wall, std::string_view level, std::string_view what) {
  return fmt::format("{},{:03} - {} - {}\n", clock_text(wall), wall.count() % 1000, level,
                     one_line(what));
}

/// What has happened to a job, where the word of the history is not one for people.
std::string_view event_words(std::string_view kind) {
  constexpr auto kWords = std::to_array<std::pair<std::string_view, std::string_view>>({
      {"succeeded", "ended normally"},
      {"kill_requested", "told to end"},
      {"requeued", "waits again"},
      {"revoked", "did not start"},
      {"revived", "is run again"},
      {"expedited", "sent before all others"},
      {"gives_way", "gives way"},
      {"parked", "stands still"},
      {"unparked", "goes on"},
      {"stray", "is on a card it was not given"},
  });
  const auto* const found = std::ranges::find(kWords, kind, [](const auto& w) { return w.first; });
  return found != kWords.end() ? found->second : kind;
}

std::string gpus_text(const std::vector<std::uint32_t>& indices) {
  return indices.empty() ? "without a GPU" : fmt::format("on GPU {}", fmt::join(indices, ","));
}

}  // namespace

std::string_view queue_id(std::string_view queue) {
  const auto slash = queue.rfind('/');
  return slash == std::string_view::npos ? queue : queue.substr(slash + 1);
}

bool has_ended(const BatchReport& batch) {
  const Counts counts = count(batch);
  return counts[TaskStatus::pending] == 0 && counts[TaskStatus::running] == 0;
}

std::string state_json(const BatchReport& batch, Millis wall) {
  const Counts counts = count(batch);
  json::object out;
  out["pid"] = batch.traits.pid;
  out["mode"] = batch.traits.mode;
  out["config_index"] = batch.traits.config_index;
  out["config_file"] = to_utf8(batch.traits.config_file);
  out["batch"] = batch.id.value;
  out["state"] = !has_ended(batch)                 ? "running"
                 : counts[TaskStatus::failed] == 0 ? "completed"
                                                   : "failed";
  counts.write(out);
  std::set<std::uint32_t> used;
  std::map<std::string, QueueReport> queues;
  json::object assignments;
  for (const BatchJob& job : batch.jobs) {
    const std::string queue = to_utf8(queue_id(job.row.queue));
    queues[queue].add(job);
    if (status_of(job.row) == TaskStatus::running) {
      for (const std::uint32_t gpu : job.row.gpu_indices) {
        used.insert(gpu);
        assignments[fmt::format("{}", gpu)] = queue;
      }
    }
  }
  out["gpus_used"] = numbers({used.begin(), used.end()});
  out["gpu_assignments"] = std::move(assignments);
  json::object& by_id = out["queues"].emplace_object();
  for (auto& [id, queue] : queues) {
    by_id[id] = std::move(queue).take();
  }
  out["updated_at"] = clock_text(wall);
  return json::serialize(out) + "\n";
}

std::string log_line(const BatchReport& batch, const HistoryRow& row) {
  const BatchJob* job = find_job(batch, row.job);
  if (job == nullptr) {
    return row.detail.empty() && row.kind != "submitted"
               ? std::string()
               : line(row.wall, "INFO", fmt::format("{} {}", row.kind, row.detail));
  }
  const std::string who = fmt::format("queue {}: job {}", queue_id(job->row.queue), row.job.value);
  if (row.kind == "started") {
    const auto attempt = batch.attempts.find(row.attempt);
    const bool known = attempt != batch.attempts.end();
    const std::uint32_t number = known ? attempt->second.number : job->row.attempts;
    return line(row.wall, "INFO",
                fmt::format("{} started {}{}: {}", who,
                            gpus_text(known ? attempt->second.gpu_indices : job->row.gpu_indices),
                            number > 1 ? fmt::format(" (retry {})", number - 1) : std::string(),
                            display_commands(job->commands, kCommandInLog)));
  }
  if (row.kind == "succeeded") {
    return line(row.wall, "INFO", fmt::format("{} {}", who, event_words(row.kind)));
  }
  constexpr std::array<std::string_view, 6> kBad{"failed",  "retried",   "killed",
                                                 "revoked", "cancelled", "stray"};
  const bool bad = std::ranges::find(kBad, row.kind) != kBad.end();
  const std::string_view level = row.kind == "failed" ? "ERROR" : bad ? "WARNING" : "INFO";
  return line(row.wall, level,
              row.detail.empty()
                  ? fmt::format("{} {}", who, event_words(row.kind))
                  : fmt::format("{} {}: {}", who, event_words(row.kind), row.detail));
}

std::string status_line(const BatchReport& batch, Millis wall) {
  const Counts counts = count(batch);
  std::map<std::string, bool> busy;
  for (const BatchJob& job : batch.jobs) {
    bool& is_busy = busy[std::string(queue_id(job.row.queue))];
    is_busy = is_busy || status_of(job.row) == TaskStatus::running;
  }
  std::vector<std::string> busy_ones;
  std::vector<std::string> idle_ones;
  for (const auto& [id, is_busy] : busy) {
    (is_busy ? busy_ones : idle_ones).push_back(id);
  }
  const auto list = [](const std::vector<std::string>& ids) {
    return ids.empty() ? std::string("none") : fmt::format("{}", fmt::join(ids, ", "));
  };
  return line(wall, "INFO",
              fmt::format("status: pending {}, running {}, completed {}, failed {}; busy queues: "
                          "{}; idle queues: {}",
                          counts[TaskStatus::pending], counts[TaskStatus::running],
                          counts[TaskStatus::completed], counts[TaskStatus::failed],
                          list(busy_ones), list(idle_ones)));
}

}  // namespace berth
