#pragma once
// Codes that log a browser in once. They live as long as the daemon, and a few minutes at most.

#include <string>
#include <string_view>
#include <vector>

#include "base/time.hpp"

namespace berth {

/// `now` counts steadily.
class LoginCodes {
 public:
  [[nodiscard]] std::string issue(Millis now);
  /// Whether the code was good; it is not any more. Wrong ones change nothing: there are too many
  /// codes to guess one, and whoever sends wrong ones must not lock out who has the right one.
  bool redeem(std::string_view code, Millis now);

 private:
  struct Code {
    std::string hash;
    Millis expires{0};
  };
  std::vector<Code> codes_;
};

}  // namespace berth
