#pragma once
// Codes that log a browser in once. They live as long as the daemon, and a few minutes at most.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.hpp"

namespace berth {

/// `now` counts steadily.
class LoginCodes {
 public:
  /// `scope`: what the browser may do, "full" or "read".
  [[nodiscard]] std::string issue(Millis now, std::string scope = "full");
  /// The scope of a code that was good; it is not any more. Wrong ones change nothing: there are
  /// too many codes to guess one, and whoever sends wrong ones must not lock out who has the right
  /// one.
  std::optional<std::string> redeem(std::string_view code, Millis now);

 private:
  struct Code {
    std::string hash;
    Millis expires{0};
    std::string scope;
  };
  std::vector<Code> codes_;
};

}  // namespace berth
