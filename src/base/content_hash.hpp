#pragma once
// FNV-1a, 64 bits: tells contents apart, not friends from enemies. No heap: the supervisor of an
// attempt uses it, too.

#include <cstdint>
#include <string_view>

namespace berth {

class ContentHash {
 public:
  void add(std::string_view bytes) {
    for (const char c : bytes) {
      value_ = (value_ ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;  // NOLINT: its prime
    }
  }
  [[nodiscard]] std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0xcbf29ce484222325ULL;
};

/// A variable of an attempt: "HASH PATH", 16 hexadecimal digits. The attempt starts only while the
/// file has that content.
inline constexpr std::string_view kUnchangedVariable = "BERTH_UNCHANGED=";

}  // namespace berth
