#pragma once
// The store's twin in memory, for tests and the simulator: the same meaning, no file, no thread.
//
// A commit waits until it is completed, so that whoever drives it decides when, and whether a crash
// comes before.

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/ports.hpp"
#include "store/rows.hpp"

namespace berth {

class MemoryStore final : public Store {
 public:
  struct Options {
    std::string boot_id;
    std::function<Status(AttemptId)> prepare;
  };

  explicit MemoryStore(Options options = {}) : options_(std::move(options)) {}

  void commit(Transaction transaction, std::function<void(CommitOutcome)> done) override;
  [[nodiscard]] std::optional<change::ClientKey> find_key(const std::string& key,
                                                          std::uint32_t owner) override;
  [[nodiscard]] std::optional<JobState> find_job_state(JobId id) override;
  [[nodiscard]] std::optional<EndedJob> find_ended_job(JobId id) override;

  [[nodiscard]] bool committing() const { return pending_.has_value(); }
  /// Makes the pending transaction durable and answers it. A status or low_space set in `wanted` is
  /// what the answer says; with an error nothing becomes durable and the store refuses what
  /// follows.
  void complete(CommitOutcome wanted = {});

  enum class Pending { lost, durable };
  /// Power off: the pending transaction is dropped, or durable though nobody heard of it. What is
  /// durable stays; the next life gets it from snapshot(). `boot_id` is that of the next life.
  void crash(Pending pending, std::string boot_id);

  [[nodiscard]] Snapshot snapshot() const;

  // What StoreReader answers, from what is durable.
  [[nodiscard]] std::optional<JobRow> job(JobId id) const;
  [[nodiscard]] std::vector<JobId> job_ids() const;
  [[nodiscard]] std::vector<AttemptRow> attempts(JobId job) const;
  [[nodiscard]] std::optional<Payload> payload(JobId job) const;
  [[nodiscard]] const std::vector<HistoryRow>& history() const { return history_; }
  [[nodiscard]] StateCounts counts(BatchId batch = {}) const;
  [[nodiscard]] std::vector<BatchRow> batches() const;
  [[nodiscard]] std::vector<QueueRow> queues() const;

 private:
  struct PendingCommit {
    Transaction transaction;
    std::function<void(CommitOutcome)> done;
  };
  struct Job {
    JobRow row;
    std::shared_ptr<const JobSpec> spec;
  };

  [[nodiscard]] Status check(const Changes& changes) const;
  void prepare(CommitOutcome& outcome);
  void apply(const change::BatchRules& put);
  void apply(const change::InstancePut& put);
  void apply(const change::DrainPut& put);
  void apply(const change::EccPut& put);
  void apply(const change::UsagePut& put);
  void apply(const change::AttemptGivesWay& put);
  void apply(const change::QueuePut& put);
  void apply(const change::ResourcePut& put);
  void apply(const change::BatchPut& put);
  void apply(const change::BatchRemove& remove);
  void apply(const change::JobPut& put);
  void apply(const change::JobsRemove& remove);
  void apply(const change::JobUpdate& update);
  void apply(const change::JobSet& set);
  void apply(const change::AttemptPut& put);
  void apply(const change::AttemptEnd& end);
  void apply(const change::ClientKey& key);
  void apply(const change::History& line);

  Options options_;
  std::optional<PendingCommit> pending_;
  std::optional<Error> broken_;

  std::map<JobId, Job> jobs_;
  std::set<JobId> live_;
  std::map<AttemptId, AttemptRow> attempts_;
  std::set<AttemptId> open_attempts_;
  std::map<JobId, std::vector<AttemptId>> attempts_of_;
  std::map<BatchId, BatchRow> batches_;
  std::map<QueueId, QueueSpec> queues_;
  std::set<QueueId> paused_queues_;
  std::map<std::string, std::uint64_t> resources_;
  bool paused_ = false;
  std::map<std::string, std::string> drains_;
  std::map<std::string, std::uint64_t> ecc_;
  std::map<std::pair<bool, std::uint64_t>, change::UsagePut> usage_;
  std::map<std::pair<std::uint32_t, std::string>, change::ClientKey> keys_;
  std::vector<HistoryRow> history_;
  std::uint64_t last_seq_ = 0;
  StateCounts counts_{};
  std::map<QueueId, StateCounts> queue_counts_;
  JobId last_job_;
  AttemptId last_attempt_;
  BatchId last_batch_;
  QueueId last_queue_;
};

}  // namespace berth
