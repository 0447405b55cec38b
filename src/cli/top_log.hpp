#pragma once
// The end of a log as lines for a screen.

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace berth::cli {

/// Keeps the last lines of what it is fed. Of a line that a progress bar writes over and over, what
/// it showed last; colours and other sequences for terminals are left out. Memory is bounded.
class TopLog {
 public:
  explicit TopLog(std::size_t lines) : most_(lines) {}

  void feed(std::string_view text);
  [[nodiscard]] bool empty() const { return lines_.empty() && partial_.empty(); }
  /// Printable, the unfinished last one included.
  [[nodiscard]] std::vector<std::string> lines() const;

 private:
  void end_line();

  std::size_t most_;
  std::deque<std::string> lines_;
  std::string partial_;
};

}  // namespace berth::cli
