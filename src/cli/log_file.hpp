#pragma once
// The log of one attempt as one text, though parts of it may still lie in files of their own: what
// a supervisor writes beyond the first half of the limit (base/log_tail.hpp).

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.hpp"
#include "base/log_tail.hpp"
#include "base/result.hpp"

namespace berth::cli {

/// Takes a piece of a log, of any length.
using LogSink = std::function<void(std::string_view)>;

[[nodiscard]] Result<Fd> open_log(const std::string& path);

/// Hands on what is left of the file, up to the position `end`. How much that was.
[[nodiscard]] Result<std::uint64_t> copy_log(int fd, const std::string& path, const LogSink& sink,
                                             std::uint64_t end = UINT64_MAX);

struct TailFile {
  Fd fd;  ///< behind its header
  TailHeader header;
};

/// The tail files that belong to the log now, oldest first. None: the log is whole.
[[nodiscard]] std::vector<TailFile> open_tails(const std::string& path);

/// A log as it stands: head, what is said of the gap, and tail.
class LogText {
 public:
  /// `fd` is the log's and must outlive this; so must the tails.
  [[nodiscard]] static Result<LogText> of(int fd, const std::vector<TailFile>& tails);

  /// Hands on the last `lines` lines; none given: all.
  [[nodiscard]] Status copy(const std::string& path, const std::optional<std::uint64_t>& lines,
                            const LogSink& sink) const;
  [[nodiscard]] bool empty() const;

 private:
  struct Piece {
    int fd = -1;  ///< -1: `text`
    std::uint64_t from = 0;
    std::uint64_t to = 0;
    std::string text;
  };
  struct Place {
    std::size_t piece = 0;
    std::uint64_t at = 0;
  };
  [[nodiscard]] Result<Place> last_lines(std::uint64_t lines) const;

  std::vector<Piece> pieces_;
};

}  // namespace berth::cli
