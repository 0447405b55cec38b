#include "board/board_directory.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <utility>

#include <fmt/format.h>

namespace berth {
namespace {

constexpr std::string_view kPrefix = "berth-";
constexpr std::size_t kPlacesPerUser = 256;

/// Opens a name directly below `directory`: no link, no other file system (somebody's FUSE would
/// decide how long that takes), and no waiting for whoever is at the other end of a pipe or lease.
Fd open_below(int directory, const std::string& name, int flags) {
  open_how how{};
  how.flags = static_cast<unsigned>(flags | O_NOFOLLOW | O_CLOEXEC);
  how.resolve = RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH;
  const long fd = ::syscall(SYS_openat2, directory, name.c_str(), &how, sizeof how);
  if (fd < 0 && (errno == ENOSYS || errno == EPERM)) {  // an old kernel, or a sandbox
    return Fd(::openat(directory, name.c_str(), static_cast<int>(how.flags)));  // NOLINT
  }
  return Fd(static_cast<int>(fd));
}

bool suits(const struct stat& status) {
  return S_ISDIR(status.st_mode) && status.st_uid == 0 && (status.st_mode & 01777U) == 01777U;
}

std::optional<std::string> read_bounded(const Fd& file) {
  std::string text(kBoardTextMax + 1, '\0');
  std::size_t used = 0;
  while (used < text.size()) {
    const ssize_t got = ::read(file.get(), text.data() + used, text.size() - used);
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got < 0) {
      return std::nullopt;
    }
    if (got == 0) {
      text.resize(used);
      return text;
    }
    used += static_cast<std::size_t>(got);
  }
  return std::nullopt;
}

}  // namespace

std::string board_place_name(std::uint32_t uid, const std::string& instance) {
  return fmt::format("{}{}-{}", kPrefix, uid, instance);
}

std::optional<BoardPlace> parse_board_place(std::string_view name) {
  if (!name.starts_with(kPrefix)) {
    return std::nullopt;
  }
  name.remove_prefix(kPrefix.size());
  BoardPlace place;
  const char* end = name.data() + name.size();
  const auto parsed = std::from_chars(name.data(), end, place.uid);
  if (parsed.ec != std::errc{} || parsed.ptr == end || *parsed.ptr != '-' || name[0] == '+' ||
      (name[0] == '0' && parsed.ptr != name.data() + 1)) {
    return std::nullopt;
  }
  const std::string_view rest(parsed.ptr + 1, static_cast<std::size_t>(end - parsed.ptr - 1));
  place.instance = rest.substr(0, rest.find('.'));
  if (!is_board_word(place.instance) || !is_board_word(rest)) {
    return std::nullopt;
  }
  return place;
}

Result<std::optional<std::string>> BoardDirectory::find() {
  if (const char* given = std::getenv("BERTH_BOARD"); given != nullptr && *given != '\0') {
    if (std::string_view(given) == "off") {
      return std::nullopt;
    }
    return given;
  }
  for (const char* candidate : {"/run/lock", "/dev/shm"}) {
    struct stat status{};
    if (::lstat(candidate, &status) == 0 && suits(status)) {
      return candidate;
    }
  }
  return fail(ErrorCode::not_found,
              "neither /run/lock nor /dev/shm is a directory of root's in which everybody may "
              "write and nobody may remove what others wrote (mode 1777)");
}

Result<BoardDirectory> BoardDirectory::open(const std::string& path) {
  Fd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));  // NOLINT
  if (!fd) {
    return fail_errno(fmt::format("cannot open the claims board {}", path), errno);
  }
  struct stat status{};
  if (::fstat(fd.get(), &status) != 0) {
    return fail_errno(fmt::format("cannot look at the claims board {}", path), errno);
  }
  const bool open_to_others = (status.st_mode & 0022U) != 0;
  if ((status.st_uid != 0 && status.st_uid != ::geteuid()) ||
      (open_to_others && (status.st_mode & 01000U) == 0)) {
    return fail(ErrorCode::refused,
                fmt::format("the claims board {} must be root's and sticky (mode 1777), or others "
                            "could remove what is written there",
                            path));
  }
  return BoardDirectory(path, std::move(fd));
}

