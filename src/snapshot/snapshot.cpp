#include "snapshot/snapshot.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>

#include "base/utf8.hpp"
#include "snapshot/copy_file.hpp"
#include "snapshot/snapshot_store.hpp"
#include "snapshot/tree_files.hpp"

namespace berth {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kNamedDirectories = 3;

struct Counted {
  Bytes bytes = 0;
  std::uint64_t files = 0;
};

/// How much there is to copy, in all and below each of the directories at the top.
struct Inventory {
  Counted all;
  std::map<std::string, Counted> tops;
};

Inventory take_inventory(const TreeFiles& tree) {
  Inventory inventory;
  for (const fs::path& file : tree.files) {
    struct stat status{};
    if (::lstat((tree.root / file).c_str(), &status) != 0) {
      continue;
    }
    const Bytes size = S_ISREG(status.st_mode) ? static_cast<Bytes>(status.st_size) : 0;
    const auto second = std::next(file.begin());
    Counted& top = inventory.tops[second == file.end() ? "." : file.begin()->native() + "/"];
    for (Counted* counted : {&inventory.all, &top}) {
      counted->bytes += size;
      ++counted->files;
    }
  }
  return inventory;
}

std::string in_words(std::uint64_t files) {
  return fmt::format("{} file{}", files, files == 1 ? "" : "s");
}

Status check_size(const TreeFiles& tree, const SnapshotLimit& limit) {
  const Inventory inventory = take_inventory(tree);
  if (inventory.all.bytes <= limit.bytes && inventory.all.files <= limit.files) {
    return {};
  }
  std::vector<std::pair<std::string, Counted>> tops(inventory.tops.begin(), inventory.tops.end());
  const bool by_size = inventory.all.bytes > limit.bytes;
  std::ranges::sort(tops, std::greater{},
                    [&](const auto& top) { return by_size ? top.second.bytes : top.second.files; });
  std::string largest;
  for (std::size_t i = 0; i < std::min(kNamedDirectories, tops.size()); ++i) {
    const auto& [name, counted] = tops[i];
    largest += fmt::format("{}{} ({}, {})", i > 0 ? ", " : "", to_utf8(name),
                           format_size(counted.bytes), in_words(counted.files));
  }
  return fail(ErrorCode::refused,
              fmt::format("the working tree '{}' is too large for a snapshot: {} in {}, and "
                          "{} in {} are allowed; the largest in it: {}. Let .gitignore name "
                          "what is not code, or raise the limit: --snapshot-limit {}",
                          to_utf8(tree.root.native()), format_size(inventory.all.bytes),
                          in_words(inventory.all.files), format_size(limit.bytes),
                          in_words(limit.files), largest, "4GiB"));
}

Status make_parents(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  if (error) {
    return fail_errno(fmt::format("cannot create '{}'", to_utf8(path.parent_path().native())),
                      error.value());
  }
  return {};
}

Status copy_tree(const TreeFiles& tree, const fs::path& to) {
  fs::path made;  // the parents of the file before
  for (const fs::path& file : tree.files) {
    const fs::path from = tree.root / file;
    const fs::path target = to / file;
    if (made != target.parent_path()) {
      TRY(make_parents(target));
      made = target.parent_path();
    }
    std::error_code error;
    if (fs::is_symlink(from, error)) {
      TRY(copy_link(from, target, tree.root));
    } else {
      TRY(copy_plain_file(from, target));
    }
  }
  for (const fs::path& path : tree.beside) {
    const fs::path link = to / path;
    TRY(make_parents(link));
    std::error_code error;
    fs::create_symlink(tree.root / path, link, error);
    if (error && error != std::errc::file_exists) {
      return fail_errno(fmt::format("cannot create '{}'", to_utf8(link.native())), error.value());
    }
  }
  return {};
}

}  // namespace

SnapshotLimit SnapshotLimit::of(Bytes bytes) {
  SnapshotLimit limit;
  const SnapshotLimit usual;
  limit.files = std::max<std::uint64_t>(1, usual.files * (bytes / kMiB) / (usual.bytes / kMiB));
  limit.files = std::max(limit.files, bytes < usual.bytes ? usual.files : limit.files);
  limit.bytes = bytes;
  return limit;
}

Result<TreeSnapshot> TreeSnapshot::begin(const std::string& snapshots, const std::string& key) {
  const std::string dir = snapshots + "/" + key;
  for (const std::string& path : {snapshots, dir}) {
    if (::mkdir(path.c_str(), 0700) != 0 && (errno != EEXIST || path == dir)) {
      if (errno == EEXIST) {
        return fail(ErrorCode::conflict,
                    fmt::format("there is a snapshot '{}' already", to_utf8(dir)));
      }
      return fail_errno(fmt::format("cannot create '{}'", to_utf8(path)), errno);
    }
  }
  Fd lock(::open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));  // NOLINT
  if (!lock || ::flock(lock.get(), LOCK_SH) != 0) {
    return fail_errno(fmt::format("cannot lock '{}'", to_utf8(dir)), errno);
  }
  return TreeSnapshot(dir, std::move(lock));
}

TreeSnapshot::TreeSnapshot(TreeSnapshot&& other) noexcept
    : dir_(std::move(other.dir_)),
      lock_(std::move(other.lock_)),
      kept_(std::exchange(other.kept_, true)),
      copies_(std::move(other.copies_)),
      places_(std::move(other.places_)),
      warnings_(std::move(other.warnings_)) {}

TreeSnapshot::~TreeSnapshot() {
  if (!kept_) {
    std::error_code error;
    fs::remove_all(dir_, error);
  }
}

Result<std::string> TreeSnapshot::place_of(const std::string& dir, const SnapshotLimit& limit) {
  if (const auto known = places_.find(dir); known != places_.end()) {
    return known->second;
  }
  std::error_code error;
  if (!fs::is_directory(dir, error)) {
    return fail(ErrorCode::not_found,
                fmt::format("there is no directory '{}' to take a snapshot of", to_utf8(dir)));
  }
  TRY_ASSIGN(const TreeFiles tree, list_tree(dir));
  auto copy = copies_.find(tree.root.native());
  if (copy == copies_.end()) {
    TRY(check_size(tree, limit));
    std::string name = tree.root.filename().empty() ? "root" : tree.root.filename().native();
    for (int number = 2; fs::exists(fs::path(dir_) / name, error); ++number) {
      name = fmt::format("{}-{}", tree.root.filename().native(), number);
    }
    const fs::path to = fs::path(dir_) / name;
    TRY(make_parents(to / "."));
    TRY(copy_tree(tree, to));
    std::ofstream origin(dir_ + "/.origin", std::ios::app);
    origin << name << '\n' << tree.root.native() << '\n';
    origin.close();
    if (!origin) {
      return fail(ErrorCode::io, fmt::format("cannot write '{}/.origin'", to_utf8(dir_)));
    }
    warnings_.insert(warnings_.end(), tree.warnings.begin(), tree.warnings.end());
    copy = copies_.emplace(tree.root.native(), to.native()).first;
  }
  const fs::path inside = fs::path(dir).lexically_normal().lexically_relative(tree.root);
  const fs::path place =
      inside.empty() || inside == "." ? fs::path(copy->second) : fs::path(copy->second) / inside;
  TRY(make_parents(place / "."));  // it may hold no file yet
  return places_.emplace(dir, (place.has_filename() ? place : place.parent_path()).native())
      .first->second;
}

std::vector<std::string> TreeSnapshot::roots() const {
  std::vector<std::string> out;
  for (const auto& [root, copy] : copies_) {
    out.push_back(root);
  }
  return out;
}

}  // namespace berth
