#include "gpu/nvml_xids.hpp"

#include <algorithm>

namespace berth::nvml {

XidListener::XidListener(const Library& library) : library_(library) {
  const bool complete = library.event_set_create != nullptr && library.event_set_free != nullptr &&
                        library.register_events != nullptr && library.event_wait != nullptr;
  if (complete && library.event_set_create(&set_) != success) {
    set_ = nullptr;
  }
}

XidListener::~XidListener() {
  if (set_ != nullptr) {
    library_.event_set_free(set_);
  }
}

void XidListener::listen(Device device, const std::string& uuid) {
  // Asked once: a card that refuses will refuse again.
  if (set_ != nullptr && uuids_.emplace(device, uuid).second) {
    (void)library_.register_events(device, kEventXid, set_);
  }
}

std::map<std::string, std::vector<std::uint32_t>> XidListener::drain() {
  std::map<std::string, std::vector<std::uint32_t>> found;
  constexpr unsigned kEventsMax = 1000;  // a card gone mad must not hold up the sample
  for (unsigned i = 0; set_ != nullptr && i < kEventsMax; ++i) {
    EventData event{};
    if (library_.event_wait(set_, &event, 0) != success) {
      break;
    }
    const auto uuid = uuids_.find(event.device);
    if (event.kind != kEventXid || uuid == uuids_.end()) {
      continue;
    }
    auto& codes = found[uuid->second];
    const auto code = static_cast<std::uint32_t>(event.data);
    if (std::ranges::find(codes, code) == codes.end()) {
      codes.push_back(code);
    }
  }
  return found;
}

}  // namespace berth::nvml
