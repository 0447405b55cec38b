#pragma once
// The log of one attempt as one text, though parts of it may still lie in files of their own: what
// a supervisor writes beyond the first half of the limit (base/log_tail.hpp). May block: not for
// the loop.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.hpp"
#include "base/log_tail.hpp"
#include "base/result.hpp"
#include "daemon/shown_files.hpp"

namespace berth {

/// A log as it stood when it was opened: later additions are not part of it.
class AttemptLog {
 public:
  [[nodiscard]] static Result<AttemptLog> open(const std::string& path, const ShownFiles& files);

  [[nodiscard]] std::uint64_t size() const { return size_; }
  /// Changes whenever the text does.
  [[nodiscard]] const std::string& tag() const { return tag_; }
  /// Up to so many bytes from there on; fewer only at the end.
  [[nodiscard]] Result<std::string> read(std::uint64_t from, std::size_t most) const;
  /// Where the last `lines` lines begin.
  [[nodiscard]] Result<std::uint64_t> last_lines(std::uint64_t lines) const;

 private:
  struct Piece {
    std::shared_ptr<Fd> fd;  ///< none: `text`
    std::uint64_t from = 0;  ///< in the file
    std::uint64_t size = 0;
    std::string text;
  };

  std::vector<Piece> pieces_;
  std::uint64_t size_ = 0;
  std::string tag_;
};

/// Reads a log that is being written, piece by piece. Positions are those in all that was ever to
/// be logged, so that they mean the same before and after the supervisor has put parts together;
/// without a limit that is the position in the file.
class LogTailer {
 public:
  LogTailer(std::string path, ShownFiles files, std::uint64_t from)
      : path_(std::move(path)), files_(std::move(files)), at_(from) {}

  struct Piece {
    std::string text;
    std::uint64_t at = 0;  ///< behind it
    bool more = false;     ///< there is more already
  };
  /// `dropped`: how much was left out of the log of an attempt that has ended; none: it runs.
  [[nodiscard]] Result<Piece> read(std::size_t most, std::optional<std::uint64_t> dropped);
  /// Goes on from where the last `lines` lines begin.
  [[nodiscard]] Status skip_to_last(std::uint64_t lines, std::optional<std::uint64_t> dropped);

 private:
  struct Part {
    std::uint64_t position = 0;  ///< of its first byte, in all of the output
    std::shared_ptr<Fd> fd;
    std::uint64_t from = 0;  ///< in the file
    std::uint64_t size = 0;
  };
  [[nodiscard]] Result<std::vector<Part>> look(std::optional<std::uint64_t> dropped);

  std::string path_;
  ShownFiles files_;
  std::uint64_t at_;
  std::uint64_t limit_ = 0;  ///< of the log, once something had to be left out
};

}  // namespace berth
