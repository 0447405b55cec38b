#include "api/ndjson.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/units.hpp"

namespace berth {

Status LineSplitter::feed(std::string_view piece, const Take& take) {
  while (!piece.empty()) {
    const std::size_t newline = piece.find('\n');
    const std::string_view part = piece.substr(0, newline);
    // Judged before it is kept: a line without end may not fill the memory.
    if (part.size() > line_max_ - rest_.size()) {
      return fail(ErrorCode::invalid,
                  fmt::format("line {} is longer than {}", lines_ + 1, format_size(line_max_)));
    }
    if (newline == std::string_view::npos) {
      rest_ += part;
      return {};
    }
    if (rest_.empty()) {
      TRY(emit(part, take));
    } else {
      rest_ += part;
      TRY(emit(std::exchange(rest_, {}), take));
    }
    piece.remove_prefix(newline + 1);
  }
  return {};
}

Status LineSplitter::finish(const Take& take) {
  return emit(std::exchange(rest_, {}), take);
}

Status LineSplitter::emit(std::string_view line, const Take& take) {
  if (line.ends_with('\r')) {
    line.remove_suffix(1);
  }
  if (line.empty()) {
    return {};
  }
  ++lines_;
  return take(line);
}

}  // namespace berth
