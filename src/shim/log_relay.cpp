#include "shim/log_relay.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "base/log_tail.hpp"
#include "shim/sys.hpp"

namespace berth::shim {
namespace {

constexpr int kPipeSize = 256 << 10;  // of kernel memory: bursts do not wait for the disk
char buffer[32 << 10];

/// How much of it could be written.
std::size_t write_some(int fd, std::string_view bytes) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t written = ::write(fd, bytes.data() + done, bytes.size() - done);
    if (written < 0 && errno == EINTR) {
      continue;
    }
    if (written <= 0) {
      break;
    }
    done += static_cast<std::size_t>(written);
  }
  return done;
}

bool write_all(int fd, std::string_view bytes) {
  return write_some(fd, bytes) == bytes.size();
}

}  // namespace

int LogRelay::open(std::string_view path, std::uint64_t limit) {
  path_ = path;
  limit_ = limit > 0 && limit < kLogLimitMin ? kLogLimitMin : limit;
  room_ = limit_ - 2 * (limit_ / 4);
  if (!open_file() && errno != ENOSPC && errno != EDQUOT) {
    return errno;
  }
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    return errno;
  }
  read_end_ = ends[0];
  write_end_ = ends[1];
  // Only our end: a payload that finds its output non-blocking would lose some of it.
  ::fcntl(read_end_, F_SETFL, O_NONBLOCK);
  ::fcntl(read_end_, F_SETPIPE_SZ, kPipeSize);
  return 0;
}

bool LogRelay::open_file() {
  return in_tail_ ? open_tail() : open_head();
}

bool LogRelay::open_head() {
  Text path;
  path.add(path_);
  make_parents(path.c_str());
  file_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0644);
  struct stat status{};
  if (file_ >= 0 && ::fstat(file_, &status) == 0) {
    at_ = used_ = static_cast<std::uint64_t>(status.st_size);
  }
  return file_ >= 0;
}

bool LogRelay::open_tail() {
  Text path;
  path.add(path_).add(kTailSuffix);
  file_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644);
  if (file_ < 0) {
    return false;
  }
  const auto header = format_tail_header({seq_, head_size_, from_, limit_});
  if (!write_all(file_, header.view())) {
    ::unlink(path.c_str());
    close_fd(file_);
    return false;
  }
  return true;
}

void LogRelay::pump() {
  for (int i = 0; i < 32 && move_some(); ++i) {
  }
}

void LogRelay::finish() {
  close_fd(write_end_);
  while (move_some()) {
  }
  note_losses();
  if (in_tail_) {
    put_together();
  }
  close_fd(read_end_);
  close_fd(file_);
}

bool LogRelay::move_some() {
  if (read_end_ < 0) {
    return false;
  }
  ssize_t got = 0;
  do {
    got = ::read(read_end_, buffer, sizeof buffer);
  } while (got < 0 && errno == EINTR);
  if (got <= 0) {
    return false;
  }
  keep({buffer, static_cast<std::size_t>(got)});
  return true;
}

void LogRelay::keep(std::string_view bytes) {
  while (!bytes.empty()) {
    if (limit_ > 0 && used_ >= room_) {
      next_part();
    }
    if (lost_ > lost_noted_) {
      note_losses();
    }
    const std::uint64_t room = limit_ == 0 ? bytes.size() : used_ < room_ ? room_ - used_ : 1;
    const auto size = static_cast<std::size_t>(bytes.size() < room ? bytes.size() : room);
    lost_ += size - write_out(bytes.substr(0, size));
    bytes.remove_prefix(size);
  }
}

void LogRelay::next_part() {
  Text tail;
  tail.add(path_).add(kTailSuffix);
  Text old;
  old.add(path_).add(kOldTailSuffix);
  if (in_tail_) {
    close_fd(file_);
    // From here on the file before is gone: all between the head and the one just filled.
    const bool kept = ::rename(tail.c_str(), old.c_str()) == 0;
    cut_ = (kept ? from_ : at_) - head_size_;
    if (!kept) {
      ::unlink(old.c_str());
    }
    ++seq_;
  } else {
    ::unlink(old.c_str());
    head_ = file_;
    file_ = -1;
    head_size_ = at_;
    head_ends_line_ = at_line_start_;
    in_tail_ = true;
    room_ = limit_ / 4;
  }
  from_ = at_;
  used_ = 0;
}

void LogRelay::put_together() {
  close_fd(file_);
  bool whole = true;
  if (cut_ > 0) {
    whole = head_ends_line_ || write_all(head_, "\n");
    whole = whole && write_all(head_, left_out_line(cut_, limit_).view());
  }
  whole = whole && (seq_ == 0 || append_part(kOldTailSuffix));
  failpoint("shim_log_half_together");
  whole = whole && append_part(kTailSuffix);
  failpoint("shim_log_together");
  if (!whole) {
    // No room for both: the tail stays where it is, and readers find it there.
    [[maybe_unused]] const int ignored = ::ftruncate(head_, static_cast<off_t>(head_size_));
    close_fd(head_);
    return;
  }
  close_fd(head_);
  // In this order: a later tail file without the one before it tells that the log is whole.
  Text path;
  path.add(path_).add(kOldTailSuffix);
  ::unlink(path.c_str());
  failpoint("shim_log_old_tail_gone");
  Text tail;
  tail.add(path_).add(kTailSuffix);
  ::unlink(tail.c_str());
}

bool LogRelay::append_part(std::string_view suffix) {
  Text path;
  path.add(path_).add(suffix);
  int part = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (part < 0) {
    return errno == ENOENT;  // the disk had no room for it, which is counted as lost
  }
  bool good = ::lseek(part, static_cast<off_t>(kTailHeaderSize), SEEK_SET) >= 0;
  while (good) {
    const ssize_t got = ::read(part, buffer, sizeof buffer);
    if (got == 0) {
      break;
    }
    if (got < 0 && errno == EINTR) {
      continue;
    }
    good = got > 0 && write_all(head_, {buffer, static_cast<std::size_t>(got)});
  }
  close_fd(part);
  return good;
}

void LogRelay::note_losses() {
  if (lost_ == lost_noted_) {
    return;
  }
  Text note;
  note.add(at_line_start_ ? "" : "\n").add("[berth] ").add(lost_ - lost_noted_);
  note.add(" bytes of output lost: disk full\n");
  if (write_out(note.view()) == note.view().size()) {
    lost_noted_ = lost_;
  }
}

std::size_t LogRelay::write_out(std::string_view bytes) {
  if (file_ < 0 && !open_file()) {
    return 0;
  }
  const std::size_t done = write_some(file_, bytes);
  if (done > 0) {
    at_line_start_ = bytes[done - 1] == '\n';
    at_ += done;
    used_ += done;
  }
  return done;
}

}  // namespace berth::shim
