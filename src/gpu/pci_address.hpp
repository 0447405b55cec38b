#pragma once
// Where a card is on the PCI bus, in whichever spelling: NVML writes "00000000:01:00.0" where the
// kernel writes "0000:01:00.0".

#include <optional>
#include <string>

namespace berth {

struct PciAddress {
  unsigned domain = 0, bus = 0, device = 0, function = 0;

  friend auto operator<=>(const PciAddress&, const PciAddress&) = default;
};

[[nodiscard]] std::optional<PciAddress> parse_pci_address(const std::string& text);
/// The name of its directory in /sys/bus/pci/devices.
[[nodiscard]] std::string sysfs_name(const PciAddress& address);

}  // namespace berth
