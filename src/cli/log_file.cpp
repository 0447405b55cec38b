#include "cli/log_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "cli/terminal.hpp"

namespace berth::cli {
namespace {

constexpr std::size_t kBlock = 64UL * 1024;
/// The supervisor may put the next file in place while we look.
constexpr int kTries = 10;

std::optional<TailFile> open_tail(const std::string& path) {
  TailFile file;
  file.fd.reset(::open(path.c_str(), O_RDONLY | O_CLOEXEC));  // NOLINT
  std::array<char, kTailHeaderSize> header{};
  if (!file.fd || ::read(file.fd.get(), header.data(), header.size()) != ssize_t{header.size()} ||
      !parse_tail_header({header.data(), header.size()}, file.header)) {
    return std::nullopt;
  }
  return file;
}

}  // namespace

Result<Fd> open_log(const std::string& path) {
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));  // NOLINT
  if (!fd) {
    return fail_errno(fmt::format("cannot open the log '{}'", printable(path)), errno);
  }
  return fd;
}

Result<std::uint64_t> copy_log(int fd, const std::string& path, const LogSink& sink,
                               std::uint64_t end) {
  std::array<char, kBlock> buffer{};
  std::uint64_t copied = 0;
  const off_t here = end == UINT64_MAX ? 0 : ::lseek(fd, 0, SEEK_CUR);
  const std::uint64_t most =
      end - std::min(end, static_cast<std::uint64_t>(std::max<off_t>(here, 0)));
  while (copied < most) {
    const ssize_t size =
        ::read(fd, buffer.data(), std::min<std::uint64_t>(buffer.size(), most - copied));
    if (size == 0) {
      break;
    }
    if (size < 0) {
      if (errno == EINTR) {
        continue;
      }
      return fail_errno(fmt::format("cannot read '{}'", printable(path)), errno);
    }
    sink({buffer.data(), static_cast<std::size_t>(size)});
    copied += static_cast<std::uint64_t>(size);
  }
  return copied;
}

std::vector<TailFile> open_tails(const std::string& path) {
  std::vector<TailFile> tails;
  for (int i = 0; i < kTries; ++i) {
    auto old = open_tail(path + std::string(kOldTailSuffix));
    auto tail = open_tail(path + std::string(kTailSuffix));
    if (old && tail && old->header.seq + 1 != tail->header.seq) {
      continue;
    }
    if (!old && tail && tail->header.seq > 0) {
      continue;  // if it stays so, the log has been put together and this one is about to go
    }
    if (old) {
      tails.push_back(std::move(*old));
    }
    if (tail) {
      tails.push_back(std::move(*tail));
    }
    break;
  }
  return tails;
}

Result<LogText> LogText::of(int fd, const std::vector<TailFile>& tails) {
  const auto size_of = [](int file) -> Result<std::uint64_t> {
    struct stat status{};
    if (::fstat(file, &status) != 0) {
      return fail_errno("cannot look at the log", errno);
    }
    return S_ISREG(status.st_mode) ? static_cast<std::uint64_t>(status.st_size) : UINT64_MAX;
  };
  LogText log;
  TRY_ASSIGN(std::uint64_t size, size_of(fd));
  if (tails.empty()) {
    log.pieces_.push_back({fd, 0, size, {}});
    return log;
  }
  // A log that was being put together when its supervisor died is longer than its head.
  const TailHeader& first = tails.front().header;
  size = std::min(size, first.head);
  log.pieces_.push_back({fd, 0, size, {}});
  if (first.from > first.head) {
    char last = '\n';
    const bool in_line =
        size > 0 && ::pread(fd, &last, 1, static_cast<off_t>(size) - 1) == 1 && last != '\n';
    std::string text = in_line ? "\n" : "";
    text += left_out_line(first.from - first.head, first.limit).view();
    const std::uint64_t length = text.size();
    log.pieces_.push_back({-1, 0, length, std::move(text)});
  }
  for (const TailFile& tail : tails) {
    TRY_ASSIGN(const std::uint64_t end, size_of(tail.fd.get()));
    log.pieces_.push_back({tail.fd.get(), kTailHeaderSize, end, {}});
  }
  return log;
}

bool LogText::empty() const {
  return std::ranges::all_of(pieces_, [](const Piece& piece) { return piece.from >= piece.to; });
}

Result<LogText::Place> LogText::last_lines(std::uint64_t lines) const {
  std::array<char, kBlock> buffer{};
  std::uint64_t seen = 0;
  bool last = true;  // the end of the last line begins no other
  for (std::size_t i = pieces_.size(); i-- > 0;) {
    const Piece& piece = pieces_[i];
    if (piece.to == UINT64_MAX) {
      return Place{i, 0};  // not a file with an end one could count from
    }
    for (std::uint64_t at = piece.to; at > piece.from;) {
      const std::uint64_t size = std::min<std::uint64_t>(at - piece.from, buffer.size());
      at -= size;
      ssize_t got = 0;
      if (piece.fd < 0) {
        std::memcpy(buffer.data(), piece.text.data() + at, size);
        got = static_cast<ssize_t>(size);
      } else if (got = ::pread(piece.fd, buffer.data(), size, static_cast<off_t>(at)); got < 0) {
        return fail_errno("cannot read the log", errno);
      }
      for (std::uint64_t k = static_cast<std::uint64_t>(got); k-- > 0;) {
        if (lines == 0) {
          return Place{i, piece.to};
        }
        if (buffer[k] == '\n' && !last && ++seen == lines) {
          return Place{i, at + k + 1};
        }
        last = false;
      }
    }
  }
  return Place{0, 0};
}

Status LogText::copy(const std::string& path, const std::optional<std::uint64_t>& lines,
                     const LogSink& sink) const {
  Place begin;
  if (lines) {
    TRY_ASSIGN(begin, last_lines(*lines));
  }
  for (std::size_t i = begin.piece; i < pieces_.size(); ++i) {
    const Piece& piece = pieces_[i];
    const std::uint64_t from = i == begin.piece ? std::max(begin.at, piece.from) : piece.from;
    if (piece.fd < 0) {
      sink(std::string_view(piece.text).substr(from));
      continue;
    }
    ::lseek(piece.fd, static_cast<off_t>(from), SEEK_SET);
    TRY(copy_log(piece.fd, path, sink, piece.to));
  }
  return {};
}

}  // namespace berth::cli
