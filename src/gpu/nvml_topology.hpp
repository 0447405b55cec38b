#pragma once
// Where cards are in the machine, and what is between them.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/gpu.hpp"
#include "gpu/nvml_library.hpp"

namespace berth::nvml {

/// A card that can be asked.
struct OpenCard {
  Device device = nullptr;
  std::string uuid;
  std::string pci_bus_id;

  friend bool operator==(const OpenCard&, const OpenCard&) = default;
};

struct Place {
  std::optional<std::uint32_t> numa_node;
  std::map<std::string, GpuLink> links;  ///< by the other card's UUID; absent: nobody knows
};

/// By UUID. Asks for every pair of cards, so callers keep the answer for as long as the cards stay.
[[nodiscard]] std::map<std::string, Place> read_topology(const Library& library,
                                                         const std::vector<OpenCard>& cards);

}  // namespace berth::nvml
