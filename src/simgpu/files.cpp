#include "simgpu/files.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace berth::simgpu {

std::optional<std::string> read_file(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    return std::nullopt;
  }
  std::string content;
  std::array<char, 4096> buffer{};
  ssize_t got = 0;
  while ((got = ::read(fd, buffer.data(), buffer.size())) != 0) {
    if (got > 0) {
      content.append(buffer.data(), static_cast<std::size_t>(got));
    } else if (errno != EINTR) {
      break;
    }
  }
  ::close(fd);
  if (got < 0) {
    return std::nullopt;
  }
  return content;
}

std::string errno_text(std::string_view what, const std::string& path) {
  const int reason = errno;
  return std::string(what) + " '" + path + "': " + std::strerror(reason);
}

Outcome<void> replace_file(const std::string& path, std::string_view content) {
  const std::size_t slash = path.rfind('/');
  const std::string temporary = path.substr(0, slash + 1) + "." + path.substr(slash + 1) + ".tmp";
  // Left over from a writer that was killed: the lock says that it is nobody's.
  ::unlink(temporary.c_str());
  const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (fd < 0) {
    return std::unexpected(errno_text("cannot write", temporary));
  }
  std::string_view rest = content;
  while (!rest.empty()) {
    const ssize_t written = ::write(fd, rest.data(), rest.size());
    if (written > 0) {
      rest.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno != EINTR) {
      break;
    }
  }
  const std::string failure = errno_text("cannot write", path);
  ::close(fd);
  if (rest.empty() && ::rename(temporary.c_str(), path.c_str()) == 0) {
    return {};
  }
  const std::string error = rest.empty() ? errno_text("cannot replace", path) : failure;
  ::unlink(temporary.c_str());
  return std::unexpected(error);
}

Outcome<FileLock> FileLock::acquire(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (fd < 0) {
    return std::unexpected(errno_text("cannot open", path));
  }
  while (::flock(fd, LOCK_EX) != 0) {
    if (errno != EINTR) {
      const std::string error = errno_text("cannot lock", path);
      ::close(fd);
      return std::unexpected(error);
    }
  }
  return FileLock(fd);
}

FileLock::~FileLock() {
  if (fd_ >= 0) {
    ::close(fd_);
  }
}

Lines::Lines(std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    const std::size_t space = line.find(' ');
    if (space != line.npos) {
      add(line.substr(0, space), line.substr(space + 1));
    }
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
  }
}

void Lines::add(std::string_view key, std::string_view value) {
  lines_.emplace_back(std::string(key), std::string(value));
}

void Lines::add(std::string_view key, std::uint64_t value) {
  add(key, std::to_string(value));
}

std::optional<std::string> Lines::text(std::string_view key) const {
  for (const auto& [name, value] : lines_) {
    if (name == key) {
      return value;
    }
  }
  return std::nullopt;
}

std::optional<std::uint64_t> Lines::number(std::string_view key) const {
  const auto value = text(key);
  return value ? parse_number(*value) : std::nullopt;
}

std::string Lines::join() const {
  std::string joined;
  for (const auto& [key, value] : lines_) {
    joined.append(key).append(" ").append(value).append("\n");
  }
  return joined;
}

}  // namespace berth::simgpu
