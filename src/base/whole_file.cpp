#include "base/whole_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <thread>

#include <fmt/format.h>

#include "base/random.hpp"
#include "base/utf8.hpp"
#include "base/write_all.hpp"

namespace berth {
namespace {

constexpr std::chrono::milliseconds kBetweenTries{10};

std::unexpected<Error> io_error(std::string_view what, const std::string& path) {
  const int error = errno;
  auto failed = fail_errno(fmt::format("cannot {} '{}'", what, printable(path)), error);
  if (error == ENOSPC || error == EDQUOT) {
    failed.error().code = ErrorCode::no_space;
  }
  return failed;
}

}  // namespace

Result<std::optional<std::string>> read_whole(const std::string& path, std::size_t most) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!file) {
    return errno == ENOENT || errno == ENOTDIR ? Result<std::optional<std::string>>(std::nullopt)
                                               : io_error("read", path);
  }
  TRY_ASSIGN(std::string text, read_whole(file, path, most));
  return std::optional(std::move(text));
}

Result<std::string> read_whole(const Fd& file, const std::string& path, std::size_t most) {
  struct stat status{};
  if (::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    return fail(ErrorCode::invalid, fmt::format("'{}' is no regular file", printable(path)));
  }
  std::string text;
  std::array<char, 64 * 1024> buffer{};
  while (true) {
    const ssize_t got = ::read(file.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got < 0) {
      return io_error("read", path);
    }
    if (got == 0) {
      return text;
    }
    text.append(buffer.data(), static_cast<std::size_t>(got));
    if (text.size() > most) {
      return fail(ErrorCode::invalid,
                  fmt::format("'{}' is larger than {} bytes", printable(path), most));
    }
  }
}

Status replace_whole(const std::string& path, std::string_view text, mode_t mode) {
  const std::string fresh = fmt::format("{}.{:08x}.tmp", path, random_number());
  const Fd file(::open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode));
  if (!file) {
    return io_error("write", fresh);
  }
  struct stat old{};
  if (::lstat(path.c_str(), &old) == 0 && S_ISREG(old.st_mode)) {
    ::fchmod(file.get(), old.st_mode & 07777U);
  }
  if (!write_all(file.get(), text) || ::fsync(file.get()) != 0 ||
      ::rename(fresh.c_str(), path.c_str()) != 0) {
    auto error = io_error("write", path);
    ::unlink(fresh.c_str());
    return error;
  }
  const Fd directory(::open(std::filesystem::path(path).parent_path().c_str(),
                            O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory) {
    ::fsync(directory.get());
  }
  return {};
}

Status lock_file(const Fd& file, const std::string& path, std::chrono::milliseconds patience) {
  const auto end = std::chrono::steady_clock::now() + patience;
  while (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) {
      return io_error("lock", path);
    }
    if (std::chrono::steady_clock::now() >= end) {
      return fail(ErrorCode::busy,
                  fmt::format("another program holds the lock of '{}'; lslocks tells which",
                              printable(path)));
    }
    std::this_thread::sleep_for(kBetweenTries);
  }
  return {};
}

Result<FileLock> FileLock::take(const std::string& path) {
  const std::string name = path + ".lock";
  Fd file(::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
  if (!file) {
    return io_error("open", name);
  }
  ::fchmod(file.get(), 0600);  // one that an earlier version has left
  TRY(lock_file(file, name));
  return FileLock(std::move(file));
}

}  // namespace berth
