#pragma once
// Which CPUs are near to GPUs: as hwloc sees the machine where it is installed, else as the kernel
// tells.

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/pci_address.hpp"

namespace berth {

using CpuList = std::vector<unsigned>;  ///< ascending, without repetition

/// "0-3,8,10-11", as the kernel writes lists of CPUs; nullopt for anything else.
[[nodiscard]] std::optional<CpuList> parse_cpu_list(std::string_view text);

/// Looks at the machine at the first question, which takes some tens of milliseconds, and
/// remembers. Not thread-safe.
class CpuAffinity {
 public:
  struct Sources {
    std::string hwloc = "libhwloc.so.15";  ///< loaded at run time; may be missing
    std::string devices = "/sys/bus/pci/devices";
  };

  explicit CpuAffinity(Sources sources) : sources_(std::move(sources)) {}
  CpuAffinity() : CpuAffinity(Sources{}) {}

  /// The CPUs near to any of the cards, out of those that this process may use. Empty: not known,
  /// of one card at least, or none is allowed; then nothing should be bound.
  [[nodiscard]] CpuList near(const std::vector<std::string>& pci_bus_ids);

 private:
  [[nodiscard]] const CpuList& near(const PciAddress& address);

  Sources sources_;
  std::optional<std::map<PciAddress, CpuList>> known_;  ///< empty lists: asked for, not known
};

}  // namespace berth
