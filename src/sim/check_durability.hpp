#pragma once
// Nobody is told, and nothing is done, that a crash could take back.

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/ledger.hpp"
#include "sim/observer.hpp"

namespace berth::sim {

/// - every answer, reads included, and every effect is covered by what is on disk;
/// - an accepted job is on disk for good, and a client key stands for one set of ids;
/// - ids are never issued twice;
/// - a submission is not refused for a dependency that stands in nobody's way.
class DurabilityChecker final : public Observer {
 public:
  explicit DurabilityChecker(Findings& findings) : findings_(findings) {}

  void durable(const Changes& changes) override;
  void effect(const Effect& effect) override;
  void submit_answered(const event::Submit& submit, const Result<Answer>& answer) override;
  void kill_answered(const event::Kill& kill, const Result<Answer>& answer) override;
  void control_answered(const Event& event, const Result<Answer>& answer) override;
  void read_answered(const std::vector<Seen>& seen) override;
  void restarted(const Snapshot& snapshot) override;

  [[nodiscard]] const Ledger& disk() const { return disk_; }
  [[nodiscard]] const std::set<JobId>& promised() const { return promised_; }

 private:
  void check_refusal(const event::Submit& submit, const Error& error);

  Findings& findings_;
  Ledger disk_;
  std::map<std::pair<std::string, std::uint32_t>, Submitted> keys_;
  std::set<std::pair<std::string, std::uint32_t>> keys_on_disk_;
  std::set<JobId> promised_;  ///< acknowledged to a client
  std::set<JobId> issued_;
  std::map<std::string, QueueId> queue_names_;
};

}  // namespace berth::sim
