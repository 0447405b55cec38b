#include "daemon/metrics.hpp"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "base/utf8.hpp"
#include "core/health.hpp"

namespace berth {

void Histogram::add(std::chrono::duration<double> time) {
  for (std::size_t i = 0; i < kBounds.size(); ++i) {
    counts_.at(i) += time.count() <= kBounds.at(i) ? 1 : 0;
  }
  ++counts_.back();
  sum_ += time.count();
}

namespace {

constexpr double kMillis = 1'000;

std::string label(std::string_view value) {
  std::string out;
  for (const char c : value) {
    if (c == '\n') {
      out += "\\n";
      continue;
    }
    if (c == '\\' || c == '"') {
      out += '\\';
    }
    out += c;
  }
  return to_utf8(out);
}

class Page {
 public:
  void begin(std::string_view name, std::string_view type, std::string_view help) {
    name_ = name;
    text_ += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
  }
  template <class T>
  void value(T number, const std::string& labels = {}) {
    line(name_, number, labels);
  }
  template <class T>
  void line(std::string_view name, T number, const std::string& labels) {
    text_ += labels.empty() ? fmt::format("{} {}\n", name, number)
                            : fmt::format("{}{{{}}} {}\n", name, labels, number);
  }
  void histogram(std::string_view name, std::string_view help, const Histogram& times) {
    begin(name, "histogram", help);
    const std::string bucket = fmt::format("{}_bucket", name);
    for (std::size_t i = 0; i < Histogram::kBounds.size(); ++i) {
      line(bucket, times.up_to(i), fmt::format("le=\"{}\"", Histogram::kBounds.at(i)));
    }
    line(bucket, times.count(), "le=\"+Inf\"");
    line(fmt::format("{}_sum", name), times.sum(), {});
    line(fmt::format("{}_count", name), times.count(), {});
  }
  [[nodiscard]] std::string take() { return std::move(text_); }

