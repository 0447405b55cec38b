// Exports: the library itself, the system, and finding cards.

#include <algorithm>
#include <cctype>
#include <cstdio>

#include "simgpu/files.hpp"
#include "simgpu/nvml_session.hpp"

namespace berth::simgpu {
namespace {

int open_card(unsigned index, NvmlDevice** out) noexcept {
  return with_driver([&](const Directory& directory, const Driver& driver) -> int {
    if (out == nullptr || index >= driver.cards) {
      return kInvalidArgument;
    }
    if (const auto card = enter_card(directory, index); !card) {
      return card.error();
    }
    *out = handle_of(index);
    return kSuccess;
  });
}

template <class Matches>
int find_card(NvmlDevice** out, Matches&& matches) noexcept {
  return with_driver([&](const Directory& directory, const Driver&) -> int {
    const auto cards = directory.cards();
    if (!cards || out == nullptr) {
      return cards ? kInvalidArgument : kUnknown;
    }
    const auto found = std::ranges::find_if(*cards, matches);
    return found == cards->end() ? kNotFound : open_card(found->index, out);
  });
}

/// "00000000:01:00.0", "0000:01:00", "01:00.0" all name the same place.
struct BusAddress {
  unsigned domain = 0, bus = 0, device = 0;
  friend bool operator==(const BusAddress&, const BusAddress&) = default;
};

std::optional<BusAddress> parse_bus(const char* text) {
  BusAddress address;
  if (std::sscanf(text, "%x:%x:%x", &address.domain, &address.bus, &address.device) == 3) {
    return address;
  }
  address.domain = 0;
  if (std::sscanf(text, "%x:%x", &address.bus, &address.device) == 2) {
    return address;
  }
  return std::nullopt;
}

int tell_count(unsigned* out) noexcept {
  return with_driver([&](const Directory&, const Driver& driver) -> int {
    if (out == nullptr) {
      return kInvalidArgument;
    }
    *out = driver.cards;
    return kSuccess;
  });
}

int tell_cuda(int* out) noexcept {
  return with_driver([&](const Directory&, const Driver& driver) -> int {
    if (out == nullptr) {
      return kInvalidArgument;
    }
    *out = static_cast<int>(driver.cuda);
    return kSuccess;
  });
}

int find_by_bus(const char* text, NvmlDevice** out) noexcept {
  const auto wanted = text == nullptr ? std::nullopt : parse_bus(text);
  if (!wanted) {
    return kInvalidArgument;
  }
  return find_card(out,
                   [&](const Card& card) { return parse_bus(card.pci_bus_id.c_str()) == wanted; });
}

}  // namespace
}  // namespace berth::simgpu

using namespace berth::simgpu;  // NOLINT: the exports below are of the global namespace by nature

SIMGPU_EXPORT int nvmlInit() {
  return guarded(begin_session);
}
SIMGPU_EXPORT int nvmlInit_v2() {
  return guarded(begin_session);
}
SIMGPU_EXPORT int nvmlInitWithFlags(unsigned) {
  return guarded(begin_session);
}
SIMGPU_EXPORT int nvmlShutdown() {
  return guarded(end_session);
}

SIMGPU_EXPORT const char* nvmlErrorString(int code) {
  switch (code) {
    case 0:
      return "Success";
    case 1:
      return "Uninitialized";
    case 2:
      return "Invalid Argument";
    case 3:
      return "Not Supported";
    case 4:
      return "Insufficient Permissions";
    case 5:
      return "Already Initialized";
    case 6:
      return "Not Found";
    case 7:
      return "Insufficient Size";
    case 8:
      return "Insufficient External Power";
    case 9:
      return "Driver Not Loaded";
    case 10:
      return "Timeout";
    case 11:
      return "Interrupt Request Issue";
    case 12:
      return "NVML Shared Library Not Found";
    case 13:
      return "Function Not Found";
    case 14:
      return "Corrupted infoROM";
    case 15:
      return "GPU is lost";
    case 16:
      return "GPU requires reset";
    case 17:
      return "GPU access blocked by the operating system";
    case 18:
      return "Driver/library version mismatch";
    case 19:
      return "In use by another client";
    case 20:
      return "Insufficient Memory";
    case 21:
      return "No data";
    case 25:
      return "Argument version mismatch";
    default:
      return "Unknown Error";
  }
}

SIMGPU_EXPORT int nvmlSystemGetDriverVersion(char* buffer, unsigned length) {
  return with_driver([&](const Directory&, const Driver& driver) {
    return copy_string(driver.version, buffer, length);
  });
}

SIMGPU_EXPORT int nvmlSystemGetNVMLVersion(char* buffer, unsigned length) {
  return with_driver([&](const Directory&, const Driver& driver) {
    return copy_string(std::to_string(driver.cuda / 1000) + "." + driver.version, buffer, length);
  });
}

SIMGPU_EXPORT int nvmlSystemGetCudaDriverVersion(int* version) {
  return tell_cuda(version);
}
SIMGPU_EXPORT int nvmlSystemGetCudaDriverVersion_v2(int* version) {
  return tell_cuda(version);
}

SIMGPU_EXPORT int nvmlSystemGetProcessName(unsigned pid, char* buffer, unsigned length) {
  return with_driver([&](const Directory&, const Driver&) -> int {
    const auto command = read_file("/proc/" + std::to_string(pid) + "/cmdline");
    if (!command) {
      return kNotFound;
    }
    // This one function cuts what does not fit instead of refusing.
    const std::string name = command->substr(0, command->find('\0'));
    return copy_string(std::string_view(name).substr(0, length == 0 ? 0 : length - 1), buffer,
                       length);
  });
}

SIMGPU_EXPORT int nvmlDeviceGetCount(unsigned* count) {
  return tell_count(count);
}
SIMGPU_EXPORT int nvmlDeviceGetCount_v2(unsigned* count) {
  return tell_count(count);
}
SIMGPU_EXPORT int nvmlDeviceGetHandleByIndex(unsigned index, NvmlDevice** out) {
  return open_card(index, out);
}
SIMGPU_EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned index, NvmlDevice** out) {
  return open_card(index, out);
}
SIMGPU_EXPORT int nvmlDeviceGetHandleByUUID(const char* uuid, NvmlDevice** out) {
  return uuid == nullptr ? kInvalidArgument
                         : find_card(out, [&](const Card& card) { return card.uuid == uuid; });
}
SIMGPU_EXPORT int nvmlDeviceGetHandleByPciBusId(const char* bus, NvmlDevice** out) {
  return find_by_bus(bus, out);
}
SIMGPU_EXPORT int nvmlDeviceGetHandleByPciBusId_v2(const char* bus, NvmlDevice** out) {
  return find_by_bus(bus, out);
}
