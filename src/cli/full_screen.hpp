#pragma once
// A terminal taken over and given back, whatever happens in between.

#include <csignal>
#include <cstdint>
#include <optional>
#include <string_view>

#include <termios.h>

#include "base/fd.hpp"
#include "base/result.hpp"

namespace berth::cli {

/// Signals as something to read: while it lives, those that end, stop or resize are blocked in this
/// thread and in those it starts. Made before any other thread.
class TerminalSignals {
 public:
  [[nodiscard]] static Result<TerminalSignals> take();
  TerminalSignals(TerminalSignals&& other) noexcept;
  TerminalSignals& operator=(TerminalSignals&&) = delete;
  TerminalSignals(const TerminalSignals&) = delete;
  TerminalSignals& operator=(const TerminalSignals&) = delete;
  ~TerminalSignals();

  [[nodiscard]] int fd() const { return fd_.get(); }
  /// The next one that has come; none: none has.
  [[nodiscard]] std::optional<int> next() const;
  /// Stops this process as Ctrl-Z does; returns when it is continued.
  static void stop();

 private:
  TerminalSignals(Fd fd, const sigset_t& before) : fd_(std::move(fd)), before_(before) {}

  Fd fd_;
  sigset_t before_{};
};

/// The alternate screen and every key at once, without an echo.
class FullScreen {
 public:
  FullScreen();
  ~FullScreen();
  FullScreen(const FullScreen&) = delete;
  FullScreen& operator=(const FullScreen&) = delete;

  /// Gives the terminal back for a while, and takes it again.
  void leave();
  void enter();

 private:
  termios before_{};
  bool known_ = false;
  bool inside_ = false;
};

/// All of it, however slow the terminal; an error means that the terminal is gone.
[[nodiscard]] Status write_terminal(std::string_view text);

}  // namespace berth::cli
