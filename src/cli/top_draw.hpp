#pragma once
// The screen of `berth top` as lines of styled text: pure, so that tests read it.

#include <string>
#include <vector>

#include "cli/terminal.hpp"
#include "cli/top_model.hpp"

namespace berth::cli {

struct TopSize {
  std::size_t width = 80;
  std::size_t height = 24;

  friend bool operator==(const TopSize&, const TopSize&) = default;
};

struct TopTheme {
  bool color = true;
  bool unicode = true;
};

struct TopSpan {
  std::string text;
  Style style = Style::plain;

  friend bool operator==(const TopSpan&, const TopSpan&) = default;
};

struct TopLine {
  std::vector<TopSpan> spans;
  bool chosen = false;  ///< the line that keys act on

  friend bool operator==(const TopLine&, const TopLine&) = default;
};

/// As many lines as the screen has, each within its width.
using TopFrame = std::vector<TopLine>;

/// How the lines are shared out.
struct TopLayout {
  std::size_t head = 2;
  std::size_t gpu_columns = 1;
  std::size_t gpu_lines = 0;
  bool caption = false;  ///< a line above the list names its columns
  std::size_t body = 0;  ///< rows of a list, lines of a text
};
[[nodiscard]] TopLayout top_layout(const TopData& data, const TopState& state, const TopSize& size);

/// What modes job, log and help show, in lines of the screen's width.
[[nodiscard]] std::vector<std::string> top_text(const TopState& state, const TopSubject& subject,
                                                const TopSize& size, Millis now);

[[nodiscard]] TopFrame draw_top(const TopData& data, const TopState& state,
                                const TopSubject& subject, const TopSize& size,
                                const TopTheme& theme, Millis now);

/// What turns the screen that shows `before` into one that shows `after`: only lines that differ
/// are sent, which matters over ssh.
[[nodiscard]] std::string paint(const TopFrame& before, const TopFrame& after, const TopSize& size,
                                const TopTheme& theme);

/// `text` with other signs for those that ASCII does not have, of the same width.
[[nodiscard]] std::string to_ascii(std::string_view text);

/// Builds one line from the left to the right, never beyond its width.
class TopLineBuilder {
 public:
  explicit TopLineBuilder(std::size_t width) : width_(width) {}

  void add(std::string_view text, Style style = Style::plain);
  /// `text` in a column of so many columns, with a blank behind it.
  void column(std::string_view text, std::size_t width, Style style = Style::plain,
              bool right = false);
  void pad_to(std::size_t column);
  [[nodiscard]] std::size_t left() const { return width_ - used_; }
  [[nodiscard]] TopLine take() { return std::move(line_); }

 private:
  std::size_t width_;
  std::size_t used_ = 0;
  TopLine line_;
};

/// One card in `width` columns, for the strip and for the list.
[[nodiscard]] TopLine gpu_line(const GpuView& gpu, std::size_t width, bool listed);
/// The rows of the list in view.
[[nodiscard]] std::vector<TopLine> list_lines(const TopData& data, const TopState& state,
                                              const TopLayout& layout, std::size_t width,
                                              Millis now);

}  // namespace berth::cli
