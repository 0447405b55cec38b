#pragma once
// What the daemon may tell a supervisor, as the payload of one realtime signal. Part of the
// protocol between versions: numbers never change their meaning.

#include <csignal>
#include <cstdint>

namespace berth {

enum class ControlKind : std::uint8_t {
  kill = 1,
  pause = 2,
  resume = 3,
  forward = 4,
  warn = 5,  ///< the warning signal, the time the job has asked for, then kill; since record 2
};

struct ControlWord {
  ControlKind kind = ControlKind::kill;
  std::uint32_t value = 0;  ///< kill, warn: grace in units of 100 ms; forward: the signal
};

inline constexpr std::uint32_t kControlValueMax = 0xfffffe;
/// As the value of kill: the job's own grace.
inline constexpr std::uint32_t kOwnGrace = 0xffffff;
inline constexpr std::int64_t kGraceUnitMillis = 100;

/// SIGRTMIN is a function call in glibc: the first realtime signals belong to its threads.
[[nodiscard]] inline int control_signal() {
  return SIGRTMIN + 1;
}

[[nodiscard]] constexpr std::uint32_t encode_control(ControlWord word) {
  return (word.value << 8U) | static_cast<std::uint8_t>(word.kind);
}
/// Any number gives a word; an unknown kind is for the receiver to ignore.
[[nodiscard]] constexpr ControlWord decode_control(std::uint32_t bits) {
  return {static_cast<ControlKind>(bits & 0xffU), bits >> 8U};
}

}  // namespace berth
