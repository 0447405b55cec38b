#include "gpu/cpu_affinity.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <ranges>

#include "gpu/host_facts.hpp"

namespace berth {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// A directory like /sys/bus/pci/devices, and a machine as hwloc writes it down.
class CpuAffinityTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(::mkdtemp(root_.data()), nullptr);
    cpu_set_t own;
    ASSERT_EQ(::sched_getaffinity(0, sizeof own, &own), 0);
    for (unsigned cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(cpu, &own)) {
        own_.push_back(cpu);
      }
    }
    ASSERT_FALSE(own_.empty());
  }
  void TearDown() override {
    ::unsetenv("HWLOC_XMLFILE");
    std::filesystem::remove_all(root_);
  }

  void write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories((root_ / std::filesystem::path(path)).parent_path());
    std::ofstream(root_ / std::filesystem::path(path)) << text;
  }
  [[nodiscard]] CpuAffinity affinity(const std::string& hwloc) const {
    return CpuAffinity({hwloc, root_});
  }

  std::string root_ = ::testing::TempDir() + "berth-cpus-XXXXXX";
  CpuList own_;
};

TEST_F(CpuAffinityTest, AsksTheKernelWithoutHwloc) {
  write("0000:01:00.0/local_cpulist", std::to_string(own_.front()) + "\n");
  write("0000:02:00.0/local_cpulist", std::to_string(own_.back()) + "\n");
  write("0000:03:00.0/local_cpulist", "\n");
  write("0000:04:00.0/local_cpulist", "8000-8010\n");
  auto cpus = affinity("libno-such-library.so");
  EXPECT_THAT(cpus.near({"00000000:01:00.0"}), ElementsAre(own_.front()));
  const CpuList both = cpus.near({"00000000:02:00.0", "00000000:01:00.0"});
  EXPECT_EQ(both.front(), own_.front());
  EXPECT_EQ(both.back(), own_.back());
  EXPECT_THAT(cpus.near({"00000000:01:00.0", "00000000:03:00.0"}), IsEmpty()) << "one is not known";
  EXPECT_THAT(cpus.near({"00000000:04:00.0"}), IsEmpty()) << "CPUs that this machine does not have";
  EXPECT_THAT(cpus.near({"00000000:09:00.0"}), IsEmpty());
  EXPECT_THAT(cpus.near({"nonsense"}), IsEmpty());
  EXPECT_THAT(cpus.near(std::vector<std::string>{}), IsEmpty());
  EXPECT_THAT(affinity("libm.so.6").near({"0000:01:00.0"}), ElementsAre(own_.front()))
      << "a library that is not hwloc";
}

/// A set of CPUs as hwloc writes it: words of 32, the last first.
std::string hwloc_set(const CpuList& cpus) {
  std::vector<unsigned> words(cpus.back() / 32 + 1);
  for (const unsigned cpu : cpus) {
    words[cpu / 32] |= 1U << (cpu % 32);
  }
  std::string text;
  for (const unsigned word : words | std::views::reverse) {
    char hex[16];
    std::snprintf(&hex[0], sizeof hex, "0x%08x", word);
    text.append(text.empty() ? "" : ",").append(&hex[0]);
  }
  return text;
}

/// A machine of two packages, each with a card: 01 in the first, 02 in the second.
std::string machine(const CpuList& first, const CpuList& second) {
  int id = 0;
  const auto object = [&](const std::string& attributes, const std::string& inside = "") {
    return "<object " + attributes + " gp_index=\"" + std::to_string(++id) + "\">" + inside +
           "</object>\n";
  };
  const auto of = [](const CpuList& cpus) {
    return " os_index=\"0\" cpuset=\"" + hwloc_set(cpus) + "\" complete_cpuset=\"" +
           hwloc_set(cpus) + "\" nodeset=\"0x1\" complete_nodeset=\"0x1\"";
  };
  const auto package = [&](const CpuList& cpus, const std::string& bus) {
    const std::string card = object("type=\"PCIDev\" pci_busid=\"0000:" + bus +
                                    ":00.0\" pci_type=\"0302 [10de:20b0] [10de:144e] a1\" "
                                    "pci_link_speed=\"0.0\"");
    return object("type=\"Package\"" + of(cpus),
                  object("type=\"Bridge\" bridge_type=\"0-1\" depth=\"0\" bridge_pci=\"0000:[" +
                             bus + "-" + bus + "]\"",
                         card));
  };
  CpuList all = first;
  all.insert(all.end(), second.begin(), second.end());
  const std::string node = object("type=\"NUMANode\" local_memory=\"1073741824\"" + of(all));
  return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
         "<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n<topology version=\"2.0\">\n" +
         object("type=\"Machine\"" + of(all) + " allowed_cpuset=\"" + hwloc_set(all) +
                    "\" allowed_nodeset=\"0x1\"",
                node + package(first, "01") + package(second, "02")) +
         "</topology>\n";
}

TEST_F(CpuAffinityTest, BelievesHwlocFirst) {
  write("machine.xml", machine(own_, {8000}));
  ::setenv("HWLOC_XMLFILE", (root_ + "/machine.xml").c_str(), 1);
  for (const char* bus : {"02", "03"}) {
    write(std::string("0000:") + bus + ":00.0/local_cpulist", std::to_string(own_.front()) + "\n");
  }
  auto cpus = affinity("libhwloc.so.15");
  EXPECT_EQ(cpus.near({"00000000:01:00.0"}), own_);
  EXPECT_THAT(cpus.near({"00000000:02:00.0"}), IsEmpty()) << "not what the kernel says";
  EXPECT_THAT(cpus.near({"00000000:03:00.0"}), ElementsAre(own_.front())) << "unknown to hwloc";
}

TEST(CpuList, IsReadAsTheKernelWritesIt) {
  EXPECT_EQ(parse_cpu_list("0-3,8,10-11\n"), (CpuList{0, 1, 2, 3, 8, 10, 11}));
  EXPECT_EQ(parse_cpu_list(""), CpuList{});
  for (const char* wrong : {",", "1,", "3-1", "-1", "a", "1-", "0-99999999", "1 "}) {
    EXPECT_EQ(parse_cpu_list(wrong), std::nullopt) << wrong;
  }
}

TEST_F(CpuAffinityTest, ReadsTheNumaNode) {
  const PciAddress address = *parse_pci_address("0000:01:00.0");
  EXPECT_EQ(read_numa_node(address, root_), std::nullopt);
  write("0000:01:00.0/numa_node", "-1\n");
  EXPECT_EQ(read_numa_node(address, root_), std::nullopt);
  write("0000:01:00.0/numa_node", "3\n");
  EXPECT_EQ(read_numa_node(address, root_), 3U);
}

}  // namespace
}  // namespace berth
