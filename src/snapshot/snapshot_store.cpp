#include "snapshot/snapshot_store.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ctime>
#include <filesystem>
#include <fstream>

#include "base/fd.hpp"

namespace berth {
namespace {

namespace fs = std::filesystem;

constexpr std::time_t kYoung = 60;  ///< seconds in which whoever makes one has locked it

bool is_abandoned(const std::string& dir, const struct stat& status) {
  if (std::time(nullptr) - status.st_ctime < kYoung) {
    return false;
  }
  const Fd lock(::open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));  // NOLINT
  return lock && ::flock(lock.get(), LOCK_EX | LOCK_NB) == 0;
}

}  // namespace

std::vector<StoredSnapshot> stored_snapshots(const std::string& snapshots) {
  std::vector<StoredSnapshot> found;
  std::error_code error;
  for (fs::directory_iterator at(snapshots, error), end; !error && at != end; at.increment(error)) {
    struct stat status{};
    if (::lstat(at->path().c_str(), &status) == 0 && S_ISDIR(status.st_mode)) {
      found.push_back({at->path().filename().native(), status.st_uid,
                       is_abandoned(at->path().native(), status)});
    }
  }
  return found;
}

void remove_snapshot(const std::string& snapshots, const std::string& key) {
  const fs::path dir = fs::path(snapshots) / key;
  std::error_code error;
  // Programs make directories that cannot be written in.
  for (fs::recursive_directory_iterator at(dir, error), end; !error && at != end;
       at.increment(error)) {
    if (at->is_directory(error) && !at->is_symlink(error)) {
      fs::permissions(at->path(), fs::perms::owner_all, fs::perm_options::add, error);
    }
    error.clear();
  }
  fs::remove_all(dir, error);
}

std::optional<std::string> origin_of(const std::string& snapshots, const std::string& dir) {
  const fs::path inside = fs::path(dir).lexically_relative(snapshots);
  auto part = inside.begin();
  if (inside.empty() || part == inside.end() || *part == ".." || *part == ".") {
    return std::nullopt;
  }
  const fs::path key = *part++;
  if (part == inside.end()) {
    return std::nullopt;
  }
  const fs::path tree = *part++;
  std::ifstream file(fs::path(snapshots) / key / ".origin");
  std::string name;
  std::string root;
  while (std::getline(file, name) && std::getline(file, root)) {
    if (name == tree) {
      fs::path original = root;
      for (; part != inside.end(); ++part) {
        original /= *part;
      }
      return original.native();
    }
  }
  return std::nullopt;
}

}  // namespace berth
