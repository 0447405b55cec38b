#include "daemon/attempt_log.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <functional>
#include <utility>

#include <fmt/format.h>

namespace berth {
namespace {

/// The supervisor may put the next file in place while we look.
constexpr int kTries = 10;
/// The line that tells of a gap is shorter.
constexpr std::size_t kMarkMax = 160;
constexpr std::size_t kBlock = 256UL * 1024;
/// The last lines are not looked for further back: a thread is held meanwhile.
constexpr std::uint64_t kLastLinesMax = 64UL * 1024 * 1024;

struct Tail {
  std::shared_ptr<Fd> fd;
  TailHeader header;
  std::uint64_t size = 0;  ///< without the header
};

Result<struct stat> look_at(const Fd& fd) {
  struct stat status{};
  if (::fstat(fd.get(), &status) != 0) {
    return fail_errno("cannot look at the log", errno);
  }
  return status;
}

Result<std::string> read_at(const Fd& fd, std::uint64_t from, std::size_t most) {
  std::string text(most, '\0');
  std::size_t got = 0;
  while (got < most) {
    const ssize_t size =
        ::pread(fd.get(), text.data() + got, most - got, static_cast<off_t>(from + got));
    if (size < 0 && errno == EINTR) {
      continue;
    }
    if (size < 0) {
      return fail_errno("cannot read the log", errno);
    }
    if (size == 0) {
      break;
    }
    got += static_cast<std::size_t>(size);
  }
  text.resize(got);
  return text;
}

std::optional<Tail> open_tail(const std::string& path, const ShownFiles& files) {
  auto fd = files.open(path, EndLink::refuse);
  if (!fd) {
    return std::nullopt;
  }
  Tail tail;
  const auto header = read_at(*fd, 0, kTailHeaderSize);
  const auto status = look_at(*fd);
  if (!header || !status || !parse_tail_header(*header, tail.header)) {
    return std::nullopt;
  }
  const auto whole = static_cast<std::uint64_t>(status->st_size);
  tail.size = whole - std::min<std::uint64_t>(whole, kTailHeaderSize);
  tail.fd = std::make_shared<Fd>(std::move(*fd));
  return tail;
}

/// Those that belong to the log now, oldest first. None: the log is whole.
std::vector<Tail> open_tails(const std::string& path, const ShownFiles& files) {
  for (int i = 0; i < kTries; ++i) {
    auto old = open_tail(path + std::string(kOldTailSuffix), files);
    auto tail = open_tail(path + std::string(kTailSuffix), files);
    if ((old && tail && old->header.seq + 1 != tail->header.seq) ||
        (!old && tail && tail->header.seq > 0)) {
      continue;  // if it stays so, the log has been put together and this one is about to go
    }
    std::vector<Tail> tails;
    if (old) {
      tails.push_back(std::move(*old));
    }
    if (tail) {
      tails.push_back(std::move(*tail));
    }
    return tails;
  }
  return {};
}

/// Where the last `lines` lines of a text begin that `read` reads parts of.
Result<std::uint64_t> find_last_lines(
    std::uint64_t size, std::uint64_t lines,
    const std::function<Result<std::string>(std::uint64_t, std::size_t)>& read) {
  if (lines == 0) {
    return size;
  }
  std::uint64_t seen = 0;
  bool last = true;  // the end of the last line begins no other
  std::uint64_t at = size;
  while (at > 0 && size - at < kLastLinesMax) {
    const std::size_t block = std::min<std::uint64_t>(kBlock, at);
    at -= block;
    TRY_ASSIGN(const std::string text, read(at, block));
    for (std::size_t k = text.size(); k-- > 0;) {
      if (text[k] == '\n' && !last && ++seen == lines) {
        return at + k + 1;
      }
      last = false;
    }
  }
  return at;
}

std::string tag_of(const struct stat& log, const std::vector<Tail>& tails) {
  std::uint64_t tail_size = 0;
  for (const Tail& tail : tails) {
    tail_size += tail.header.from + tail.size;
  }
  return fmt::format("\"{:x}-{:x}-{:x}-{:x}\"", log.st_ino, log.st_size,
                     log.st_mtim.tv_sec * 1'000'000'000 + log.st_mtim.tv_nsec, tail_size);
}

}  // namespace

Result<AttemptLog> AttemptLog::open(const std::string& path, const ShownFiles& files) {
  TRY_ASSIGN(Fd fd, files.open(path, EndLink::refuse));
  const std::vector<Tail> tails = open_tails(path, files);
  TRY_ASSIGN(const struct stat status, look_at(fd));
  AttemptLog log;
  log.tag_ = tag_of(status, tails);
  auto size = static_cast<std::uint64_t>(status.st_size);
  const auto shared = std::make_shared<Fd>(std::move(fd));
  if (!tails.empty()) {
    // A log that was being put together when its supervisor died is longer than its head.
    const TailHeader& first = tails.front().header;
    size = std::min(size, first.head);
    log.pieces_.push_back({shared, 0, size, {}});
    if (first.from > first.head) {
      std::string text(left_out_line(first.from - first.head, first.limit).view());
      TRY_ASSIGN(const std::string last, read_at(*shared, size == 0 ? 0 : size - 1, 1));
      text = size > 0 && last != "\n" ? "\n" + text : text;
      const std::uint64_t length = text.size();
      log.pieces_.push_back({nullptr, 0, length, std::move(text)});
    }
  } else {
    log.pieces_.push_back({shared, 0, size, {}});
  }
  for (const Tail& tail : tails) {
    log.pieces_.push_back({tail.fd, kTailHeaderSize, tail.size, {}});
  }
  for (const Piece& piece : log.pieces_) {
    log.size_ += piece.size;
  }
  return log;
}

Result<std::string> AttemptLog::read(std::uint64_t from, std::size_t most) const {
  std::string out;
  std::uint64_t at = 0;  // of the piece, in the whole
  for (const Piece& piece : pieces_) {
    const std::uint64_t skip = from > at ? std::min(from - at, piece.size) : 0;
    const std::size_t take = std::min<std::uint64_t>(piece.size - skip, most - out.size());
    if (take > 0 && piece.fd) {
      TRY_ASSIGN(std::string text, read_at(*piece.fd, piece.from + skip, take));
      text.resize(take, '\n');  // somebody has cut it meanwhile; the length was promised
      out += text;
    } else if (take > 0) {
      out += piece.text.substr(skip, take);
    }
    at += piece.size;
  }
  return out;
}

Result<std::uint64_t> AttemptLog::last_lines(std::uint64_t lines) const {
  return find_last_lines(size_, lines,
                         [&](std::uint64_t from, std::size_t most) { return read(from, most); });
}

Result<std::vector<LogTailer::Part>> LogTailer::look(std::optional<std::uint64_t> dropped) {
  auto fd = files_.open(path_, EndLink::refuse);
  if (!fd) {
    // It may not be there yet.
    return fd.error().code == ErrorCode::not_found && !dropped ? Result<std::vector<Part>>()
                                                               : std::unexpected(fd.error());
  }
  const std::vector<Tail> tails = open_tails(path_, files_);
  TRY_ASSIGN(const struct stat status, look_at(*fd));
  const auto size = static_cast<std::uint64_t>(status.st_size);
  const auto shared = std::make_shared<Fd>(std::move(*fd));
  std::vector<Part> parts;
  if (!tails.empty()) {
    const TailHeader& first = tails.front().header;
    limit_ = first.limit;
    parts.push_back({0, shared, 0, std::min(size, first.head)});
    for (const Tail& tail : tails) {
      parts.push_back({tail.header.from, tail.fd, kTailHeaderSize, tail.size});
    }
    return parts;
  }
  if (limit_ == 0 || dropped.value_or(0) == 0) {
    parts.push_back({0, shared, 0, size});
    return parts;
  }
  // Put together by now: the head, a line about the gap, and what came last.
  const std::uint64_t head = limit_ - 2 * (limit_ / 4);
  TRY_ASSIGN(const std::string mark, read_at(*shared, head, kMarkMax));
  const auto end = mark.find("]\n");
  const std::uint64_t tail_at = head + (end == std::string::npos ? 0 : end + 2);
  parts.push_back({0, shared, 0, std::min(size, head)});
  if (size > tail_at) {
    parts.push_back({head + *dropped, shared, tail_at, size - tail_at});
  }
  return parts;
}

Status LogTailer::skip_to_last(std::uint64_t lines, std::optional<std::uint64_t> dropped) {
  TRY_ASSIGN(const std::vector<Part> parts, look(dropped));
  std::uint64_t size = 0;
  for (const Part& part : parts) {
    size += part.size;
  }
  TRY_ASSIGN(std::uint64_t begin,
             find_last_lines(size, lines, [&](std::uint64_t from, std::size_t most) {
               Result<std::string> text;
               for (const Part& part : parts) {
                 const std::uint64_t skip = std::min(from, part.size);
                 from -= skip;
                 const std::size_t take = std::min<std::uint64_t>(part.size - skip, most);
                 if (take > 0 && text) {
                   const auto read = read_at(*part.fd, part.from + skip, take);
                   read ? void(*text += *read) : void(text = std::unexpected(read.error()));
                   most -= take;
                 }
               }
               return text;
             }));
  for (const Part& part : parts) {
    at_ = part.position + std::min(begin, part.size);
    if (begin < part.size) {
      break;
    }
    begin -= part.size;
  }
  return {};
}

Result<LogTailer::Piece> LogTailer::read(std::size_t most, std::optional<std::uint64_t> dropped) {
  TRY_ASSIGN(const std::vector<Part> parts, look(dropped));
  Piece piece;
  for (const Part& part : parts) {
    const std::uint64_t end = part.position + part.size;
    if (end <= at_) {
      continue;
    }
    if (piece.text.size() >= most) {
      piece.more = true;
      break;
    }
    if (part.position > at_) {
      piece.text += fmt::format("\n{}", left_out_line(part.position - at_, limit_).view());
      at_ = part.position;
    }
    const std::uint64_t skip = at_ - part.position;
    const std::size_t take = std::min<std::uint64_t>(part.size - skip, most);
    TRY_ASSIGN(const std::string text, read_at(*part.fd, part.from + skip, take));
    piece.text += text;
    at_ += text.size();
    piece.more = at_ < end && !text.empty();
  }
  piece.at = at_;
  return piece;
}

}  // namespace berth
