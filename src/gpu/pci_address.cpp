#include "gpu/pci_address.hpp"

#include <fmt/format.h>

#include <cstdio>

namespace berth {

std::optional<PciAddress> parse_pci_address(const std::string& text) {
  PciAddress address;
  int end = 0;
  const int fields = std::sscanf(text.c_str(), "%x:%x:%x.%x%n", &address.domain, &address.bus,
                                 &address.device, &address.function, &end);
  if (fields != 4 || static_cast<std::size_t>(end) != text.size()) {
    return std::nullopt;
  }
  return address;
}

std::string sysfs_name(const PciAddress& address) {
  return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", address.domain, address.bus, address.device,
                     address.function);
}

}  // namespace berth
