#include "board/own_place.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "base/random.hpp"
#include "base/write_all.hpp"

namespace berth {
namespace {

constexpr const char* kNewFile = "claims.new";
constexpr int kNamesTried = 8;
constexpr int kBacklog = 128;

/// Whether a file system has a name for it still.
bool has_name(const Fd& fd) {
  struct stat status{};
  return fd && ::fstat(fd.get(), &status) == 0 && status.st_nlink > 0;
}

}  // namespace

OwnPlace::OwnPlace(const BoardDirectory& directory, std::uint32_t uid, std::string instance)
    : directory_(&directory), uid_(uid), instance_(std::move(instance)) {}

Status OwnPlace::take_place() {
  const std::string wanted = board_place_name(uid_, instance_);
  const auto left = directory_->place_of(uid_, instance_);  // by the daemon before this one
  for (int tried = 0; tried < kNamesTried; ++tried) {
    // Another user may have taken the name; then one that cannot be guessed.
    name_ = tried > 0 ? fmt::format("{}.{:08x}", wanted, random_number()) : left.value_or(wanted);
    if (::mkdirat(directory_->fd(), name_.c_str(), 0755) != 0 && errno != EEXIST) {
      return fail_errno(fmt::format("cannot write on the claims board {}", directory_->path()),
                        errno);
    }
    Fd place = directory_->open_place(name_, uid_);
    if (place && ::fchmod(place.get(), 0755) == 0) {
      place_ = std::move(place);
      return {};
    }
  }
  return fail(ErrorCode::refused,
              fmt::format("somebody else is in our place {}/{} on the claims board",
                          directory_->path(), wanted));
}

Status OwnPlace::listen() {
  ::unlinkat(place_.get(), kBoardSocket, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = fmt::format("/proc/self/fd/{}/{}", place_.get(), kBoardSocket);
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket ||
      ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address),  // NOLINT
             sizeof address) != 0 ||
      ::listen(socket.get(), kBacklog) != 0 ||
      // Whatever the umask: strangers are to ask here.
      ::fchmodat(place_.get(), kBoardSocket, 0666, 0) != 0) {
    return fail_errno(fmt::format("cannot listen on the claims board {}", directory_->path()),
                      errno);
  }
  socket_ = std::move(socket);
  return {};
}

Status OwnPlace::enter() {
  if (has_name(place_)) {
    return {};
  }
  socket_.reset();
  place_.reset();
  TRY(take_place());
  return listen();
}

Status OwnPlace::replace(const std::string& text) const {
  const auto failed = [this](int error) {
    return fail_errno(
        fmt::format("cannot write on the claims board {}/{}", directory_->path(), name_), error);
  };
  ::unlinkat(place_.get(), kNewFile, 0);
  const Fd file(::openat(place_.get(), kNewFile,  // NOLINT
                         O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644));
  if (!file || ::fchmod(file.get(), 0644) != 0 || !write_all(file.get(), text) ||
      ::renameat(place_.get(), kNewFile, place_.get(), kBoardFile) != 0) {
    const int error = errno;
    ::unlinkat(place_.get(), kNewFile, 0);
    return failed(error);
  }
  return {};
}

void OwnPlace::see_off() const {
  for (int seen = 0; socket_ && seen < kBacklog; ++seen) {
    const Fd guest(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!guest) {
      return;
    }
  }
}

Status OwnPlace::publish(const BoardEntry& entry) {
  const std::string text = encode_board_entry(entry);
  if (text.size() > kBoardTextMax) {
    return fail(ErrorCode::refused,
                fmt::format("{} claims are too many for the claims board", entry.claims.size()));
  }
  if (entry.claims.empty() && !place_ && !directory_->place_of(uid_, instance_)) {
    return {};  // nothing to say and nothing said before
  }
  TRY(enter());
  see_off();
  if (entry.claims.empty()) {
    if (::unlinkat(place_.get(), kBoardFile, 0) != 0 && errno != ENOENT) {
      return fail_errno(fmt::format("cannot clear {}/{}", directory_->path(), name_), errno);
    }
    published_ = false;
    return {};
  }
  TRY(replace(text));
  published_ = true;
  return {};
}

bool OwnPlace::lost() const {
  return published_ && (!has_name(place_) || ::faccessat(place_.get(), kBoardFile, F_OK, 0) != 0);
}

void OwnPlace::leave() {
  if (place_) {
    for (const char* name : {kBoardFile, kNewFile, kBoardSocket}) {
      ::unlinkat(place_.get(), name, 0);
    }
    ::unlinkat(directory_->fd(), name_.c_str(), AT_REMOVEDIR);
  }
  socket_.reset();
  place_.reset();
  published_ = false;
}

}  // namespace berth
