#include "store/schema.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <set>
#include <thread>

#include <fmt/format.h>

namespace berth {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTables = R"(
CREATE TABLE meta(name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE counters(batch INTEGER NOT NULL, what INTEGER NOT NULL, n INTEGER NOT NULL,
  PRIMARY KEY(batch, what)) STRICT, WITHOUT ROWID;
CREATE TABLE queues(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE,
  running_max INTEGER NOT NULL, paused INTEGER NOT NULL DEFAULT 0, rules BLOB) STRICT;
CREATE TABLE resources(name TEXT PRIMARY KEY, total INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE batches(id INTEGER PRIMARY KEY, name TEXT NOT NULL, owner INTEGER NOT NULL,
  max_concurrent INTEGER NOT NULL, jobs INTEGER NOT NULL, submitted INTEGER NOT NULL,
  open INTEGER NOT NULL DEFAULT 0, rules BLOB, traits BLOB) STRICT;
CREATE TABLE jobs(id INTEGER PRIMARY KEY, state INTEGER NOT NULL, batch INTEGER NOT NULL,
  queue INTEGER NOT NULL, owner INTEGER NOT NULL, priority INTEGER NOT NULL,
  dependencies INTEGER NOT NULL, retries INTEGER NOT NULL, retries_used INTEGER NOT NULL,
  attempts INTEGER NOT NULL, kill_requested INTEGER NOT NULL, submitted INTEGER NOT NULL,
  started INTEGER, ended INTEGER, exit_code INTEGER, failure INTEGER,
  name TEXT NOT NULL, message TEXT NOT NULL, request BLOB NOT NULL,
  rank INTEGER NOT NULL DEFAULT 0, expedited INTEGER NOT NULL DEFAULT 0,
  not_before INTEGER NOT NULL DEFAULT 0, after_kind INTEGER NOT NULL DEFAULT 0,
  excused INTEGER NOT NULL DEFAULT 0) STRICT;
CREATE INDEX jobs_state ON jobs(state);
CREATE INDEX jobs_queue ON jobs(queue, state);
CREATE INDEX jobs_batch ON jobs(batch, state) WHERE batch > 0;
CREATE INDEX jobs_ended ON jobs(ended) WHERE ended IS NOT NULL;
CREATE INDEX jobs_priority ON jobs(priority) WHERE priority<>5;
CREATE TABLE payloads(id INTEGER PRIMARY KEY, environment INTEGER NOT NULL, log TEXT NOT NULL,
  data BLOB NOT NULL) STRICT;
CREATE TABLE environments(id INTEGER PRIMARY KEY, hash INTEGER NOT NULL,
  data BLOB NOT NULL) STRICT;
CREATE INDEX environments_hash ON environments(hash);
CREATE TABLE dependencies(job INTEGER NOT NULL, after INTEGER NOT NULL,
  PRIMARY KEY(job, after)) STRICT, WITHOUT ROWID;
CREATE TABLE fingerprints(hash INTEGER NOT NULL, job INTEGER NOT NULL,
  PRIMARY KEY(hash, job)) STRICT, WITHOUT ROWID;
CREATE TABLE boots(id INTEGER PRIMARY KEY, boot_id TEXT NOT NULL UNIQUE) STRICT;
CREATE TABLE attempts(id INTEGER PRIMARY KEY, job INTEGER NOT NULL, number INTEGER NOT NULL,
  boot INTEGER NOT NULL, gpu_memory INTEGER NOT NULL, started INTEGER NOT NULL, ended INTEGER,
  revoked INTEGER, killed INTEGER, failure INTEGER, exit_code INTEGER, signal INTEGER,
  user_time INTEGER, system_time INTEGER, max_rss INTEGER, peak_memory INTEGER,
  leftover INTEGER, verdict_wall INTEGER, message TEXT, gpus BLOB NOT NULL,
  log_dropped INTEGER, gives_way INTEGER) STRICT;
CREATE INDEX attempts_job ON attempts(job);
CREATE INDEX attempts_open ON attempts(id) WHERE ended IS NULL;
CREATE TABLE client_keys(owner INTEGER NOT NULL, key TEXT NOT NULL, batch INTEGER NOT NULL,
  first_job INTEGER NOT NULL, jobs INTEGER NOT NULL,
  PRIMARY KEY(owner, key)) STRICT, WITHOUT ROWID;
CREATE TABLE history(seq INTEGER PRIMARY KEY, kind TEXT NOT NULL, job INTEGER NOT NULL,
  attempt INTEGER NOT NULL, batch INTEGER NOT NULL, wall INTEGER NOT NULL,
  detail TEXT NOT NULL) STRICT;
CREATE INDEX history_job ON history(job) WHERE job > 0;
CREATE INDEX history_batch ON history(batch) WHERE batch > 0;
CREATE TABLE drains(gpu TEXT PRIMARY KEY, why TEXT NOT NULL, wall INTEGER NOT NULL)
  STRICT, WITHOUT ROWID;
CREATE TABLE usage(kind INTEGER NOT NULL, id INTEGER NOT NULL, gpu_ms REAL NOT NULL,
  wall INTEGER NOT NULL, PRIMARY KEY(kind, id)) STRICT, WITHOUT ROWID;
CREATE TABLE queue_counters(queue INTEGER NOT NULL, state INTEGER NOT NULL, n INTEGER NOT NULL,
  PRIMARY KEY(queue, state)) STRICT, WITHOUT ROWID;
)";

constexpr std::array kTableNames = {"meta",         "counters",      "queues",
                                    "resources",    "batches",       "jobs",
                                    "payloads",     "environments",  "boots",
                                    "dependencies", "attempts",      "client_keys",
                                    "history",      "jobs_state",    "jobs_queue",
                                    "jobs_batch",   "attempts_job",  "attempts_open",
                                    "history_job",  "history_batch", "environments_hash"};

/// Steps from every released version to the next. New columns stand at the end of their tables, so
/// that a store that grew up looks like a new one.
constexpr std::array kMigrations = {Migration{1, R"(
ALTER TABLE queues ADD COLUMN paused INTEGER NOT NULL DEFAULT 0;
ALTER TABLE batches ADD COLUMN open INTEGER NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN rank INTEGER NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN expedited INTEGER NOT NULL DEFAULT 0;
ALTER TABLE attempts ADD COLUMN log_dropped INTEGER;
DROP INDEX jobs_queue;
DROP INDEX jobs_batch;
CREATE INDEX jobs_queue ON jobs(queue, state);
CREATE INDEX jobs_batch ON jobs(batch, state) WHERE batch > 0;
CREATE INDEX jobs_ended ON jobs(ended) WHERE ended IS NOT NULL;
)"},
                                    Migration{2, R"(
ALTER TABLE queues ADD COLUMN rules BLOB;
ALTER TABLE batches ADD COLUMN rules BLOB;
ALTER TABLE jobs ADD COLUMN not_before INTEGER NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN after_kind INTEGER NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN excused INTEGER NOT NULL DEFAULT 0;
ALTER TABLE attempts ADD COLUMN gives_way INTEGER;
CREATE TABLE drains(gpu TEXT PRIMARY KEY, why TEXT NOT NULL, wall INTEGER NOT NULL)
  STRICT, WITHOUT ROWID;
CREATE TABLE usage(kind INTEGER NOT NULL, id INTEGER NOT NULL, gpu_ms REAL NOT NULL,
  wall INTEGER NOT NULL, PRIMARY KEY(kind, id)) STRICT, WITHOUT ROWID;
)"},
                                    Migration{3, R"(
ALTER TABLE batches ADD COLUMN traits BLOB;
CREATE TABLE fingerprints(hash INTEGER NOT NULL, job INTEGER NOT NULL,
  PRIMARY KEY(hash, job)) STRICT, WITHOUT ROWID;
)"},
                                    Migration{4, R"(
CREATE INDEX jobs_priority ON jobs(priority) WHERE priority<>5;
)"},
                                    Migration{5, R"(
CREATE TABLE queue_counters(queue INTEGER NOT NULL, state INTEGER NOT NULL, n INTEGER NOT NULL,
  PRIMARY KEY(queue, state)) STRICT, WITHOUT ROWID;
INSERT INTO queue_counters SELECT queue, state, count(*) FROM jobs GROUP BY queue, state;
)"}};

constexpr std::chrono::seconds kOpenTimeout{2};

fs::path with_suffix(fs::path file, const char* suffix) {
  return file += suffix;
}

fs::path directory_of(const fs::path& file) {
  return file.has_parent_path() ? file.parent_path() : fs::path(".");
}

std::unexpected<Error> not_ours(const fs::path& file, std::string_view why) {
  return fail(ErrorCode::corrupt,
              fmt::format("{}: not a berth store: {}; it is left untouched. Move it away, or set "
                          "BERTH_DIR to another directory",
                          file.native(), why));
}

std::unexpected<Error> damaged(const fs::path& file, std::string_view why) {
  return fail(
      ErrorCode::corrupt,
      fmt::format("{}: the store is damaged: {}; it is left untouched. Restore a backup, or "
                  "move it away to begin anew",
                  file.native(), why));
}

std::unexpected<Error> too_new(const fs::path& file, std::uint64_t version) {
  return fail(ErrorCode::refused,
              fmt::format("{}: written by a newer berth (store version {}, this one knows {}); it "
                          "is left untouched. Install that berth again",
                          file.native(), version, kStoreVersion));
}

std::uint32_t big_endian(const unsigned char* bytes) {
  return (std::uint32_t{bytes[0]} << 24) | (std::uint32_t{bytes[1]} << 16) |
         (std::uint32_t{bytes[2]} << 8) | std::uint32_t{bytes[3]};
}

/// Looks at the file without SQLite, which would create a log beside a file that is not ours.
/// Only for the holder of the store's lock: closing any descriptor of the file drops the POSIX
/// locks that other connections of this process have on it.
Status inspect_header(const fs::path& file) {
  const Fd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd) {
    return fail_errno(fmt::format("cannot open {}", file.native()), errno);
  }
  struct stat st{};
  if (::fstat(fd.get(), &st) != 0) {
    return fail_errno(fmt::format("cannot look at {}", file.native()), errno);
  }
  if (!S_ISREG(st.st_mode)) {
    return not_ours(file, "not a regular file");
  }
  if (st.st_size == 0) {
    return not_ours(file, "the file is empty");
  }
  std::array<unsigned char, 100> header{};
  const ssize_t got = ::pread(fd.get(), header.data(), header.size(), 0);
  if (got < 0) {
    return fail_errno(fmt::format("cannot read {}", file.native()), errno);
  }
  if (got < static_cast<ssize_t>(header.size()) ||
      std::memcmp(header.data(), "SQLite format 3", 16) != 0) {
    return not_ours(file, "not an SQLite database");
  }
  if (big_endian(&header[68]) != kStoreApplicationId) {
    return not_ours(file, "an SQLite database of another program");
  }
  if (const std::uint32_t version = big_endian(&header[60]); version > kStoreVersion) {
    return too_new(file, version);
  } else if (version == 0) {
    return damaged(file, "it has no version");
  }
  // With a log beside it the file may lag behind its own header; without one it may not.
  struct stat wal{};
  const bool has_wal = ::stat(with_suffix(file, "-wal").c_str(), &wal) == 0 && wal.st_size > 0;
  const std::uint32_t page_size = (std::uint32_t{header[16]} << 8) | header[17];
  const std::uint64_t wanted =
      std::uint64_t{big_endian(&header[28])} * (page_size == 1 ? 65536 : page_size);
  if (!has_wal && static_cast<std::uint64_t>(st.st_size) < wanted) {
    return damaged(file, fmt::format("it has {} of {} bytes", st.st_size, wanted));
  }
  return {};
}

/// The same questions, asked of the database as the write-ahead log completes it.
Status inspect_database(Db& db, const fs::path& file) {
  TRY_ASSIGN(const auto application, db.integer("PRAGMA application_id"));
  if (application != kStoreApplicationId) {
    return not_ours(file, "an SQLite database of another program");
  }
  TRY_ASSIGN(const auto version, db.integer("PRAGMA user_version"));
  if (version > kStoreVersion) {
    return too_new(file, static_cast<std::uint64_t>(version));
  }
  return {};
}

Status inspect_tables(Db& db, const fs::path& file) {
  std::set<std::string, std::less<>> names;
  TRY_ASSIGN(Stmt stmt, db.prepare("SELECT name FROM sqlite_schema"));
  while (true) {
    TRY_ASSIGN(const bool row, stmt.step());
    if (!row) {
      break;
    }
    names.insert(stmt.text(0));
  }
  for (const char* name : kTableNames) {
    if (!names.contains(name)) {
      return damaged(file, fmt::format("'{}' is missing in it", name));
    }
  }
  return {};
}

}  // namespace

Status sync_directory_of(const fs::path& file) {
  const fs::path directory = directory_of(file);
  const Fd fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd || ::fsync(fd.get()) != 0) {
    return fail_errno(fmt::format("cannot sync {}", directory.native()), errno);
  }
  return {};
}

