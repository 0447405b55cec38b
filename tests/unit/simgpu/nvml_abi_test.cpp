// The simulated library, called as a C program would call the real one.

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstring>

#include "simgpu/nvml_abi.hpp"
#include "unit/simgpu/child.hpp"

namespace berth::simgpu {
namespace {

using test::Child;
using test::SimGpus;

class NvmlAbi : public ::testing::Test {
 protected:
  void SetUp() override {
    ::setenv("BERTH_SIM_DIR", gpus_.directory.path().c_str(), 1);
    ASSERT_NE(library_, nullptr) << ::dlerror();
    ASSERT_EQ(call("nvmlInit_v2"), kSuccess);
    ASSERT_EQ(call("nvmlDeviceGetHandleByIndex_v2", 0U, &device_), kSuccess);
  }
  void TearDown() override { EXPECT_EQ(call("nvmlShutdown"), kSuccess); }

  template <class... Arguments>
  int call(const char* name, Arguments... arguments) const {
    auto* function = reinterpret_cast<int (*)(Arguments...)>(::dlsym(library_, name));
    EXPECT_NE(function, nullptr) << name;
    return function == nullptr ? -1 : function(arguments...);
  }

  SimGpus gpus_{"2x24GiB"};
  void* library_ = ::dlopen(BERTH_SIM_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  NvmlDevice* device_ = nullptr;
};

TEST_F(NvmlAbi, InitNeedsADirectoryAndIsCounted) {
  ASSERT_EQ(call("nvmlInitWithFlags", 0U), kSuccess);
  ASSERT_EQ(call("nvmlShutdown"), kSuccess);
  unsigned count = 0;
  EXPECT_EQ(call("nvmlDeviceGetCount_v2", &count), kSuccess);
  EXPECT_EQ(count, 2U);
  ASSERT_EQ(call("nvmlShutdown"), kSuccess);
  EXPECT_EQ(call("nvmlDeviceGetCount_v2", &count), kUninitialized);
  ::unsetenv("BERTH_SIM_DIR");
  EXPECT_EQ(call("nvmlInit_v2"), kDriverNotLoaded);
  ::setenv("BERTH_SIM_DIR", "/nowhere", 1);
  EXPECT_EQ(call("nvmlInit_v2"), kDriverNotLoaded);
  EXPECT_EQ(call("nvmlShutdown"), kSuccess) << "one too many is forgiven";
}

TEST_F(NvmlAbi, FindsCardsByEveryName) {
  const Card card = *gpus_.directory.card(1);
  NvmlDevice* wanted = nullptr;
  ASSERT_EQ(call("nvmlDeviceGetHandleByIndex_v2", 1U, &wanted), kSuccess);
  NvmlDevice* found = nullptr;
  EXPECT_EQ(call("nvmlDeviceGetHandleByUUID", card.uuid.c_str(), &found), kSuccess);
  EXPECT_EQ(found, wanted);
  for (const char* bus : {"00000000:02:00.0", "0000:02:00", "02:00.0"}) {
    found = nullptr;
    EXPECT_EQ(call("nvmlDeviceGetHandleByPciBusId_v2", bus, &found), kSuccess) << bus;
    EXPECT_EQ(found, wanted) << bus;
  }
  EXPECT_EQ(call("nvmlDeviceGetHandleByUUID", "GPU-0", &found), kNotFound);
  EXPECT_EQ(call("nvmlDeviceGetHandleByIndex_v2", 2U, &found), kInvalidArgument);
  unsigned index = 0;
  EXPECT_EQ(call("nvmlDeviceGetIndex", reinterpret_cast<NvmlDevice*>(&index), &index),
            kInvalidArgument);
}

TEST_F(NvmlAbi, StringsNeedRoomForTheirEnd) {
  const std::string uuid = gpus_.directory.card(0)->uuid;
  char buffer[80];
  EXPECT_EQ(call("nvmlDeviceGetUUID", device_, &buffer[0], 80U), kSuccess);
  EXPECT_EQ(buffer, uuid);
  EXPECT_EQ(call("nvmlDeviceGetUUID", device_, &buffer[0], static_cast<unsigned>(uuid.size())),
            kInsufficientSize);
}

TEST_F(NvmlAbi, MemoryInBothForms) {
  gpus_.set(0, "reserved", "1GiB");
  const Child user = gpus_.hold(0, "4GiB");
  constexpr U64 kGib = 1ULL << 30U;
  NvmlMemory v1{};
  ASSERT_EQ(call("nvmlDeviceGetMemoryInfo", device_, &v1), kSuccess);
  EXPECT_EQ(v1.used, 5 * kGib) << "the first form counts the reserve as used";
  EXPECT_EQ(v1.free, 19 * kGib);
  NvmlMemoryV2 v2{};
  v2.version = 2;
  EXPECT_EQ(call("nvmlDeviceGetMemoryInfo_v2", device_, &v2), kVersionMismatch);
  v2.version = kMemoryV2Version;
  ASSERT_EQ(call("nvmlDeviceGetMemoryInfo_v2", device_, &v2), kSuccess);
  EXPECT_EQ(v2.total, 24 * kGib);
  EXPECT_EQ(v2.used, 4 * kGib);
  EXPECT_EQ(v2.reserved, kGib);
  EXPECT_EQ(v2.free, 19 * kGib);
}

TEST_F(NvmlAbi, OldPciInfoWritesNoMoreThanOldCallersHave) {
  char bytes[sizeof(NvmlPciInfo)];
  std::memset(&bytes[0], 0x7f, sizeof bytes);
  ASSERT_EQ(call("nvmlDeviceGetPciInfo_v2", device_, &bytes[0]), kSuccess);
  EXPECT_STREQ(&bytes[0], "0000:01:00.0");
  EXPECT_EQ(bytes[kPciInfoOldSize], 0x7f);
  NvmlPciInfo info{};
  ASSERT_EQ(call("nvmlDeviceGetPciInfo_v3", device_, &info), kSuccess);
  EXPECT_STREQ(&info.bus_id[0], "00000000:01:00.0");
  EXPECT_EQ(info.bus, 1U);
}

TEST_F(NvmlAbi, ProcessListsSayHowMuchRoomTheyNeed) {
  unsigned count = 0;
  NvmlProcess* nothing = nullptr;
  EXPECT_EQ(call("nvmlDeviceGetComputeRunningProcesses_v3", device_, &count, nothing), kSuccess);
  const Child first = gpus_.hold(0, "1GiB");
  const Child second = gpus_.hold(0, "2GiB");
  const Child desktop = gpus_.hold(0, "1MiB", {"--type", "G"});
  EXPECT_EQ(call("nvmlDeviceGetComputeRunningProcesses_v3", device_, &count, nothing),
            kInsufficientSize);
  EXPECT_EQ(count, 2U);
  NvmlProcess list[4];
  count = 1;
  EXPECT_EQ(call("nvmlDeviceGetComputeRunningProcesses_v3", device_, &count, &list[0]),
            kInsufficientSize);
  count = 4;
  ASSERT_EQ(call("nvmlDeviceGetComputeRunningProcesses_v3", device_, &count, &list[0]), kSuccess);
  ASSERT_EQ(count, 2U);
  const NvmlProcess& mine = list[0].pid == first.pid() ? list[0] : list[1];
  EXPECT_EQ(mine.pid, first.pid());
  EXPECT_EQ(mine.used, 1ULL << 30U);
  EXPECT_EQ(mine.gpu_instance, kNotAvailable);

  NvmlProcessV1 old[4];
  count = 4;
  ASSERT_EQ(call("nvmlDeviceGetGraphicsRunningProcesses", device_, &count, &old[0]), kSuccess);
  ASSERT_EQ(count, 1U);
  EXPECT_EQ(old[0].pid, desktop.pid());

  NvmlProcessDetail details[4];
  NvmlProcessDetailList all{kProcessDetailListVersion, 3, 4, &details[0]};
  ASSERT_EQ(call("nvmlDeviceGetRunningProcessDetailList", device_, &all), kSuccess);
  EXPECT_EQ(all.count, 3U);
}

TEST_F(NvmlAbi, ProcessUtilizationNeverSucceedsWithoutABuffer) {
  unsigned count = 0;
  NvmlProcessSample* nothing = nullptr;
  EXPECT_EQ(call("nvmlDeviceGetProcessUtilization", device_, nothing, &count, U64{0}), kNotFound);
  const Child busy = gpus_.hold(0, "1GiB", {"--util", "40"});
  const Child idle = gpus_.hold(0, "1GiB");
  EXPECT_EQ(call("nvmlDeviceGetProcessUtilization", device_, nothing, &count, U64{0}),
            kInsufficientSize);
  ASSERT_EQ(count, 1U) << "idle processes have no samples";
  NvmlProcessSample sample{};
  ASSERT_EQ(call("nvmlDeviceGetProcessUtilization", device_, &sample, &count, U64{0}), kSuccess);
  EXPECT_EQ(sample.pid, busy.pid());
  EXPECT_EQ(sample.sm, 40U);
  EXPECT_EQ(call("nvmlDeviceGetProcessUtilization", device_, &sample, &count, ~U64{0}), kNotFound);
}

TEST_F(NvmlAbi, ATroubledCardFailsEveryCall) {
  gpus_.set(0, "lost", "yes");
  NvmlMemory memory{};
  EXPECT_EQ(call("nvmlDeviceGetMemoryInfo", device_, &memory), kGpuIsLost);
  NvmlDevice* again = nullptr;
  EXPECT_EQ(call("nvmlDeviceGetHandleByIndex_v2", 0U, &again), kGpuIsLost);
  EXPECT_EQ(call("nvmlDeviceGetHandleByIndex_v2", 1U, &again), kSuccess);
  gpus_.set_driver("error", "999");
  EXPECT_EQ(call("nvmlDeviceGetHandleByIndex_v2", 1U, &again), kUnknown);
}

TEST_F(NvmlAbi, AnEventWaitReallyWaits) {
  NvmlEventSet* set = nullptr;
  ASSERT_EQ(call("nvmlEventSetCreate", &set), kSuccess);
  const auto begin = std::chrono::steady_clock::now();
  NvmlEventData event{};
  EXPECT_EQ(call("nvmlEventSetWait_v2", set, &event, 30U), kTimeout);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(30));
  EXPECT_EQ(call("nvmlEventSetFree", set), kSuccess);
  EXPECT_EQ(call("nvmlEventSetWait_v2", set, &event, 30U), kInvalidArgument) << "it is gone";
}

TEST_F(NvmlAbi, XidsComeOnceToThoseWhoListen) {
  NvmlEventSet* set = nullptr;
  NvmlEventSet* late = nullptr;
  ASSERT_EQ(call("nvmlEventSetCreate", &set), kSuccess);
  ASSERT_EQ(call("nvmlEventSetCreate", &late), kSuccess);
  gpus_.set(0, "xid", "31");  // before anybody listened
  U64 supported = 0;
  ASSERT_EQ(call("nvmlDeviceGetSupportedEventTypes", device_, &supported), kSuccess);
  EXPECT_EQ(supported, kXidEvent);
  EXPECT_EQ(call("nvmlDeviceRegisterEvents", device_, U64{1}, set), kNotSupported);
  ASSERT_EQ(call("nvmlDeviceRegisterEvents", device_, kXidEvent, set), kSuccess);
  gpus_.set(1, "xid", "48");  // of a card that nobody listens to
  gpus_.set(0, "xid", "79");
  gpus_.set(0, "lost", "yes");
  gpus_.set(0, "xid", "79");
  char bytes[sizeof(NvmlEventData)];
  std::memset(&bytes[0], 0x7f, sizeof bytes);
  ASSERT_EQ(call("nvmlEventSetWait", set, static_cast<void*>(&bytes[0]), 0U), kSuccess);
  EXPECT_EQ(bytes[kEventDataOldSize], 0x7f) << "the first form is shorter";
  NvmlEventData event{};
  ASSERT_EQ(call("nvmlEventSetWait_v2", set, &event, 0U), kSuccess);
  EXPECT_EQ(event.device, device_);
  EXPECT_EQ(event.kind, kXidEvent);
  EXPECT_EQ(event.data, 79U);
  EXPECT_EQ(event.gpu_instance, kNotAvailable);
  EXPECT_EQ(call("nvmlEventSetWait_v2", set, &event, 0U), kTimeout);
  EXPECT_EQ(call("nvmlEventSetWait_v2", late, &event, 0U), kTimeout);
  EXPECT_FALSE(gpus_.directory.set_card(0, "xid", "0"));
}

TEST_F(NvmlAbi, SamplesSayHowMuchRoomTheyNeed) {
  gpus_.set(0, "samples", "100,0,50");
  constexpr int kUtilization = 1;
  int type = 0;
  unsigned count = 0;
  NvmlSample* nothing = nullptr;
  ASSERT_EQ(call("nvmlDeviceGetSamples", device_, kUtilization, U64{0}, &type, &count, nothing),
            kSuccess);
  ASSERT_GE(count, 3U);
  std::vector<NvmlSample> samples(count);
  ASSERT_EQ(
      call("nvmlDeviceGetSamples", device_, kUtilization, U64{0}, &type, &count, samples.data()),
      kSuccess);
  EXPECT_EQ(type, 1) << "unsigned int";
  ASSERT_EQ(count, 3U);
  EXPECT_EQ(samples[0].value, 100U);
  EXPECT_EQ(samples[1].value, 0U);
  EXPECT_EQ(samples[2].value, 50U);
  EXPECT_EQ(samples[2].time_stamp - samples[0].time_stamp, 2 * kHistoryUs / 3);
  EXPECT_EQ(
      call("nvmlDeviceGetSamples", device_, kUtilization, ~U64{0}, &type, &count, samples.data()),
      kNotFound);
  gpus_.set(0, "samples", "unknown");
  EXPECT_EQ(call("nvmlDeviceGetSamples", device_, kUtilization, U64{0}, &type, &count, nothing),
            kNotSupported);
}

TEST_F(NvmlAbi, SamplesFollowWhoComputes) {
  const Child user = gpus_.hold(0, "1GiB", {"--util", "60"});
  constexpr int kUtilization = 1;
  int type = 0;
  std::vector<NvmlSample> samples(100);
  auto count = static_cast<unsigned>(samples.size());
  ASSERT_EQ(
      call("nvmlDeviceGetSamples", device_, kUtilization, U64{0}, &type, &count, samples.data()),
      kSuccess);
  ASSERT_GT(count, 0U);
  const U64 since = gpus_.directory.users(0).at(0).since_us;
  for (unsigned i = 0; i < count; ++i) {
    EXPECT_EQ(samples[i].value, samples[i].time_stamp < since ? 0U : 60U);
  }
  EXPECT_EQ(samples[count - 1].value, 60U);
}

TEST_F(NvmlAbi, UncorrectedEccErrorsAreCounted) {
  U64 errors = 7;
  ASSERT_EQ(call("nvmlDeviceGetTotalEccErrors", device_, 1, 0, &errors), kSuccess);
  EXPECT_EQ(errors, 0U);
  gpus_.set(0, "ecc", "2");
  ASSERT_EQ(call("nvmlDeviceGetTotalEccErrors", device_, 1, 0, &errors), kSuccess);
  EXPECT_EQ(errors, 2U);
  ASSERT_EQ(call("nvmlDeviceGetTotalEccErrors", device_, 0, 0, &errors), kSuccess);
  EXPECT_EQ(errors, 0U) << "the corrected ones";
  gpus_.set(0, "ecc", "unknown");
  EXPECT_EQ(call("nvmlDeviceGetTotalEccErrors", device_, 1, 0, &errors), kNotSupported);
}

TEST_F(NvmlAbi, CardsShareASwitchUnlessToldOtherwise) {
  NvmlDevice* other = nullptr;
  ASSERT_EQ(call("nvmlDeviceGetHandleByIndex_v2", 1U, &other), kSuccess);
  const auto level = [&] {
    int value = -1;
    const int code = call("nvmlDeviceGetTopologyCommonAncestor", device_, other, &value);
    return code == kSuccess ? value : -code;
  };
  EXPECT_EQ(level(), 10);
  int active = 0;
  EXPECT_EQ(call("nvmlDeviceGetNvLinkState", device_, 0U, &active), kNotSupported);
  gpus_.set(1, "numa", "1");
  EXPECT_EQ(level(), 50);
  unsigned long nodes[2] = {};
  ASSERT_EQ(call("nvmlDeviceGetMemoryAffinity", other, 2U, &nodes[0], 0U), kSuccess);
  EXPECT_EQ(nodes[0], 2UL);
  gpus_.set_driver("link", "1-0:numa");
  EXPECT_EQ(level(), 40);
  gpus_.set_driver("link", "0-1:unknown");
  EXPECT_EQ(level(), -kNotSupported);
  gpus_.set_driver("link", "0-1:nvlink");
  ASSERT_EQ(call("nvmlDeviceGetNvLinkState", device_, 0U, &active), kSuccess);
  EXPECT_EQ(active, 1);
  ASSERT_EQ(call("nvmlDeviceGetNvLinkState", device_, 1U, &active), kSuccess);
  EXPECT_EQ(active, 0);
  EXPECT_EQ(call("nvmlDeviceGetNvLinkState", device_, 18U, &active), kInvalidArgument);
  NvmlPciInfo remote{};
  ASSERT_EQ(call("nvmlDeviceGetNvLinkRemotePciInfo_v2", device_, 0U, &remote), kSuccess);
  EXPECT_STREQ(&remote.bus_id[0], "00000000:02:00.0");
  gpus_.set_driver("link", "0-1:auto");
  EXPECT_EQ(call("nvmlDeviceGetNvLinkState", device_, 0U, &active), kNotSupported);
}

TEST_F(NvmlAbi, KnownNamesWithoutMeaningHereAnswerNotSupported) {
  EXPECT_EQ(call("nvmlDeviceGetNumaNodeId", device_, static_cast<unsigned*>(nullptr)),
            kNotSupported);
  // Clients take the first of these as a promise of the second.
  EXPECT_NE(::dlsym(library_, "nvmlDeviceGetConfComputeMemSizeInfo"), nullptr);
  EXPECT_NE(::dlsym(library_, "nvmlDeviceGetRunningProcessDetailList"), nullptr);
}

}  // namespace
}  // namespace berth::simgpu
