#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "gpu/probe.hpp"
#include "unit/simgpu/child.hpp"

namespace berth {
namespace {

using test::Child;
using test::SimGpus;
using ::testing::Contains;
using ::testing::HasSubstr;

std::unique_ptr<Probe> open_probe() {
  auto probe = open_nvml_probe(BERTH_SIM_LIBRARY);
  EXPECT_TRUE(probe) << probe.error().message;
  return probe ? *std::move(probe) : nullptr;
}

ProbeReply look(Probe& probe) {
  auto reply = probe.sample();
  EXPECT_TRUE(reply) << reply.error().message;
  return reply.value_or(ProbeReply{});
}

const GpuProcess* find(const GpuFacts& facts, unsigned pid) {
  if (!facts.processes) {
    return nullptr;
  }
  const auto found = std::ranges::find(*facts.processes, pid, &GpuProcess::pid);
  return found == facts.processes->end() ? nullptr : &*found;
}

TEST(NvmlProbe, ReportsIdleCards) {
  const SimGpus gpus("2x24GiB,1x80GiB");
  const auto probe = open_probe();
  const Millis before = read_clock().mono;
  const ProbeReply reply = look(*probe);
  EXPECT_GE(reply.sample.begun_mono, before);
  EXPECT_LE(reply.sample.begun_mono, read_clock().mono);
  EXPECT_EQ(reply.sample.driver, "NVML 550.54.15, CUDA 12.4");
  ASSERT_EQ(reply.sample.gpus.size(), 3U);
  const GpuFacts& last = reply.sample.gpus[2];
  EXPECT_EQ(last.uuid, gpus.directory.card(2)->uuid);
  EXPECT_EQ(last.index, 2U);
  EXPECT_EQ(last.name, "Simulated GPU 80GiB");
  EXPECT_EQ(last.pci_bus_id, "00000000:03:00.0");
  EXPECT_EQ(last.memory_total, 80 * kGiB);
  EXPECT_EQ(last.memory_free, 80 * kGiB);
  EXPECT_EQ(last.memory_used, 0U);
  EXPECT_EQ(last.utilization, 0U);
  EXPECT_TRUE(last.temperature);
  EXPECT_TRUE(last.power_mw);
  ASSERT_TRUE(last.processes);
  EXPECT_TRUE(last.processes->empty());
  EXPECT_EQ(last.trouble, "");
}

TEST(NvmlProbe, ReportsProcessesWithTheirFacts) {
  const SimGpus gpus("2x24GiB");
  const auto probe = open_probe();
  const Child busy = gpus.hold(0, "6GiB", {"--util", "40"});
  const Child idle = gpus.hold(0, "2GiB");
  const ProbeReply reply = look(*probe);
  const GpuFacts& card = reply.sample.gpus.at(0);
  EXPECT_EQ(card.memory_used, 8 * kGiB);
  EXPECT_EQ(card.memory_free, 16 * kGiB);
  EXPECT_EQ(card.utilization, 40U);
  ASSERT_EQ(card.processes->size(), 2U);
  const GpuProcess* process = find(card, busy.pid());
  ASSERT_NE(process, nullptr);
  EXPECT_EQ(process->memory, 6 * kGiB);
  EXPECT_EQ(process->utilization, 40U);
  EXPECT_EQ(process->uid, ::getuid());
  EXPECT_EQ(process->name, "berth-simgpu");
  EXPECT_EQ(process->start_time, simgpu::start_time_of_living(busy.pid()));
  EXPECT_FALSE(process->attempt);
  EXPECT_EQ(find(card, idle.pid())->utilization, 0U);
  EXPECT_EQ(reply.ancestors.at(busy.pid()).front(), static_cast<unsigned>(::getpid()));
  EXPECT_THAT(reply.ancestors.at(busy.pid()), Contains(static_cast<unsigned>(::getppid())));
  EXPECT_TRUE(reply.sample.gpus.at(1).processes->empty());
}

TEST(NvmlProbe, KnowsWhoOwnsAProcess) {
  // As root, a process of somebody else; otherwise one's own is all there can be.
  const std::optional<uid_t> other = ::geteuid() == 0 ? std::optional<uid_t>(31'234) : std::nullopt;
  const SimGpus gpus("1x24GiB");
  const auto probe = open_probe();
  const Child stranger = gpus.hold(0, "1GiB", {}, other);
  const ProbeReply reply = look(*probe);
  const GpuProcess* process = find(reply.sample.gpus.at(0), stranger.pid());
  ASSERT_NE(process, nullptr);
  EXPECT_EQ(process->uid, other.value_or(::getuid()));
}

TEST(NvmlProbe, CountsAProcessOfTwoListsOnce) {
  const SimGpus gpus("1x24GiB");
  const auto probe = open_probe();
  const Child both = gpus.hold(0, "1GiB", {"--type", "C+G"});
  const Child desktop = gpus.hold(0, "2GiB", {"--type", "G"});
  const ProbeReply reply = look(*probe);
  ASSERT_EQ(reply.sample.gpus.at(0).processes->size(), 2U);
  EXPECT_EQ(find(reply.sample.gpus[0], both.pid())->memory, kGiB);
  EXPECT_EQ(find(reply.sample.gpus[0], desktop.pid())->memory, 2 * kGiB);
}

TEST(NvmlProbe, ReportsMoreProcessesThanItsFirstGuess) {
  const SimGpus gpus("1x24GiB");
  const auto probe = open_probe();
  std::vector<Child> children;
  for (int i = 0; i < 45; ++i) {
    children.push_back(gpus.hold(0, "100MiB"));
  }
  EXPECT_EQ(look(*probe).sample.gpus.at(0).processes->size(), 45U);
}

TEST(NvmlProbe, ADeadProcessIsGoneFromTheNextSample) {
  const SimGpus gpus("1x24GiB");
  const auto probe = open_probe();
  const Child victim = gpus.hold(0, "20GiB", {"--util", "90"});
  ASSERT_EQ(look(*probe).sample.gpus.at(0).memory_free, 4 * kGiB);
  victim.kill();
  ASSERT_TRUE(victim.wait_unreaped());
  const GpuFacts card = look(*probe).sample.gpus.at(0);
  EXPECT_EQ(card.memory_free, 24 * kGiB);
  EXPECT_EQ(card.utilization, 0U);
  EXPECT_TRUE(card.processes->empty());
}

TEST(NvmlProbe, UnknownStaysUnknown) {
  const SimGpus gpus("2x24GiB");
  const auto probe = open_probe();
  const Child user = gpus.hold(0, "1GiB", {"--util", "50"});
  for (const char* key : {"memory", "process_memory", "util", "temperature", "power"}) {
    gpus.set(0, key, "unknown");
  }
  gpus.set(1, "processes", "unknown");
  const ProbeReply reply = look(*probe);
  const GpuFacts& card = reply.sample.gpus.at(0);
  EXPECT_EQ(card.trouble, "");
  EXPECT_FALSE(card.memory_total || card.memory_free || card.memory_used);
  EXPECT_FALSE(card.utilization || card.temperature || card.power_mw);
  ASSERT_EQ(card.processes->size(), 1U);
  EXPECT_FALSE(card.processes->front().memory || card.processes->front().utilization);
  EXPECT_EQ(reply.sample.gpus.at(1).processes, std::nullopt);
}

TEST(NvmlProbe, ALostCardIsReportedBesideTheOthers) {
  const SimGpus gpus("3x24GiB");
  const auto probe = open_probe();
  const ProbeReply before = look(*probe);
  gpus.set(1, "lost", "yes");
  const ProbeReply reply = look(*probe);
  ASSERT_EQ(reply.sample.gpus.size(), 3U);
  const GpuFacts& lost = reply.sample.gpus[1];
  EXPECT_EQ(lost.trouble, "GPU is lost");
  EXPECT_EQ(lost.uuid, before.sample.gpus[1].uuid);
  EXPECT_EQ(lost.name, before.sample.gpus[1].name);
  EXPECT_FALSE(lost.memory_free || lost.utilization || lost.processes);
  EXPECT_EQ(reply.sample.gpus[0], before.sample.gpus[0]);
  EXPECT_EQ(reply.sample.gpus[2], before.sample.gpus[2]);
  gpus.set(1, "lost", "no");
  EXPECT_EQ(look(*probe).sample.gpus, before.sample.gpus);
}

TEST(NvmlProbe, ACardLostFromTheStartHasAStandInForItsName) {
  const SimGpus gpus("2x24GiB");
  gpus.set(1, "error", "16");
  const ProbeReply reply = look(*open_probe());
  EXPECT_EQ(reply.sample.gpus.at(1).uuid, "unknown-1");
  EXPECT_EQ(reply.sample.gpus[1].trouble, "GPU requires reset");
}

TEST(NvmlProbe, StartsTheLibraryAnewAfterRepeatedFailures) {
  const SimGpus first("2x24GiB");
  const auto probe = open_probe();
  const ProbeReply before = look(*probe);
  first.set_driver("error", "999");
  // A driver that comes back differs from the one that went: only a fresh start can show it.
  const SimGpus second("1x80GiB");
  unsigned failures = 0;
  Result<ProbeReply> reply = probe->sample();
  while (!reply && failures < 10) {
    EXPECT_EQ(reply.error().code, ErrorCode::unavailable);
    ++failures;
    reply = probe->sample();
  }
  ASSERT_TRUE(reply);
  EXPECT_EQ(failures, 3U);
  ASSERT_EQ(reply->sample.gpus.size(), 3U);
  EXPECT_EQ(reply->sample.gpus[0].memory_total, 80 * kGiB);
  for (const std::size_t i : {0U, 1U}) {
    EXPECT_EQ(reply->sample.gpus[i + 1].uuid, before.sample.gpus[i].uuid);
    EXPECT_EQ(reply->sample.gpus[i + 1].trouble, "the driver no longer reports it");
  }
}

TEST(NvmlProbe, SaysWhatToDoWithoutADriver) {
  const SimGpus gpus("1x24GiB");
  const auto missing = open_nvml_probe("/nowhere/libnvidia-ml.so.1");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::not_found);
  EXPECT_THAT(missing.error().message, HasSubstr("no NVIDIA driver: cannot load /nowhere/"));
  EXPECT_THAT(missing.error().message, HasSubstr("install the driver"));

  const auto other = open_nvml_probe("libm.so.6");
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error().message, HasSubstr("not a usable NVIDIA management library"));

  gpus.set_driver("error", "18");
  const auto mismatch = open_nvml_probe(BERTH_SIM_LIBRARY);
  ASSERT_FALSE(mismatch);
  EXPECT_FALSE(mismatch.error().retryable());
  EXPECT_THAT(mismatch.error().message, HasSubstr("reboot"));

  ::unsetenv("BERTH_SIM_DIR");
  const auto unloaded = open_nvml_probe(BERTH_SIM_LIBRARY);
  ASSERT_FALSE(unloaded);
  EXPECT_TRUE(unloaded.error().retryable());
  EXPECT_THAT(unloaded.error().message, HasSubstr("modprobe nvidia"));
}

}  // namespace
}  // namespace berth