Result<std::string> random_instance_id() {
  std::array<unsigned char, 8> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    return fail_errno("cannot get random bytes", errno);
  }
  std::string text;
  for (const unsigned char byte : bytes) {
    text += fmt::format("{:02x}", byte);
  }
  return text;
}

Result<std::uint32_t> version_of(const fs::path& file, const fs::path& name) {
  Status ours = inspect_header(file);
  if (!ours) {
    std::string& text = ours.error().message;
    if (text.starts_with(file.native())) {
      text.replace(0, file.native().size(), name.native());
    }
    return std::unexpected(std::move(ours.error()));
  }
  TRY_ASSIGN(Db db, Db::open(file, Db::Mode::read_only));
  TRY_ASSIGN(const auto version, db.integer("PRAGMA user_version"));
  return static_cast<std::uint32_t>(version);
}

Result<Fd> lock_store(const fs::path& file) {
  const fs::path path = with_suffix(file, ".lock");
  Fd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) {
    const int error = errno;
    if (error == EACCES || error == EPERM || error == EROFS) {
      return fail(ErrorCode::refused,
                  fmt::format("cannot write in {}: {}; make the directory writable for uid {}, or "
                              "set BERTH_DIR to a local directory of yours",
                              directory_of(file).native(), std::strerror(error), ::getuid()));
    }
    return fail_errno(fmt::format("cannot create {}", path.native()), error);
  }
  // A child that a daemon was starting when it was killed shares its lock until it has become
  // another program.
  const auto patience_ends = std::chrono::steady_clock::now() + kOpenTimeout;
  while (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) {
      return fail_errno(fmt::format("cannot lock {}", path.native()), errno);
    }
    if (std::chrono::steady_clock::now() < patience_ends) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      continue;
    }
    std::array<char, 24> holder{};
    const ssize_t got = ::pread(fd.get(), holder.data(), holder.size() - 1, 0);
    return fail(ErrorCode::unavailable,
                fmt::format("{} is locked: another berthd (process {}) uses it; talk to that one, "
                            "or set BERTH_DIR to another directory",
                            file.native(), got > 0 ? holder.data() : "unknown"));
  }
  // Only for the message above; the lock itself needs no content.
  const std::string pid = fmt::format("{}", ::getpid());
  if (::ftruncate(fd.get(), 0) == 0) {
    [[maybe_unused]] const ssize_t written = ::pwrite(fd.get(), pid.data(), pid.size(), 0);
  }
  return fd;
}

