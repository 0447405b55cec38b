#pragma once
// A number nobody can foretell. Not std::random_device: what that needs of glibc is newer than the
// systems our programs run on.

#include <cstdint>

#include <sys/random.h>

namespace berth {

[[nodiscard]] inline std::uint32_t random_number() {
  std::uint32_t value = 0;
  [[maybe_unused]] const ssize_t got = ::getrandom(&value, sizeof value, 0);
  return value;
}

}  // namespace berth
