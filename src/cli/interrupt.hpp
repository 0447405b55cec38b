#pragma once
// Ctrl-C as something a command can answer, instead of the end of the program.

#include <array>
#include <csignal>

namespace berth::cli {

/// The exit code of a command that was interrupted, as shells have it.
inline constexpr int kInterrupted = 128 + SIGINT;

/// While it lives, SIGINT and SIGTERM are only noted. System calls that wait are interrupted.
class CatchInterrupt {
 public:
  CatchInterrupt();
  ~CatchInterrupt();
  CatchInterrupt(const CatchInterrupt&) = delete;
  CatchInterrupt& operator=(const CatchInterrupt&) = delete;

 private:
  std::array<struct sigaction, 2> before_{};
};

/// Whether a signal has come while one of them lives.
[[nodiscard]] bool interrupted();
/// The exit code to leave with then: 130 after Ctrl-C.
[[nodiscard]] int interrupt_code();

}  // namespace berth::cli
