#pragma once
// What small files of /proc and /sys tell about the machine.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/units.hpp"
#include "gpu/pci_address.hpp"

namespace berth {

/// The content of a small file; nullopt when it cannot be read.
[[nodiscard]] std::optional<std::string> read_text_file(const std::string& path);

/// MemAvailable of the text of /proc/meminfo.
[[nodiscard]] std::optional<Bytes> parse_mem_available(std::string_view meminfo);
[[nodiscard]] std::optional<Bytes> read_host_available();

/// The NUMA node of a device, from the kernel; nullopt where it knows none.
[[nodiscard]] std::optional<std::uint32_t> read_numa_node(
    const PciAddress& address, const std::string& devices = "/sys/bus/pci/devices");

}  // namespace berth
