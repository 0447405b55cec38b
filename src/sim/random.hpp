#pragma once
// The one source of chance in a simulation. Written out here because the distributions of the
// standard library may give other numbers with another compiler, and a seed must mean the same
// everywhere.

#include <array>
#include <cstdint>
#include <span>

#include "base/time.hpp"

namespace berth::sim {

/// xoshiro256** fed by splitmix64.
class Random {
 public:
  explicit Random(std::uint64_t seed) {
    for (std::uint64_t& word : words_) {
      word = splitmix(seed);
    }
  }

  std::uint64_t next() {
    const std::uint64_t result = rotate(words_[1] * 5, 7) * 9;
    const std::uint64_t shifted = words_[1] << 17;
    words_[2] ^= words_[0];
    words_[3] ^= words_[1];
    words_[1] ^= words_[2];
    words_[0] ^= words_[3];
    words_[2] ^= shifted;
    words_[3] = rotate(words_[3], 45);
    return result;
  }

  /// 0 … n-1. The bias of a remainder is far below anything a simulation could notice.
  std::uint64_t below(std::uint64_t n) { return n == 0 ? 0 : next() % n; }
  std::uint64_t between(std::uint64_t low, std::uint64_t high) {
    return low + below(high - low + 1);
  }
  bool permille(std::uint64_t chance) { return below(1000) < chance; }
  bool percent(std::uint64_t chance) { return below(100) < chance; }
  Millis millis(std::uint64_t low, std::uint64_t high) {
    return Millis{static_cast<Millis::rep>(between(low, high))};
  }

  /// Short ones are as likely as long ones on a logarithmic scale, as with real experiments.
  Millis skewed(std::uint64_t low, std::uint64_t high) {
    std::uint64_t top = low;
    for (std::uint64_t doublings = below(64); doublings > 0 && top < high; --doublings) {
      top = top * 5 / 4 + 1;
    }
    return millis(low, top < high ? top : high);
  }

  template <class T, std::size_t N>
  const T& pick(const std::array<T, N>& from) {
    return from[below(N)];
  }
  template <class T>
  const T& pick(std::span<const T> from) {
    return from[below(from.size())];
  }

  /// A stream of its own: what one part draws does not shift what another part gets.
  Random fork() { return Random(next()); }

 private:
  static std::uint64_t splitmix(std::uint64_t& seed) {
    seed += 0x9E3779B97F4A7C15U;
    std::uint64_t z = seed;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31);
  }
  static std::uint64_t rotate(std::uint64_t x, int by) { return (x << by) | (x >> (64 - by)); }

  std::array<std::uint64_t, 4> words_{};
};

}  // namespace berth::sim
