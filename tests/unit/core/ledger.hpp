#pragma once
// The smallest thing that remembers what a store must: folds changes, gives back a Snapshot.

#include <map>
#include <set>
#include <string>

#include "core/change.hpp"

namespace berth::testing {

class Ledger {
 public:
  void write(const Change& change);
  /// What a restart would find.
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
  std::map<AttemptId, change::AttemptPut> open_;
  AttemptId last_attempt_;
  JobId last_job_;
  BatchId last_batch_;
};

}  // namespace berth::testing
