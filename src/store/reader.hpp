#pragma once
// Everything people ask of the store: jobs, attempts, payloads, history.
//
// A connection of its own, so that a slow question never holds up a commit. It sees what is
// durable, each call one consistent state.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "store/rows.hpp"
#include "store/sqlite.hpp"

namespace berth {

/// Which jobs, in which order. Conditions that are not set let everything through.
struct JobFilter {
  std::vector<JobState> states;
  std::string queue;
  BatchId batch;
  std::vector<std::pair<JobId, JobId>> ids;  ///< inclusive ranges, in any order
  JobId after;                               ///< a page's cursor: the last id of the page before
  bool descending = false;
  std::size_t limit = 50;
  std::optional<Millis> since;  ///< wall time: jobs that have not ended, or ended at or after it
};

struct HistoryQuery {
  std::uint64_t after = 0;  ///< sequence number
  JobId job;
  BatchId batch;
  std::size_t limit = 50;
};

/// Belongs to one thread at a time.
class StoreReader {
 public:
  [[nodiscard]] static Result<StoreReader> open(const std::filesystem::path& file,
                                                const std::string& vfs = {});

  [[nodiscard]] Result<std::vector<JobRow>> jobs(const JobFilter& query);
  [[nodiscard]] Result<std::optional<JobRow>> job(JobId id);
  /// Ascending.
  [[nodiscard]] Result<std::vector<AttemptRow>> attempts(JobId job);
  [[nodiscard]] Result<std::optional<Payload>> payload(JobId job);
  [[nodiscard]] Result<std::vector<HistoryRow>> history(const HistoryQuery& query);
  /// Of one batch, or of everything.
  [[nodiscard]] Result<StateCounts> counts(BatchId batch = {});
  [[nodiscard]] Result<std::vector<BatchRow>> batches(BatchId after = {}, std::size_t limit = 50,
                                                      bool descending = false);
  [[nodiscard]] Result<std::vector<QueueRow>> queues();
  [[nodiscard]] Result<std::string> instance_id();
  /// Reads every page; slow.
  [[nodiscard]] Status check_integrity();

  /// The statement that finds the ids of a page, for tests of its plan.
  [[nodiscard]] Result<std::string> page_sql(const JobFilter& query);

 private:
  explicit StoreReader(Db db) : db_(std::move(db)) {}
  [[nodiscard]] Status prepare_statements();
  [[nodiscard]] Result<std::vector<JobId>> page(const JobFilter& query);
  [[nodiscard]] Result<std::vector<JobId>> listed(const JobFilter& query,
                                                  std::optional<QueueId> queue);
  [[nodiscard]] Result<std::string> page_sql(const JobFilter& query, std::optional<QueueId> queue);
  [[nodiscard]] Result<std::optional<JobRow>> read_job(JobId id);
  [[nodiscard]] Result<StateCounts> read_counts(BatchId batch);

  Db db_;
  Stmt job_, after_, last_attempt_, counts_;
};

}  // namespace berth
