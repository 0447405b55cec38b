#pragma once
// GPUs as a probe saw them. Unknown is nullopt, never zero.

#include <cstdint>
#include <map>
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
  std::optional<Millis> age;                 ///< since its start
  AttemptId attempt;                         ///< ours, if not none

  friend bool operator==(const GpuProcess&, const GpuProcess&) = default;
};

/// How two cards are connected, the closest first.
enum class GpuLink : std::uint8_t {
  nvlink,
  pcie_switch,  ///< without going through the host bridge
  numa,         ///< through the host bridge, on one NUMA node
  system,       ///< between NUMA nodes, or nobody knows
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
  std::optional<std::uint32_t> busy;         ///< percent, mean of the last seconds' fast samples
  std::optional<std::uint32_t> temperature;  ///< Celsius
  std::optional<std::uint32_t> power_mw;
  std::optional<std::vector<GpuProcess>> processes;
  std::optional<std::uint64_t> ecc_uncorrected;  ///< errors since the driver was loaded
  std::vector<std::uint32_t> xids;               ///< reported since the sample before
  std::optional<std::uint32_t> numa_node;
  std::map<std::string, GpuLink> links;  ///< by the other card's UUID; absent: nobody knows
  std::string trouble;  ///< why the card cannot be used ("GPU is lost"); empty: healthy
  bool lost = false;    ///< with `trouble`: it is gone, or must be reset, and not merely unreadable

  friend bool operator==(const GpuFacts&, const GpuFacts&) = default;
};

/// Stands for the UUID of a card that could not be opened and that nobody has seen before.
[[nodiscard]] inline std::string stand_in_uuid(std::uint32_t index) {
  return "unknown-" + std::to_string(index);
}

/// What one look at all GPUs gave. Only a sample that *began* after an attempt ended can show
/// that its card is free again.
struct GpuSample {
  Millis begun_mono{0};
  std::vector<GpuFacts> gpus;
  std::string driver;                   ///< "NVML 550.54", for people
  std::optional<Bytes> host_available;  ///< memory that programs can still have

  friend bool operator==(const GpuSample&, const GpuSample&) = default;
};

}  // namespace berth
