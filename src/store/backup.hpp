#pragma once
// Copies of the store: making one while the store is in use, and starting from one.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "base/ids.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "base/units.hpp"

namespace berth {

struct BackupProgress {
  std::uint64_t pages = 0;  ///< copied so far
  std::uint64_t total = 0;
};

/// Copies the store at `file`, as it is at one instant, to `target`, which is complete when it
/// appears under that name. Commits go on meanwhile. Takes as long as the disks take; `progress` is
/// called often and ends it by returning false. Leaves nothing behind when it fails. Its size.
[[nodiscard]] Result<Bytes> backup_store(
    const std::filesystem::path& file, const std::filesystem::path& target, bool replace,
    const std::function<bool(const BackupProgress&)>& progress);

/// Whether `backup` looks like one that `restore_store` takes. For whoever has the store at `file`
/// open: never touches that.
[[nodiscard]] Status inspect_backup(const std::filesystem::path& backup,
                                    const std::filesystem::path& file);

/// No id up to these may be issued again.
struct IssuedIds {
  JobId job;
  AttemptId attempt;
};

struct Restored {
  std::string kept;        ///< where the store that was there is now; empty: there was none
  std::string unreadable;  ///< why it could not be asked which ids it had issued; empty: it could
  bool same_instance = false;
  std::uint32_t version = 0;  ///< of the backup
  std::uint64_t jobs = 0;     ///< all of the backup
  std::uint64_t waiting = 0;
  std::uint64_t running = 0;  ///< when the backup was made
};

/// Puts a copy of `backup` in the place of the store at `file`, which nobody else may have open
/// (the caller holds the daemon's lock). The copy is checked first, brought to the present version,
/// and continues the ids of both. If it is of the same instance it stays that; otherwise it becomes
/// a new one, so that it never takes processes of the other for its own. Whenever it is
/// interrupted, `file` is either of the two, whole.
[[nodiscard]] Result<Restored> restore_store(const std::filesystem::path& backup,
                                             const std::filesystem::path& file,
                                             const IssuedIds& issued, Millis wall);

}  // namespace berth
