#include "api/socket.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

namespace berth {
namespace {

/// An address and, where the path is too long for one, the directory it goes through.
struct Address {
  sockaddr_un un{};
  Fd directory;

  [[nodiscard]] const sockaddr* get() const {
    return reinterpret_cast<const sockaddr*>(&un);  // NOLINT: what the socket API asks for
  }
};

Result<Address> address_of(const std::string& path) {
  Address address;
  address.un.sun_family = AF_UNIX;
  std::string shown = path;
  if (path.size() >= sizeof address.un.sun_path) {
    const std::filesystem::path full(path);
    address.directory.reset(
        ::open(full.parent_path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));  // NOLINT
    if (!address.directory) {
      const int error = errno;
      if (error == ENOENT) {
        return fail(ErrorCode::unavailable,
                    fmt::format("no directory '{}'", full.parent_path().native()));
      }
      return fail_errno(fmt::format("cannot open '{}'", full.parent_path().native()), error);
    }
    shown = fmt::format("/proc/self/fd/{}/{}", address.directory.get(), full.filename().native());
    if (shown.size() >= sizeof address.un.sun_path) {
      return fail(ErrorCode::invalid, fmt::format("the socket's name '{}' is too long", path));
    }
  }
  std::memcpy(address.un.sun_path, shown.c_str(), shown.size() + 1);
  return address;
}

Result<Fd> new_socket() {
  Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) {
    return fail_errno("cannot create a socket", errno);
  }
  return fd;
}

}  // namespace

Result<Fd> listen_unix(const std::string& path) {
  struct stat st{};
  if (::lstat(path.c_str(), &st) == 0) {
    if (!S_ISSOCK(st.st_mode)) {
      return fail(ErrorCode::refused,
                  fmt::format("'{}' is in the way and is not a socket; move it away", path));
    }
    if (::unlink(path.c_str()) != 0 && errno != ENOENT) {
      return fail_errno(fmt::format("cannot replace the socket '{}'", path), errno);
    }
  }
  TRY_ASSIGN(const Address address, address_of(path));
  TRY_ASSIGN(Fd fd, new_socket());
  // Before bind: the file is born with this mode, so there is no moment at which others get in.
  if (::fchmod(fd.get(), 0600) != 0 || ::bind(fd.get(), address.get(), sizeof address.un) != 0 ||
      ::listen(fd.get(), 256) != 0) {
    return fail_errno(fmt::format("cannot listen on '{}'", path), errno);
  }
  return fd;
}

Result<Fd> connect_unix(const std::string& path) {
  TRY_ASSIGN(const Address address, address_of(path));
  TRY_ASSIGN(Fd fd, new_socket());
  // A non-blocking connect fails with EAGAIN while the backlog is full; wait it out for a moment.
  for (int tries = 0; ::connect(fd.get(), address.get(), sizeof address.un) != 0; ++tries) {
    const int error = errno;
    if (error == EINTR || (error == EAGAIN && tries < 200)) {
      ::poll(nullptr, 0, 10);
      continue;
    }
    if (error == ENOENT || error == ECONNREFUSED || error == EAGAIN) {
      return fail(ErrorCode::unavailable,
                  fmt::format("nobody answers on '{}': {}", path, std::strerror(error)));
    }
    if (error == EACCES || error == EPERM) {
      return fail(ErrorCode::refused,
                  fmt::format("'{}' belongs to somebody else: {}", path, std::strerror(error)));
    }
    return fail_errno(fmt::format("cannot connect to '{}'", path), error);
  }
  // What we are about to send is for nobody else: commands, and the environment with its secrets.
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(fd.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
    return fail_errno(fmt::format("cannot tell who answers on '{}'", path), errno);
  }
  if (peer.uid != ::geteuid() && ::geteuid() != 0) {
    return fail(ErrorCode::refused, fmt::format("user {} answers on '{}', not you; look who may "
                                                "write to that directory, or set BERTH_DIR",
                                                peer.uid, path));
  }
  return fd;
}

}  // namespace berth
