#pragma once
// The store of the daemon: one SQLite file, one writer thread.

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "base/units.hpp"
#include "engine/ports.hpp"
#include "store/ballast.hpp"
#include "store/rows.hpp"

namespace berth {

struct StoreOptions {
  std::filesystem::path file;
  std::string boot_id;                 ///< of this boot; stored with every attempt
  Bytes ballast = 8 * kMiB;            ///< 0: none
  Bytes low_space_margin = 32 * kMiB;  ///< below this the file system counts as full
  /// Makes the record file of an attempt. Called on the writer thread, before the commit.
  std::function<Status(AttemptId)> prepare;
  /// Runs a function on the engine's thread; must be safe to call from any thread.
  std::function<void(std::function<void()>)> post;
  /// Pages in the write-ahead log from which on it is copied back into the database.
  int checkpoint_pages = 2000;
  /// Pages beyond those from which on commits wait for it: 64 MiB.
  int checkpoint_slack = 64 * 256;
  /// Called on some thread after each pass; for tests.
  std::function<void()> on_checkpoint;
  std::string vfs;                ///< an sqlite3_vfs by name; empty: the default
  Ballast::FreeSpace free_space;  ///< empty: statvfs
};

/// Threading: open(), load(), commit(), find_*() and check_space() on the engine's thread;
/// callbacks come through `post`. Lifetime: destroying it waits for the commit under way (whose
/// answer is still posted) and closes the file cleanly. After an error every further commit is
/// refused with it.
class SqliteStore final : public Store {
 public:
  /// Opens the store, or makes it where there is none. Holds the file against other stores. The
  /// error names the file and the next step; a file that cannot be used is left as it is.
  [[nodiscard]] static Result<std::unique_ptr<SqliteStore>> open(StoreOptions options);
  ~SqliteStore() override;

  [[nodiscard]] Result<Snapshot> load();

  void commit(Transaction transaction, std::function<void(CommitOutcome)> done) override;
  [[nodiscard]] std::optional<change::ClientKey> find_key(const std::string& key,
                                                          std::uint32_t owner) override;
  [[nodiscard]] std::optional<JobState> find_job_state(JobId id) override;
  [[nodiscard]] std::optional<EndedJob> find_ended_job(JobId id) override;

  /// Removes what nobody needs any more, when no commit waits. Done when durable; an error other
  /// than `no_space` has ended the store. On the engine's thread, like `done`.
  void trim(Trim what, std::function<void(Status)> done);

  /// Looks at the file system now (on the writer thread, after a commit under way), takes the
  /// ballast again if there is room, and reports on the engine's thread.
  void check_space(std::function<void(SpaceReport)> done);

  /// 16 hex digits, made with the file: two stores never share it.
  [[nodiscard]] const std::string& instance_id() const;

 private:
  class Impl;
  explicit SqliteStore(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace berth
