#include "gpu/nvml_topology.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <set>

#include "gpu/host_facts.hpp"
#include "gpu/pci_address.hpp"

namespace berth::nvml {
namespace {

/// What is at the other ends of a card's NVLinks: cards, or switches between cards.
std::set<PciAddress> nvlink_ends(const Library& library, Device device) {
  std::set<PciAddress> ends;
  if (library.nvlink_state == nullptr || library.nvlink_remote == nullptr) {
    return ends;
  }
  for (unsigned link = 0; link < kNvLinksMax; ++link) {
    int active = 0;
    const int code = library.nvlink_state(device, link, &active);
    if (code != success && link == 0) {
      break;  // a card without NVLink
    }
    PciInfo info{};
    if (code == success && active != 0 && library.nvlink_remote(device, link, &info) == success) {
      ends.insert({info.domain, info.bus, info.device, 0});
    }
  }
  return ends;
}

/// NumaNodeId would tell the node that some cards are by themselves, not the one they are near to.
std::optional<std::uint32_t> numa_node(const Library& library, const OpenCard& card) {
  constexpr unsigned kNodeScope = 0;
  constexpr unsigned kBits = 8 * sizeof(unsigned long);
  std::array<unsigned long, 16> nodes{};
  if (library.memory_affinity != nullptr &&
      library.memory_affinity(card.device, nodes.size(), nodes.data(), kNodeScope) == success) {
    int count = 0;
    std::uint32_t node = 0;
    for (unsigned word = 0; word < nodes.size(); ++word) {
      count += std::popcount(nodes[word]);
      if (nodes[word] != 0) {
        node = word * kBits + static_cast<unsigned>(std::countr_zero(nodes[word]));
      }
    }
    if (count == 1) {  // several: the driver does not know either
      return node;
    }
  }
  // A simulated card has no place on the true bus, where its address may be somebody else's.
  const auto address = parse_pci_address(card.pci_bus_id);
  return address && library.simulated_host_available == nullptr ? read_numa_node(*address)
                                                                : std::nullopt;
}

class Pairs {
 public:
  Pairs(const Library& library, const std::vector<OpenCard>& cards) : library_(library) {
    for (const OpenCard& card : cards) {
      const auto address = parse_pci_address(card.pci_bus_id);
      addresses_.push_back(address);
      ends_.push_back(nvlink_ends(library, card.device));
      if (address) {
        cards_.insert(*address);
      }
    }
  }

  [[nodiscard]] std::optional<GpuLink> link(const std::vector<OpenCard>& cards, std::size_t one,
                                            std::size_t other) const {
    if (reaches(one, other) || reaches(other, one) || share_switch(one, other)) {
      return GpuLink::nvlink;
    }
    int level = 0;
    if (library_.common_ancestor == nullptr ||
        library_.common_ancestor(cards[one].device, cards[other].device, &level) != success) {
      return std::nullopt;
    }
    return level <= kMeetAtSwitches ? GpuLink::pcie_switch
           : level <= kMeetAtNode   ? GpuLink::numa
                                    : GpuLink::system;
  }

 private:
  [[nodiscard]] bool reaches(std::size_t one, std::size_t other) const {
    return addresses_[other] && ends_[one].contains(*addresses_[other]);
  }
  /// Behind NVSwitches every card sees the switches instead of the other cards.
  [[nodiscard]] bool share_switch(std::size_t one, std::size_t other) const {
    return std::ranges::any_of(ends_[one], [&](const PciAddress& end) {
      return !cards_.contains(end) && ends_[other].contains(end);
    });
  }

  const Library& library_;
  std::vector<std::optional<PciAddress>> addresses_;
  std::vector<std::set<PciAddress>> ends_;
  std::set<PciAddress> cards_;
};

}  // namespace

std::map<std::string, Place> read_topology(const Library& library,
                                           const std::vector<OpenCard>& cards) {
  std::map<std::string, Place> places;
  const Pairs pairs(library, cards);
  for (std::size_t one = 0; one < cards.size(); ++one) {
    places[cards[one].uuid].numa_node = numa_node(library, cards[one]);
    for (std::size_t other = 0; other < one; ++other) {
      if (const auto link = pairs.link(cards, one, other)) {
        places[cards[one].uuid].links[cards[other].uuid] = *link;
        places[cards[other].uuid].links[cards[one].uuid] = *link;
      }
    }
  }
  return places;
}

}  // namespace berth::nvml
