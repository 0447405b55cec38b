#pragma once
// Whatever is started may be started: now, there, and before the others.

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/ledger.hpp"
#include "sim/observer.hpp"

namespace berth::sim {

/// At the moment of each decision:
/// - what it follows has succeeded; when something it follows has not, it is cancelled at once;
/// - no limit of queue, batch, instance, CPUs, host memory or resources is exceeded, nor does a
///   paused queue start anything, but for jobs that are to start before all others;
/// - these come first; a serial queue starts its jobs one by one and in order; elsewhere no job
///   overtakes its like;
/// - no card is promised beyond its memory, whole cards are promised once, and the last look at the
///   card, which is fresh enough, shows that strangers leave that much room.
class PlacementChecker final : public Observer {
 public:
  PlacementChecker(Findings& findings, Setup setup)
      : findings_(findings), setup_(std::move(setup)) {}

  void moment(Now now) override;
  void handling(const Event& event) override;
  void handed(const Transaction& transaction) override;
  void durable(const Changes& changes) override;
  void crashed(bool machine) override;
  void restarted(const Snapshot& snapshot) override;

 private:
  /// A moment at which something may have been decided, and what was known of the GPUs then.
  struct Moment {
    Now now;
    std::size_t sample = 0;
  };
  struct Seen {
    GpuSample sample;
    Millis arrived{0};
  };

  void check_start(const change::AttemptPut& put);
  void check_limits(JobId id, const Ledger::JobEntry& job);
  void check_order(JobId id, const Ledger::JobEntry& job);
  void check_cards(const change::AttemptPut& put, const Ledger::JobEntry& job);
  [[nodiscard]] std::string card_problem(const change::AttemptPut& put, const Ledger::JobEntry& job,
                                         const std::string& uuid, const Moment& moment) const;
  /// Whether the job has lost a card, or its memory, since a look began.
  [[nodiscard]] bool lost_since(JobId job, Millis begun) const;
  /// When the look began by which the first of what was decided since the last commit was decided.
  [[nodiscard]] Millis first_look() const;
  /// A look at the card that began after the attempt's end showed nothing of it.
  [[nodiscard]] bool seen_leaving(AttemptId attempt, const std::string& uuid, Millis ended,
                                  const Moment& moment) const;
  void check_followers();
  [[nodiscard]] std::uint64_t running_where(
      const std::function<bool(const Ledger::JobEntry&)>& counts) const;

  Findings& findings_;
  Setup setup_;
  Ledger disk_;
  Ledger head_;  ///< with the transaction under way
  std::vector<std::optional<Seen>> samples_{std::nullopt};
  std::vector<Moment> moments_;
  std::map<AttemptId, Millis> ended_;  ///< on the clock of this boot, since the last start
};

}  // namespace berth::sim
