#pragma once
// Numbers that must not be mixed up get types of their own.

#include <compare>
#include <cstdint>
#include <functional>

namespace berth {

template <class Tag>
struct StrongId {
  std::uint64_t value = 0;

  /// 0 is never issued; it stands for "none".
  [[nodiscard]] explicit operator bool() const { return value != 0; }
  friend auto operator<=>(StrongId, StrongId) = default;
};

using JobId = StrongId<struct JobTag>;
using AttemptId = StrongId<struct AttemptTag>;
using BatchId = StrongId<struct BatchTag>;
using QueueId = StrongId<struct QueueTag>;
using ShapeId = StrongId<struct ShapeTag>;

}  // namespace berth

template <class Tag>
struct std::hash<berth::StrongId<Tag>> {
  std::size_t operator()(berth::StrongId<Tag> id) const noexcept {
    return std::hash<std::uint64_t>{}(id.value);
  }
};
