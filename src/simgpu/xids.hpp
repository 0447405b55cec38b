#pragma once
// XID errors that simulated cards have reported: the file `xids`, the newest kXidsMax of them.

#include <cstdint>
#include <vector>

#include "simgpu/state.hpp"

namespace berth::simgpu {

inline constexpr std::size_t kXidsMax = 256;

struct Xid {
  std::uint64_t number = 0;  ///< 1, 2, … in the order of their coming
  unsigned card = 0;
  unsigned code = 0;
};

/// Callers hold the directory's lock.
[[nodiscard]] Outcome<void> add_xid(const Directory& directory, unsigned card, unsigned code);

/// Those after number `seen`.
[[nodiscard]] std::vector<Xid> xids_after(const Directory& directory, std::uint64_t seen);

}  // namespace berth::simgpu
