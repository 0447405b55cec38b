#include "base/owned_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/utf8.hpp"
#include "base/whole_file.hpp"

namespace berth {
namespace {

constexpr int kMostLinks = 40;  // as the kernel has it

/// The names in a path, the last one first: they are taken from the end.
std::vector<std::string> names_backwards(std::string_view path) {
  std::vector<std::string> names;
  while (!path.empty()) {
    const auto slash = std::min(path.find('/'), path.size());
    if (slash > 0) {
      names.emplace_back(path.substr(0, slash));
    }
    path.remove_prefix(std::min(slash + 1, path.size()));
  }
  std::ranges::reverse(names);
  return names;
}

class Walk {
 public:
  Walk(const std::string& path, uid_t owner, EndLink end, FileOf of)
      : path_(path), owner_(owner), end_(end), of_(of) {}

  Result<Fd> to_end() {
    if (!path_.starts_with('/') || path_.find('\0') != std::string::npos) {
      return fail(ErrorCode::invalid, fmt::format("'{}' is no absolute path", printable(path_)));
    }
    left_ = names_backwards(path_);
    if (std::ranges::any_of(left_, [](const auto& name) { return name == "." || name == ".."; })) {
      return fail(
          ErrorCode::invalid,
          fmt::format("'{}' has '.' or '..' in it; write the path without", printable(path_)));
    }
    TRY(begin());
    while (!left_.empty()) {
      TRY(step());
    }
    return finish();
  }

 private:
  std::unexpected<Error> failed() const {
    const int error = errno;
    if (error == ENOENT || error == ENOTDIR) {
      return fail(ErrorCode::not_found, fmt::format("there is no file '{}'", printable(path_)));
    }
    auto why = fail_errno(fmt::format("cannot open '{}'", printable(path_)), error);
    if (error == EACCES || error == EPERM || error == ELOOP) {
      why.error().code = ErrorCode::refused;
    }
    return why;
  }

  Status begin() {
    at_ = Fd(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
    return at_ ? Status{} : failed();
  }

  Status step() {
    const std::string name = std::move(left_.back());
    left_.pop_back();
    if (name == "..") {  // out of a link's text
      return enter(name);
    }
    Fd next(::openat(at_.get(), name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    struct stat status{};
    if (!next || ::fstat(next.get(), &status) != 0) {
      return failed();
    }
    if (S_ISLNK(status.st_mode)) {
      return follow(next, status);
    }
    at_ = std::move(next);
    return {};
  }

  Status enter(const std::string& name) {
    Fd next(::openat(at_.get(), name.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!next) {
      return failed();
    }
    at_ = std::move(next);
    return {};
  }

  Status follow(const Fd& link, const struct stat& status) {
    if (left_.empty() && end_ == EndLink::refuse) {
      return fail(ErrorCode::refused,
                  fmt::format("'{}' is a symbolic link, which is not followed", printable(path_)));
    }
    if (status.st_uid != owner_ && status.st_uid != 0) {
      return fail(
          ErrorCode::refused,
          fmt::format("'{}' leads over a symbolic link that somebody else made", printable(path_)));
    }
    if (++links_ > kMostLinks) {
      errno = ELOOP;
      return failed();
    }
    std::array<char, PATH_MAX> text{};
    const ssize_t size = ::readlinkat(link.get(), "", text.data(), text.size());
    if (size <= 0 || static_cast<std::size_t>(size) == text.size()) {
      return failed();
    }
    const std::string_view target(text.data(), static_cast<std::size_t>(size));
    for (std::string& name : names_of_link(target)) {
      left_.push_back(std::move(name));
    }
    return target.starts_with('/') ? begin() : Status{};
  }

  static std::vector<std::string> names_of_link(std::string_view target) {
    std::vector<std::string> names = names_backwards(target);
    std::erase(names, ".");
    return names;
  }

  Result<Fd> finish() {
    struct stat status{};
    if (::fstat(at_.get(), &status) != 0) {
      return failed();
    }
    if (!S_ISREG(status.st_mode)) {
      return fail(ErrorCode::invalid, fmt::format("'{}' is no regular file", printable(path_)));
    }
    if (of_ == FileOf::owner && status.st_uid != owner_) {
      return fail(ErrorCode::refused,
                  fmt::format("'{}' belongs to another user; only one's own files are read",
                              printable(path_)));
    }
    // The very file that was looked at, whatever has its name by now.
    Fd file(::open(fmt::format("/proc/self/fd/{}", at_.get()).c_str(),
                   O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    if (!file) {
      return failed();
    }
    return file;
  }

  const std::string& path_;
  uid_t owner_;
  EndLink end_;
  FileOf of_;
  std::vector<std::string> left_;  ///< names still to be entered, the next one last
  Fd at_;
  int links_ = 0;
};

}  // namespace

Result<Fd> open_owned(const std::string& path, uid_t owner, EndLink end, FileOf of) {
  return Walk(path, owner, end, of).to_end();
}

Result<std::optional<std::string>> read_owned(const std::string& path, uid_t owner, FileOf of,
                                              std::size_t most) {
  const auto file = open_owned(path, owner, EndLink::follow, of);
  if (!file) {
    return file.error().code == ErrorCode::not_found
               ? Result<std::optional<std::string>>(std::nullopt)
               : std::unexpected(file.error());
  }
  TRY_ASSIGN(std::string text, read_whole(*file, path, most));
  return std::optional(std::move(text));
}

}  // namespace berth
