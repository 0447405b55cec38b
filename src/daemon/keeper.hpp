#pragma once
// Keeps the store small and safe: removes jobs on request or when they have been kept long enough,
// with the logs that berth named, and copies the store to a file.
//
// Belongs to the loop. It looks for what to remove on the reading thread, deletes files on a thread
// of its own, and copies on another.

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "api/wire.hpp"
#include "core/rules.hpp"
#include "daemon/loop.hpp"
#include "daemon/worker.hpp"
#include "engine/engine.hpp"
#include "snapshot/snapshot_store.hpp"
#include "store/backup.hpp"
#include "store/reader.hpp"
#include "store/sqlite_store.hpp"

namespace berth {

struct KeeperConfig {
  std::string logs;
  std::string database;
  std::string snapshots;       ///< their directory; empty: none are looked after
  Millis every{180'000};       ///< between two looks for what has been kept long enough
  Millis key_age{86'400'000};  ///< a submission is repeated within this time, or not at all
};

/// BERTH_TEST_RETENTION="AGE_MS,JOBS,EVERY_MS": a test's patience is shorter than a month.
void shorten_retention_for_tests(Rules& rules, KeeperConfig& config);

class Keeper {
 public:
  /// `reader` is used on the thread of `readers` alone. All must outlive it, but for `readers`,
  /// which must be gone first.
  Keeper(Loop& loop, Engine& engine, SqliteStore& store, Worker& readers, StoreReader reader,
         KeeperConfig config);

  /// Removes a part of what is asked for; the answer says where to go on.
  void remove(const RemoveRequest& request, std::function<void(Result<RemoveAnswer>)> done);

  /// Begins a backup, unless one to another file is under way.
  [[nodiscard]] Result<BackupView> backup(const BackupRequest& request);
  [[nodiscard]] BackupView backup_view() const { return backup_; }
  /// Looks whether the file may be restored, as far as that can be told from outside.
  void inspect(const std::string& backup, std::function<void(Status)> done);

  /// From now on, retention.
  void start();
  /// No more of anything; a backup under way is given up.
  void stop();
  void job_ended();

 private:
  /// A job that may be removed, and what to delete with it.
  struct Candidate {
    JobId id;
    JobState state = JobState::queued;
    std::uint32_t attempts = 0;  ///< each with a report, perhaps
    bool own_logs = false;       ///< and a log named by berth
  };
  struct Part {
    std::vector<Candidate> candidates;
    std::optional<JobId> next;
  };
  struct Removal {
    bool ended = false;  ///< only what has ended
    std::vector<Candidate> left;
    RemoveAnswer answer;
    std::function<void(Result<RemoveAnswer>)> done;
  };
  /// What a round of retention has got to.
  struct Round {
    Millis cutoff{0};  ///< wall; 0: age removes nothing
    std::uint64_t keep_jobs = 0;
    JobId keys_upto;
    std::size_t removed = 0;
    std::optional<std::uint64_t> line;
    std::optional<KeyRow> key;
    std::optional<JobId> payload;
    std::unordered_set<std::int64_t> used;
  };

  template <class Query, class Then>
  void read(Query query, Then then);
  [[nodiscard]] static Result<Part> find(StoreReader& reader, const RemoveRequest& request,
                                         Millis now);
  void remove_slice(const std::shared_ptr<Removal>& removal);
  void delete_logs(const std::vector<Candidate>& gone, std::function<void(std::uint64_t)> done);

  void schedule(Millis delay);
  void begin_round();
  void remove_old(const std::shared_ptr<Round>& round);
  void trim_history(const std::shared_ptr<Round>& round);
  void trim_keys(const std::shared_ptr<Round>& round);
  void sweep_environments(const std::shared_ptr<Round>& round);
  void look_for_environments(const std::shared_ptr<Round>& round);
  void trim(Trim what, std::function<void()> then);
  void end_round(const std::shared_ptr<Round>& round);
  /// Deletes the snapshots whose jobs are all gone, and those that never got any.
  void sweep_snapshots();
  void judge_snapshots(std::vector<StoredSnapshot> found);
  [[nodiscard]] Millis wall_now() const;

  Loop& loop_;
  Engine& engine_;
  SqliteStore& store_;
  Worker& readers_;
  StoreReader reader_;
  KeeperConfig config_;
  Now started_;
  Loop::Handle timer_, pause_;
  bool in_round_ = false;
  bool sweep_wanted_ = true;                    ///< something may have left environments behind
  std::size_t ended_ = 0;                       ///< since the last round
  std::deque<std::pair<Millis, JobId>> marks_;  ///< when which id had been issued
  BackupView backup_;
  std::atomic<bool> stopping_ = false;
  // Last: they end first, while what their tasks use is still there.
  Worker files_{"files"};
  Worker copier_{"backup"};
};

}  // namespace berth
