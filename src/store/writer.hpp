#pragma once
// Turns transactions into SQL. Lives on the store's writer thread; knows nothing of threads,
// retries or space.

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/change.hpp"
#include "store/rows.hpp"
#include "store/schema.hpp"
#include "store/sqlite.hpp"

namespace berth {

class TransactionWriter {
 public:
  /// `db` must outlive the writer.
  [[nodiscard]] static Result<std::unique_ptr<TransactionWriter>> open(Db& db, std::string boot_id);

  /// All of `changes`, durable, or an error and nothing of them.
  [[nodiscard]] Status write(const Changes& changes);
  /// Likewise.
  [[nodiscard]] Status write(const Trim& trim);

 private:
  static constexpr std::size_t kCounters = 5;
  static constexpr std::size_t kCachedEnvironments = 8;

  TransactionWriter(Db& db, std::string boot_id) : db_(db), boot_id_(std::move(boot_id)) {}
  [[nodiscard]] Status prepare_statements();
  [[nodiscard]] Status apply_all(const Changes& changes);
  void forget_transaction();

  [[nodiscard]] Status apply(const change::BatchRules& put);
  [[nodiscard]] Status apply(const change::InstancePut& put);
  [[nodiscard]] Status apply(const change::DrainPut& put);
  [[nodiscard]] Status apply(const change::EccPut& put);
  [[nodiscard]] Status apply(const change::UsagePut& put);
  [[nodiscard]] Status apply(const change::AttemptGivesWay& put);
  [[nodiscard]] Status apply(const change::QueuePut& put);
  [[nodiscard]] Status apply(const change::ResourcePut& put);
  [[nodiscard]] Status apply(const change::BatchPut& put);
  [[nodiscard]] Status apply(const change::BatchRemove& remove);
  [[nodiscard]] Status apply(const change::JobPut& put);
  [[nodiscard]] Status apply(const change::JobsRemove& remove);
  [[nodiscard]] Status apply(const change::JobUpdate& update);
  [[nodiscard]] Status apply(const change::JobSet& set);
  [[nodiscard]] Status apply(const change::AttemptPut& put);
  [[nodiscard]] Status apply(const change::AttemptEnd& end);
  [[nodiscard]] Status apply(const change::ClientKey& key);
  [[nodiscard]] Status apply(const change::History& line);
  [[nodiscard]] Status trim_all(const Trim& trim);
  [[nodiscard]] Status flush_counters();
  [[nodiscard]] Status remove_empty_batches();
  template <class Body>
  [[nodiscard]] Status transact(Body body);

  [[nodiscard]] Result<std::int64_t> environment_row(
      const std::shared_ptr<const Environment>& environment);
  [[nodiscard]] Result<std::int64_t> boot_row();
  /// Valid until the buffer is used again; none: no rules.
  [[nodiscard]] std::optional<Blob> rules_blob(const Overrides& rules);
  [[nodiscard]] Status remove_payload(JobId job);
  void count(BatchId batch, QueueId queue, JobState state, std::int64_t delta);
  [[nodiscard]] Status count_move(JobId job, QueueId to);
  void grow(Counter counter, std::uint64_t value);

  Db& db_;
  std::string boot_id_;
  Stmt begin_, commit_;
  Stmt put_queue_, put_resource_, put_batch_, put_job_, put_payload_, put_dependency_;
  Stmt set_batch_, put_meta_, put_drain_, remove_drain_, put_usage_, remove_usage_, give_way_;
  Stmt set_job_, find_payload_, set_payload_;
  Stmt job_state_, update_job_, put_attempt_, end_attempt_, put_key_, put_history_;
  Stmt find_environment_, put_environment_, find_boot_, put_boot_;
  Stmt add_counter_, add_queue_counter_, raise_counter_;
  Stmt remove_job_, remove_payload_, put_fingerprint_, remove_fingerprint_, remove_dependencies_,
      remove_attempts_, remove_job_history_;
  Stmt batch_left_, remove_batch_, remove_batch_counters_, drop_batch_;
  Stmt remove_history_, remove_key_, remove_environment_;

  // Of the transaction under way; committed_ is what the database holds.
  std::unordered_map<std::uint64_t, std::int64_t> deltas_;        ///< batch * 8 + state
  std::unordered_map<std::uint64_t, std::int64_t> queue_deltas_;  ///< queue * 8 + state
  std::vector<BatchId> thinned_;                                  ///< batches that lost jobs
  /// Environments that jobs were given since the last sweep for unused ones began.
  std::unordered_set<std::int64_t> used_environments_;
  std::array<std::uint64_t, kCounters> highest_{}, committed_{};
  std::uint64_t last_seq_ = 0, committed_seq_ = 0;
  std::int64_t boot_row_ = 0;  ///< 0: not looked up yet

  struct CachedEnvironment {
    std::shared_ptr<const Environment> pointer;
    std::string bytes;
    std::int64_t row = 0;
  };
  std::array<CachedEnvironment, kCachedEnvironments> environments_;
  std::size_t next_cached_ = 0;
  std::size_t last_cached_ = 0;

  std::string buffer_, buffer2_;  ///< reused by every row
};

}  // namespace berth
