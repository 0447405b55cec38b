// Machines that the simulated library does not show: switches of NVLink, drivers that know little.

#include "gpu/nvml_topology.hpp"

#include <gtest/gtest.h>

#include "gpu/nvml_xids.hpp"

namespace berth::nvml {
namespace {

/// Cards whose handles are their numbers plus one, on the buses of those numbers.
Device handle(std::uintptr_t card) {
  return reinterpret_cast<Device>(card + 1);  // NOLINT(performance-no-int-to-ptr): opaque
}
unsigned number(Device device) {
  return static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(device)) - 1;
}

std::vector<OpenCard> cards(unsigned count) {
  std::vector<OpenCard> all;
  for (unsigned card = 0; card < count; ++card) {
    all.push_back({handle(card), "GPU-" + std::to_string(card),
                   "00000000:0" + std::to_string(card) + ":00.0"});
  }
  return all;
}

int one_active_link(Device, unsigned link, int* active) {
  *active = link == 2 ? 1 : 0;
  return success;
}

TEST(NvmlTopology, CardsAtOneNvSwitchAreLinked) {
  Library library;
  library.nvlink_state = &one_active_link;
  // 0 and 1 at one switch, 2 at another.
  library.nvlink_remote = [](Device device, unsigned, PciInfo* info) -> int {
    info->bus = number(device) < 2 ? 0xc1 : 0xc2;
    return success;
  };
  const auto places = read_topology(library, cards(3));
  EXPECT_EQ(places.at("GPU-0").links, (std::map<std::string, GpuLink>{{"GPU-1", GpuLink::nvlink}}));
  EXPECT_TRUE(places.at("GPU-2").links.empty()) << "nobody tells how else they are connected";
  EXPECT_EQ(places.at("GPU-0").numa_node, std::nullopt);
}

TEST(NvmlTopology, TwoCardsLinkedToAThirdAreNotLinkedToEachOther) {
  Library library;
  library.nvlink_state = &one_active_link;
  library.nvlink_remote = [](Device device, unsigned, PciInfo* info) -> int {
    info->bus = 1;
    return number(device) == 1 ? not_supported : success;
  };
  library.common_ancestor = [](Device, Device, int* level) -> int {
    *level = 30;
    return success;
  };
  const auto places = read_topology(library, cards(3));
  EXPECT_EQ(places.at("GPU-1").links.at("GPU-0"), GpuLink::nvlink) << "from either end";
  EXPECT_EQ(places.at("GPU-0").links.at("GPU-1"), GpuLink::nvlink);
  EXPECT_EQ(places.at("GPU-0").links.at("GPU-2"), GpuLink::numa) << "the host bridge";
}

TEST(NvmlTopology, ACardNearToSeveralNodesIsNearToNone) {
  Library library;
  library.simulated_host_available = [](unsigned long long*) -> int { return not_supported; };
  library.memory_affinity = [](Device device, unsigned, unsigned long* nodes, unsigned) -> int {
    nodes[1] = number(device) == 0 ? 1UL << 3U : 0b11UL;
    return success;
  };
  const auto places = read_topology(library, cards(2));
  EXPECT_EQ(places.at("GPU-0").numa_node, 67U);
  EXPECT_EQ(places.at("GPU-1").numa_node, std::nullopt);
}

TEST(NvmlXids, ADriverWithoutEventsIsSilent) {
  const Library library;
  XidListener listener(library);
  listener.listen(handle(0), "GPU-0");
  EXPECT_TRUE(listener.drain().empty());
}

}  // namespace
}  // namespace berth::nvml
