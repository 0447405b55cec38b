#pragma once
// The database file: how it is made, recognised and brought up to date. See docs/formats/store.md.
//
// A file that is not ours, damaged, or written by a newer berth is reported and left exactly as it
// is. A new file appears under its name only when it is complete.

#include <filesystem>
#include <span>
#include <string>

#include "base/fd.hpp"
#include "base/result.hpp"
#include "store/sqlite.hpp"

namespace berth {

inline constexpr std::uint32_t kStoreApplicationId = 0x62727468;  // "brth"
inline constexpr std::uint32_t kStoreVersion = 6;

/// Kinds of rows in `counters` besides the job states, whose numbers they must not meet.
enum class Counter : std::uint8_t {
  last_job = 16,
  last_attempt,
  last_batch,
  last_queue,
  last_history,  ///< written when lines are removed; else the highest line there is counts
};

/// What `batches.open` says.
inline constexpr std::int64_t kBatchWhole = 0;
inline constexpr std::int64_t kBatchOpen = 1;     ///< still being submitted
inline constexpr std::int64_t kBatchInParts = 2;  ///< was submitted in parts, and is complete

/// One step of the forward migration: from version `from` to `from + 1`.
struct Migration {
  std::uint32_t from;
  const char* sql;
};

/// The lock that keeps two stores off one file. Held by a descriptor, so it ends with the process.
[[nodiscard]] Result<Fd> lock_store(const std::filesystem::path& file);

/// Makes an empty store at `file`, which must not exist.
[[nodiscard]] Status create_store(const std::filesystem::path& file, const std::string& vfs);

/// Opens an existing store for its writer: checked, migrated, in WAL mode with synchronous=FULL.
[[nodiscard]] Result<Db> open_for_writing(const std::filesystem::path& file,
                                          const std::string& vfs);

/// A second connection of the process that has it open for writing, only for copying the log back.
[[nodiscard]] Result<Db> open_for_checkpoints(const std::filesystem::path& file,
                                              const std::string& vfs);

/// Opens an existing store for reading; any number of these may exist beside the writer.
[[nodiscard]] Result<Db> open_for_reading(const std::filesystem::path& file,
                                          const std::string& vfs);

/// Brings `db` from its version to `target` in one transaction; nothing changes if a step fails or
/// is missing.
[[nodiscard]] Status migrate(Db& db, std::span<const Migration> steps, std::uint32_t target);

/// The version of the store in `file`, or why it is none that can be used; the message calls it
/// `name`.
[[nodiscard]] Result<std::uint32_t> version_of(const std::filesystem::path& file,
                                               const std::filesystem::path& name);

/// 16 random hex digits.
[[nodiscard]] Result<std::string> random_instance_id();
/// Makes a new name of a file durable.
[[nodiscard]] Status sync_directory_of(const std::filesystem::path& file);

/// Reads every page of the database. Slow: for `doctor` and tests.
[[nodiscard]] Status check_integrity(Db& db);

}  // namespace berth
