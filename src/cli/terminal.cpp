#include "cli/terminal.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include "api/text.hpp"
#include "cli/program_name.hpp"

namespace berth::cli {
namespace {

std::uint32_t code_point(std::string_view sequence) {
  if (sequence.size() == 1) {
    return static_cast<unsigned char>(sequence[0]);
  }
  std::uint32_t value = static_cast<unsigned char>(sequence[0]) & (0xFFU >> (sequence.size() + 1));
  for (const char c : sequence.substr(1)) {
    value = value << 6 | (static_cast<unsigned char>(c) & 0x3FU);
  }
  return value;
}

struct Span {
  std::uint32_t first;
  std::uint32_t last;
};
// The blocks that occur in names; a stray exception costs a column, not correctness.
constexpr std::array kZeroWidth{Span{0x300, 0x36F},   Span{0x200B, 0x200F}, Span{0x202A, 0x202E},
                                Span{0x2060, 0x2064}, Span{0x20D0, 0x20FF}, Span{0xFE00, 0xFE0F},
                                Span{0xFEFF, 0xFEFF}};
constexpr std::array kDoubleWidth{
    Span{0x1100, 0x115F},   Span{0x2E80, 0x303E},   Span{0x3041, 0xA4CF},  Span{0xAC00, 0xD7A3},
    Span{0xF900, 0xFAFF},   Span{0xFE30, 0xFE6F},   Span{0xFF00, 0xFF60},  Span{0xFFE0, 0xFFE6},
    Span{0x1F300, 0x1F64F}, Span{0x1F900, 0x1F9FF}, Span{0x20000, 0x3FFFD}};

template <std::size_t N>
bool in(const std::array<Span, N>& spans, std::uint32_t c) {
  for (const Span& span : spans) {
    if (c >= span.first && c <= span.last) {
      return true;
    }
  }
  return false;
}

std::size_t width_of(std::uint32_t c) {
  return in(kZeroWidth, c) ? 0 : (in(kDoubleWidth, c) ? 2 : 1);
}

std::string format_time(Millis wall, const char* format) {
  const std::time_t seconds = static_cast<std::time_t>(wall.count() / 1000);
  std::tm local{};
  ::localtime_r(&seconds, &local);
  std::array<char, 64> buffer{};
  const std::size_t size = std::strftime(buffer.data(), buffer.size(), format, &local);
  return {buffer.data(), size};
}

}  // namespace

Display& display() {
  static Display chosen;
  return chosen;
}

Screen look_at_stdout() {
  Screen screen;
  screen.terminal = ::isatty(STDOUT_FILENO) == 1;
  if (!screen.terminal) {
    screen.color = display().color == Color::always;
    return screen;
  }
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  const bool dumb = term == nullptr || std::string_view(term) == "dumb";
  screen.color =
      display().color == Color::always ||
      (display().color == Color::automatic && (no_color == nullptr || *no_color == '\0') && !dumb);
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    screen.width = size.ws_col;
    screen.height = size.ws_row > 0 ? size.ws_row : screen.height;
  }
  if (const char* columns = std::getenv("COLUMNS")) {
    if (const long value = std::strtol(columns, nullptr, 10); value > 0) {
      screen.width = static_cast<std::size_t>(value);
    }
  }
  screen.width = screen.width.value_or(80);
  return screen;
}

std::string styled(std::string_view text, Style style, const Screen& screen) {
  if (!screen.color || style == Style::plain) {
    return std::string(text);
  }
  const char* code = "";
  switch (style) {
    case Style::plain:
      break;
    case Style::dim:
      code = "2";
      break;
    case Style::bold:
      code = "1";
      break;
    case Style::good:
      code = "32";
      break;
    case Style::bad:
      code = "31";
      break;
    case Style::active:
      code = "36";
      break;
  }
  return fmt::format("\x1b[{}m{}\x1b[0m", code, text);
}

Style style_of(JobState state) {
  switch (state) {
    case JobState::succeeded:
      return Style::good;
    case JobState::failed:
      return Style::bad;
    case JobState::running:
      return Style::active;
    case JobState::killed:
    case JobState::cancelled:
      return Style::dim;
    case JobState::queued:
    case JobState::paused:
      return Style::plain;
  }
  return Style::plain;
}

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  while (!text.empty()) {
    const std::size_t length = std::max<std::size_t>(utf8_length(text), 1);
    width += width_of(code_point(text.substr(0, length)));
    text.remove_prefix(length);
  }
  return width;
}

std::string shorten(std::string_view text, std::size_t width) {
  if (display_width(text) <= width) {
    return std::string(text);
  }
  std::string out;
  std::size_t used = 1;  // for the "…"
  while (!text.empty()) {
    const std::size_t length = std::max<std::size_t>(utf8_length(text), 1);
    used += width_of(code_point(text.substr(0, length)));
    if (used > width) {
      break;
    }
    out += text.substr(0, length);
    text.remove_prefix(length);
  }
  return width == 0 ? "" : out + "…";
}

std::string shorten_styled(std::string_view line, std::size_t width) {
  std::string out;
  std::size_t used = 0;
  bool colored = false;
  while (!line.empty()) {
    if (line[0] == '\x1b') {
      const std::size_t size = std::min(line.find('m'), line.size() - 1) + 1;
      colored = line.substr(0, size) != "\x1b[0m";
      out += line.substr(0, size);
      line.remove_prefix(size);
      continue;
    }
    const std::string_view text = line.substr(0, line.find('\x1b'));
    const std::size_t wide = display_width(text);
    if (used + wide > width) {
      return out + shorten(text, width - used) + (colored ? "\x1b[0m" : "");
    }
    out += text;
    used += wide;
    line.remove_prefix(text.size());
  }
  return out;
}

std::string wrapped(std::string_view text, std::size_t width, std::size_t indent) {
  std::string out;
  std::size_t used = indent;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    const std::size_t wide = display_width(word);
    if (used > indent && used + 1 + wide > width) {
      out += "\n" + std::string(indent, ' ');
      used = indent;
    }
    out += (used > indent ? " " : "") + std::string(word);
    used += wide + (used > indent ? 1 : 0);
    text.remove_prefix(std::min(text.size(), word.size() + 1));
  }
  return out;
}

std::string relative_time(Millis then, Millis now) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(now - then).count();
  if (seconds < -5) return "in the future";
  if (seconds < 2) return "just now";
  if (seconds < 60) return fmt::format("{}s ago", seconds);
  if (seconds < 3600) return fmt::format("{}m ago", seconds / 60);
  if (seconds < 48 * 3600) return fmt::format("{}h ago", seconds / 3600);
  return fmt::format("{}d ago", seconds / 86400);
}

std::string clock_time(Millis wall) {
  return format_time(wall, "%H:%M:%S");
}
std::string date_time(Millis wall) {
  return format_time(wall, "%Y-%m-%d %H:%M:%S");
}

void note(std::string_view text) {
  if (::isatty(STDERR_FILENO) == 1) {
    warn(text);
  }
}

void print(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
}

std::string& program_name() {
  static std::string name = "berth";
  return name;
}

void warn(std::string_view text) {
  std::fflush(stdout);
  std::fprintf(stderr, "%s: %.*s\n", program_name().c_str(), static_cast<int>(text.size()),
               text.data());
}

}  // namespace berth::cli
