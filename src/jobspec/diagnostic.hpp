#pragma once
// What is wrong with a job file, and where. All mistakes are collected before anybody is told.

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace berth {

/// A place in a text, counted from 1. Columns count bytes.
struct Position {
  std::uint32_t line = 1;
  std::uint32_t column = 1;

  friend auto operator<=>(const Position&, const Position&) = default;
};

struct Diagnostic {
  std::string file;
  Position at;
  std::string message;

  friend bool operator==(const Diagnostic&, const Diagnostic&) = default;
};

/// "file:7:5: message", the source line of `text` and a caret, each on a line of its own. Whatever
/// the file holds, the result is UTF-8 without control characters but tab and line feed.
[[nodiscard]] std::string render(const Diagnostic& diagnostic, std::string_view text);

/// One line of `text`, counted from 1, without its end; empty: there is none.
[[nodiscard]] std::string_view line_of(std::string_view text, std::uint32_t line);

/// `text` without the byte order marks some editors put in front, one more each time.
[[nodiscard]] std::string_view without_mark(std::string_view text);

/// The candidate that `word` was most likely meant to be; empty when none is close.
[[nodiscard]] std::string_view closest(std::string_view word,
                                       std::span<const std::string_view> candidates);

/// "; did you mean 'x'?", or nothing.
[[nodiscard]] std::string did_you_mean(std::string_view word,
                                       std::span<const std::string_view> candidates);

/// The same behind an unknown key.
[[nodiscard]] std::string key_hint(std::string_view key,
                                   std::span<const std::string_view> candidates);

/// Collects diagnostics of one file. The same mistake in the same place counts once, so an error in
/// a matrix job is not repeated for each of its instances.
class Diagnostics {
 public:
  explicit Diagnostics(std::string file) : file_(std::move(file)) {}

  void add(Position at, std::string message);

  /// For values that depend on a matrix: only the first mistake in a place is kept.
  void add_once(Position at, std::string message);

  /// Those of a file that this one refers to; each once.
  void add_others(std::vector<Diagnostic> found);

  [[nodiscard]] std::size_t size() const { return found_.size() + others_.size(); }
  [[nodiscard]] bool empty() const { return size() == 0; }
  /// Nothing more is kept: whoever reads this has enough to do.
  [[nodiscard]] bool full() const { return size() >= kMost; }

  /// Sorted by place, those of other files last.
  [[nodiscard]] std::vector<Diagnostic> take();

 private:
  static constexpr std::size_t kMost = 1000;

  std::string file_;
  std::set<std::tuple<Position, std::string>> found_;
  std::vector<Diagnostic> others_;
};

}  // namespace berth
