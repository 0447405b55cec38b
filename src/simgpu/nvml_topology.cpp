// Exports: where cards are in the machine, and what is between them. One export is not NVML's: the
// host memory that the simulation pretends to have, by which the library also shows what it is.

#include <cstring>

#include "simgpu/nvml_session.hpp"

namespace berth::simgpu {
namespace {

constexpr unsigned kNvLinksMax = 18;

/// The cards at the other ends of a card's NVLinks, in order of the links.
Outcome<std::vector<Card>> nvlink_peers(const Directory& directory, const Card& card) {
  const auto driver = directory.driver();
  const auto cards = directory.cards();
  if (!driver || !cards) {
    return std::unexpected(driver ? cards.error() : driver.error());
  }
  std::vector<Card> peers;
  for (const Card& other : *cards) {
    if (other.index != card.index && link_between(*driver, card, other) == Link::nvlink) {
      peers.push_back(other);
    }
  }
  return peers;
}

/// Runs `body(peers)` for a card that has NVLinks, and a link that it can have.
template <class Body>
int with_nvlinks(const NvmlDevice* device, unsigned link, const void* out, Body&& body) noexcept {
  return with_card(device, [&](const Directory& directory, const Card& card) -> int {
    const auto peers = nvlink_peers(directory, card);
    if (!peers || peers->empty()) {
      return peers ? kNotSupported : kUnknown;
    }
    return out == nullptr || link >= kNvLinksMax ? kInvalidArgument : body(*peers);
  });
}

int tell_remote(const NvmlDevice* device, unsigned link, void* out, std::size_t size) noexcept {
  return with_nvlinks(device, link, out, [&](const std::vector<Card>& peers) -> int {
    if (link >= peers.size()) {
      return kInvalidArgument;
    }
    const NvmlPciInfo info = pci_info(peers[link]);
    std::memcpy(out, &info, size);
    return kSuccess;
  });
}

/// NVLink is no part of the PCI tree: such cards are taken to share a switch.
std::optional<int> ancestor_level(Link link) {
  switch (link) {
    case Link::nvlink:
    case Link::pcie_switch:
      return 10;
    case Link::numa:
      return 40;
    case Link::system:
      return 50;
    case Link::unknown:
      break;
  }
  return std::nullopt;
}

}  // namespace
}  // namespace berth::simgpu

using namespace berth::simgpu;  // NOLINT: the exports below are of the global namespace by nature

SIMGPU_EXPORT int nvmlDeviceGetTopologyCommonAncestor(NvmlDevice* one, NvmlDevice* other,
                                                      int* level) {
  return with_card(one, [&](const Directory& directory, const Card& card) -> int {
    return with_card(other, [&](const Directory&, const Card& second) -> int {
      const auto driver = directory.driver();
      if (level == nullptr || !driver) {
        return level == nullptr ? kInvalidArgument : kUnknown;
      }
      const auto found = card.index == second.index
                             ? std::optional(0)
                             : ancestor_level(link_between(*driver, card, second));
      *level = found.value_or(0);
      return found ? kSuccess : kNotSupported;
    });
  });
}

SIMGPU_EXPORT int nvmlDeviceGetNvLinkState(NvmlDevice* device, unsigned link, int* active) {
  return with_nvlinks(device, link, active, [&](const std::vector<Card>& peers) -> int {
    *active = link < peers.size() ? 1 : 0;
    return kSuccess;
  });
}
SIMGPU_EXPORT int nvmlDeviceGetNvLinkRemotePciInfo(NvmlDevice* device, unsigned link, void* out) {
  return tell_remote(device, link, out, kPciInfoOldSize);
}
SIMGPU_EXPORT int nvmlDeviceGetNvLinkRemotePciInfo_v2(NvmlDevice* device, unsigned link,
                                                      NvmlPciInfo* out) {
  return tell_remote(device, link, out, sizeof *out);
}

SIMGPU_EXPORT int nvmlDeviceGetMemoryAffinity(NvmlDevice* device, unsigned words,
                                              unsigned long* nodes, unsigned) {
  constexpr unsigned kBits = 8 * sizeof(unsigned long);
  return with_card(device, [&](const Directory&, const Card& card) -> int {
    if (nodes == nullptr || words == 0) {
      return kInvalidArgument;
    }
    const auto node = card.numa.resolve(0);
    if (!node || *node >= words * kBits) {
      return node ? kInsufficientSize : kNotSupported;
    }
    std::memset(nodes, 0, words * sizeof *nodes);
    nodes[*node / kBits] = 1UL << (*node % kBits);
    return kSuccess;
  });
}

SIMGPU_EXPORT int berthSimulatedHostAvailable(U64* bytes) {
  return with_driver([&](const Directory&, const Driver& driver) -> int {
    if (bytes == nullptr || !driver.host_available) {
      return bytes == nullptr ? kInvalidArgument : kNotSupported;
    }
    *bytes = *driver.host_available;
    return kSuccess;
  });
}
