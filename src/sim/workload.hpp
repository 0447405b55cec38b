#pragma once
// Clients: people and scripts that submit, kill and look, and that ask again when a daemon died
// before answering. They know nothing of the checkers.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/event.hpp"
#include "sim/observer.hpp"
#include "sim/random.hpp"
#include "sim/sim_daemon.hpp"
#include "sim/timeline.hpp"

namespace berth::sim {

class Workload {
 public:
  /// `actions` requests over about `duration`; machines of `cards` cards.
  Workload(Timeline& timeline, Random random, Observer& observer, SimDaemon& daemon,
           std::uint64_t actions, Millis duration, std::size_t cards);

  void begin();
  /// Asks for the end of everything that is still alive.
  void kill_all(const std::vector<JobId>& jobs);
  /// Lets everything go on that somebody has paused, and gives back every card.
  void release(const std::vector<JobId>& jobs);
  /// All has been asked for and answered.
  [[nodiscard]] bool done() const { return left_ == 0 && waiting_ == 0; }

 private:
  struct Request {
    Event event;
    bool answered = false;
  };

  void act();
  void send(const std::shared_ptr<Request>& request);
  void answered(const std::shared_ptr<Request>& request, const Result<Answer>& answer);
  void look();
  [[nodiscard]] event::Submit a_submission();
  [[nodiscard]] JobSpec a_job(event::Submit& submit);
  [[nodiscard]] berth::Request a_request(event::Submit& submit);
  [[nodiscard]] event::Kill a_kill();
  [[nodiscard]] Event a_control();
  [[nodiscard]] event::DrainGpu a_drain();
  [[nodiscard]] event::JobPatch a_patch();
  [[nodiscard]] std::vector<JobId> some_jobs();

  Timeline& timeline_;
  Random random_;
  Observer& observer_;
  SimDaemon& daemon_;
  std::uint64_t left_;
  Millis duration_;
  std::size_t cards_;
  std::shared_ptr<const Environment> environment_ = std::make_shared<Environment>();
  std::uint64_t waiting_ = 0;
  std::uint64_t last_key_ = 0;
  std::vector<JobId> known_;  ///< ids it has been given
};

}  // namespace berth::sim
