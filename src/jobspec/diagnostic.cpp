#include "jobspec/diagnostic.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "base/utf8.hpp"

namespace berth {
namespace {

constexpr std::size_t kLongestShownLine = 200;

/// The next character of `text`, as it may stand in a terminal, and how many bytes it was.
std::pair<std::string_view, std::size_t> shown(std::string_view text) {
  const auto length = utf8_length(text);
  const auto first = static_cast<unsigned char>(text.front());
  // U+0080 to U+009F are control characters, too, and some terminals obey them.
  const bool control = (first < 0x20 && first != '\t') || first == 0x7f ||
                       (first == 0xC2 && length == 2 && static_cast<unsigned char>(text[1]) < 0xA0);
  if (length == 0 || control) {
    return {"?", std::max<std::size_t>(length, 1)};
  }
  return {text.substr(0, length), length};
}

std::string shown_all(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const auto [character, length] = shown(text);
    out += character;
    text.remove_prefix(length);
  }
  return out;
}

/// How many insertions, deletions, replacements and swaps of neighbours turn one into the other.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1);
  std::vector<std::size_t> previous(b.size() + 1);
  std::vector<std::size_t> current(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) {
    previous[j] = j;
  }
  for (std::size_t i = 1; i <= a.size(); ++i) {
    current[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = a[i - 1] == b[j - 1] ? 0 : 1;
      current[j] = std::min({previous[j] + 1, current[j - 1] + 1, previous[j - 1] + change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        current[j] = std::min(current[j], before[j - 2] + 1);
      }
    }
    std::swap(before, previous);
    std::swap(previous, current);
  }
  return previous[b.size()];
}

}  // namespace

std::string_view without_mark(std::string_view text) {
  constexpr std::string_view kMark = "\xef\xbb\xbf";
  while (text.starts_with(kMark)) {
    text.remove_prefix(kMark.size());
  }
  return text;
}

std::string_view line_of(std::string_view text, std::uint32_t line) {
  for (; line > 1; --line) {
    const auto end = text.find('\n');
    if (end == std::string_view::npos) {
      return {};
    }
    text.remove_prefix(end + 1);
  }
  text = text.substr(0, text.find('\n'));
  if (text.ends_with('\r')) {
    text.remove_suffix(1);
  }
  return text;
}

std::string render(const Diagnostic& diagnostic, std::string_view text) {
  const auto& [file, at, message] = diagnostic;
  auto out = fmt::format("{}:{}:{}: {}\n", shown_all(file), at.line, at.column, shown_all(message));
  const auto line = line_of(without_mark(text), at.line);
  const auto column = std::size_t{at.column} - 1;
  if (line.empty() || line.size() > kLongestShownLine || column > line.size()) {
    return out;
  }
  std::string source;
  std::string marker;
  for (std::size_t i = 0; i < line.size();) {
    const auto [character, length] = shown(line.substr(i));
    source += character;
    if (i < column) {
      marker += character == "\t" ? '\t' : ' ';  // a tab is as wide here as it is above
    }
    i += length;
  }
  const auto number = std::to_string(at.line);
  out += fmt::format("  {} | {}\n  {:{}} | {}^\n", number, source, "", number.size(), marker);
  return out;
}

std::string_view closest(std::string_view word, std::span<const std::string_view> candidates) {
  constexpr std::size_t kLongestWord = 64;
  std::string_view best;
  if (word.empty() || word.size() > kLongestWord) {
    return best;
  }
  std::size_t best_distance = std::max<std::size_t>(1, word.size() / 3) + 1;
  for (const auto candidate : candidates) {
    // An abbreviation ("gpu_mem") is a long way off by letters, and yet plain to see.
    const bool abbreviated =
        word.size() >= 3 && (candidate.starts_with(word) || word.starts_with(candidate));
    const auto distance = abbreviated ? 1 : edit_distance(word, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view word, std::span<const std::string_view> candidates) {
  const auto best = closest(word, candidates);
  return best.empty() ? std::string() : fmt::format("; did you mean '{}'?", best);
}

std::string key_hint(std::string_view key, std::span<const std::string_view> candidates) {
  return key == "<<" ? "; YAML merge keys are not read, put what jobs share into 'defaults'"
                     : did_you_mean(key, candidates);
}

void Diagnostics::add(Position at, std::string message) {
  if (!full()) {
    found_.emplace(at, std::move(message));
  }
}

void Diagnostics::add_once(Position at, std::string message) {
  const auto next = found_.lower_bound({at, std::string()});
  if (next == found_.end() || std::get<Position>(*next) != at) {
    add(at, std::move(message));
  }
}

void Diagnostics::add_others(std::vector<Diagnostic> found) {
  for (auto& diagnostic : found) {
    if (!full() && std::find(others_.begin(), others_.end(), diagnostic) == others_.end()) {
      others_.push_back(std::move(diagnostic));
    }
  }
}

std::vector<Diagnostic> Diagnostics::take() {
  std::vector<Diagnostic> out;
  out.reserve(found_.size() + others_.size() + 1);
  for (const auto& [at, message] : found_) {
    out.push_back({file_, at, message});
  }
  const bool more = full();
  std::move(others_.begin(), others_.end(), std::back_inserter(out));
  if (more) {
    out.push_back({file_, out.back().at, "there may be more errors; these come first"});
  }
  found_.clear();
  others_.clear();
  return out;
}

}  // namespace berth
