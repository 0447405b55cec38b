#pragma once
// XID errors: what the driver writes to the kernel's log when something is wrong with a card.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "gpu/nvml_library.hpp"

namespace berth::nvml {

/// Collects errors between two samples. Drivers and cards that do not report any are silent.
/// Lives between `init` and `shutdown` of the library, which it borrows.
class XidListener {
 public:
  explicit XidListener(const Library& library);
  XidListener(const XidListener&) = delete;
  XidListener& operator=(const XidListener&) = delete;
  ~XidListener();

  /// Does nothing for a card that it already listens to.
  void listen(Device device, const std::string& uuid);
  /// What came since the last call, by UUID; each code once. Does not wait.
  [[nodiscard]] std::map<std::string, std::vector<std::uint32_t>> drain();

 private:
  const Library& library_;
  EventSet set_ = nullptr;
  std::map<Device, std::string> uuids_;
};

}  // namespace berth::nvml
