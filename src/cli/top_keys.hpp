#pragma once
// The keys of `berth top`: bytes of a terminal to keys, keys to what changes and what is to be
// done.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/top_draw.hpp"
#include "cli/top_model.hpp"

namespace berth::cli {

struct TopKey {
  enum class Code : std::uint8_t {
    text,
    up,
    down,
    left,
    right,
    page_up,
    page_down,
    home,
    end,
    enter,
    tab,
    back_tab,
    backspace,
    escape,
  };
  Code code = Code::text;
  std::string text;  ///< one character, UTF-8

  friend bool operator==(const TopKey&, const TopKey&) = default;
};

/// Keys from bytes that come in any pieces.
class TopKeyReader {
 public:
  [[nodiscard]] std::vector<TopKey> feed(std::string_view bytes);
  /// Nothing has followed for a moment: an escape that waits was the key itself.
  [[nodiscard]] std::vector<TopKey> pause();
  [[nodiscard]] bool waits() const { return !rest_.empty(); }

 private:
  std::string rest_;  ///< the beginning of a sequence
};

/// What is to be done beyond the screen.
struct TopCommand {
  enum class What : std::uint8_t {
    quit,
    refresh,
    kill,
    pause,
    resume,
    start,
    priority,
    pause_queue,
    resume_queue,
  };
  What what = What::refresh;
  std::uint64_t job = 0;
  std::string queue = {};
  std::int32_t priority = 0;

  friend bool operator==(const TopCommand&, const TopCommand&) = default;
};

/// Changes what is chosen and in view; the command it means, if any.
[[nodiscard]] std::optional<TopCommand> press(const TopKey& key, TopState& state,
                                              const TopData& data, const TopSubject& subject,
                                              const TopSize& size);

}  // namespace berth::cli
