#pragma once
// Everything that waits says why, and everything ends.

#include <cstdint>
#include <functional>
#include <map>

#include "sim/ledger.hpp"
#include "sim/observer.hpp"

namespace berth::sim {

/// - a waiting job always has a reason, and never the reason that nothing stands in its way;
/// - each claim belongs to an attempt that is open or has ended, and each open attempt has its own;
/// - whenever nothing is being written, what is on disk restores to what is in memory;
/// - at the end all jobs have ended, but for those that cannot run, which say so.
class ProgressChecker final : public Observer {
 public:
  /// `snapshot` reads what is on disk.
  ProgressChecker(Findings& findings, Setup setup, std::function<Snapshot()> snapshot)
      : findings_(findings), setup_(std::move(setup)), snapshot_(std::move(snapshot)) {}

  void durable(const Changes& changes) override;
  void stepped(const Engine* engine, Now now, bool idle) override;

  /// Faults and requests are over, and nothing has moved for long.
  void check_settled(const Engine& engine, Now now);
  /// And what could not run has been killed.
  void check_empty(const Engine& engine);

  /// Jobs that have not ended.
  [[nodiscard]] std::vector<JobId> alive() const;
  [[nodiscard]] std::uint64_t jobs() const { return disk_.jobs.size(); }

 private:
  void check_reasons(const State& state, JobId id, Now now);
  void check_claims(const State& state);
  void check_restores(const State& state);
  [[nodiscard]] bool can_never_run(const Request& request) const;

  Findings& findings_;
  Setup setup_;
  std::function<Snapshot()> snapshot_;
  Ledger disk_;
  std::uint64_t steps_ = 0;
};

}  // namespace berth::sim