Status create_store(const fs::path& file, const std::string& vfs) {
  // A log without its database would be replayed into the new one.
  std::error_code ec;
  if (fs::file_size(with_suffix(file, "-wal"), ec) > 0 && !ec) {
    return fail(ErrorCode::corrupt,
                fmt::format("{0}: missing, though {0}-wal is there; restore {0}, or move the -wal "
                            "file away to begin anew",
                            file.native()));
  }
  const fs::path draft = with_suffix(file, ".new");
  fs::remove(draft, ec);
  fs::remove(with_suffix(draft, "-journal"), ec);
  fs::remove(with_suffix(draft, "-wal"), ec);
  fs::remove(with_suffix(draft, "-shm"), ec);
  TRY_ASSIGN(const std::string instance, random_instance_id());
  {
    TRY_ASSIGN(Db db, Db::open(draft, Db::Mode::create, vfs));
    TRY(db.exec("PRAGMA synchronous=FULL; BEGIN IMMEDIATE"));
    TRY(db.exec(kTables));
    TRY_ASSIGN(Stmt meta, db.prepare("INSERT INTO meta VALUES('instance_id', ?1)"));
    TRY(meta.run(instance));
    TRY(db.exec(fmt::format("PRAGMA application_id={}; PRAGMA user_version={}; COMMIT",
                            kStoreApplicationId, kStoreVersion)
                    .c_str()));
    TRY(db.exec("PRAGMA journal_mode=WAL"));
  }
  fs::permissions(draft, fs::perms::owner_read | fs::perms::owner_write, ec);
  int renamed = ::renameat2(AT_FDCWD, draft.c_str(), AT_FDCWD, file.c_str(), RENAME_NOREPLACE);
  if (renamed != 0 && errno == EINVAL) {  // not every file system knows the flag
    renamed = std::rename(draft.c_str(), file.c_str());
  }
  if (renamed != 0) {
    return fail_errno(fmt::format("cannot create {}", file.native()), errno);
  }
  return sync_directory_of(file);
}

