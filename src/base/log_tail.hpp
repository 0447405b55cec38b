#pragma once
// A log with a limit while its attempt runs: the first half is in the log itself, what came last in
// `<log>.tail.old` and `<log>.tail`, a quarter each. Written by the supervisor, which puts them
// together at the end, and read by people who look before that. See docs/formats/record.md.
//
// Shared with the supervisor, so it needs neither heap nor exceptions.

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace berth {

inline constexpr std::string_view kTailSuffix = ".tail";
inline constexpr std::string_view kOldTailSuffix = ".tail.old";
/// A smaller limit would be all marker and no log.
inline constexpr std::uint64_t kLogLimitMin = 64UL * 1024;

/// Short text put together in place.
template <std::size_t kSize>
class FixedText {
 public:
  constexpr FixedText& add(std::string_view text) {
    for (const char c : text.substr(0, kSize - size_)) {
      text_[size_++] = c;
    }
    return *this;
  }
  /// With leading zeros up to `width`.
  constexpr FixedText& add(std::uint64_t number, std::size_t width = 1) {
    char digits[20] = {};
    std::size_t used = sizeof digits;
    while (number != 0 || sizeof digits - used < width) {
      digits[--used] = static_cast<char>('0' + number % 10);
      number /= 10;
    }
    return add({digits + used, sizeof digits - used});
  }
  [[nodiscard]] constexpr std::string_view view() const { return {text_, size_}; }

 private:
  char text_[kSize] = {};
  std::size_t size_ = 0;
};

/// The first line of a tail file. Positions are those in all that was ever to be logged.
struct TailHeader {
  std::uint64_t seq = 0;    ///< how many tail files came before this one
  std::uint64_t head = 0;   ///< size of the head: where the log itself ends
  std::uint64_t from = 0;   ///< position of the first byte after this line
  std::uint64_t limit = 0;  ///< of the log
};

inline constexpr std::string_view kTailMagic = "berth-log-tail 1";
inline constexpr std::string_view kTailKeys[] = {" seq=", " head=", " from=", " limit="};
inline constexpr std::size_t kTailDigits = 20;
inline constexpr std::size_t kTailHeaderSize =
    kTailMagic.size() + 5 + 6 + 6 + 7 + 4 * kTailDigits + 1;

[[nodiscard]] constexpr FixedText<kTailHeaderSize> format_tail_header(const TailHeader& header) {
  FixedText<kTailHeaderSize> text;
  text.add(kTailMagic);
  const std::uint64_t values[] = {header.seq, header.head, header.from, header.limit};
  for (std::size_t i = 0; i < 4; ++i) {
    text.add(kTailKeys[i]).add(values[i], kTailDigits);
  }
  return text.add("\n");
}

/// False when the bytes do not begin with such a line.
[[nodiscard]] constexpr bool parse_tail_header(std::string_view bytes, TailHeader& header) {
  if (bytes.size() < kTailHeaderSize || !bytes.starts_with(kTailMagic)) {
    return false;
  }
  bytes.remove_prefix(kTailMagic.size());
  std::uint64_t values[4] = {};
  for (std::size_t i = 0; i < 4; ++i) {
    if (!bytes.starts_with(kTailKeys[i])) {
      return false;
    }
    bytes.remove_prefix(kTailKeys[i].size());
    for (const char c : bytes.substr(0, kTailDigits)) {
      if (c < '0' || c > '9') {
        return false;
      }
      values[i] = values[i] * 10 + static_cast<std::uint64_t>(c - '0');
    }
    bytes.remove_prefix(kTailDigits);
  }
  header = {values[0], values[1], values[2], values[3]};
  return bytes.starts_with('\n');
}

/// The line that stands where something is missing.
[[nodiscard]] constexpr FixedText<128> left_out_line(std::uint64_t bytes, std::uint64_t limit) {
  constexpr std::string_view kUnits[] = {"", "KiB", "MiB", "GiB"};
  std::size_t unit = 0;
  while (unit < 3 && limit != 0 && limit % 1024 == 0) {
    limit /= 1024;
    ++unit;
  }
  FixedText<128> text;
  text.add("[berth: ").add(bytes).add(" bytes left out here, log_limit is ").add(limit);
  return text.add(kUnits[unit]).add("]\n");
}

}  // namespace berth
