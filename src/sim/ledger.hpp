#pragma once
// What the changes handed to the store say, kept by the checkers for themselves.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/change.hpp"

namespace berth::sim {

/// What the simulated machine is like; fixed for a whole run.
struct Setup {
  Rules rules;
  HostCapacity host;
  std::vector<Bytes> cards;
};

/// What must be free on a card of `total` for the job, by the rules.
[[nodiscard]] Bytes memory_needed(const Request& request, const Rules& rules, Bytes total);

struct Ledger {
  struct JobEntry {
    std::shared_ptr<const JobSpec> spec;
    BatchId batch;
    QueueId queue;
    std::uint32_t owner = 0;
    std::vector<JobId> after;
    JobState state = JobState::queued;
    bool kill_requested = false;
    std::int64_t rank = 0;  ///< 0: by id
    bool expedited = false;
    bool held = false;               ///< paused without a run
    std::uint32_t most_retries = 0;  ///< that it ever had
    std::optional<std::int32_t> exit_code;
    std::optional<FailureClass> failure;
    std::set<JobState> been;    ///< every state it was ever in
    std::uint32_t charged = 0;  ///< attempts that failed, and it was the job's own failure
    std::uint32_t excused = 0;  ///< attempts that failed, and it was not
    std::uint32_t forgiven =
        0;                ///< those the scheduler does not hold against it, as it says itself
    bool avoids = false;  ///< a card of its own failed: it does not take it again
    std::uint32_t gave_way = 0;  ///< attempts that ended for the sake of others
    std::vector<AttemptId> attempts;
    bool removed = false;  ///< forgotten by the store
  };
  struct AttemptEntry {
    JobId job;
    std::vector<std::string> gpus;
    Bytes memory = 0;  ///< 0: whole cards
    bool ended = false;
    bool revoked = false;
    Verdict verdict;
    bool gives_way = false;  ///< told to end for somebody else's sake
  };

  void put(const Change& change);

  [[nodiscard]] const JobEntry* job(JobId id) const;
  /// All it follows have succeeded.
  [[nodiscard]] bool dependencies_met(const JobEntry& job) const;
  /// Something it follows has ended otherwise.
  [[nodiscard]] bool dependency_failed(const JobEntry& job) const;

  std::map<JobId, JobEntry> jobs;
  std::map<AttemptId, AttemptEntry> attempts;
  std::set<AttemptId> open;
  std::map<QueueId, QueueSpec> queues;
  std::set<QueueId> paused_queues;
  std::set<std::string> drained;  ///< cards that are out of use
  std::map<BatchId, std::uint32_t> batch_limits;
  std::set<BatchId> open_batches;  ///< still being submitted
  std::map<std::string, std::uint64_t> resources;
};

/// Takes down the first thing that went wrong; what follows is usually its consequence.
class Findings {
 public:
  void report(std::string sentence) {
    if (!first_) {
      first_ = std::move(sentence);
    }
  }
  [[nodiscard]] const std::optional<std::string>& first() const { return first_; }

 private:
  std::optional<std::string> first_;
};

}  // namespace berth::sim
