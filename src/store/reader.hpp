#pragma once
// Everything people ask of the store: jobs, attempts, payloads, history.
//
// A connection of its own, so that a slow question never holds up a commit. It sees what is
// durable, each call one consistent state.

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "core/job_sort.hpp"
#include "store/rows.hpp"
#include "store/sqlite.hpp"

namespace berth {

/// Which jobs, in which order. Conditions that are not set let everything through.
struct JobFilter {
  std::vector<JobState> states;
  std::string queue;
  BatchId batch;
  std::vector<std::pair<JobId, JobId>> ids;  ///< inclusive ranges, in any order
  ListPlace after;                           ///< a page's cursor: the last of the page before
  bool descending = false;
  std::size_t limit = 50;
  std::optional<Millis> since = {};         ///< wall time: have not ended, or ended at or after it
  std::optional<Millis> ended_before = {};  ///< wall time: have ended, and before it
  std::string name = {};                    ///< a pattern with * ? [..]; empty: any
  JobSort sort = JobSort::id;
};

/// What a list shows of a payload.
struct PayloadHead {
  std::vector<Command> commands;
  std::string cwd;
  std::map<std::string, std::string> params;
};

/// A page may be shorter than asked for, even empty, and yet have a next one: looking through a
/// million jobs for a rare one is done in many small steps.
struct JobListing {
  std::vector<JobRow> rows;
  std::vector<PayloadHead> heads;  ///< one per row
  std::optional<ListPlace> next;   ///< go on from here; none: that was all
};

struct HistoryQuery {
  std::uint64_t after = 0;  ///< sequence number; descending: before it, 0: from the end
  JobId job;
  BatchId batch;
  std::size_t limit = 50;
  std::vector<std::pair<JobId, JobId>> jobs = {};  ///< inclusive ranges; empty: any
  std::vector<std::string> kinds = {};             ///< empty: any
  /// Not older, by the clock of the machine: after it was set back, lines may be missing.
  std::optional<Millis> since = {};
  bool descending = false;
};

/// As JobListing.
struct HistoryPage {
  std::vector<HistoryRow> rows;
  std::uint64_t last = 0;  ///< go on from here
  bool more = false;       ///< there may be more beyond `last` already
};

/// Belongs to one thread at a time.
class StoreReader {
 public:
  [[nodiscard]] static Result<StoreReader> open(const std::filesystem::path& file,
                                                const std::string& vfs = {});

  /// A page in one consistent state.
  [[nodiscard]] Result<JobListing> list(const JobFilter& query);
  /// The rows alone, as many as asked for, however long that takes.
  [[nodiscard]] Result<std::vector<JobRow>> jobs(const JobFilter& query);
  /// Likewise their ids.
  [[nodiscard]] Result<std::vector<JobId>> job_ids(const JobFilter& query);
  [[nodiscard]] Result<std::optional<JobRow>> job(JobId id);
  /// Looks at the newest of them first, and at no more than it must.
  [[nodiscard]] Result<SameJobs> same_jobs(std::uint64_t fingerprint, const std::string& name);
  /// Ascending.
  [[nodiscard]] Result<std::vector<AttemptRow>> attempts(JobId job);
  [[nodiscard]] Result<std::optional<Payload>> payload(JobId job);
  [[nodiscard]] Result<HistoryPage> history_page(const HistoryQuery& query);
  /// As many lines as asked for, however long that takes.
  [[nodiscard]] Result<std::vector<HistoryRow>> history(const HistoryQuery& query);
  /// The number of the last line; 0: there is none.
  [[nodiscard]] Result<std::uint64_t> last_history();
  /// Attempts that ran between the two moments, the newest first. Looks at a limited number of
  /// those that had begun by then.
  [[nodiscard]] Result<AttemptSpans> spans(Millis from, Millis to, std::size_t limit);
  /// Of one batch, or of everything.
  [[nodiscard]] Result<StateCounts> counts(BatchId batch = {});
  [[nodiscard]] Result<std::vector<BatchRow>> batches(BatchId after = {}, std::size_t limit = 50,
                                                      bool descending = false);
  [[nodiscard]] Result<std::optional<BatchRow>> batch(BatchId id);
  /// None: there is no such batch.
  [[nodiscard]] Result<std::optional<BatchTraits>> traits(BatchId batch);
  [[nodiscard]] Result<std::vector<QueueRow>> queues();
  /// Jobs by state of every queue that has or had some. Kept with every change, so that no backlog
  /// is counted for it.
  [[nodiscard]] Result<std::map<QueueId, StateCounts>> queue_counts();
  [[nodiscard]] Result<std::string> instance_id();
  /// Reads every page; slow.
  [[nodiscard]] Status check_integrity();

