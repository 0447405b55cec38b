// Exports: the processes of one card.

#include <algorithm>

#include "simgpu/nvml_session.hpp"

namespace berth::simgpu {
namespace {

using Wanted = bool (*)(const Allocation&);
constexpr Wanted kCompute = [](const Allocation& user) { return user.compute; };
constexpr Wanted kGraphics = [](const Allocation& user) { return user.graphics; };
constexpr Wanted kNone = [](const Allocation&) { return false; };
constexpr Wanted kAll = [](const Allocation&) { return true; };

U64 memory_of(const Card& card, const Allocation& user) {
  return card.process_memory_known ? user.bytes : kNotAvailable64;
}

/// The protocol of the process lists: too little room gives the needed count; count 0 asks for it.
template <class Fill>
int list_processes(const NvmlDevice* device, Wanted wanted, unsigned* count, bool has_buffer,
                   Fill&& fill) noexcept {
  return with_card(device, [&](const Directory& directory, const Card& card) -> int {
    if (count == nullptr || (*count != 0 && !has_buffer)) {
      return kInvalidArgument;
    }
    if (!card.processes_known) {
      return kNotSupported;
    }
    auto users = directory.users(card.index);
    std::erase_if(users, [&](const Allocation& user) { return !wanted(user); });
    const unsigned room = *count;
    *count = static_cast<unsigned>(users.size());
    if (users.size() > room) {
      return kInsufficientSize;
    }
    for (std::size_t i = 0; i < users.size(); ++i) {
      fill(i, users[i].pid, memory_of(card, users[i]));
    }
    return kSuccess;
  });
}

int list_v1(const NvmlDevice* device, Wanted wanted, unsigned* count, NvmlProcessV1* out) noexcept {
  return list_processes(device, wanted, count, out != nullptr,
                        [&](std::size_t i, unsigned pid, U64 used) { out[i] = {pid, used}; });
}

int list_v3(const NvmlDevice* device, Wanted wanted, unsigned* count, NvmlProcess* out) noexcept {
  return list_processes(device, wanted, count, out != nullptr,
                        [&](std::size_t i, unsigned pid, U64 used) {
                          out[i] = {pid, used, kNotAvailable, kNotAvailable};
                        });
}

}  // namespace
}  // namespace berth::simgpu

using namespace berth::simgpu;  // NOLINT: the exports below are of the global namespace by nature

// Each list exists in three versions: records of 16 bytes, then of 24 in two of the same layout.
#define SIMGPU_PROCESS_LIST(kind, wanted)                                                         \
  SIMGPU_EXPORT int nvmlDeviceGet##kind##RunningProcesses(NvmlDevice* device, unsigned* count,    \
                                                          NvmlProcessV1* out) {                   \
    return list_v1(device, wanted, count, out);                                                   \
  }                                                                                               \
  SIMGPU_EXPORT int nvmlDeviceGet##kind##RunningProcesses_v2(NvmlDevice* device, unsigned* count, \
                                                             NvmlProcess* out) {                  \
    return list_v3(device, wanted, count, out);                                                   \
  }                                                                                               \
  SIMGPU_EXPORT int nvmlDeviceGet##kind##RunningProcesses_v3(NvmlDevice* device, unsigned* count, \
                                                             NvmlProcess* out) {                  \
    return list_v3(device, wanted, count, out);                                                   \
  }

SIMGPU_PROCESS_LIST(Compute, kCompute)
SIMGPU_PROCESS_LIST(Graphics, kGraphics)
SIMGPU_PROCESS_LIST(MPSCompute, kNone)

SIMGPU_EXPORT int nvmlDeviceGetRunningProcessDetailList(NvmlDevice* device,
                                                        NvmlProcessDetailList* list) {
  if (list == nullptr) {
    return kInvalidArgument;
  }
  if (list->version != kProcessDetailListVersion) {
    return kVersionMismatch;
  }
  constexpr Wanted kByMode[] = {kCompute, kGraphics, kNone, kAll};
  if (list->mode >= std::size(kByMode)) {
    return kInvalidArgument;
  }
  return list_processes(device, kByMode[list->mode], &list->count, list->processes != nullptr,
                        [&](std::size_t i, unsigned pid, U64 used) {
                          list->processes[i] = {pid, used, kNotAvailable, kNotAvailable,
                                                kNotAvailable64};
                        });
}

SIMGPU_EXPORT int nvmlDeviceGetProcessUtilization(NvmlDevice* device, NvmlProcessSample* out,
                                                  unsigned* count, U64 last_seen_us) {
  return with_card(device, [&](const Directory& directory, const Card& card) -> int {
    if (count == nullptr) {
      return kInvalidArgument;
    }
    if (!card.processes_known || card.util.kind == Reading::Kind::unknown) {
      return kNotSupported;
    }
    auto users = directory.users(card.index);
    std::erase_if(users, [](const Allocation& user) { return user.util == 0; });
    const U64 now = epoch_us();
    if (users.empty() || last_seen_us >= now) {
      return kNotFound;
    }
    const unsigned room = out == nullptr ? 0 : *count;
    *count = static_cast<unsigned>(users.size());
    if (users.size() > room) {
      return kInsufficientSize;
    }
    for (std::size_t i = 0; i < users.size(); ++i) {
      out[i] = {users[i].pid, now, users[i].util, users[i].util / 2, 0, 0};
    }
    return kSuccess;
  });
}