Fd BoardDirectory::open_place(const std::string& name, std::uint32_t owner) const {
  Fd place = open_below(fd_.get(), name, O_RDONLY | O_DIRECTORY | O_NONBLOCK);
  struct stat status{};
  if (!place || ::fstat(place.get(), &status) != 0 || !S_ISDIR(status.st_mode) ||
      status.st_uid != owner || (status.st_mode & 0022U) != 0) {
    return Fd();
  }
  return place;
}

std::optional<BoardEntry> BoardDirectory::read_one(const std::string& name) const {
  const auto named = parse_board_place(name);
  const Fd place = named ? open_place(name, named->uid) : Fd();
  const Fd file =
      place ? open_below(place.get(), kBoardFile, O_RDONLY | O_NONBLOCK | O_NOCTTY) : Fd();
  struct stat status{};
  if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode) ||
      status.st_uid != named->uid || static_cast<std::uint64_t>(status.st_size) > kBoardTextMax) {
    return std::nullopt;
  }
  const auto text = read_bounded(file);
  if (!text) {
    return std::nullopt;
  }
  auto entry = decode_board_entry(*text);
  if (!entry || entry->uid != named->uid || entry->instance != named->instance) {
    return std::nullopt;
  }
  return std::move(*entry);
}

Result<std::vector<std::string>> BoardDirectory::names() const {
  // Its own position in the directory: two readers must not share one.
  Fd again(::openat(fd_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));  // NOLINT
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(again ? ::fdopendir(again.get()) : nullptr,
                                                    ::closedir);
  if (!listing) {
    return fail_errno(fmt::format("cannot read the claims board {}", path_), errno);
  }
  [[maybe_unused]] const int owned_by_listing = again.release();
  std::vector<std::string> found;
  errno = 0;
  while (const dirent* item = ::readdir(listing.get())) {  // NOLINT
    if (parse_board_place(item->d_name)) {
      found.emplace_back(item->d_name);
    }
    errno = 0;
  }
  if (errno != 0) {
    return fail_errno(fmt::format("cannot read the claims board {}", path_), errno);
  }
  return found;
}

Result<std::vector<FoundEntry>> BoardDirectory::read() const {
  TRY_ASSIGN(const std::vector<std::string> listed, names());
  std::vector<FoundEntry> found;
  std::map<std::uint32_t, std::size_t> places;
  for (const std::string& name : listed) {
    auto entry = read_one(name);
    // Counted by what is theirs: a name alone could be anybody's.
    if (entry && ++places[entry->uid] <= kPlacesPerUser) {
      found.push_back({name, std::move(*entry)});
    }
  }
  return found;
}

std::optional<std::string> BoardDirectory::place_of(std::uint32_t uid,
                                                    const std::string& instance) const {
  const auto listed = names();
  for (const std::string& name : listed.value_or(std::vector<std::string>{})) {
    const auto place = parse_board_place(name);
    if (place && place->uid == uid && place->instance == instance && open_place(name, uid)) {
      return name;
    }
  }
  return std::nullopt;
}

bool BoardDirectory::answers(const FoundEntry& found) const {
  const Fd place = open_place(found.name, found.entry.uid);
  const Fd door = place ? open_below(place.get(), kBoardSocket, O_PATH) : Fd();
  struct stat status{};
  if (!door || ::fstat(door.get(), &status) != 0 || !S_ISSOCK(status.st_mode) ||
      status.st_uid != found.entry.uid) {
    return false;
  }
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = fmt::format("/proc/self/fd/{}", door.get());
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  const Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) {
    return true;  // nothing was learnt, so nothing is taken away
  }
  // To a unix socket this is done at once or not at all; nobody is waited for.
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address),  // NOLINT
                sizeof address) != 0) {
    return errno == EAGAIN;  // it listens, and too many are asking
  }
  ucred peer{};
  socklen_t size = sizeof peer;
  return ::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
         peer.uid == found.entry.uid;
}

}  // namespace berth
