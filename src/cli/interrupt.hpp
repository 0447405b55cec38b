#pragma once
// Ctrl-C as something a command can answer, instead of the end of the program.

#include <csignal>

namespace berth::cli {

/// The exit code of a command that was interrupted, as shells have it.
inline constexpr int kInterrupted = 130;

/// While it lives, SIGINT is only noted. System calls that wait are interrupted by it.
class CatchInterrupt {
 public:
  CatchInterrupt();
  ~CatchInterrupt();
  CatchInterrupt(const CatchInterrupt&) = delete;
  CatchInterrupt& operator=(const CatchInterrupt&) = delete;

 private:
  struct sigaction before_{};
};

/// Whether SIGINT has come since the last CatchInterrupt was made.
[[nodiscard]] bool interrupted();

}  // namespace berth::cli
