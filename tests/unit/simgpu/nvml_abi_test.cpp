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
  EXPECT_EQ(call("nvmlEventSetWait_v2", set, static_cast<void*>(nullptr), 30U), kTimeout);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(30));
}

TEST_F(NvmlAbi, KnownNamesWithoutMeaningHereAnswerNotSupported) {
  EXPECT_EQ(call("nvmlDeviceGetTotalEccErrors", device_, 0, 0, static_cast<U64*>(nullptr)),
            kNotSupported);
  // Clients take the first of these as a promise of the second.
  EXPECT_NE(::dlsym(library_, "nvmlDeviceGetConfComputeMemSizeInfo"), nullptr);
  EXPECT_NE(::dlsym(library_, "nvmlDeviceGetRunningProcessDetailList"), nullptr);
}

}  // namespace
}  // namespace berth::simgpu
