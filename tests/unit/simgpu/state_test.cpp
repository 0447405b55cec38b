#include "simgpu/state.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "unit/simgpu/child.hpp"

namespace berth::simgpu {
namespace {

using test::Child;
using test::SimGpus;

constexpr std::uint64_t kGib = 1ULL << 30U;

Allocation gib(std::uint64_t amount) {
  Allocation wanted;
  wanted.bytes = amount * kGib;
  return wanted;
}

TEST(SimState, InitKeepsADirectoryOfTheSameSpec) {
  const SimGpus gpus("2x24GiB,1x80GiB");
  gpus.set(1, "util", "55");
  ASSERT_TRUE(gpus.directory.init("1x24GiB,1x24GiB,1x80GiB"));
  EXPECT_EQ(gpus.directory.card(1)->util.value, 55U);

  const auto other = gpus.directory.init("4x24GiB");
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().find("already simulates 2x24GiB,1x80GiB"), std::string::npos);
  EXPECT_EQ(gpus.directory.cards()->size(), 3U);
}

TEST(SimState, CardsAreTheSameEveryTimeAndDistinct) {
  const SimGpus first("8x24GiB");
  const SimGpus second("8x24GiB");
  std::set<std::string> uuids;
  for (unsigned index = 0; index < 8; ++index) {
    const auto card = first.directory.card(index);
    EXPECT_EQ(card->uuid, second.directory.card(index)->uuid);
    EXPECT_EQ(card->uuid.size(), std::string("GPU-12345678-1234-1234-1234-123456789012").size());
    uuids.insert(card->uuid);
  }
  EXPECT_EQ(uuids.size(), 8U);
  EXPECT_EQ(first.directory.card(0)->pci_bus_id, "00000000:01:00.0");
}

TEST(SimState, MemoryIsNeverGivenTwice) {
  // Forty processes at once want 3 GiB each of 24 GiB: eight get it.
  const SimGpus gpus("1x24GiB");
  std::vector<Child> children;
  for (int i = 0; i < 40; ++i) {
    children.emplace_back(std::vector<std::string>{BERTH_SIMGPU, "hold", "0", "--dir",
                                                   gpus.directory.path(), "--memory", "3GiB"});
  }
  unsigned granted = 0;
  for (Child& child : children) {
    if (child.read_line().starts_with("holding")) {
      ++granted;
    } else {
      EXPECT_EQ(child.wait(), 1);
    }
  }
  EXPECT_EQ(granted, 8U);
  EXPECT_EQ(total_bytes(gpus.directory.users(0)), 24 * kGib);
}

TEST(SimState, AKilledProcessOwnsNothingEvenBeforeItIsReaped) {
  const SimGpus gpus("1x24GiB");
  const Child holder = gpus.hold(0, "20GiB", {"--util", "70"});
  ASSERT_EQ(gpus.directory.users(0).size(), 1U);
  EXPECT_EQ(gpus.directory.users(0)[0].pid, holder.pid());
  EXPECT_EQ(gpus.directory.users(0)[0].util, 70U);

  holder.kill();
  ASSERT_TRUE(holder.wait_unreaped());
  EXPECT_TRUE(gpus.directory.users(0).empty());
  EXPECT_TRUE(gpus.directory.allocate(0, gib(24))->granted);
}

TEST(SimState, AReusedPidOwnsNothing) {
  const SimGpus gpus("1x24GiB");
  const auto self = static_cast<unsigned>(::getpid());
  const std::uint64_t start = *start_time_of_living(self);
  const std::string stale = gpus.directory.path() + "/procs/" + std::to_string(self) + "-" +
                            std::to_string(start - 1) + "-0";
  std::ofstream(stale) << "bytes 1073741824\nutil 50\ntype C\n";
  EXPECT_TRUE(gpus.directory.users(0).empty());
  // The next writer clears it away.
  ASSERT_TRUE(gpus.directory.allocate(0, gib(1))->granted);
  EXPECT_FALSE(std::filesystem::exists(stale));
  gpus.directory.release(0);
  EXPECT_TRUE(gpus.directory.users(0).empty());
}

TEST(SimState, AllocationsOfOneProcessAddUp) {
  const SimGpus gpus("2x24GiB");
  ASSERT_TRUE(gpus.directory.allocate(0, gib(10))->granted);
  const auto second = gpus.directory.allocate(0, gib(10));
  ASSERT_TRUE(second->granted);
  EXPECT_EQ(second->free, 14 * kGib);
  const auto third = gpus.directory.allocate(0, gib(5));
  EXPECT_FALSE(third->granted);
  EXPECT_EQ(third->free, 4 * kGib);
  EXPECT_EQ(total_bytes(third->users), 20 * kGib);
  EXPECT_TRUE(gpus.directory.users(1).empty());
}

TEST(SimState, TheReserveCannotBeAllocated) {
  const SimGpus gpus("1x24GiB");
  gpus.set(0, "reserved", "512MiB");
  EXPECT_FALSE(gpus.directory.allocate(0, gib(24))->granted);
  EXPECT_TRUE(gpus.directory.allocate(0, gib(23))->granted);
}

TEST(SimState, SettingsAreChecked) {
  const SimGpus gpus("1x24GiB");
  for (const auto& [key, value] :
       {std::pair{"util", "101"}, std::pair{"util", "much"}, std::pair{"memory", "yes"},
        std::pair{"lost", "maybe"}, std::pair{"error", "1000"}, std::pair{"uuid", "GPU-1"},
        std::pair{"samples", "1,auto"}, std::pair{"samples", "101"}, std::pair{"samples", ""},
        std::pair{"ecc", "-1"}, std::pair{"numa", "64"}, std::pair{"xid", "many"}}) {
    EXPECT_FALSE(gpus.directory.set_card(0, key, value)) << key << " " << value;
  }
  EXPECT_FALSE(gpus.directory.set_card(7, "util", "1"));
  EXPECT_FALSE(gpus.directory.set_driver("cards", "1"));
  const SimGpus four("4x24GiB");
  for (const char* link : {"", "0-1", "0:nvlink", "0-0:nvlink", "0-4:nvlink", "0-1:cable",
                           "0-1:nvlink,", "0-1:nvlink,2-3:x", "-1:nvlink"}) {
    EXPECT_FALSE(four.directory.set_driver("link", link)) << link;
  }
  ASSERT_TRUE(four.directory.set_driver("link", "3-0:nvlink,1-2:system"));
  ASSERT_TRUE(four.directory.set_driver("link", "1-2:auto,1-3:numa"));
  EXPECT_EQ(four.directory.driver()->links, (Links{{{0, 3}, Link::nvlink}, {{1, 3}, Link::numa}}));
  EXPECT_FALSE(four.directory.set_driver("host_available", "much"));
}

TEST(SimState, ADamagedDirectorySaysWhatToDo) {
  const SimGpus gpus("1x24GiB");
  std::ofstream(gpus.directory.path() + "/driver") << "gibberish";
  const auto driver = gpus.directory.driver();
  ASSERT_FALSE(driver);
  EXPECT_NE(driver.error().find("berth-simgpu init"), std::string::npos);
  EXPECT_NE(Directory("/nowhere").driver().error().find("berth-simgpu init"), std::string::npos);
}

}  // namespace
}  // namespace berth::simgpu