  // For keeping the store small (reader_retention.cpp).

  /// Finished jobs, those that ended first in front; `before`: only those that ended before it.
  [[nodiscard]] Result<std::vector<JobRow>> oldest_finished(std::optional<Millis> before,
                                                            std::size_t limit);
  /// Lines that belong to no job, older than `before`; looks at `limit` lines from `after` on and
  /// sets it to the last one. Empty `after`: there are no older lines beyond.
  [[nodiscard]] Result<std::vector<std::uint64_t>> loose_history(
      std::optional<std::uint64_t>& after, Millis before, std::size_t limit);
  /// Whether any job of the submission with this key is left; none: there was no such submission.
  [[nodiscard]] Result<std::optional<bool>> has_jobs(std::uint32_t owner, const std::string& key);
  /// Keys of submissions up to job `upto` of which no job is left; `after` as above.
  [[nodiscard]] Result<std::vector<KeyRow>> loose_keys(std::optional<KeyRow>& after, JobId upto,
                                                       std::size_t limit);
  /// Adds the environments that payloads from `after` on use; `after` as above.
  [[nodiscard]] Status environments_used(std::optional<JobId>& after, std::size_t limit,
                                         std::unordered_set<std::int64_t>& used);
  [[nodiscard]] Result<std::vector<std::int64_t>> environment_ids();

  /// The statements that find a page, for tests of their plans.
  [[nodiscard]] Result<std::string> page_sql(const JobFilter& query);
  [[nodiscard]] Result<std::vector<std::string>> sorted_sql(const JobFilter& query);
  [[nodiscard]] Result<std::string> history_sql(const HistoryQuery& query);
  /// Rows a page may look at to find those that match: neighbours, and those that an index leads to
  /// one by one.
  std::size_t scan_budget = 8'000;
  std::size_t lookup_budget = 2'000;
  std::size_t sort_budget = 2'000;  ///< so many that match are sorted

 private:
  explicit StoreReader(Db db) : db_(std::move(db)) {}
  struct IdPage {
    std::vector<JobId> ids;
    std::optional<ListPlace> next;
  };

  [[nodiscard]] Status prepare_statements();
  [[nodiscard]] Result<IdPage> page(const JobFilter& query);
  [[nodiscard]] Result<IdPage> listed(const JobFilter& query, std::optional<QueueId> queue);
  [[nodiscard]] Result<IdPage> scan(const std::string& sql, std::size_t limit, std::size_t budget,
                                    const std::string& name);
  /// The jobs that ended in a short window, and those that have not ended, merged.
  [[nodiscard]] Result<IdPage> recent(const JobFilter& query, std::optional<QueueId> queue,
                                      std::vector<JobId> ended);
  /// `also`: a further condition on the rows.
  [[nodiscard]] std::string page_sql(const JobFilter& query, std::optional<QueueId> queue,
                                     const std::string& also = {}) const;
  [[nodiscard]] Result<std::optional<std::vector<JobId>>> short_window(const JobFilter& query);
  [[nodiscard]] Result<std::optional<QueueId>> find_queue(const std::string& name);

  // By something else than the id (reader_sorted.cpp).
  [[nodiscard]] Result<IdPage> sorted(const JobFilter& query, std::optional<QueueId> queue);
  /// All that match, if an index leads to few.
  [[nodiscard]] Result<std::optional<std::vector<ListPlace>>> few(const JobFilter& query,
                                                                  std::optional<QueueId> queue);
  /// As many of those as an order's own index leads to within the budget.
  [[nodiscard]] Result<IdPage> walk(const JobFilter& query, std::optional<QueueId> queue);
  /// The statements of a walk, one after the other: id, whether it matches, key.
  [[nodiscard]] std::vector<std::string> sorted_sql(const JobFilter& query,
                                                    std::optional<QueueId> queue) const;
  [[nodiscard]] Result<std::uint64_t> first_since(Millis wall);
  /// The last attempt that had begun by then; 0: none had.
  [[nodiscard]] Result<std::uint64_t> last_begun(Millis wall);
  [[nodiscard]] Result<std::optional<JobRow>> read_job(JobId id);
  [[nodiscard]] Result<PayloadHead> read_head(JobId id);
  [[nodiscard]] Result<StateCounts> read_counts(BatchId batch);

  Db db_;
  Stmt job_, head_, after_, last_attempt_, counts_, same_;
};

}  // namespace berth
