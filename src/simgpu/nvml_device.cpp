// Exports: facts about one card.

#include <cstdio>
#include <cstring>

#include "simgpu/nvml_session.hpp"

namespace berth::simgpu {
namespace {

constexpr unsigned kPowerLimitMw = 300'000;
constexpr unsigned kIdlePowerMw = 25'000;
constexpr unsigned kIdleTemperature = 32;
constexpr U64 kBar1Size = 256ULL << 20;

unsigned busy_percent(const Directory& directory, const Card& card) {
  return card.util.resolve(total_util(directory.users(card.index))).value_or(0);
}

/// Tells `reading`, computed from how busy the card is where nobody fixed it.
template <class Compute>
int tell_reading(const NvmlDevice* device, unsigned* out, Reading Card::* reading,
                 Compute&& compute) noexcept {
  return with_card(device, [&](const Directory& directory, const Card& card) -> int {
    if (out == nullptr) {
      return kInvalidArgument;
    }
    const auto value = (card.*reading).resolve(compute(busy_percent(directory, card)));
    if (!value) {
      return kNotSupported;
    }
    *out = *value;
    return kSuccess;
  });
}

int tell_temperature(const NvmlDevice* device, int sensor, unsigned* out) noexcept {
  if (sensor != 0) {
    return kInvalidArgument;
  }
  return tell_reading(device, out, &Card::temperature,
                      [](unsigned busy) { return kIdleTemperature + busy / 2; });
}

int tell_string(const NvmlDevice* device, std::string Card::* text, char* buffer,
                unsigned length) noexcept {
  return with_card(device, [&](const Directory&, const Card& card) {
    return copy_string(card.*text, buffer, length);
  });
}

int tell_pci(const NvmlDevice* device, void* out, std::size_t size) noexcept {
  return with_card(device, [&](const Directory&, const Card& card) -> int {
    if (out == nullptr) {
      return kInvalidArgument;
    }
    const NvmlPciInfo info = pci_info(card);
    std::memcpy(out, &info, size);
    return kSuccess;
  });
}

template <class Fill>
int tell_memory(const NvmlDevice* device, Fill&& fill) noexcept {
  return with_card(device, [&](const Directory& directory, const Card& card) -> int {
    if (!card.memory_known) {
      return kNotSupported;
    }
    const U64 used = total_bytes(directory.users(card.index));
    const U64 taken = used + card.reserved;
    fill(card, used, card.memory > taken ? card.memory - taken : 0);
    return kSuccess;
  });
}

int tell_clock_reasons(const NvmlDevice* device, U64* reasons) noexcept {
  constexpr U64 kIdle = 1;
  return with_card(device, [&](const Directory& directory, const Card& card) -> int {
    if (reasons == nullptr) {
      return kInvalidArgument;
    }
    *reasons = busy_percent(directory, card) == 0 ? kIdle : 0;
    return kSuccess;
  });
}

}  // namespace

NvmlPciInfo pci_info(const Card& card) {
  NvmlPciInfo info{};
  std::sscanf(card.pci_bus_id.c_str(), "%x:%x:%x", &info.domain, &info.bus, &info.device);
  info.pci_device_id = 0x20B010DE;  // an A100, of vendor 10DE
  info.pci_subsystem_id = 0x144E10DE;
  std::snprintf(&info.bus_id_legacy[0], sizeof info.bus_id_legacy, "%04X:%02X:%02X.0",
                info.domain & 0xffffU, info.bus & 0xffU, info.device & 0xffU);
  std::snprintf(&info.bus_id[0], sizeof info.bus_id, "%08X:%02X:%02X.0", info.domain,
                info.bus & 0xffU, info.device & 0xffU);
  return info;
}

}  // namespace berth::simgpu

using namespace berth::simgpu;  // NOLINT: the exports below are of the global namespace by nature

