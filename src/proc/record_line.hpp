#pragma once
// How one line of an attempt's record is written: `WORD key=value … *crc32\n`.
//
// Shared by the daemon and the supervisor, so it needs neither heap nor exceptions. The checksum
// makes a torn line recognisable; free text is percent-encoded, so a line never contains another.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/crc32.hpp"

namespace berth {

/// Of the supervisor that writes it. 2: it understands ControlKind::warn, and EXIT names the log.
inline constexpr unsigned kRecordVersion = 2;
inline constexpr unsigned kRecordVersionWithWarning = 2;

/// Builds one line in place. Text that would not fit is cut; the line stays well formed.
class RecordLine {
 public:
  explicit RecordLine(std::string_view word) { raw(word, kBody); }

  RecordLine& number(std::string_view key, std::int64_t value) {
    begin(key, 24);
    char digits[24];
    std::size_t used = sizeof digits;
    auto rest =
        value < 0 ? 0 - static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value);
    do {
      digits[--used] = static_cast<char>('0' + rest % 10);
      rest /= 10;
    } while (rest != 0);
    if (value < 0) {
      digits[--used] = '-';
    }
    raw({digits + used, sizeof digits - used}, kBody);
    return *this;
  }

  /// At most `limit` bytes of `value` are kept.
  RecordLine& text(std::string_view key, std::string_view value, std::size_t limit = 600) {
    begin(key, 0);
    for (const char c : value.substr(0, limit)) {
      const auto byte = static_cast<unsigned char>(c);
      if (byte > 0x20 && byte < 0x7f && byte != '%' && byte != '*') {
        raw({&c, 1}, kBody);
      } else if (size_ + 3 <= kBody) {
        const char escaped[3] = {'%', kHex[byte >> 4U], kHex[byte & 15U]};
        raw({escaped, 3}, kBody);
      }
    }
    return *this;
  }

  /// Closes the line with its checksum. The view lives as long as this object.
  [[nodiscard]] std::string_view finish() {
    const std::uint32_t crc = crc32({buffer_, size_});
    raw(" *", sizeof buffer_);
    for (unsigned shift = 32; shift != 0; shift -= 4) {
      raw({&kHex[(crc >> (shift - 4)) & 15U], 1}, sizeof buffer_);
    }
    raw("\n", sizeof buffer_);
    return {buffer_, size_};
  }

 private:
  static constexpr std::string_view kHexDigits = "0123456789abcdef";
  static constexpr const char* kHex = kHexDigits.data();
  static constexpr std::size_t kBody = 3500;  ///< with its checksum, a line fits the reserved block

  void begin(std::string_view key, std::size_t room) {
    if (size_ + 2 + key.size() + room > kBody) {
      return;
    }
    raw(" ", kBody);
    raw(key, kBody);
    raw("=", kBody);
  }
  void raw(std::string_view text, std::size_t limit) {
    for (const char c : text) {
      if (size_ < limit) {
        buffer_[size_++] = c;
      }
    }
  }

  char buffer_[kBody + 16];
  std::size_t size_ = 0;
};

}  // namespace berth
