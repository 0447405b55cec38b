#pragma once
// What the engine needs of the world. The daemon, the simulator and the tests each bring their own.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"
#include "core/change.hpp"
#include "core/effect.hpp"

namespace berth {

class Clock {
 public:
  virtual ~Clock() = default;
  [[nodiscard]] virtual Now now() = 0;
};

/// One group commit.
struct Transaction {
  Changes changes;
  /// Attempts whose record files must exist, locked, before `changes` become durable.
  std::vector<AttemptId> prepare;
};

struct CommitOutcome {
  /// An error: nothing may be said to have happened, and the engine must stop. (After a failed sync
  /// the transaction may yet turn out to be there at the next start.)
  Status status;
  /// Attempts of `prepare` for which no record file could be made. They never start.
  std::vector<std::pair<AttemptId, Error>> unprepared;
  bool low_space = false;  ///< the reserve had to be used, or the file system is nearly full
  std::string space_detail;
};

class Store {
 public:
  virtual ~Store() = default;
  /// Makes the transaction durable, then calls `done` on the engine's thread, never from inside
  /// this call. At most one commit is under way at a time.
  virtual void commit(Transaction transaction, std::function<void(CommitOutcome)> done) = 0;
  /// The answer once given to this client key, if any. Fast: called on the engine's thread.
  [[nodiscard]] virtual std::optional<change::ClientKey> find_key(const std::string& key,
                                                                  std::uint32_t owner) = 0;
  /// The state of a job that may have left memory.
  [[nodiscard]] virtual std::optional<JobState> find_job_state(JobId id) = 0;
  /// A job that has ended, as it is on disk; none: there is none, or it has not.
  [[nodiscard]] virtual std::optional<EndedJob> find_ended_job(JobId id) = 0;
};

/// Hears of what the engine does, to measure it. The engine itself knows no clock but its own.
class Meter {
 public:
  virtual ~Meter() = default;
  virtual void deciding() = 0;
  virtual void decided() = 0;
  virtual void committing() = 0;
  virtual void committed() = 0;
  virtual void finished(JobState state, std::optional<FailureClass> failure) = 0;
};

/// Carries effects out. Outcomes come back as Events, never from inside `run`.
class EffectSink {
 public:
  virtual ~EffectSink() = default;
  virtual void run(const Effect& effect) = 0;
};

}  // namespace berth