 private:
  std::string text_;
  std::string_view name_;
};

/// One value of every card that tells it.
template <class Value>
void of_cards(Page& page, const std::vector<GpuView>& gpus, std::string_view name,
              std::string_view help, const Value& value) {
  page.begin(name, "gauge", help);
  for (const GpuView& gpu : gpus) {
    if (const auto number = value(gpu)) {
      page.value(*number, fmt::format("gpu=\"{}\",uuid=\"{}\"", gpu.index, label(gpu.uuid)));
    }
  }
}

template <class T>
std::optional<double> scaled(const std::optional<T>& value, double unit) {
  return value ? std::optional(static_cast<double>(*value) / unit) : std::nullopt;
}

void add_jobs(Page& page, const MetricsFacts& facts, const LatencyMeter& meter) {
  page.begin("berth_jobs", "gauge", "Jobs in each state, finished ones that are kept included");
  for (std::size_t i = 0; i < facts.counts.size(); ++i) {
    page.value(facts.counts.at(i),
               fmt::format("state=\"{}\"", to_string(static_cast<JobState>(i))));
  }
  page.begin("berth_jobs_finished_total", "counter",
             "Jobs that have ended since the daemon began, by state and class of failure");
  for (const auto& [how, count] : meter.finished()) {
    page.value(count, fmt::format("state=\"{}\",class=\"{}\"", to_string(how.first),
                                  how.second ? to_string(*how.second) : "none"));
  }
  page.begin("berth_queue_waiting", "gauge", "Jobs in the line of a queue");
  for (const QueueDetail& queue : facts.queues) {
    page.value(queue.queue.waiting.value_or(0),
               fmt::format("queue=\"{}\"", label(queue.queue.name)));
  }
  page.begin("berth_queue_running", "gauge", "Jobs of a queue that run");
  for (const QueueDetail& queue : facts.queues) {
    page.value(queue.queue.running, fmt::format("queue=\"{}\"", label(queue.queue.name)));
  }
}

void add_gpus(Page& page, const std::vector<GpuView>& gpus) {
  constexpr double kPercent = 100;
  constexpr double kOne = 1;
  of_cards(page, gpus, "berth_gpu_memory_total_bytes", "Memory of the card",
           [](const GpuView& gpu) { return gpu.memory_total; });
  of_cards(page, gpus, "berth_gpu_memory_used_bytes", "Memory in use, by whomever",
           [](const GpuView& gpu) { return gpu.memory_used; });
  of_cards(page, gpus, "berth_gpu_utilization_ratio", "Part of the time that the card works",
           [](const GpuView& gpu) { return scaled(gpu.utilization, kPercent); });
  of_cards(page, gpus, "berth_gpu_temperature_celsius", "Temperature",
           [](const GpuView& gpu) { return scaled(gpu.temperature, kOne); });
  of_cards(page, gpus, "berth_gpu_power_watts", "Power drawn",
           [](const GpuView& gpu) { return scaled(gpu.power_mw, kMillis); });
  of_cards(page, gpus, "berth_gpu_claims", "Attempts that the card was promised to",
           [](const GpuView& gpu) { return std::optional(gpu.claims.size()); });
  of_cards(page, gpus, "berth_gpu_usable", "1 unless the card is in trouble, drained or unknown",
           [](const GpuView& gpu) {
             const bool usable =
                 gpu.state != "trouble" && gpu.state != "drained" && gpu.state != "unknown";
             return std::optional(usable ? 1 : 0);
           });
}

}  // namespace

std::string format_metrics(const MetricsFacts& facts, const LatencyMeter& meter) {
  Page page;
  page.begin("berth_info", "gauge", "The version");
  page.value(1, fmt::format("version=\"{}\"", BERTH_VERSION));
  page.begin("berth_uptime_seconds", "gauge", "How long the daemon has been running");
  page.value(static_cast<double>(facts.uptime.count()) / kMillis);
  add_jobs(page, facts, meter);
  add_gpus(page, facts.gpus);
  page.begin("berth_probe_age_seconds", "gauge",
             "Since the last look at the cards that was answered");
  if (facts.probe_age) {
    page.value(static_cast<double>(facts.probe_age->count()) / kMillis);
  }
  page.begin("berth_probe_failed", "gauge", "1 while the driver does not answer");
  page.value(facts.probe_failed ? 1 : 0);
  page.begin("berth_space_low", "gauge", "1 while the disk is too full to start anything");
  page.value(facts.low_space ? 1 : 0);
  page.histogram("berth_decision_seconds", "How long decisions take", meter.decisions());
  page.histogram("berth_commit_seconds", "How long commits take", meter.commits());
  page.begin("berth_loop_tasks_total", "counter", "Tasks that the daemon's loop has run");
  page.value(facts.loop.tasks);
  page.begin("berth_loop_slow_tasks_total", "counter",
             "Those that took more than 5 ms of processor time");
  page.value(facts.loop.over_limit);
  page.begin("berth_live_streams", "gauge", "Open streams of events");
  page.value(facts.streams);
  return page.take();
}

HealthView judge_health(const State& state, const std::vector<std::string>& problems,
                        const std::optional<Error>& broken) {
  HealthView health;
  bool failing = false;
  if (broken) {
    failing = true;
    health.reasons.push_back({"store", broken->message});
  }
  if (state.low_space) {
    failing = true;
    health.reasons.push_back({"space", state.space_detail});
  }
  if (!state.probe_error.empty()) {
    health.reasons.push_back({"probe", state.probe_error});
  }
  for (const Gpu& gpu : state.gpus) {
    if (!gpu.facts.trouble.empty()) {
      health.reasons.push_back(
          {"gpu", fmt::format("GPU {}: {}", gpu.facts.index, gpu.facts.trouble)});
      continue;
    }
    if (const auto drain = state.drains.find(gpu.facts.uuid);
        drain != state.drains.end() && is_sickness(drain->second)) {
      health.reasons.push_back(
          {"gpu", fmt::format("GPU {0} is out of use: {1}; berth resume --gpu {0} gives it back",
                              gpu.facts.index, drain->second)});
    } else if (!gpu.known && state.probe_error.empty()) {  // or no card is known to be there
      health.reasons.push_back({"gpu", fmt::format("GPU {} is gone", gpu.facts.index)});
    }
  }
  for (const std::string& problem : problems) {
    health.reasons.push_back({"settings", problem});
  }
  health.status = failing ? "failing" : health.reasons.empty() ? "ok" : "degraded";
  return health;
}

}  // namespace berth