SIMGPU_EXPORT int nvmlDeviceGetName(NvmlDevice* device, char* buffer, unsigned length) {
  return tell_string(device, &Card::name, buffer, length);
}
SIMGPU_EXPORT int nvmlDeviceGetUUID(NvmlDevice* device, char* buffer, unsigned length) {
  return tell_string(device, &Card::uuid, buffer, length);
}
SIMGPU_EXPORT int nvmlDeviceGetIndex(NvmlDevice* device, unsigned* index) {
  return tell<unsigned>(device, index, index_of(device));
}
SIMGPU_EXPORT int nvmlDeviceGetMinorNumber(NvmlDevice* device, unsigned* minor) {
  return tell<unsigned>(device, minor, index_of(device));
}
SIMGPU_EXPORT int nvmlDeviceGetBoardId(NvmlDevice* device, unsigned* board) {
  const auto index = index_of(device);
  return tell<unsigned>(device, board, index ? std::optional((*index + 1) << 8U) : std::nullopt);
}
SIMGPU_EXPORT int nvmlDeviceGetPciInfo(NvmlDevice* device, void* out) {
  return tell_pci(device, out, kPciInfoOldSize);
}
SIMGPU_EXPORT int nvmlDeviceGetPciInfo_v2(NvmlDevice* device, void* out) {
  return tell_pci(device, out, kPciInfoOldSize);
}
SIMGPU_EXPORT int nvmlDeviceGetPciInfo_v3(NvmlDevice* device, NvmlPciInfo* out) {
  return tell_pci(device, out, sizeof *out);
}

SIMGPU_EXPORT int nvmlDeviceGetMemoryInfo(NvmlDevice* device, NvmlMemory* out) {
  if (out == nullptr) {
    return kInvalidArgument;
  }
  return tell_memory(device, [&](const Card& card, U64, U64 free) {
    *out = {card.memory, free, card.memory - free};  // the first form counts the reserve as used
  });
}
SIMGPU_EXPORT int nvmlDeviceGetMemoryInfo_v2(NvmlDevice* device, NvmlMemoryV2* out) {
  if (out == nullptr) {
    return kInvalidArgument;
  }
  if (out->version != kMemoryV2Version) {
    return kVersionMismatch;
  }
  return tell_memory(device, [&](const Card& card, U64 used, U64 free) {
    *out = {kMemoryV2Version, card.memory, card.reserved, free, used};
  });
}
SIMGPU_EXPORT int nvmlDeviceGetBAR1MemoryInfo(NvmlDevice* device, NvmlMemory* out) {
  return tell<NvmlMemory>(device, out, NvmlMemory{kBar1Size, kBar1Size, 0});
}

SIMGPU_EXPORT int nvmlDeviceGetUtilizationRates(NvmlDevice* device, NvmlUtilization* out) {
  return with_card(device, [&](const Directory& directory, const Card& card) -> int {
    if (out == nullptr) {
      return kInvalidArgument;
    }
    const auto users = directory.users(card.index);
    const auto util = card.util.resolve(total_util(users));
    if (!util) {
      return kNotSupported;
    }
    *out = {*util, *util / 2};
    return kSuccess;
  });
}
SIMGPU_EXPORT int nvmlDeviceGetEncoderUtilization(NvmlDevice* device, unsigned* util,
                                                  unsigned* period_us) {
  constexpr unsigned kPeriodUs = 167'000;
  const int code = tell<unsigned>(device, period_us, kPeriodUs);
  return code == kSuccess ? tell<unsigned>(device, util, 0) : code;
}
SIMGPU_EXPORT int nvmlDeviceGetDecoderUtilization(NvmlDevice* device, unsigned* util,
                                                  unsigned* period_us) {
  return nvmlDeviceGetEncoderUtilization(device, util, period_us);
}

SIMGPU_EXPORT int nvmlDeviceGetTemperature(NvmlDevice* device, int sensor, unsigned* out) {
  return tell_temperature(device, sensor, out);
}
SIMGPU_EXPORT int nvmlDeviceGetTemperatureV(NvmlDevice* device, NvmlTemperature* out) {
  if (out == nullptr) {
    return kInvalidArgument;
  }
  if (out->version != kTemperatureVersion) {
    return kVersionMismatch;
  }
  unsigned value = 0;
  const int code = tell_temperature(device, static_cast<int>(out->sensor), &value);
  if (code == kSuccess) {
    out->temperature = static_cast<int>(value);
  }
  return code;
}
SIMGPU_EXPORT int nvmlDeviceGetTemperatureThreshold(NvmlDevice* device, int kind, unsigned* out) {
  switch (kind) {
    case 0:  // shutdown
      return tell<unsigned>(device, out, 95);
    case 1:  // slowdown
      return tell<unsigned>(device, out, 92);
    case 3:  // highest working
      return tell<unsigned>(device, out, 85);
    default:
      return tell<unsigned>(device, out, std::nullopt);
  }
}

