// Lines of `berth top`: made, put on the terminal, written in ASCII.

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "api/text.hpp"
#include "cli/top_draw.hpp"

namespace berth::cli {
namespace {

constexpr std::array<std::pair<std::string_view, char>, 8> kSigns{{{"█", '#'},
                                                                   {"▓", 'o'},
                                                                   {"▒", '+'},
                                                                   {"░", '.'},
                                                                   {"…", '~'},
                                                                   {"×", 'x'},
                                                                   {"°", ' '},
                                                                   {"─", '-'}}};

std::string shown(const TopLine& line, std::size_t width, const TopTheme& theme) {
  Screen screen;
  screen.color = theme.color && !line.chosen;
  std::string out;
  std::size_t used = 0;
  for (const TopSpan& span : line.spans) {
    out += styled(span.text, span.style, screen);
    used += display_width(span.text);
  }
  if (line.chosen) {
    // Inverse is no colour: it is there without colours, too.
    return "\x1b[7m" + out + std::string(width - std::min(width, used), ' ') + "\x1b[0m";
  }
  return out + (used < width ? "\x1b[K" : "");
}

}  // namespace

void TopLineBuilder::add(std::string_view text, Style style) {
  std::string fits = shorten(text, left());
  if (fits.empty()) {
    return;
  }
  used_ += display_width(fits);
  if (!line_.spans.empty() && line_.spans.back().style == style) {
    line_.spans.back().text += fits;
  } else {
    line_.spans.push_back({std::move(fits), style});
  }
}

void TopLineBuilder::pad_to(std::size_t column) {
  if (column > used_) {
    add(std::string(std::min(column, width_) - used_, ' '));
  }
}

void TopLineBuilder::column(std::string_view text, std::size_t width, Style style, bool right) {
  const std::string fits = shorten(text, width);
  const std::size_t end = used_ + width + 1;
  if (right) {
    pad_to(used_ + width - display_width(fits));
  }
  add(fits, style);
  pad_to(end);
}

std::string to_ascii(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t length = std::max<std::size_t>(utf8_length(text), 1);
    const std::string_view sign = text.substr(0, length);
    const auto* const known =
        std::ranges::find(kSigns, sign, &std::pair<std::string_view, char>::first);
    if (length == 1) {
      out += sign;
    } else if (known != kSigns.end()) {
      out += known->second;
    } else {
      out += std::string(display_width(sign), '?');
    }
    text.remove_prefix(length);
  }
  return out;
}

std::string paint(const TopFrame& before, const TopFrame& after, const TopSize& size,
                  const TopTheme& theme) {
  std::string out = before.empty() ? "\x1b[2J" : "";
  for (std::size_t i = 0; i < after.size(); ++i) {
    if (i < before.size() && before[i] == after[i]) {
      continue;
    }
    out += fmt::format("\x1b[{};1H", i + 1) + shown(after[i], size.width, theme);
  }
  return out;
}

}  // namespace berth::cli
