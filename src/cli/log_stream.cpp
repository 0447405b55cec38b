#include "cli/log_stream.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "cli/terminal.hpp"

namespace berth::cli {
namespace {

/// A line that never ends is passed on in pieces.
constexpr std::size_t kLineMax = 1024UL * 1024;

}  // namespace

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
    auto tails = open_tails(path_);
    TRY_ASSIGN(const LogText log, LogText::of(fd_.get(), tails));
    TRY(log.copy(path_, lines_, noting()));
    if (!tails.empty()) {
      TailFile& last = tails.back();
      // As far as it was copied: what comes next is what comes after.
      const off_t end = ::lseek(last.fd.get(), 0, SEEK_CUR);
      at_ = last.header.from + static_cast<std::uint64_t>(end) - kTailHeaderSize;
      tail_ = std::move(last);
    }
  }
  opened_ = opened_ || fd_;
  return {};
}

LogSink LogFollower::noting() {
  return [this](std::string_view text) {
    in_line_ = text.empty() ? in_line_ : text.back() != '\n';
    sink_(text);
  };
}

void LogFollower::forget() {
  fd_.reset();
  tail_.reset();
}

Status LogFollower::drain() {
  TRY(open(false));  // that of the next attempt may come later than the attempt itself
  if (!fd_) {
    return {};
  }
  auto tails = open_tails(path_);
  if (!tail_) {
    const std::uint64_t head = tails.empty() ? UINT64_MAX : tails.front().header.head;
    const off_t here = tails.empty() ? 0 : ::lseek(fd_.get(), 0, SEEK_CUR);
    if (tails.empty() || static_cast<std::uint64_t>(here) > head) {
      TRY(copy_log(fd_.get(), path_, noting()));  // beyond the head: it has been put together
      return {};
    }
    TRY(copy_log(fd_.get(), path_, noting(), head));
    at_ = head;
  } else {
    // After the look for the next one: if there is any, this one is complete.
    TRY_ASSIGN(const std::uint64_t more, copy_log(tail_->fd.get(), path_, noting()));
    at_ += more;
  }
  for (TailFile& next : tails) {
    if (tail_ && next.header.seq <= tail_->header.seq) {
      continue;
    }
    skip_to(next.header.from, next.header.limit);
    tail_ = std::move(next);
    TRY_ASSIGN(const std::uint64_t more, copy_log(tail_->fd.get(), path_, noting()));
    at_ += more;
  }
  return {};
}

void LogFollower::skip_to(std::uint64_t position, std::uint64_t limit) {
  if (position > at_) {
    if (in_line_) {
      sink_("\n");
    }
    in_line_ = false;
    sink_(left_out_line(position - at_, limit).view());
    at_ = position;
  }
}

Status LogFollower::drain_ended(std::uint64_t dropped) {
  TRY(drain());
  if (!tail_ || !open_tails(path_).empty()) {
    return {};
  }
  // What came after the tail file in our hands is to be found in the log, put together by now.
  const TailHeader header = tail_->header;
  const std::uint64_t tail_from = header.head + dropped;
  std::uint64_t tail_at = header.head;
  if (dropped > 0) {
    std::array<char, 160> text{};
    const ssize_t got =
        ::pread(fd_.get(), text.data(), text.size(), static_cast<off_t>(header.head));
    const auto end =
        std::string_view(text.data(), got > 0 ? static_cast<std::size_t>(got) : 0).find("]\n");
    tail_at += end == std::string_view::npos ? 0 : end + 2;
  }
  skip_to(tail_from, header.limit);
  ::lseek(fd_.get(), static_cast<off_t>(tail_at + (at_ - tail_from)), SEEK_SET);
  TRY_ASSIGN(const std::uint64_t more, copy_log(fd_.get(), path_, noting()));
  at_ += more;
  return {};
}

Status LogFollower::look(const JobDetail& detail, const std::function<void(std::uint32_t)>& next) {
  const AttemptView* last = find_attempt(detail, only_);
  std::uint64_t dropped = 0;  // of the attempt being read
  for (const AttemptView& attempt : detail.attempts) {
    dropped = attempt.id == current_ ? attempt.log_dropped : dropped;
  }
  // Attempts may have come and gone since the last look: none of them is left out.
  for (const AttemptView& attempt : detail.attempts) {
    if (last == nullptr || attempt.id > last->id || attempt.id <= current_ ||
        (current_ == 0 && &attempt != last) || attempt.log.empty()) {
      continue;
    }
    if (current_ != 0) {
      TRY(open(false));
      TRY(drain_ended(dropped));
    }
    if (current_ != 0 || (attempt.number > 1 && !only_)) {
      next(attempt.number);
    }
    current_ = attempt.id;
    dropped = attempt.log_dropped;
    // A log the user named is one file for all attempts: it goes on where it is.
    if (path_ != attempt.log) {
      path_ = attempt.log;
      forget();
    }
  }
  const bool ended = is_terminal(detail.job.state) || (only_ && last != nullptr && last->ended_at);
  TRY(open(ended));
  if (ended || (last != nullptr && last->ended_at && last->id == current_)) {
    TRY(drain_ended(dropped));
  } else {
    TRY(drain());
  }
  over_ = ended;
  return {};
}

}  // namespace berth::cli