Result<Db> open_for_writing(const fs::path& file, const std::string& vfs) {
  TRY(inspect_header(file));
  TRY_ASSIGN(Db db, Db::open(file, Db::Mode::read_write, vfs));
  if (db.read_only()) {
    return fail(ErrorCode::refused,
                fmt::format("{}: read-only; make the file writable for uid {}, or set BERTH_DIR to "
                            "another directory",
                            file.native(), ::getuid()));
  }
  // Until the file is known to be ours and of our version, looking must not change it.
  db.set_checkpoint_on_close(false);
  db.set_busy_timeout(kOpenTimeout);
  TRY(inspect_database(db, file));
  TRY(inspect_tables(db, file));
  TRY(db.exec("BEGIN IMMEDIATE"));  // nobody else may be writing
  db.rollback();
  TRY(migrate(db, kMigrations, kStoreVersion));
  db.set_checkpoint_on_close(true);
  TRY_ASSIGN(const std::string mode, db.text("PRAGMA journal_mode=WAL"));
  if (mode != "wal") {
    return fail(ErrorCode::io,
                fmt::format("{}: no write-ahead log is possible here (journal mode '{}'); set "
                            "BERTH_DIR to a directory on a local disk",
                            file.native(), mode));
  }
  // The store checkpoints by itself, after the answer to a commit is out.
  TRY(
      db.exec("PRAGMA synchronous=FULL; PRAGMA wal_autocheckpoint=0; PRAGMA cache_size=-16384;"
              "PRAGMA journal_size_limit=67108864; PRAGMA temp_store=MEMORY;"
              "PRAGMA cell_size_check=ON"));
  db.set_busy_timeout(std::chrono::seconds(10));
  return db;
}

