#pragma once
// GPUs as a probe saw them. Unknown is nullopt, never zero.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "base/time.hpp"
#include "base/units.hpp"

namespace berth {

struct GpuProcess {
  std::uint32_t pid = 0;
  std::uint64_t start_time = 0;      ///< clock ticks since boot; with pid it names a process
  std::optional<std::uint32_t> uid;  ///< nullopt: gone or unreadable
  std::string name;
  std::optional<Bytes> memory;
  std::optional<std::uint32_t> utilization;  ///< percent of the GPU
  AttemptId attempt;                         ///< ours, if not none

  friend bool operator==(const GpuProcess&, const GpuProcess&) = default;
};

/// One GPU in one sample.
struct GpuFacts {
  std::string uuid;
  std::uint32_t index = 0;
  std::string name;
  std::string pci_bus_id;
  std::optional<Bytes> memory_total;
  std::optional<Bytes> memory_used;
  std::optional<Bytes> memory_free;
  std::optional<std::uint32_t> utilization;  ///< percent
  std::optional<std::uint32_t> temperature;  ///< Celsius
  std::optional<std::uint32_t> power_mw;
  std::optional<std::vector<GpuProcess>> processes;
  std::string trouble;  ///< why the card cannot be used ("GPU is lost"); empty: healthy

  friend bool operator==(const GpuFacts&, const GpuFacts&) = default;
};

/// What one look at all GPUs gave. Only a sample that *began* after an attempt ended can show
/// that its card is free again.
struct GpuSample {
  Millis begun_mono{0};
  std::vector<GpuFacts> gpus;
  std::string driver;  ///< "NVML 550.54", for people

  friend bool operator==(const GpuSample&, const GpuSample&) = default;
};

}  // namespace berth
