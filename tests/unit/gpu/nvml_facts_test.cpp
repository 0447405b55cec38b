// What the probe tells of a card's health, its past seconds and its place in the machine.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gpu/host_facts.hpp"
#include "gpu/probe.hpp"
#include "unit/simgpu/child.hpp"

namespace berth {
namespace {

using test::Child;
using test::SimGpus;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

std::unique_ptr<Probe> open_probe() {
  auto probe = open_nvml_probe(BERTH_SIM_LIBRARY);
  EXPECT_TRUE(probe) << probe.error().message;
  return probe ? *std::move(probe) : nullptr;
}

GpuSample look(Probe& probe) {
  auto reply = probe.sample();
  EXPECT_TRUE(reply) << reply.error().message;
  return reply ? reply->sample : GpuSample{};
}

TEST(NvmlFacts, BusyIsTheMeanOfTheLastSeconds) {
  const SimGpus gpus("4x24GiB");
  const auto probe = open_probe();
  gpus.set(0, "samples", "100,0,100,0,0,0");
  gpus.set(1, "samples", "unknown");
  gpus.set(2, "util", "70");
  const GpuSample sample = look(*probe);
  EXPECT_EQ(sample.gpus.at(0).utilization, 0U) << "idle at the moment of the look";
  EXPECT_EQ(sample.gpus.at(0).busy, 33U);
  EXPECT_EQ(sample.gpus.at(1).busy, std::nullopt);
  EXPECT_EQ(sample.gpus.at(2).busy, 70U);
  EXPECT_EQ(sample.gpus.at(3).busy, 0U);
}

TEST(NvmlFacts, ProcessesHaveAnAge) {
  const SimGpus gpus("1x24GiB");
  const auto probe = open_probe();
  const Millis before = read_clock().mono;
  const Child young = gpus.hold(0, "1GiB");
  const auto first = look(*probe).gpus.at(0).processes->at(0).age;
  ASSERT_TRUE(first);
  // It was started after `before`, but the kernel counts in ticks of some milliseconds.
  EXPECT_LE(*first, read_clock().mono - before + Millis(100));
  while (look(*probe).gpus.at(0).processes->at(0).age <= first) {
  }
}

TEST(NvmlFacts, CountsUncorrectedMemoryErrors) {
  const SimGpus gpus("3x24GiB");
  const auto probe = open_probe();
  gpus.set(1, "ecc", "2");
  gpus.set(2, "ecc", "unknown");
  const GpuSample sample = look(*probe);
  EXPECT_EQ(sample.gpus.at(0).ecc_uncorrected, 0U);
  EXPECT_EQ(sample.gpus.at(1).ecc_uncorrected, 2U);
  EXPECT_EQ(sample.gpus.at(2).ecc_uncorrected, std::nullopt);
}

TEST(NvmlFacts, XidsAreOfTheSampleAfterThem) {
  const SimGpus gpus("2x24GiB");
  gpus.set(0, "xid", "31");  // before the probe was there
  const auto probe = open_probe();
  EXPECT_THAT(look(*probe).gpus.at(0).xids, IsEmpty());
  for (const char* code : {"79", "48", "79"}) {
    gpus.set(1, "xid", code);
  }
  const GpuSample sample = look(*probe);
  EXPECT_THAT(sample.gpus.at(0).xids, IsEmpty());
  EXPECT_THAT(sample.gpus.at(1).xids, ElementsAre(79, 48));
  EXPECT_THAT(look(*probe).gpus.at(1).xids, IsEmpty());
}

TEST(NvmlFacts, ALostCardStillTellsWhy) {
  const SimGpus gpus("2x24GiB");
  const auto probe = open_probe();
  EXPECT_EQ(look(*probe).gpus.at(0).links.size(), 1U);
  gpus.set(1, "xid", "79");
  gpus.set(1, "lost", "yes");
  const GpuSample sample = look(*probe);
  const GpuFacts& lost = sample.gpus.at(1);
  EXPECT_EQ(lost.trouble, "GPU is lost");
  EXPECT_THAT(lost.xids, ElementsAre(79));
  EXPECT_FALSE(lost.busy || lost.ecc_uncorrected);
  EXPECT_EQ(lost.links.size(), 1U) << "it still is where it was";
  EXPECT_EQ(sample.gpus.at(0).links.size(), 1U);
  // Back again, also after the library was started anew.
  for (int i = 0; i < 4; ++i) {
    look(*probe);
  }
  gpus.set(1, "lost", "no");
  EXPECT_EQ(look(*probe).gpus.at(0).links.size(), 1U);
  gpus.set(1, "xid", "62");
  EXPECT_THAT(look(*probe).gpus.at(1).xids, ElementsAre(62));
}

TEST(NvmlFacts, XidsOutliveARestartOfTheLibrary) {
  const SimGpus gpus("3x24GiB");
  const auto probe = open_probe();
  look(*probe);
  gpus.set(0, "lost", "yes");
  for (int i = 0; i < 30; ++i) {  // across several of the restarts that look for the lost card
    gpus.set(1, "xid", "79");
    gpus.set(2, "xid", "48");
    const GpuSample sample = look(*probe);
    EXPECT_THAT(sample.gpus.at(1).xids, ElementsAre(79)) << "sample " << i;
    EXPECT_THAT(sample.gpus.at(2).xids, ElementsAre(48)) << "sample " << i;
  }
}

TEST(NvmlFacts, TellsHowCardsAreConnected) {
  const SimGpus gpus("4x24GiB");
  gpus.set_driver("link", "0-1:nvlink,0-2:numa,1-2:unknown");
  gpus.set(3, "numa", "1");
  const GpuSample sample = look(*open_probe());
  const auto uuid = [&](unsigned index) { return gpus.directory.card(index)->uuid; };
  EXPECT_THAT(sample.gpus.at(0).links,
              UnorderedElementsAre(Pair(uuid(1), GpuLink::nvlink), Pair(uuid(2), GpuLink::numa),
                                   Pair(uuid(3), GpuLink::system)));
  EXPECT_THAT(sample.gpus.at(1).links,
              UnorderedElementsAre(Pair(uuid(0), GpuLink::nvlink), Pair(uuid(3), GpuLink::system)));
  EXPECT_EQ(sample.gpus.at(0).numa_node, 0U);
  EXPECT_EQ(sample.gpus.at(3).numa_node, 1U);
}

TEST(NvmlFacts, CardsShareASwitchByDefault) {
  const SimGpus gpus("3x24GiB");
  gpus.set(2, "numa", "unknown");
  const GpuSample sample = look(*open_probe());
  EXPECT_EQ(sample.gpus.at(0).links.at(sample.gpus.at(1).uuid), GpuLink::pcie_switch);
  EXPECT_EQ(sample.gpus.at(2).numa_node, std::nullopt);
}

TEST(NvmlFacts, TellsTheMemoryOfTheHost) {
  const SimGpus gpus("1x24GiB");
  const auto probe = open_probe();
  EXPECT_GT(look(*probe).host_available.value_or(0), kMiB) << "this machine's";
  gpus.set_driver("host_available", "3GiB");
  EXPECT_EQ(look(*probe).host_available, 3 * kGiB);
}

TEST(HostFacts, ReadsMemAvailable) {
  EXPECT_EQ(parse_mem_available("MemTotal:  9 kB\nMemFree: 3 kB\nMemAvailable:    5 kB\nX: 1 kB\n"),
            5 * kKiB);
  for (const char* wrong : {"", "MemTotal: 9 kB\n", "MemTotal: 9 kB\nMemAvailable: x kB\n",
                            "MemTotal: 9 kB\nMemAvailable: 5", "MemTotal: 9 kB\nMemAvailable:"}) {
    EXPECT_EQ(parse_mem_available(wrong), std::nullopt) << wrong;
  }
}

TEST(PciAddress, IsOneInAllSpellings) {
  const auto address = parse_pci_address("0000000A:C1:00.1");
  ASSERT_TRUE(address);
  EXPECT_EQ(sysfs_name(*address), "000a:c1:00.1");
  EXPECT_EQ(parse_pci_address("000a:c1:00.1"), address);
  for (const char* wrong : {"", "x", "01:00.0", "0000:01:00", "0000:01:00.0 "}) {
    EXPECT_FALSE(parse_pci_address(wrong)) << wrong;
  }
}

}  // namespace
}  // namespace berth