Result<Db> open_for_checkpoints(const fs::path& file, const std::string& vfs) {
  TRY_ASSIGN(Db db, Db::open(file, Db::Mode::read_write, vfs));
  db.set_checkpoint_on_close(false);
  db.set_busy_timeout(kOpenTimeout);
  // Reading anything opens the log, which a checkpoint alone does not.
  TRY_ASSIGN([[maybe_unused]] const auto version, db.integer("PRAGMA user_version"));
  TRY(db.exec("PRAGMA synchronous=FULL; PRAGMA wal_autocheckpoint=0; PRAGMA cache_size=-256"));
  return db;
}

Result<Db> open_for_reading(const fs::path& file, const std::string& vfs) {
  TRY_ASSIGN(Db db, Db::open(file, Db::Mode::read_only, vfs));
  db.set_busy_timeout(kOpenTimeout);
  TRY(inspect_database(db, file));
  TRY_ASSIGN(const auto version, db.integer("PRAGMA user_version"));
  if (version != kStoreVersion) {
    return fail(ErrorCode::refused,
                fmt::format("{}: store version {}, but this berth reads {}; start berthd once, it "
                            "brings the file up to date",
                            file.native(), version, kStoreVersion));
  }
  TRY(inspect_tables(db, file));
  TRY(db.exec("PRAGMA cache_size=-2048; PRAGMA temp_store=MEMORY"));
  return db;
}

Status migrate(Db& db, std::span<const Migration> steps, std::uint32_t target) {
  TRY_ASSIGN(auto version, db.integer("PRAGMA user_version"));
  if (version == target) {
    return {};
  }
  TRY(db.exec("BEGIN IMMEDIATE"));
  const auto run = [&]() -> Status {
    for (const auto& step : steps) {
      if (step.from == version && version < target) {
        TRY(db.exec(step.sql));
        ++version;
      }
    }
    if (version != target) {
      return fail(ErrorCode::refused,
                  fmt::format("no way from store version {} to {}; install the berth in between",
                              version, target));
    }
    return db.exec(fmt::format("PRAGMA user_version={}; COMMIT", target).c_str());
  };
  Status status = run();
  if (!status) {
    db.rollback();
  }
  return status;
}

Status check_integrity(Db& db) {
  TRY_ASSIGN(const std::string first, db.text("PRAGMA integrity_check(1)"));
  if (first != "ok") {
    return fail(ErrorCode::corrupt,
                fmt::format("the store is damaged: {}; restore a backup", first));
  }
  return {};
}

}  // namespace berth
