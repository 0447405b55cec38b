#include "cli/top_log.hpp"

#include "cli/terminal.hpp"

namespace berth::cli {
namespace {

/// A line that never ends is broken.
constexpr std::size_t kLineMax = 16UL * 1024;
constexpr std::size_t kTab = 8;

/// Where the sequence that begins with the escape at `at` ends.
std::size_t end_of_sequence(std::string_view text, std::size_t at) {
  if (at + 1 >= text.size()) {
    return text.size();
  }
  if (text[at + 1] == ']') {  // a title: up to BEL or another escape
    const auto end = text.find_first_of("\x07\x1b", at + 2);
    return end == std::string_view::npos ? text.size() : end + (text[end] == '\x07' ? 1 : 2);
  }
  if (text[at + 1] != '[') {
    return at + 2;
  }
  for (std::size_t i = at + 2; i < text.size(); ++i) {
    if (text[i] >= '@' && text[i] <= '~') {
      return i + 1;
    }
  }
  return text.size();
}

std::string for_screen(std::string_view line) {
  while (line.ends_with('\r')) {
    line.remove_suffix(1);
  }
  if (const auto over = line.rfind('\r'); over != std::string_view::npos) {
    line.remove_prefix(over + 1);
  }
  std::string plain;
  for (std::size_t i = 0; i < line.size();) {
    if (line[i] == '\x1b') {
      i = std::min(end_of_sequence(line, i), line.size());
    } else if (line[i] == '\t') {
      plain += std::string(kTab - plain.size() % kTab, ' ');
      ++i;
    } else {
      plain += line[i++];
    }
  }
  return printable(plain);
}

}  // namespace

void TopLog::end_line() {
  lines_.push_back(for_screen(partial_));
  partial_.clear();
  if (lines_.size() > most_) {
    lines_.pop_front();
  }
}

void TopLog::feed(std::string_view text) {
  while (!text.empty()) {
    const auto end = text.find('\n');
    partial_ += text.substr(0, end);
    if (end == std::string_view::npos) {
      // What a progress bar has written over is not needed any more.
      if (const auto over = partial_.rfind('\r', partial_.size() - 2);
          partial_.size() > kLineMax && over != std::string::npos) {
        partial_.erase(0, over + 1);
      }
      if (partial_.size() > kLineMax) {
        end_line();
      }
      return;
    }
    end_line();
    text.remove_prefix(end + 1);
  }
}

std::vector<std::string> TopLog::lines() const {
  std::vector<std::string> out(lines_.begin(), lines_.end());
  if (!partial_.empty()) {
    out.push_back(for_screen(partial_));
  }
  return out;
}

}  // namespace berth::cli
