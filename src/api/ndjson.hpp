#pragma once
// Lines out of pieces of any size. Knows nothing of JSON, jobs or sockets.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace berth {

/// Cuts a text that arrives in pieces into its lines; where the pieces begin and end makes no
/// difference to what comes out. Lines end with LF or CR LF, the last one may lack it; empty ones
/// are left out. At most one line is kept.
class LineSplitter {
 public:
  explicit LineSplitter(std::size_t line_max) : line_max_(line_max) {}

  /// What is given each line, without its end. The view is good for the call; an error ends all.
  using Take = std::function<Status(std::string_view line)>;

  /// Fails with what `take` failed with, or `invalid` when a line is too long; then the rest of the
  /// text is of no use.
  Status feed(std::string_view piece, const Take& take);
  /// The text ends here.
  Status finish(const Take& take);

  /// Lines handed out so far.
  [[nodiscard]] std::uint64_t lines() const { return lines_; }

 private:
  Status emit(std::string_view line, const Take& take);

  std::size_t line_max_;
  std::string rest_;  ///< an incomplete line
  std::uint64_t lines_ = 0;
};

}  // namespace berth
