// Exports: how a card has been doing lately: samples, memory errors, XID events.

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "simgpu/nvml_session.hpp"
#include "simgpu/xids.hpp"

namespace berth::simgpu {
namespace {

constexpr unsigned kSamplesMax = 100;

/// The samples of the last kHistoryUs, oldest first; nullopt where the card does not tell.
std::optional<std::vector<NvmlSample>> samples_of(const Directory& directory, const Card& card) {
  constexpr unsigned kPerHistory = 18;  // the driver takes six a second
  const bool fixed = card.samples.kind == Reading::Kind::fixed;
  const std::size_t count = fixed ? card.samples.percents.size() : kPerHistory;
  const auto users = directory.users(card.index);
  const U64 now = epoch_us();
  std::vector<NvmlSample> samples;
  for (std::size_t i = 0; i < count; ++i) {
    const U64 time = now - kHistoryUs / count * (count - 1 - i);
    if (fixed) {
      samples.push_back({time, card.samples.percents[i]});
      continue;
    }
    // What a process did is forgotten with the process.
    auto running = users;
    std::erase_if(running, [&](const Allocation& user) { return user.since_us > time; });
    const auto util = card.util.resolve(total_util(running));
    if (!util || card.samples.kind == Reading::Kind::unknown) {
      return std::nullopt;
    }
    samples.push_back({time, *util});
  }
  return samples;
}

/// What an event set listens to.
struct Listener {
  U64 heard = 0;                          ///< the last XID delivered
  std::map<unsigned, U64> since_by_card;  ///< the newest XID when it began to listen
};

struct Listeners {
  std::mutex mutex;
  std::map<const NvmlEventSet*, std::unique_ptr<Listener>> by_set;
};

Listeners& listeners() {
  static Listeners one;
  return one;
}

/// The next event for the set; nullopt: none yet. kInvalidArgument: there is no such set.
std::expected<std::optional<NvmlEventData>, int> next_event(const Directory& directory,
                                                            const NvmlEventSet* set) {
  const std::scoped_lock lock(listeners().mutex);
  const auto found = listeners().by_set.find(set);
  if (found == listeners().by_set.end()) {
    return std::unexpected(static_cast<int>(kInvalidArgument));
  }
  Listener& listener = *found->second;
  for (const Xid& xid : xids_after(directory, listener.heard)) {
    listener.heard = xid.number;
    const auto since = listener.since_by_card.find(xid.card);
    if (since != listener.since_by_card.end() && xid.number > since->second) {
      return NvmlEventData{handle_of(xid.card), kXidEvent, xid.code, kNotAvailable, kNotAvailable};
    }
  }
  return std::nullopt;
}

/// The wait must really block, because clients loop around it.
int wait_for_event(const NvmlEventSet* set, void* out, std::size_t size,
                   unsigned timeout_ms) noexcept {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kPoll{20};
  const auto end = Clock::now() + std::chrono::milliseconds(timeout_ms);
  return with_driver([&](const Directory& directory, const Driver&) -> int {
    if (out == nullptr) {
      return kInvalidArgument;
    }
    for (;;) {
      const auto event = next_event(directory, set);
      if (!event) {
        return event.error();
      }
      if (*event) {
        std::memcpy(out, &**event, size);
        return kSuccess;
      }
      const auto left = end - Clock::now();
      if (left <= Clock::duration::zero()) {
        return kTimeout;
      }
      std::this_thread::sleep_for(std::min<Clock::duration>(left, kPoll));
    }
  });
}

}  // namespace
}  // namespace berth::simgpu

using namespace berth::simgpu;  // NOLINT: the exports below are of the global namespace by nature

