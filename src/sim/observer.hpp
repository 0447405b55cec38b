#pragma once
// What can be seen of a simulation from outside: what goes into the engine, what comes out, what
// is on disk and what really ran. Checkers and the trace live on this alone, so they share no
// opinion with the workload or with the engine.

#include <string>
#include <vector>

#include "base/result.hpp"
#include "core/apply.hpp"
#include "core/change.hpp"
#include "core/effect.hpp"
#include "core/event.hpp"
#include "engine/engine.hpp"
#include "engine/ports.hpp"

namespace berth::sim {

/// What a reader was told about one job.
struct Seen {
  JobId job;
  JobState state = JobState::queued;
  AttemptId attempt;
};

class Observer {
 public:
  virtual ~Observer() = default;

  virtual void moment(Now /*now*/) {}
  /// The daemon hands an event to its engine.
  virtual void handling(const Event& /*event*/) {}
  /// The engine hands a transaction to the store.
  virtual void handed(const Transaction& /*transaction*/) {}
  virtual void unprepared(AttemptId /*attempt*/, const Error& /*error*/) {}
  /// From here on no crash can take it away.
  virtual void durable(const Changes& /*changes*/) {}
  virtual void commit_failed(const Error& /*error*/) {}
  virtual void effect(const Effect& /*effect*/) {}

  virtual void submit_answered(const event::Submit& /*submit*/, const Result<Answer>& /*answer*/) {}
  virtual void kill_answered(const event::Kill& /*kill*/, const Result<Answer>& /*answer*/) {}
  /// Pause, Resume, PauseQueue, Move, Expedite, SetJobs.
  virtual void control_answered(const Event& /*event*/, const Result<Answer>& /*answer*/) {}
  virtual void read_answered(const std::vector<Seen>& /*seen*/) {}

  /// The first command of an attempt runs.
  virtual void run_started(AttemptId /*attempt*/, JobId /*job*/) {}
  /// It is over, and its supervisor has written down how.
  virtual void run_ended(AttemptId /*attempt*/, const Verdict& /*verdict*/) {}
  /// It is over, and nobody was left to write down how.
  virtual void run_vanished(AttemptId /*attempt*/) {}
  /// A power cut took what its supervisor had written.
  virtual void exit_forgotten(AttemptId /*attempt*/) {}

  virtual void crashed(bool /*machine*/) {}
  virtual void restarted(const Snapshot& /*snapshot*/) {}
  /// After each moment. `idle`: the daemon is up and no commit is under way.
  virtual void stepped(const Engine* /*engine*/, Now /*now*/, bool /*idle*/) {}
};

/// Passes everything on, in order.
class Observers final : public Observer {
 public:
  void add(Observer& observer) { all_.push_back(&observer); }

  void moment(Now now) override;
  void handling(const Event& event) override;
  void handed(const Transaction& transaction) override;
  void unprepared(AttemptId attempt, const Error& error) override;
  void durable(const Changes& changes) override;
  void commit_failed(const Error& error) override;
  void effect(const Effect& effect) override;
  void submit_answered(const event::Submit& submit, const Result<Answer>& answer) override;
  void kill_answered(const event::Kill& kill, const Result<Answer>& answer) override;
  void control_answered(const Event& event, const Result<Answer>& answer) override;
  void read_answered(const std::vector<Seen>& seen) override;
  void run_started(AttemptId attempt, JobId job) override;
  void run_ended(AttemptId attempt, const Verdict& verdict) override;
  void run_vanished(AttemptId attempt) override;
  void exit_forgotten(AttemptId attempt) override;
  void crashed(bool machine) override;
  void restarted(const Snapshot& snapshot) override;
  void stepped(const Engine* engine, Now now, bool idle) override;

 private:
  std::vector<Observer*> all_;
};

}  // namespace berth::sim
