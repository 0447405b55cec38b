#include "snapshot/copy_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/fd.hpp"
#include "base/utf8.hpp"

namespace berth {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kAtOnce = 64UL * 1024 * 1024;
constexpr mode_t kPermissions = 0777;

std::unexpected<Error> cannot(std::string_view what, const fs::path& path, int error) {
  auto failed = fail_errno(fmt::format("cannot {} '{}'", what, to_utf8(path.native())), error);
  failed.error().code = error == ENOSPC || error == EDQUOT ? ErrorCode::no_space : ErrorCode::io;
  return failed;
}

/// 0, or errno.
int copy_by_hand(int from, int to) {
  std::array<char, 128 * 1024> buffer{};
  while (true) {
    const ssize_t size = ::read(from, buffer.data(), buffer.size());
    if (size == 0) {
      return 0;
    }
    if (size < 0 && errno != EINTR) {
      return errno;
    }
    for (ssize_t done = 0; done < size;) {
      const ssize_t written =
          ::write(to, buffer.data() + done, static_cast<std::size_t>(size - done));
      if (written < 0 && errno != EINTR) {
        return errno;
      }
      done += written > 0 ? written : 0;
    }
  }
}

/// 0, or errno.
int copy_content(int from, int to) {
  if (::ioctl(to, FICLONE, from) == 0) {
    return 0;
  }
  while (true) {
    const ssize_t size = ::copy_file_range(from, nullptr, to, nullptr, kAtOnce, 0);
    if (size == 0) {
      break;
    }
    if (size < 0 && errno != EINTR) {
      if (errno == ENOSPC || errno == EDQUOT || errno == EIO) {
        return errno;
      }
      break;  // it cannot be done here; both stand where it stopped
    }
  }
  return copy_by_hand(from, to);
}

}  // namespace

Result<bool> copy_plain_file(const fs::path& from, const fs::path& to) {
  const Fd in(::open(from.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));  // NOLINT
  if (!in) {
    if (errno == ENOENT) {
      return false;
    }
    return cannot("read", from, errno);
  }
  struct stat status{};
  if (::fstat(in.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    return false;
  }
  const Fd out(::open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));  // NOLINT
  if (!out) {
    return cannot("create", to, errno);
  }
  if (const int error = copy_content(in.get(), out.get()); error != 0) {
    return cannot("copy", from, error);
  }
  const std::array times{status.st_atim, status.st_mtim};
  if (::fchmod(out.get(), (status.st_mode & kPermissions) | S_IRUSR | S_IWUSR) != 0 ||
      ::futimens(out.get(), times.data()) != 0) {
    return cannot("set the permissions of", to, errno);
  }
  return true;
}

Result<bool> copy_link(const fs::path& from, const fs::path& to, const fs::path& root) {
  std::error_code error;
  fs::path target = fs::read_symlink(from, error);
  if (error) {
    return false;
  }
  if (target.is_relative()) {
    const fs::path whole = (from.parent_path() / target).lexically_normal();
    const fs::path inside = whole.lexically_relative(root);
    if (inside.empty() || *inside.begin() == "..") {
      target = whole;
    }
  }
  fs::create_symlink(target, to, error);
  if (error) {
    return cannot("create", to, error.value());
  }
  return true;
}

}  // namespace berth
