#pragma once
// Nothing runs twice, and every end is written down as it was.

#include <map>
#include <optional>
#include <set>

#include "sim/ledger.hpp"
#include "sim/observer.hpp"

namespace berth::sim {

/// - a command runs at most once per attempt, a job in at most one attempt at a time, and in no
///   more attempts than its retries allow; an attempt that was called off never ran, and one
///   without a record is not started;
/// - what is to be killed, paused or to go on is told so, and told again after a restart;
/// - the verdict on disk is the one its supervisor wrote, or `node_lost` if there is none;
/// - the job ends as its last verdict, its retries and its kill say, and moves through its states
///   only along the allowed paths.
class RunChecker final : public Observer {
 public:
  explicit RunChecker(Findings& findings) : findings_(findings) {}

  void handed(const Transaction& transaction) override;
  void durable(const Changes& changes) override;
  void unprepared(AttemptId attempt, const Error& error) override;
  void effect(const Effect& effect) override;
  void run_started(AttemptId attempt, JobId job) override;
  void run_ended(AttemptId attempt, const Verdict& verdict) override;
  void run_vanished(AttemptId attempt) override;
  void exit_forgotten(AttemptId attempt) override;
  void crashed(bool machine) override;
  void restarted(const Snapshot& snapshot) override;
  void stepped(const Engine* engine, Now now, bool idle) override;

 private:
  struct Truth {
    bool ran = false;
    bool running = false;
    std::optional<Verdict> recorded;
  };

  void check_end(const change::AttemptEnd& end);
  void check_update(const change::JobUpdate& update);

  Findings& findings_;
  Ledger disk_;
  std::map<AttemptId, Truth> truth_;
  std::map<JobId, AttemptId> running_;
  std::map<JobId, std::uint32_t> runs_;
  std::set<AttemptId> unprepared_;
  // By the daemon that is up.
  std::set<AttemptId> told_to_end_;
  std::set<AttemptId> told_to_pause_;
  bool power_cut_ = false;
  std::set<AttemptId> through_power_cut_;  ///< open when the power went
};

}  // namespace berth::sim
