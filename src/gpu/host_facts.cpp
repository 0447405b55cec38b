#include "gpu/host_facts.hpp"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>

namespace berth {

std::optional<std::string> read_text_file(const std::string& path) {
  const std::ifstream file(path);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf())) {
    return std::nullopt;
  }
  return text.str();
}

std::optional<Bytes> parse_mem_available(std::string_view meminfo) {
  constexpr std::string_view kKey = "\nMemAvailable:";
  const std::size_t key = meminfo.find(kKey);
  if (key == meminfo.npos) {
    return std::nullopt;
  }
  meminfo.remove_prefix(key + kKey.size());
  meminfo.remove_prefix(std::min(meminfo.find_first_not_of(' '), meminfo.size()));
  std::uint64_t kib = 0;
  const auto [rest, error] = std::from_chars(meminfo.data(), meminfo.data() + meminfo.size(), kib);
  const auto unit = meminfo.substr(static_cast<std::size_t>(rest - meminfo.data()));
  if (error != std::errc{} || !unit.starts_with(" kB\n")) {
    return std::nullopt;
  }
  return kib * kKiB;
}

std::optional<Bytes> read_host_available() {
  const auto text = read_text_file("/proc/meminfo");
  return text ? parse_mem_available(*text) : std::nullopt;
}

std::optional<std::uint32_t> read_numa_node(const PciAddress& address, const std::string& devices) {
  const auto text = read_text_file(devices + "/" + sysfs_name(address) + "/numa_node");
  std::uint32_t node = 0;  // -1 of a device without a node does not parse
  if (!text || std::from_chars(text->data(), text->data() + text->size(), node).ec != std::errc{}) {
    return std::nullopt;
  }
  return node;
}

}  // namespace berth