SIMGPU_EXPORT int nvmlDeviceGetPowerUsage(NvmlDevice* device, unsigned* milliwatts) {
  return tell_reading(device, milliwatts, &Card::power_mw, [](unsigned busy) {
    return kIdlePowerMw + (kPowerLimitMw - kIdlePowerMw) / 100 * busy;
  });
}
SIMGPU_EXPORT int nvmlDeviceGetEnforcedPowerLimit(NvmlDevice* device, unsigned* milliwatts) {
  return tell<unsigned>(device, milliwatts, kPowerLimitMw);
}
SIMGPU_EXPORT int nvmlDeviceGetPowerManagementLimit(NvmlDevice* device, unsigned* milliwatts) {
  return tell<unsigned>(device, milliwatts, kPowerLimitMw);
}

SIMGPU_EXPORT int nvmlDeviceGetClockInfo(NvmlDevice* device, int kind, unsigned* mhz) {
  return tell<unsigned>(device, mhz, kind == 2 ? 1215U : 1095U);
}
SIMGPU_EXPORT int nvmlDeviceGetMaxClockInfo(NvmlDevice* device, int kind, unsigned* mhz) {
  return tell<unsigned>(device, mhz, kind == 2 ? 1215U : 1410U);
}
SIMGPU_EXPORT int nvmlDeviceGetPerformanceState(NvmlDevice* device, int* state) {
  return tell<int>(device, state, 0);
}
SIMGPU_EXPORT int nvmlDeviceGetCurrentClocksEventReasons(NvmlDevice* device, U64* reasons) {
  return tell_clock_reasons(device, reasons);
}
SIMGPU_EXPORT int nvmlDeviceGetCurrentClocksThrottleReasons(NvmlDevice* device, U64* reasons) {
  return tell_clock_reasons(device, reasons);
}

SIMGPU_EXPORT int nvmlDeviceGetComputeMode(NvmlDevice* device, int* mode) {
  return tell<int>(device, mode, 0);
}
SIMGPU_EXPORT int nvmlDeviceGetPersistenceMode(NvmlDevice* device, int* on) {
  return tell<int>(device, on, 1);
}
SIMGPU_EXPORT int nvmlDeviceGetDisplayActive(NvmlDevice* device, int* on) {
  return tell<int>(device, on, 0);
}
SIMGPU_EXPORT int nvmlDeviceGetDisplayMode(NvmlDevice* device, int* on) {
  return tell<int>(device, on, 0);
}
SIMGPU_EXPORT int nvmlDeviceGetCudaComputeCapability(NvmlDevice* device, int* major, int* minor) {
  const int code = tell<int>(device, major, 8);
  return code == kSuccess ? tell<int>(device, minor, 0) : code;
}
SIMGPU_EXPORT int nvmlDeviceGetArchitecture(NvmlDevice* device, unsigned* architecture) {
  constexpr unsigned kAmpere = 7;
  return tell<unsigned>(device, architecture, kAmpere);
}

SIMGPU_EXPORT int nvmlDeviceGetCurrPcieLinkGeneration(NvmlDevice* device, unsigned* out) {
  return tell<unsigned>(device, out, 4);
}
SIMGPU_EXPORT int nvmlDeviceGetMaxPcieLinkGeneration(NvmlDevice* device, unsigned* out) {
  return tell<unsigned>(device, out, 4);
}
SIMGPU_EXPORT int nvmlDeviceGetCurrPcieLinkWidth(NvmlDevice* device, unsigned* out) {
  return tell<unsigned>(device, out, 16);
}
SIMGPU_EXPORT int nvmlDeviceGetMaxPcieLinkWidth(NvmlDevice* device, unsigned* out) {
  return tell<unsigned>(device, out, 16);
}
SIMGPU_EXPORT int nvmlDeviceGetPcieThroughput(NvmlDevice* device, int, unsigned* kb_per_second) {
  return tell<unsigned>(device, kb_per_second, 0);
}

SIMGPU_EXPORT int nvmlDeviceIsMigDeviceHandle(NvmlDevice* device, unsigned* is_mig) {
  return tell<unsigned>(device, is_mig, 0);
}
SIMGPU_EXPORT int nvmlDeviceGetMaxMigDeviceCount(NvmlDevice* device, unsigned* count) {
  return tell<unsigned>(device, count, 0);
}

SIMGPU_EXPORT int nvmlDeviceGetFieldValues(NvmlDevice* device, int count, NvmlFieldValue* values) {
  return with_card(device, [&](const Directory&, const Card&) -> int {
    if (values == nullptr || count <= 0) {
      return kInvalidArgument;
    }
    for (int i = 0; i < count; ++i) {
      values[i].result = kNotSupported;
    }
    return kSuccess;
  });
}
