#pragma once
// The smallest thing that remembers what a store must: folds changes, gives back a Snapshot.

#include <map>
#include <optional>
#include <set>
#include <string>

#include "core/change.hpp"

namespace berth::testing {

class Ledger {
 public:
  void write(const Change& change);
  /// What a restart would find.
  /// A job that has ended, as a store would find it.
  [[nodiscard]] std::optional<EndedJob> ended(JobId id) const;
  [[nodiscard]] Snapshot snapshot() const;
  [[nodiscard]] const change::JobUpdate& job(JobId id) const { return updates_.at(id); }

 private:
  std::map<QueueId, QueueSpec> queues_;
  std::set<QueueId> paused_;
  std::map<std::string, std::uint64_t> resources_;
  std::map<BatchId, change::BatchPut> batches_;
  std::map<JobId, change::JobPut> jobs_;
  std::map<JobId, change::JobUpdate> updates_;
  std::map<JobId, std::int64_t> ranks_;
  std::set<JobId> expedited_;
  bool instance_paused_ = false;
  std::map<std::string, std::string> drains_;
  std::map<std::string, std::uint64_t> ecc_;
  std::map<std::pair<bool, std::uint64_t>, change::UsagePut> usage_;
  std::map<AttemptId, std::optional<GivesWay>> gives_way_;
  std::map<AttemptId, change::AttemptPut> open_;
  std::map<JobId, Millis> last_ends_;  ///< of their attempts
  AttemptId last_attempt_;
  JobId last_job_;
  BatchId last_batch_;
};

}  // namespace berth::testing
