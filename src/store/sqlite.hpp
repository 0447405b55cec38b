#pragma once
// The few calls of SQLite the store uses, with its resources in RAII types and its errors as Error.
//
// A connection and its statements belong to one thread at a time.

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/ids.hpp"
#include "base/result.hpp"

struct sqlite3;
struct sqlite3_stmt;

namespace berth {

/// Marks bytes to be bound as a BLOB.
struct Blob {
  std::string_view bytes;
};

/// A prepared statement. Text and blobs are bound without a copy: they must live until the
/// statement has run.
class Stmt {
 public:
  Stmt() = default;
  Stmt(Stmt&& other) noexcept : stmt_(std::exchange(other.stmt_, nullptr)) {}
  Stmt& operator=(Stmt&& other) noexcept {
    std::swap(stmt_, other.stmt_);
    return *this;
  }
  Stmt(const Stmt&) = delete;
  Stmt& operator=(const Stmt&) = delete;
  ~Stmt();

  /// Binds all parameters from ?1 on and runs a statement that returns no rows.
  template <class... Args>
  [[nodiscard]] Status run(const Args&... args) {
    bind(args...);
    TRY_ASSIGN(const bool row, step());
    if (row) {
      reset();
    }
    return {};
  }

  /// Binds all parameters from ?1 on, ready for step().
  template <class... Args>
  void bind(const Args&... args) {
    reset();  // a read that an error ended early may still be open
    int index = 0;
    (bind_one(++index, args), ...);
  }

  /// The same with texts alone.
  template <class Texts>
  void bind_each(const Texts& texts) {
    reset();
    int index = 0;
    for (const auto& text : texts) {
      bind_one(++index, text);
    }
  }

  /// True: a row is there. False: no more rows, and the statement is reset.
  [[nodiscard]] Result<bool> step();
  /// Ends a read early, so that it holds no snapshot of the database.
  void reset();

  [[nodiscard]] int columns() const;
  [[nodiscard]] bool is_null(int column) const;
  [[nodiscard]] std::int64_t integer(int column) const;
  [[nodiscard]] double real(int column) const;
  /// Text or blob; valid until the next step() or reset().
  [[nodiscard]] std::string_view bytes(int column) const;
  [[nodiscard]] std::string text(int column) const { return std::string(bytes(column)); }

  template <class T>
  [[nodiscard]] T get(int column) const {
    if constexpr (requires { typename T::period; }) {
      return T(integer(column));
    } else if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>) {
      return static_cast<T>(integer(column));
    } else {
      return T{static_cast<std::uint64_t>(integer(column))};
    }
  }
  template <class T>
  [[nodiscard]] std::optional<T> maybe(int column) const {
    return is_null(column) ? std::nullopt : std::optional<T>(get<T>(column));
  }

 private:
  friend class Db;
  explicit Stmt(sqlite3_stmt* stmt) : stmt_(stmt) {}

  void bind_integer(int index, std::int64_t value);
  void bind_null(int index);
  void bind_one(int index, double value);
  void bind_one(int index, std::string_view text);
  void bind_one(int index, Blob blob);
  void bind_one(int index, const char* text) { bind_one(index, std::string_view(text)); }
  void bind_one(int index, const std::string& text) { bind_one(index, std::string_view(text)); }
  template <class T>
    requires(std::is_integral_v<T> || std::is_enum_v<T>)
  void bind_one(int index, T value) {
    bind_integer(index, static_cast<std::int64_t>(value));
  }
  template <class Rep, class Period>
  void bind_one(int index, std::chrono::duration<Rep, Period> value) {
    bind_integer(index, value.count());
  }
  template <class Tag>
  void bind_one(int index, StrongId<Tag> id) {
    bind_integer(index, static_cast<std::int64_t>(id.value));
  }
  template <class T>
  void bind_one(int index, const std::optional<T>& value) {
    value ? bind_one(index, *value) : bind_null(index);
  }

  sqlite3_stmt* stmt_ = nullptr;
  int bind_error_ = 0;  ///< first failed bind, reported by step()
};

class Db {
 public:
  enum class Mode { read_only, read_write, create };

  /// `vfs` names a registered sqlite3_vfs; empty: the default.
  [[nodiscard]] static Result<Db> open(const std::filesystem::path& file, Mode mode,
                                       const std::string& vfs = {});
  Db() = default;
  Db(Db&& other) noexcept : db_(std::exchange(other.db_, nullptr)) {}
  Db& operator=(Db&& other) noexcept {
    std::swap(db_, other.db_);
    return *this;
  }
  Db(const Db&) = delete;
  Db& operator=(const Db&) = delete;
  ~Db();

  /// Runs statements separated by semicolons.
  [[nodiscard]] Status exec(const char* sql);
  [[nodiscard]] Result<Stmt> prepare(std::string_view sql);
  /// First column of the first row.
  [[nodiscard]] Result<std::int64_t> integer(std::string_view sql);
  [[nodiscard]] Result<std::string> text(std::string_view sql);
  void rollback();

  [[nodiscard]] sqlite3* handle() const { return db_; }
  [[nodiscard]] bool read_only() const;
  void set_busy_timeout(std::chrono::milliseconds timeout);
  /// Off: closing the last connection leaves the write-ahead log as it is.
  void set_checkpoint_on_close(bool on);

 private:
  sqlite3* db_ = nullptr;
};

/// The last error of `db` as an Error that names the file and the next step.
[[nodiscard]] Error sqlite_error(sqlite3* db, int code);

}  // namespace berth
