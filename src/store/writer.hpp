#pragma once
// Turns transactions into SQL. Lives on the store's writer thread; knows nothing of threads,
// retries or space.

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/change.hpp"
#include "store/schema.hpp"
#include "store/sqlite.hpp"

namespace berth {

class TransactionWriter {
 public:
  /// `db` must outlive the writer.
  [[nodiscard]] static Result<std::unique_ptr<TransactionWriter>> open(Db& db, std::string boot_id);

  /// All of `changes`, durable, or an error and nothing of them.
  [[nodiscard]] Status write(const Changes& changes);

 private:
  static constexpr std::size_t kCounters = 4;
  static constexpr std::size_t kCachedEnvironments = 8;

  TransactionWriter(Db& db, std::string boot_id) : db_(db), boot_id_(std::move(boot_id)) {}
  [[nodiscard]] Status prepare_statements();
  [[nodiscard]] Status apply_all(const Changes& changes);
  void forget_transaction();

  [[nodiscard]] Status apply(const change::QueuePut& put);
  [[nodiscard]] Status apply(const change::ResourcePut& put);
  [[nodiscard]] Status apply(const change::BatchPut& put);
  [[nodiscard]] Status apply(const change::BatchRemove& remove);
  [[nodiscard]] Status apply(const change::JobPut& put);
  [[nodiscard]] Status apply(const change::JobsRemove& remove);
  [[nodiscard]] Status apply(const change::JobUpdate& update);
  [[nodiscard]] Status apply(const change::AttemptPut& put);
  [[nodiscard]] Status apply(const change::AttemptEnd& end);
  [[nodiscard]] Status apply(const change::ClientKey& key);
  [[nodiscard]] Status apply(const change::History& line);
  [[nodiscard]] Status flush_counters();

  [[nodiscard]] Result<std::int64_t> environment_row(
      const std::shared_ptr<const Environment>& environment);
  [[nodiscard]] Result<std::int64_t> boot_row();
  void count(BatchId batch, JobState state, std::int64_t delta);
  void grow(Counter counter, std::uint64_t value);

  Db& db_;
  std::string boot_id_;
  Stmt begin_, commit_;
  Stmt put_queue_, put_resource_, put_batch_, put_job_, put_payload_, put_dependency_;
  Stmt job_state_, update_job_, put_attempt_, end_attempt_, put_key_, put_history_;
  Stmt find_environment_, put_environment_, find_boot_, put_boot_;
  Stmt add_counter_, raise_counter_;
  Stmt drop_batch_, drop_batch_counts_;
  Stmt drop_history_, drop_attempts_, drop_dependencies_, drop_payload_, drop_job_;

  // Of the transaction under way; committed_ is what the database holds.
  std::unordered_map<std::uint64_t, std::int64_t> deltas_;  ///< batch * 8 + state
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
