#include "store/backup.hpp"

#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include <fmt/format.h>

#include "base/failpoint.hpp"
#include "base/fd.hpp"
#include "store/schema.hpp"
#include "store/sqlite.hpp"

namespace berth {
namespace {

namespace fs = std::filesystem;

constexpr int kStep = 64;  ///< pages

/// A file that is removed unless it is kept.
class Part {
 public:
  explicit Part(fs::path path) : path_(std::move(path)) {}
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;
  ~Part() {
    if (!kept_) {
      std::error_code ignored;
      fs::remove(path_, ignored);
    }
  }
  [[nodiscard]] const fs::path& path() const { return path_; }
  void keep() { kept_ = true; }

 private:
  fs::path path_;
  bool kept_ = false;
};

Error about(const fs::path& target, Error error) {
  error.message = fmt::format("cannot back up to {}: {}", target.native(), error.message);
  return error;
}

Status copy_pages(Db& source, Db& copy,
                  const std::function<bool(const BackupProgress&)>& progress) {
  const std::unique_ptr<sqlite3_backup, int (*)(sqlite3_backup*)> backup(
      sqlite3_backup_init(copy.handle(), "main", source.handle(), "main"), sqlite3_backup_finish);
  if (!backup) {
    return std::unexpected(sqlite_error(copy.handle(), sqlite3_extended_errcode(copy.handle())));
  }
  while (true) {
    const int code = sqlite3_backup_step(backup.get(), kStep);
    failpoint("backup_step");
    if (code != SQLITE_OK && code != SQLITE_DONE) {
      // The copy's error is the likely one, and the only one that leaves a message there.
      const int copied = sqlite3_extended_errcode(copy.handle());
      return std::unexpected(copied == code || (copied & 0xff) == (code & 0xff)
                                 ? sqlite_error(copy.handle(), code)
                                 : sqlite_error(source.handle(), code));
    }
    const auto total = static_cast<std::uint64_t>(sqlite3_backup_pagecount(backup.get()));
    const auto left = static_cast<std::uint64_t>(sqlite3_backup_remaining(backup.get()));
    if (!progress({total - left, total})) {
      return fail(ErrorCode::unavailable, "the daemon was stopped before it was complete");
    }
    if (code == SQLITE_DONE) {
      return {};
    }
  }
}

/// The copy says of itself that it needs a log beside it, as the original does; it does not.
Status make_single_file(const Fd& file) {
  constexpr std::array<unsigned char, 2> kNoLog{1, 1};
  if (::pwrite(file.get(), kNoLog.data(), kNoLog.size(), 18) != 2 || ::fsync(file.get()) != 0) {
    return fail_errno("cannot complete the copy", errno);
  }
  return {};
}

}  // namespace

Result<Bytes> backup_store(const fs::path& file, const fs::path& target, bool replace,
                           const std::function<bool(const BackupProgress&)>& progress) {
  std::error_code ec;
  const fs::file_status there = fs::symlink_status(target, ec);
  if (fs::is_directory(there)) {
    return fail(ErrorCode::invalid,
                fmt::format("{} is a directory; name a file in it", target.native()));
  }
  if (fs::exists(there) && !replace) {
    return fail(ErrorCode::conflict,
                fmt::format("{} exists; --force replaces it", target.native()));
  }
  Part part(fs::path(target) += ".part");
  fs::remove(part.path(), ec);  // of a backup that was cut off
  Fd descriptor(
      ::open(part.path().c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!descriptor) {
    const int error = errno;
    part.keep();  // it is not ours
    return fail_errno(fmt::format("cannot create {}", part.path().native()), error);
  }
  const auto run = [&]() -> Status {
    TRY_ASSIGN(Db source, open_for_reading(file, {}));
    TRY_ASSIGN(Db copy, Db::open(part.path(), Db::Mode::read_write));
    // A copy that was cut off is thrown away, so it needs no way back.
    TRY(copy.exec("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF"));
    // One instant: without this, each commit would begin the copy anew.
    TRY(source.exec("BEGIN"));
    TRY_ASSIGN([[maybe_unused]] const auto version, source.integer("SELECT count(*) FROM meta"));
    return copy_pages(source, copy, progress);
  };
  if (Status copied = run(); !copied) {
    return std::unexpected(about(target, std::move(copied.error())));
  }
  if (Status single = make_single_file(descriptor); !single) {
    return std::unexpected(about(target, std::move(single.error())));
  }
  const Bytes size = fs::file_size(part.path(), ec);
  failpoint("backup_copied");
  int renamed = ::renameat2(AT_FDCWD, part.path().c_str(), AT_FDCWD, target.c_str(),
                            replace ? 0 : RENAME_NOREPLACE);
  if (renamed != 0 && errno == EINVAL) {  // not every file system knows the flag
    renamed = std::rename(part.path().c_str(), target.c_str());
  }
  if (renamed != 0) {
    return fail_errno(fmt::format("cannot create {}", target.native()), errno);
  }
  part.keep();
  TRY(sync_directory_of(target));
  return size;
}

}  // namespace berth
