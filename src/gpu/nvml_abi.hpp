#pragma once
// The parts of NVML's binary interface that the probe uses (64-bit Linux). The names and layouts
// are NVIDIA's and never change; the assertions pin them.

#include <cstddef>
#include <cstdint>

namespace berth::nvml {

enum Code : int {
  success = 0,
  uninitialized = 1,
  not_supported = 3,
  no_permission = 4,
  not_found = 6,
  insufficient_size = 7,
  driver_not_loaded = 9,
  function_not_found = 13,
  gpu_is_lost = 15,
  reset_required = 16,
  version_mismatch = 18,
};

/// Handles; opaque.
using Device = struct DeviceTag*;
using EventSet = struct EventSetTag*;

struct Memory {
  unsigned long long total, free, used;
};
struct MemoryV2 {
  unsigned version;
  unsigned long long total, reserved, free, used;
};
struct Utilization {
  unsigned gpu, memory;
};
struct PciInfo {
  char bus_id_legacy[16];
  unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
  char bus_id[32];
};
/// Of the unversioned process lists.
struct ProcessV1 {
  unsigned pid;
  unsigned long long used_memory;
};
/// Of the lists _v2 and _v3.
struct Process {
  unsigned pid;
  unsigned long long used_memory;
  unsigned gpu_instance, compute_instance;
};
struct ProcessSample {
  unsigned pid;
  unsigned long long time_stamp_us;
  unsigned sm, memory, encoder, decoder;
};

/// Of the buffers that the driver fills several times a second. The meaning of `value` comes with
/// the answer, as one of kValue….
struct Sample {
  unsigned long long time_stamp_us;
  unsigned long long value;
};
struct EventData {
  Device device;
  unsigned long long kind, data;
  unsigned gpu_instance, compute_instance;
};

inline constexpr int kSamplesOfUtilization = 1;
inline constexpr int kValueU32 = 1;
inline constexpr int kValueUlong = 2;
inline constexpr int kValueU64 = 3;
inline constexpr int kEccUncorrected = 1;
inline constexpr int kEccVolatile = 0;
inline constexpr unsigned long long kEventXid = 8;
inline constexpr unsigned kNvLinksMax = 36;
/// Levels of the PCI tree at which two cards meet.
inline constexpr int kMeetAtSwitches = 20;
inline constexpr int kMeetAtNode = 40;

inline constexpr unsigned kMemoryV2Version = sizeof(MemoryV2) | (2U << 24U);
inline constexpr unsigned long long kMemoryNotAvailable = ~0ULL;
inline constexpr std::size_t kStringMax = 96;

static_assert(sizeof(Memory) == 24);
static_assert(sizeof(MemoryV2) == 40 && offsetof(MemoryV2, total) == 8 &&
              offsetof(MemoryV2, reserved) == 16 && offsetof(MemoryV2, free) == 24 &&
              offsetof(MemoryV2, used) == 32 && kMemoryV2Version == 0x02000028);
static_assert(sizeof(Utilization) == 8);
static_assert(sizeof(PciInfo) == 68 && offsetof(PciInfo, domain) == 16 &&
              offsetof(PciInfo, bus_id) == 36);
static_assert(sizeof(ProcessV1) == 16 && offsetof(ProcessV1, used_memory) == 8);
static_assert(sizeof(Process) == 24 && offsetof(Process, gpu_instance) == 16);
static_assert(sizeof(ProcessSample) == 32 && offsetof(ProcessSample, time_stamp_us) == 8 &&
              offsetof(ProcessSample, sm) == 16);
static_assert(sizeof(Sample) == 16);
static_assert(sizeof(EventData) == 32 && offsetof(EventData, kind) == 8 &&
              offsetof(EventData, data) == 16);

}  // namespace berth::nvml
