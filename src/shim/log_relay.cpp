#include "shim/log_relay.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "shim/sys.hpp"

namespace berth::shim {
namespace {

constexpr int kPipeSize = 256 << 10;  // of kernel memory: bursts do not wait for the disk
char buffer[32 << 10];

}  // namespace

int LogRelay::open(std::string_view path, std::uint64_t limit) {
  path_ = path;
  limit_ = limit;
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
  Text path;
  path.add(path_);
  make_parents(path.c_str());
  file_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0644);
  return file_ >= 0;
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
  if (cut_ > 0) {
    Text note;
    note.add(at_line_start_ ? "" : "\n").add("[berth] ").add(cut_);
    note.add(" bytes of output beyond the limit of ").add(limit_).add(" not kept\n");
    (void)write_out(note.view());
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
  if (limit_ > 0) {
    const std::uint64_t room = limit_ - kept_;
    const auto fits = static_cast<std::size_t>(bytes.size() < room ? bytes.size() : room);
    cut_ += bytes.size() - fits;
    kept_ += fits;
    bytes = bytes.substr(0, fits);
  }
  if (bytes.empty()) {
    return;
  }
  if (lost_ > lost_noted_) {
    note_losses();
  }
  lost_ += bytes.size() - write_out(bytes);
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
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t written = ::write(file_, bytes.data() + done, bytes.size() - done);
    if (written < 0 && errno == EINTR) {
      continue;
    }
    if (written <= 0) {
      break;
    }
    done += static_cast<std::size_t>(written);
  }
  if (done > 0) {
    at_line_start_ = bytes[done - 1] == '\n';
  }
  return done;
}

}  // namespace berth::shim