SIMGPU_EXPORT int nvmlDeviceGetSamples(NvmlDevice* device, int kind, U64 last_seen_us,
                                       int* value_type, unsigned* count, NvmlSample* out) {
  constexpr int kGpuUtilization = 1;
  constexpr int kUnsigned = 1;
  return with_card(device, [&](const Directory& directory, const Card& card) -> int {
    if (count == nullptr || value_type == nullptr || (out != nullptr && *count == 0)) {
      return kInvalidArgument;
    }
    auto samples = kind == kGpuUtilization ? samples_of(directory, card) : std::nullopt;
    if (!samples) {
      return kNotSupported;
    }
    *value_type = kUnsigned;
    if (out == nullptr) {  // asks for the room that is always enough
      *count = kSamplesMax;
      return kSuccess;
    }
    std::erase_if(*samples, [&](const NvmlSample& one) { return one.time_stamp <= last_seen_us; });
    if (samples->empty()) {
      return kNotFound;
    }
    *count = std::min(*count, static_cast<unsigned>(samples->size()));
    std::copy_n(samples->begin(), *count, out);
    return kSuccess;
  });
}

SIMGPU_EXPORT int nvmlDeviceGetEccMode(NvmlDevice* device, int* current, int* pending) {
  return with_card(device, [&](const Directory&, const Card& card) -> int {
    if (current == nullptr || pending == nullptr) {
      return kInvalidArgument;
    }
    *current = *pending = 1;
    return card.ecc.resolve(0) ? kSuccess : kNotSupported;
  });
}
SIMGPU_EXPORT int nvmlDeviceGetTotalEccErrors(NvmlDevice* device, int kind, int, U64* out) {
  constexpr int kUncorrected = 1;
  return with_card(device, [&](const Directory&, const Card& card) -> int {
    const auto errors = card.ecc.resolve(0);
    if (out == nullptr || !errors) {
      return errors ? kInvalidArgument : kNotSupported;
    }
    *out = kind == kUncorrected ? *errors : 0;
    return kSuccess;
  });
}

SIMGPU_EXPORT int nvmlEventSetCreate(NvmlEventSet** set) {
  return with_driver([&](const Directory&, const Driver&) -> int {
    if (set == nullptr) {
      return kInvalidArgument;
    }
    auto listener = std::make_unique<Listener>();
    *set = reinterpret_cast<NvmlEventSet*>(listener.get());
    const std::scoped_lock lock(listeners().mutex);
    listeners().by_set[*set] = std::move(listener);
    return kSuccess;
  });
}
SIMGPU_EXPORT int nvmlEventSetFree(NvmlEventSet* set) {
  return guarded([&]() -> int {
    const std::scoped_lock lock(listeners().mutex);
    return listeners().by_set.erase(set) == 1 ? kSuccess : kInvalidArgument;
  });
}
SIMGPU_EXPORT int nvmlEventSetWait(NvmlEventSet* set, void* out, unsigned timeout_ms) {
  return wait_for_event(set, out, kEventDataOldSize, timeout_ms);
}
SIMGPU_EXPORT int nvmlEventSetWait_v2(NvmlEventSet* set, NvmlEventData* out, unsigned timeout_ms) {
  return wait_for_event(set, out, sizeof *out, timeout_ms);
}
SIMGPU_EXPORT int nvmlDeviceRegisterEvents(NvmlDevice* device, U64 kinds, NvmlEventSet* set) {
  return with_card(device, [&](const Directory& directory, const Card& card) -> int {
    if ((kinds & ~kXidEvent) != 0) {
      return kNotSupported;
    }
    const auto before = xids_after(directory, 0);
    const std::scoped_lock lock(listeners().mutex);
    const auto found = listeners().by_set.find(set);
    if (found == listeners().by_set.end()) {
      return kInvalidArgument;
    }
    if (kinds != 0) {
      found->second->since_by_card.try_emplace(card.index,
                                               before.empty() ? 0 : before.back().number);
    }
    return kSuccess;
  });
}
SIMGPU_EXPORT int nvmlDeviceGetSupportedEventTypes(NvmlDevice* device, U64* types) {
  return tell<U64>(device, types, kXidEvent);
}
