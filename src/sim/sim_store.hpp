#pragma once
// A store in virtual time: commits take a while, can fail, and a crash in the middle of one leaves
// all of it or nothing.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/ports.hpp"
#include "sim/observer.hpp"
#include "sim/random.hpp"
#include "sim/timeline.hpp"

namespace berth::sim {

class SimStore final : public Store {
 public:
  enum class Disk : std::uint8_t { roomy, low, full };

  /// `prepare` makes the record file of an attempt; it belongs to the machine.
  SimStore(Timeline& timeline, Random random, Observer& observer,
           std::function<Status(AttemptId)> prepare);

  void commit(Transaction transaction, std::function<void(CommitOutcome)> done) override;
  std::optional<change::ClientKey> find_key(const std::string& key, std::uint32_t owner) override;
  std::optional<JobState> find_job_state(JobId id) override;
  std::optional<EndedJob> find_ended_job(JobId id) override;

  /// The daemon is gone. A commit under way is on disk if it got that far, or if luck had it.
  void daemon_died();
  [[nodiscard]] Snapshot snapshot() const;
  /// What the supervisor of a job reads before it starts.
  [[nodiscard]] std::shared_ptr<const JobSpec> spec(JobId id) const;

  [[nodiscard]] bool busy() const { return in_flight_.has_value(); }
  [[nodiscard]] Disk disk() const { return disk_; }
  void set_disk(Disk disk) { disk_ = disk; }
  void set_boot_id(std::string boot_id) { boot_id_ = std::move(boot_id); }
  /// The next commit ends in an error of the disk.
  void fail_next_commit() { fail_next_ = true; }

 private:
  struct JobRow {
    change::JobPut put;
    change::JobUpdate now;
    std::int64_t rank = 0;
    bool expedited = false;
  };
  struct AttemptRow {
    change::AttemptPut put;
    std::string boot_id;
    bool ended = false;
    std::optional<GivesWay> gives_way;
  };
  struct InFlight {
    Transaction transaction;
    std::function<void(CommitOutcome)> done;
    CommitOutcome outcome;
    bool writing = false;
    bool written = false;
  };

  void make_records();
  void write();
  void finish();
  void put(const Change& change);

  Timeline& timeline_;
  Random random_;
  Observer& observer_;
  std::function<Status(AttemptId)> prepare_;
  std::optional<InFlight> in_flight_;
  Disk disk_ = Disk::roomy;
  bool fail_next_ = false;
  std::string boot_id_;

  std::map<JobId, JobRow> jobs_;
  std::map<AttemptId, AttemptRow> attempts_;
  std::map<QueueId, QueueSpec> queues_;
  std::set<QueueId> paused_;
  std::map<BatchId, change::BatchPut> batches_;
  JobId last_job_;  ///< highest ever issued; jobs may be removed
  AttemptId last_attempt_;
  BatchId last_batch_;
  std::map<std::string, std::uint64_t> resources_;
  bool instance_paused_ = false;
  std::map<std::string, std::string> drains_;
  std::map<std::string, std::uint64_t> ecc_;
  std::map<std::pair<bool, std::uint64_t>, change::UsagePut> usage_;
  std::map<std::pair<std::string, std::uint32_t>, change::ClientKey> keys_;
};

}  // namespace berth::sim
