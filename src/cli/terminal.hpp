#pragma once
// What is printed, and where: widths, colours, times for people. Jobs name themselves as they
// like, so nothing they chose reaches a terminal without passing through printable().

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/time.hpp"
#include "base/utf8.hpp"
#include "core/job.hpp"

namespace berth::cli {

enum class Style : std::uint8_t { plain, dim, bold, good, bad, active };

/// What `--color` says; `automatic` is as the terminal and NO_COLOR have it.
enum class Color : std::uint8_t { automatic, always, never };
/// What the user wants of output, for the whole process: one command line is one process.
struct Display {
  Color color = Color::automatic;
  bool pager = true;
};
[[nodiscard]] Display& display();

/// How standard output wants it.
struct Screen {
  bool terminal = false;
  bool color = false;
  std::optional<std::size_t> width;  ///< none: as wide as needed
  std::size_t height = 24;
};
/// Looks at standard output, `--color`, NO_COLOR, TERM and COLUMNS.
[[nodiscard]] Screen look_at_stdout();

/// A note beside the output, on standard error, only for a person who looks at it.
void note(std::string_view text);

[[nodiscard]] std::string styled(std::string_view text, Style style, const Screen& screen);
[[nodiscard]] Style style_of(JobState state);

using berth::printable;
/// Columns that valid UTF-8 takes on a terminal.
[[nodiscard]] std::size_t display_width(std::string_view text);
/// The beginning of `text`, at most `width` columns, ending in "…" if anything was cut.
[[nodiscard]] std::string shorten(std::string_view text, std::size_t width);

/// The same for a line with styles; their sequences take no columns.
[[nodiscard]] std::string shorten_styled(std::string_view line, std::size_t width);

/// `text` in lines of at most `width` columns, all but the first behind `indent` blanks.
[[nodiscard]] std::string wrapped(std::string_view text, std::size_t width, std::size_t indent);

/// "just now", "42s ago", "3m ago", "2h ago", "5d ago"; "in the future" if clocks disagree.
[[nodiscard]] std::string relative_time(Millis then, Millis now);
/// "12:00:01", local time.
[[nodiscard]] std::string clock_time(Millis wall);
/// "2024-05-01 12:00:01", local time.
[[nodiscard]] std::string date_time(Millis wall);

void print(std::string_view text);  ///< to standard output
void warn(std::string_view text);   ///< "berth: …\n" to standard error

}  // namespace berth::cli
