#include "compete/log_text.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include <fmt/format.h>

#include "base/utf8.hpp"

namespace berth::compete {
namespace {

/// Lines of larger files are not counted: that would mean to read all of it.
constexpr std::uint64_t kCountedMost = 64UL * 1024 * 1024;
constexpr std::size_t kBlock = 64UL * 1024;

class LogReader {
 public:
  LogReader(const Fd& file, const std::string& path) : file_(file), path_(path) {}

  Result<LogText> read(const LogPiece& piece) {
    struct stat status{};
    if (::fstat(file_.get(), &status) != 0) {
      return failed();
    }
    size_ = static_cast<std::uint64_t>(std::max<off_t>(status.st_size, 0));
    LogText text;
    text.size = size_;
    const std::uint64_t limit = std::min(piece.limit, kLogPieceMost);
    if (piece.offset) {
      text.offset = std::min(*piece.offset, size_);
    } else {
      TRY_ASSIGN(text.offset, tail_begin(piece.tail, limit));
    }
    TRY_ASSIGN(std::string bytes, bytes_at(text.offset, std::min(limit, size_ - text.offset)));
    if (text.offset + bytes.size() < size_) {
      drop_half_character(bytes);
    }
    text.next = text.offset + bytes.size();
    text.content = to_utf8(bytes);
    TRY_ASSIGN(text.total_lines, count_lines());
    return text;
  }

 private:
  std::unexpected<Error> failed() const {
    return fail_errno(fmt::format("cannot read '{}'", printable(path_)), errno);
  }

  /// As many as there are, up to `size`.
  Result<std::string> bytes_at(std::uint64_t offset, std::uint64_t size) {
    std::string bytes(size, '\0');
    std::size_t got = 0;
    while (got < bytes.size()) {
      const ssize_t more = ::pread(file_.get(), bytes.data() + got, bytes.size() - got,
                                   static_cast<off_t>(offset + got));
      if (more < 0 && errno == EINTR) {
        continue;
      }
      if (more < 0) {
        return failed();
      }
      if (more == 0) {
        break;  // it has become shorter meanwhile
      }
      got += static_cast<std::size_t>(more);
    }
    bytes.resize(got);
    return bytes;
  }

  /// Where the last `lines` begin, but no more than `limit` bytes before the end.
  Result<std::uint64_t> tail_begin(std::uint64_t lines, std::uint64_t limit) {
    const std::uint64_t floor = size_ - std::min(limit, size_);
    std::uint64_t end = size_;
    std::uint64_t seen = 0;
    while (end > floor && lines > 0) {
      const std::uint64_t begin = std::max(floor, end - std::min<std::uint64_t>(end, kBlock));
      TRY_ASSIGN(const std::string block, bytes_at(begin, end - begin));
      for (std::size_t i = block.size(); i-- > 0;) {
        // The end of the last line begins no further one.
        if (block[i] == '\n' && begin + i + 1 < size_ && ++seen == lines) {
          return begin + i + 1;
        }
      }
      end = begin;
    }
    return lines == 0 ? size_ : floor;
  }

  Result<std::optional<std::uint64_t>> count_lines() {
    if (size_ > kCountedMost) {
      return std::optional<std::uint64_t>();
    }
    std::uint64_t lines = 0;
    char last = '\n';
    for (std::uint64_t at = 0; at < size_;) {
      TRY_ASSIGN(const std::string block,
                 bytes_at(at, std::min<std::uint64_t>(kBlock, size_ - at)));
      if (block.empty()) {
        break;
      }
      lines += static_cast<std::uint64_t>(std::ranges::count(block, '\n'));
      last = block.back();
      at += block.size();
    }
    return std::optional(lines + (last == '\n' ? 0 : 1));
  }

  /// A character of which the rest comes with the next piece.
  static void drop_half_character(std::string& bytes) {
    constexpr std::size_t kLongest = 4;
    for (std::size_t back = 1; back < kLongest && back < bytes.size(); ++back) {
      const auto byte = static_cast<unsigned char>(bytes[bytes.size() - back]);
      if (byte < 0x80) {
        return;
      }
      if (byte >= 0xC0) {
        const std::size_t length = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : 2;
        if (length > back) {
          bytes.resize(bytes.size() - back);
        }
        return;
      }
    }
  }

  const Fd& file_;
  const std::string& path_;
  std::uint64_t size_ = 0;
};

}  // namespace

Result<LogText> read_log(const Fd& file, const std::string& path, const LogPiece& piece) {
  return LogReader(file, path).read(piece);
}

}  // namespace berth::compete
