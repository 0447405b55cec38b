#include "submit/job_source.hpp"

#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include <fmt/format.h>

#include "base/fd.hpp"
#include "base/utf8.hpp"

namespace berth {
namespace {

/// Who submits, for names of files. The number where the machine knows no name.
std::string user_name() {
  for (const char* variable : {"USER", "LOGNAME"}) {
    if (const char* name = std::getenv(variable); name != nullptr && *name != 0) {
      return name;
    }
  }
  const passwd* entry = ::getpwuid(::getuid());  // NOLINT(concurrency-mt-unsafe)
  return entry != nullptr ? entry->pw_name : fmt::format("{}", ::getuid());
}

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) {
    return "localhost";
  }
  const std::string_view whole = name.data();
  return std::string(whole.substr(0, whole.find('.')));
}

bool is_on_path(const std::string& program) {
  const char* path = std::getenv("PATH");
  std::string_view rest = path == nullptr ? "" : path;
  while (!rest.empty()) {
    const auto folder = rest.substr(0, rest.find(':'));
    if (::access(fmt::format("{}/{}", folder, program).c_str(), X_OK) == 0) {
      return true;
    }
    rest.remove_prefix(std::min(rest.size(), folder.size() + 1));
  }
  return false;
}

/// What cannot be looked at may be one.
bool is_no_directory(const std::filesystem::path& path) {
  struct stat status{};
  return ::stat(path.c_str(), &status) == 0 ? !S_ISDIR(status.st_mode)
                                            : errno == ENOENT || errno == ENOTDIR;
}

Result<std::string> read_all(const Fd& fd, const std::string& path, std::string_view what) {
  std::string text;
  std::array<char, 64 * 1024> buffer{};
  ssize_t size = 0;
  while (fd && text.size() <= kJobFileMostBytes) {
    size = ::read(fd.get(), buffer.data(), buffer.size());
    if (size < 0 && errno == EINTR) {
      continue;
    }
    if (size <= 0) {
      break;
    }
    text.append(buffer.data(), static_cast<std::size_t>(size));
  }
  if (fd && size < 0 && errno == EISDIR) {
    return fail(ErrorCode::invalid,
                fmt::format("'{}' is a directory; name a {} in it", printable(path), what));
  }
  if (!fd || size < 0) {
    return fail_errno(fmt::format("cannot read the {} '{}'", what, printable(path)), errno);
  }
  return text;
}

std::unexpected<Error> no_such_file(const std::filesystem::path& path) {
  return fail(ErrorCode::not_found, fmt::format("there is no file '{}'", printable(path.native())));
}

}  // namespace

Result<std::string> read_whole_file(const std::string& path, std::string_view what) {
  const Fd fd(path == "-" ? ::dup(STDIN_FILENO)
                          : ::open(path.c_str(), O_RDONLY | O_CLOEXEC));  // NOLINT
  return read_all(fd, path, what);
}

Result<std::string> read_other_file(const std::filesystem::path& path) {
  if (::access(path.c_str(), F_OK) != 0 && (errno == ENOENT || errno == ENOTDIR)) {
    return no_such_file(path);
  }
  return read_whole_file(path.native(), "file");
}

Result<std::string> read_regular_file(const std::filesystem::path& path) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));  // NOLINT
  if (!fd && (errno == ENOENT || errno == ENOTDIR)) {
    return no_such_file(path);
  }
  struct stat status{};
  if (fd && ::fstat(fd.get(), &status) == 0 && !S_ISREG(status.st_mode)) {
    return fail(ErrorCode::invalid,
                fmt::format("'{}' is no regular file", printable(path.native())));
  }
  return read_all(fd, path.native(), "file");
}

Source job_source(std::string_view text, JobPlace place, ReadFile read) {
  return {text,
          std::move(place.file_name),
          std::move(place.base_dir),
          place.now,
          std::move(read),
          std::move(place.here),
          user_name(),
          host_name(),
          is_on_path,
          is_no_directory};
}

}  // namespace berth
