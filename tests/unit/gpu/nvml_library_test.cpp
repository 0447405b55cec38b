#include "gpu/nvml_library.hpp"

#include <gtest/gtest.h>

#include "gpu/nvml_card.hpp"
#include "simgpu/nvml_abi.hpp"

namespace berth::nvml {
namespace {

// The probe and the simulated library each spell the interface out; they must mean the same.
static_assert(sizeof(MemoryV2) == sizeof(simgpu::NvmlMemoryV2));
static_assert(offsetof(MemoryV2, free) == offsetof(simgpu::NvmlMemoryV2, free));
static_assert(offsetof(MemoryV2, used) == offsetof(simgpu::NvmlMemoryV2, used));
static_assert(kMemoryV2Version == simgpu::kMemoryV2Version);
static_assert(offsetof(Memory, used) == offsetof(simgpu::NvmlMemory, used));
static_assert(sizeof(Process) == sizeof(simgpu::NvmlProcess));
static_assert(offsetof(Process, used_memory) == offsetof(simgpu::NvmlProcess, used));
static_assert(sizeof(ProcessV1) == sizeof(simgpu::NvmlProcessV1));
static_assert(sizeof(ProcessSample) == sizeof(simgpu::NvmlProcessSample));
static_assert(offsetof(ProcessSample, sm) == offsetof(simgpu::NvmlProcessSample, sm));
static_assert(sizeof(PciInfo) == sizeof(simgpu::NvmlPciInfo));
static_assert(offsetof(PciInfo, bus_id) == offsetof(simgpu::NvmlPciInfo, bus_id));

TEST(NvmlLibrary, KnowsTheDriversWithWideProcessRecords) {
  for (const char* wide : {"535.43.02", "535.54.03", "535.85"}) {
    EXPECT_TRUE(has_wide_process_records(wide)) << wide;
  }
  for (const char* narrow : {"535.42", "535.86.05", "535.104", "550.54.15", "534.50", "", "x.y"}) {
    EXPECT_FALSE(has_wide_process_records(narrow)) << narrow;
  }
}

TEST(NvmlLibrary, FollowsAListThatGrowsBetweenCalls) {
  static unsigned length = 0;
  length = 40;
  Library::ProcessList list;
  list.v3 = [](Device, unsigned* count, Process* out) -> int {
    const unsigned room = *count;
    *count = length;
    if (room < length) {
      length += 60;
      return insufficient_size;
    }
    for (unsigned i = 0; i < length; ++i) {
      out[i] = {i + 1, i, 0, 0};
    }
    return success;
  };
  const auto records = read_processes(list, nullptr, false);
  ASSERT_TRUE(records);
  EXPECT_EQ(records->size(), length);
  EXPECT_EQ(records->back().pid, length);
}

TEST(NvmlLibrary, GivesUpOnAListThatNeverFits) {
  Library::ProcessList list;
  list.v3 = [](Device, unsigned* count, Process*) -> int {
    *count += 1;
    return insufficient_size;
  };
  EXPECT_EQ(read_processes(list, nullptr, false).error(), insufficient_size);
  list.v3 = [](Device, unsigned* count, Process*) -> int {
    *count = ~0U;
    return insufficient_size;
  };
  EXPECT_EQ(read_processes(list, nullptr, false).error(), insufficient_size);
}

TEST(NvmlLibrary, UsesTheNewestListThatCanBeTrusted) {
  Library::ProcessList list;
  EXPECT_EQ(read_processes(list, nullptr, false).error(), function_not_found);
  list.v1 = [](Device, unsigned* count, ProcessV1* out) -> int {
    *count = 1;
    out[0] = {11, 111};
    return success;
  };
  EXPECT_EQ(read_processes(list, nullptr, false)->at(0).used_memory, 111U);
  list.v2 = [](Device, unsigned* count, Process* out) -> int {
    *count = 1;
    out[0] = {22, 222, 0, 0};
    return success;
  };
  list.v3 = [](Device, unsigned* count, Process* out) -> int {
    *count = 1;
    out[0] = {33, 333, 0, 0};
    return success;
  };
  EXPECT_EQ(read_processes(list, nullptr, false)->at(0).pid, 33U);
  EXPECT_EQ(read_processes(list, nullptr, true)->at(0).pid, 22U);
}

// What a driver has said of the free memory of a card, before and after the list of its processes.
static unsigned long long free_before = 0;
static unsigned long long free_after = 0;
static bool listed = false;

GpuFacts look_at_a_changing_card(unsigned long long before, unsigned long long after) {
  free_before = before;
  free_after = after;
  listed = false;
  Library library;
  library.memory_v2 = [](Device, MemoryV2* out) -> int {
    const unsigned long long free = listed ? free_after : free_before;
    *out = {out->version, 16 * kGiB, 0, free, 16 * kGiB - free};
    return success;
  };
  library.compute.v3 = [](Device, unsigned* count, Process* out) -> int {
    listed = true;
    *count = 1;
    out[0] = {1, 12 * kGiB, 0, 0};
    return success;
  };
  GpuFacts facts;
  ProcessReader processes;
  ProbeReply reply;
  CardReader(library, nullptr, false).read(facts, processes, reply);
  EXPECT_EQ(facts.trouble, "");
  EXPECT_EQ(facts.processes->size(), 1U);
  return facts;
}

// A process whose memory was not there yet when memory was read, and which the list has.
TEST(NvmlCard, WhoComesDuringALookTakesRoom) {
  const GpuFacts facts = look_at_a_changing_card(16 * kGiB, 4 * kGiB);
  EXPECT_EQ(facts.memory_free, 4 * kGiB);
  EXPECT_EQ(facts.memory_used, 12 * kGiB);
  EXPECT_EQ(facts.memory_total, 16 * kGiB);
}

// The list still has it, so it would be taken for room beside what it holds.
TEST(NvmlCard, WhoGoesDuringALookHasLeftNoRoomYet) {
  EXPECT_EQ(look_at_a_changing_card(4 * kGiB, 16 * kGiB).memory_free, 4 * kGiB);
}

}  // namespace
}  // namespace berth::nvml
