#pragma once
// The daemon's part in the simulation: the real engine, wired to the simulated world, which can
// die at any moment and come back.

#include <cstdint>
#include <memory>

#include "engine/engine.hpp"
#include "sim/gpus.hpp"
#include "sim/machine.hpp"
#include "sim/observer.hpp"
#include "sim/plant.hpp"
#include "sim/random.hpp"
#include "sim/sim_store.hpp"
#include "sim/timeline.hpp"

namespace berth::sim {

class SimDaemon final : public EffectSink {
 public:
  SimDaemon(Timeline& timeline, Random random, Observer& observer, SimStore& store,
            Machine& machine, Gpus& gpus, Rules rules, HostCapacity host, Plant plant);

  void start();
  /// Gone this instant; back after `down`.
  void crash(Millis down);
  /// The whole machine goes down with it.
  void power_cut(Millis down);

  [[nodiscard]] bool up() const { return engine_ != nullptr; }
  /// Changes with each start: a client whose connection broke can tell.
  [[nodiscard]] std::uint64_t life() const { return life_; }
  [[nodiscard]] const Engine* engine() const { return engine_.get(); }

  /// How often the planted bug has really struck.
  [[nodiscard]] std::uint64_t struck() const { return struck_; }

  /// Does nothing while the daemon is down.
  void handle(Event event, Engine::Reply reply = {});
  template <class Reader, class Then>
  void read(Reader&& reader, Then&& then) {
    if (engine_) {
      engine_->read(std::forward<Reader>(reader), std::forward<Then>(then));
    }
  }

  void run(const Effect& effect) override;

 private:
  void watch_space();

  Timeline& timeline_;
  Random random_;
  Observer& observer_;
  SimStore& store_;
  Machine& machine_;
  Gpus& gpus_;
  Rules rules_;
  HostCapacity host_;
  Plant plant_;
  std::unique_ptr<Engine> engine_;
  std::uint64_t life_ = 0;
  std::uint64_t struck_ = 0;
};

}  // namespace berth::sim
