#pragma once
// The port through which GPUs are seen, and NVIDIA's library behind it.
//
// A call into a driver can hang for ever and cannot be cancelled, so the daemon uses a probe only
// through a process of its own: see probe_wire.hpp.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "core/gpu.hpp"

namespace berth {

/// One look at the GPUs, with what is needed to tell whose the processes are.
struct ProbeReply {
  GpuSample sample;  ///< `attempt` of its processes is left open
  /// For each process of the sample: its parent, grandparent, and so on up to pid 1.
  std::map<std::uint32_t, std::vector<std::uint32_t>> ancestors;

  friend bool operator==(const ProbeReply&, const ProbeReply&) = default;
};

/// Not thread-safe.
class Probe {
 public:
  virtual ~Probe() = default;
  /// A card that cannot be read is reported with its `trouble`, beside the healthy ones; an error
  /// means that nothing is known of any card. May block for as long as the driver does.
  [[nodiscard]] virtual Result<ProbeReply> sample() = 0;
};

/// Loads and initialises NVML; an empty path means the driver's own libnvidia-ml.so.1.
///
/// The library stays initialised, as initialising wakes every sleeping card. After repeated
/// failures `sample` starts it anew. A card that once was there and is no longer reported keeps its
/// place, with `trouble`; one that could not be read from the start has the uuid "unknown-<index>".
///
/// XIDs are those reported since the sample before, so the first sample has none. Links and NUMA
/// nodes are read when a card is seen for the first time.
[[nodiscard]] Result<std::unique_ptr<Probe>> open_nvml_probe(const std::string& library_path);

}  // namespace berth
