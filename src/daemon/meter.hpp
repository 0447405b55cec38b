#pragma once
// How long decisions and commits take, and what became of jobs, since the daemon began.

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "engine/ports.hpp"

namespace berth {

/// Counts of durations up to certain lengths, as Prometheus wants them.
class Histogram {
 public:
  static constexpr std::array<double, 12> kBounds{0.000'05, 0.000'2, 0.001, 0.002'5, 0.005, 0.01,
                                                  0.025,    0.1,     0.25,  1,       2.5,   10};

  void add(std::chrono::duration<double> time);
  /// Up to and including this bound; behind the last one: all.
  [[nodiscard]] std::uint64_t up_to(std::size_t bound) const { return counts_.at(bound); }
  [[nodiscard]] std::uint64_t count() const { return counts_.back(); }
  [[nodiscard]] double sum() const { return sum_; }

 private:
  std::array<std::uint64_t, kBounds.size() + 1> counts_{};
  double sum_ = 0;
};

/// Belongs to the engine's thread.
class LatencyMeter final : public Meter {
 public:
  void deciding() override { decision_began_ = Steady::now(); }
  void decided() override { decisions_.add(Steady::now() - decision_began_); }
  void committing() override { commit_began_ = Steady::now(); }
  void committed() override { commits_.add(Steady::now() - commit_began_); }
  void finished(JobState state, std::optional<FailureClass> failure) override {
    ++finished_[{state, failure}];
  }

  [[nodiscard]] const Histogram& decisions() const { return decisions_; }
  [[nodiscard]] const Histogram& commits() const { return commits_; }
  using Finished = std::map<std::pair<JobState, std::optional<FailureClass>>, std::uint64_t>;
  [[nodiscard]] const Finished& finished() const { return finished_; }

 private:
  using Steady = std::chrono::steady_clock;

  Steady::time_point decision_began_;
  Steady::time_point commit_began_;
  Histogram decisions_;
  Histogram commits_;
  Finished finished_;
};

}  // namespace berth
