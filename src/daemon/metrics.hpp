#pragma once
// The instance in numbers, for Prometheus, and whether it is well.

#include <optional>
#include <string>
#include <vector>

#include "api/resources.hpp"
#include "api/views.hpp"
#include "core/state.hpp"
#include "daemon/loop.hpp"
#include "daemon/meter.hpp"
#include "store/rows.hpp"

namespace berth {

struct MetricsFacts {
  Millis uptime{0};
  StateCounts counts{};
  std::vector<GpuView> gpus;
  std::vector<QueueDetail> queues;
  std::optional<Millis> probe_age;
  bool probe_failed = false;
  bool low_space = false;
  LoopStats loop;
  std::size_t streams = 0;
};

/// The text format of Prometheus, version 0.0.4.
[[nodiscard]] std::string format_metrics(const MetricsFacts& facts, const LatencyMeter& meter);

/// `broken`: the engine has given up. What somebody has chosen, such as a pause, is no illness.
[[nodiscard]] HealthView judge_health(const State& state, const std::vector<std::string>& problems,
                                      const std::optional<Error>& broken);

}  // namespace berth
