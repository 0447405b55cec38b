#pragma once
// The checksum of short texts that others may have cut or damaged.

#include <cstdint>
#include <string_view>

namespace berth {

/// CRC-32 (the polynomial of zip and Ethernet). Bitwise: the texts are short and tables cost
/// memory.
[[nodiscard]] constexpr std::uint32_t crc32(std::string_view bytes) {
  std::uint32_t crc = 0xffffffffU;
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc >> 1U) ^ (0xedb88320U & (0U - (crc & 1U)));
    }
  }
  return ~crc;
}

}  // namespace berth
