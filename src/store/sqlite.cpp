#include "store/sqlite.hpp"

#include <sqlite3.h>

#include <cerrno>
#include <cstring>

#include <fmt/format.h>

namespace berth {
namespace {

struct Meaning {
  ErrorCode code;
  const char* next_step;  ///< starts with "; ", or empty
};

Meaning meaning_of(int code, int system_errno) {
  switch (code & 0xff) {
    case SQLITE_FULL:
      return {ErrorCode::no_space, "; free some space on that file system"};
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return {ErrorCode::unavailable, "; another process has it locked, end that process"};
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return {ErrorCode::corrupt, "; keep the file and restore a backup, or move it away"};
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return {ErrorCode::refused, "; make the file and its directory writable for this user"};
    case SQLITE_CANTOPEN:
      return {ErrorCode::io, "; check that it exists and that this user may read and write it"};
    case SQLITE_IOERR:
      // Neither has touched what is already durable, so both are like a full disk: the shared
      // index could not grow, or a write met the quota.
      if (code == SQLITE_IOERR_SHMSIZE || (code == SQLITE_IOERR_WRITE && system_errno == EDQUOT)) {
        return {ErrorCode::no_space, "; free some space on that file system"};
      }
      return {ErrorCode::io, "; check the disk and the kernel log"};
    default:
      return {ErrorCode::io, ""};
  }
}

}  // namespace

Error sqlite_error(sqlite3* db, int code) {
  const char* file = db != nullptr ? sqlite3_db_filename(db, "main") : nullptr;
  const int system_errno = db != nullptr ? sqlite3_system_errno(db) : 0;
  const auto [meaning, next_step] = meaning_of(code, system_errno);
  std::string text = fmt::format("{}: {}", file != nullptr && *file != '\0' ? file : "store",
                                 db != nullptr ? sqlite3_errmsg(db) : sqlite3_errstr(code));
  if (((code & 0xff) == SQLITE_IOERR || (code & 0xff) == SQLITE_CANTOPEN) && system_errno != 0) {
    text += fmt::format(" ({})", std::strerror(system_errno));
  }
  if ((code & 0xff) == SQLITE_IOERR) {
    text += fmt::format(" [sqlite {}]", code);
  }
  return {meaning, text + next_step};
}

Stmt::~Stmt() {
  sqlite3_finalize(stmt_);
}

Result<bool> Stmt::step() {
  if (bind_error_ != SQLITE_OK) {
    const int code = std::exchange(bind_error_, SQLITE_OK);
    sqlite3_reset(stmt_);
    return std::unexpected(sqlite_error(sqlite3_db_handle(stmt_), code));
  }
  const int code = sqlite3_step(stmt_);
  if (code == SQLITE_ROW) {
    return true;
  }
  if (code == SQLITE_DONE) {
    sqlite3_reset(stmt_);
    return false;
  }
  Error error = sqlite_error(sqlite3_db_handle(stmt_), code);
  sqlite3_reset(stmt_);
  return std::unexpected(std::move(error));
}

void Stmt::reset() {
  sqlite3_reset(stmt_);
}

int Stmt::columns() const {
  return sqlite3_column_count(stmt_);
}

bool Stmt::is_null(int column) const {
  return sqlite3_column_type(stmt_, column) == SQLITE_NULL;
}

std::int64_t Stmt::integer(int column) const {
  return sqlite3_column_int64(stmt_, column);
}

double Stmt::real(int column) const {
  return sqlite3_column_double(stmt_, column);
}

std::string_view Stmt::bytes(int column) const {
  // The pointer first: asking for it may convert the value and so change its length.
  const void* data = sqlite3_column_blob(stmt_, column);
  const int size = sqlite3_column_bytes(stmt_, column);
  return {static_cast<const char*>(data), data == nullptr ? 0 : static_cast<std::size_t>(size)};
}

void Stmt::bind_integer(int index, std::int64_t value) {
  if (const int code = sqlite3_bind_int64(stmt_, index, value); code != SQLITE_OK) {
    bind_error_ = code;
  }
}

void Stmt::bind_one(int index, double value) {
  if (const int code = sqlite3_bind_double(stmt_, index, value); code != SQLITE_OK) {
    bind_error_ = code;
  }
}

void Stmt::bind_null(int index) {
  if (const int code = sqlite3_bind_null(stmt_, index); code != SQLITE_OK) {
    bind_error_ = code;
  }
}

void Stmt::bind_one(int index, std::string_view text) {
  const char* data = text.data() == nullptr ? "" : text.data();
  // nullptr as destructor is SQLITE_STATIC: no copy.
  const int code = sqlite3_bind_text64(stmt_, index, data, text.size(), nullptr, SQLITE_UTF8);
  if (code != SQLITE_OK) {
    bind_error_ = code;
  }
}

void Stmt::bind_one(int index, Blob blob) {
  const char* data = blob.bytes.data() == nullptr ? "" : blob.bytes.data();
  const int code = sqlite3_bind_blob64(stmt_, index, data, blob.bytes.size(), nullptr);
  if (code != SQLITE_OK) {
    bind_error_ = code;
  }
}

Result<Db> Db::open(const std::filesystem::path& file, Mode mode, const std::string& vfs) {
  int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
  switch (mode) {
    case Mode::read_only:
      flags |= SQLITE_OPEN_READONLY;
      break;
    case Mode::read_write:
      flags |= SQLITE_OPEN_READWRITE;
      break;
    case Mode::create:
      flags |= SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
      break;
  }
  Db db;
  const int code =
      sqlite3_open_v2(file.c_str(), &db.db_, flags, vfs.empty() ? nullptr : vfs.c_str());
  if (code != SQLITE_OK) {
    return std::unexpected(sqlite_error(db.db_, code));
  }
  sqlite3_db_config(db.db_, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(db.db_, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  return db;
}

Db::~Db() {
  sqlite3_close_v2(db_);
}

Status Db::exec(const char* sql) {
  if (const int code = sqlite3_exec(db_, sql, nullptr, nullptr, nullptr); code != SQLITE_OK) {
    return std::unexpected(sqlite_error(db_, code));
  }
  return {};
}

Result<Stmt> Db::prepare(std::string_view sql) {
  sqlite3_stmt* stmt = nullptr;
  const int code = sqlite3_prepare_v3(db_, sql.data(), static_cast<int>(sql.size()),
                                      SQLITE_PREPARE_PERSISTENT, &stmt, nullptr);
  if (code != SQLITE_OK) {
    return std::unexpected(sqlite_error(db_, code));
  }
  return Stmt(stmt);
}

Result<std::int64_t> Db::integer(std::string_view sql) {
  TRY_ASSIGN(Stmt stmt, prepare(sql));
  TRY_ASSIGN(const bool row, stmt.step());
  if (!row) {
    return fail(ErrorCode::corrupt,
                fmt::format("{}: no answer to '{}'", sqlite3_db_filename(db_, "main"), sql));
  }
  return stmt.integer(0);
}

Result<std::string> Db::text(std::string_view sql) {
  TRY_ASSIGN(Stmt stmt, prepare(sql));
  TRY_ASSIGN(const bool row, stmt.step());
  if (!row) {
    return fail(ErrorCode::corrupt,
                fmt::format("{}: no answer to '{}'", sqlite3_db_filename(db_, "main"), sql));
  }
  return stmt.text(0);
}

void Db::rollback() {
  // Some errors have already rolled the transaction back.
  if (sqlite3_get_autocommit(db_) == 0) {
    sqlite3_exec(db_, "ROLLBACK", nullptr, nullptr, nullptr);
  }
}

bool Db::read_only() const {
  return sqlite3_db_readonly(db_, "main") == 1;
}

void Db::set_busy_timeout(std::chrono::milliseconds timeout) {
  sqlite3_busy_timeout(db_, static_cast<int>(timeout.count()));
}

void Db::set_checkpoint_on_close(bool on) {
  if (db_ != nullptr) {
    sqlite3_db_config(db_, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, on ? 0 : 1, nullptr);
  }
}

}  // namespace berth
