#include "cli/log_stream.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "cli/terminal.hpp"

namespace berth::cli {
namespace {

constexpr std::size_t kBlock = 64UL * 1024;
/// A line that never ends is passed on in pieces.
constexpr std::size_t kLineMax = 1024UL * 1024;

}  // namespace

Result<std::uint64_t> tail_offset(int fd, std::uint64_t lines) {
  struct stat status{};
  if (::fstat(fd, &status) != 0) {
    return fail_errno("cannot look at the log", errno);
  }
  if (!S_ISREG(status.st_mode)) {
    return 0;
  }
  std::uint64_t at = static_cast<std::uint64_t>(status.st_size);
  const std::uint64_t end = at;
  std::array<char, kBlock> buffer{};
  std::uint64_t seen = 0;
  while (at > 0) {
    const std::uint64_t size = std::min<std::uint64_t>(at, buffer.size());
    at -= size;
    const ssize_t got = ::pread(fd, buffer.data(), size, static_cast<off_t>(at));
    if (got < 0) {
      return fail_errno("cannot read the log", errno);
    }
    for (std::uint64_t i = static_cast<std::uint64_t>(got); i-- > 0;) {
      // The end of the last line begins no other.
      if (buffer[i] == '\n' && at + i + 1 != end && ++seen == lines) {
        return at + i + 1;
      }
    }
  }
  return lines == 0 ? end : 0;
}

Result<Fd> open_log(const std::string& path) {
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));  // NOLINT
  if (!fd) {
    return fail_errno(fmt::format("cannot open the log '{}'", printable(path)), errno);
  }
  return fd;
}

Status copy_log(int fd, const std::string& path, const LogSink& sink) {
  std::array<char, kBlock> buffer{};
  while (true) {
    const ssize_t size = ::read(fd, buffer.data(), buffer.size());
    if (size == 0) {
      return {};
    }
    if (size < 0) {
      if (errno == EINTR) {
        continue;
      }
      return fail_errno(fmt::format("cannot read '{}'", printable(path)), errno);
    }
    sink({buffer.data(), static_cast<std::size_t>(size)});
  }
}

const AttemptView* find_attempt(const JobDetail& detail,
                                const std::optional<std::uint32_t>& number) {
  const AttemptView* found = nullptr;
  for (const AttemptView& attempt : detail.attempts) {
    if (!number || attempt.number == *number) {
      found = &attempt;
    }
  }
  return found;
}

void PrefixedLines::line(std::string_view text) {
  while (text.ends_with('\r')) {
    text.remove_suffix(1);
  }
  if (const auto over = text.rfind('\r'); over != std::string_view::npos) {
    text.remove_prefix(over + 1);
  }
  out_(fmt::format("{}{}\n", prefix_, text));
}

void PrefixedLines::feed(std::string_view text) {
  while (!text.empty()) {
    const auto end = text.find('\n');
    if (end == std::string_view::npos) {
      partial_ += text;
      if (partial_.size() > kLineMax) {
        finish();
      }
      return;
    }
    partial_ += text.substr(0, end);
    text.remove_prefix(end + 1);
    line(partial_);
    partial_.clear();
  }
}

void PrefixedLines::finish() {
  if (!partial_.empty()) {
    line(partial_);
    partial_.clear();
  }
}

Status LogFollower::open(bool must) {
  if (fd_ || path_.empty()) {
    return {};
  }
  if (must) {
    TRY_ASSIGN(fd_, open_log(path_));
  } else {
    fd_.reset(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));  // NOLINT: may not be there yet
  }
  if (fd_ && !opened_ && lines_) {
    TRY_ASSIGN(const std::uint64_t from, tail_offset(fd_.get(), *lines_));
    ::lseek(fd_.get(), static_cast<off_t>(from), SEEK_SET);
  }
  opened_ = opened_ || fd_;
  return {};
}

Status LogFollower::drain() {
  return fd_ ? copy_log(fd_.get(), path_, sink_) : Status();
}

Status LogFollower::look(const JobDetail& detail, const std::function<void(std::uint32_t)>& next) {
  const AttemptView* last = find_attempt(detail, only_);
  // Attempts may have come and gone since the last look: none of them is left out.
  for (const AttemptView& attempt : detail.attempts) {
    if (last == nullptr || attempt.id > last->id || attempt.id <= current_ ||
        (current_ == 0 && &attempt != last) || attempt.log.empty()) {
      continue;
    }
    if (current_ != 0) {
      TRY(open(false));
      TRY(drain());
      next(attempt.number);
    }
    current_ = attempt.id;
    // A log the user named is one file for all attempts: it goes on where it is.
    if (path_ != attempt.log) {
      path_ = attempt.log;
      fd_.reset();
    }
  }
  const bool ended = is_terminal(detail.job.state) || (only_ && last != nullptr && last->ended_at);
  TRY(open(ended));
  TRY(drain());
  over_ = ended;
  return {};
}

}  // namespace berth::cli
