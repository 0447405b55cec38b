#pragma once
// The binary interface of NVML on 64-bit Linux, as far as the simulated library speaks it.
// Names and layouts are NVIDIA's; the assertions pin them.

#include <cstddef>

namespace berth::simgpu {

enum NvmlCode : int {
  kSuccess = 0,
  kUninitialized = 1,
  kInvalidArgument = 2,
  kNotSupported = 3,
  kNotFound = 6,
  kInsufficientSize = 7,
  kDriverNotLoaded = 9,
  kTimeout = 10,
  kGpuIsLost = 15,
  kVersionMismatch = 25,
  kUnknown = 999,
};

using U64 = unsigned long long;
inline constexpr unsigned kNotAvailable = ~0U;
inline constexpr U64 kNotAvailable64 = ~0ULL;

struct NvmlDevice;  // opaque
struct NvmlEventSet;

struct NvmlPciInfo {
  char bus_id_legacy[16];
  unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
  char bus_id[32];
};
struct NvmlMemory {
  U64 total, free, used;
};
struct NvmlMemoryV2 {
  unsigned version;
  U64 total, reserved, free, used;
};
struct NvmlUtilization {
  unsigned gpu, memory;
};
struct NvmlProcessV1 {
  unsigned pid;
  U64 used;
};
struct NvmlProcess {
  unsigned pid;
  U64 used;
  unsigned gpu_instance, compute_instance;
};
struct NvmlProcessDetail {
  unsigned pid;
  U64 used;
  unsigned gpu_instance, compute_instance;
  U64 protected_memory;
};
struct NvmlProcessDetailList {
  unsigned version, mode, count;
  NvmlProcessDetail* processes;
};
struct NvmlProcessSample {
  unsigned pid;
  U64 time_stamp;
  unsigned sm, memory, encoder, decoder;
};
struct NvmlSample {
  U64 time_stamp, value;
};
struct NvmlEventData {
  NvmlDevice* device;
  U64 kind, data;
  unsigned gpu_instance, compute_instance;
};
struct NvmlTemperature {
  unsigned version, sensor;
  int temperature;
};
struct NvmlFieldValue {
  unsigned field, scope;
  long long time_stamp, latency;
  unsigned value_type;
  int result;
  U64 value;
};

/// Versioned structs name their size and version in the first word.
inline constexpr unsigned kMemoryV2Version = 0x02000028;
inline constexpr unsigned kProcessDetailListVersion = 0x01000018;
inline constexpr unsigned kTemperatureVersion = 0x0100000C;
/// What the first two forms of PciInfo had in common.
inline constexpr std::size_t kPciInfoOldSize = 36;
/// Without the instances of partitioned cards.
inline constexpr std::size_t kEventDataOldSize = 24;
inline constexpr U64 kXidEvent = 8;

static_assert(sizeof(NvmlPciInfo) == 68 && offsetof(NvmlPciInfo, bus_id) == kPciInfoOldSize);
static_assert(sizeof(NvmlMemory) == 24);
static_assert(sizeof(NvmlMemoryV2) == 40 && offsetof(NvmlMemoryV2, total) == 8);
static_assert(sizeof(NvmlUtilization) == 8);
static_assert(sizeof(NvmlProcessV1) == 16 && offsetof(NvmlProcessV1, used) == 8);
static_assert(sizeof(NvmlProcess) == 24 && offsetof(NvmlProcess, compute_instance) == 20);
static_assert(sizeof(NvmlProcessDetail) == 32 &&
              offsetof(NvmlProcessDetail, protected_memory) == 24);
static_assert(sizeof(NvmlProcessDetailList) == 24 &&
              offsetof(NvmlProcessDetailList, processes) == 16);
static_assert(sizeof(NvmlProcessSample) == 32 && offsetof(NvmlProcessSample, sm) == 16);
static_assert(sizeof(NvmlSample) == 16);
static_assert(sizeof(NvmlEventData) == 32 &&
              offsetof(NvmlEventData, gpu_instance) == kEventDataOldSize);
static_assert(sizeof(NvmlTemperature) == 12);
static_assert(sizeof(NvmlFieldValue) == 40 && offsetof(NvmlFieldValue, result) == 28);

}  // namespace berth::simgpu
