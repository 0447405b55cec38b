#pragma once
// What goes wrong in a simulated world, and how often, as the seed has it.

#include <cstdint>

#include "sim/gpus.hpp"
#include "sim/machine.hpp"
#include "sim/random.hpp"
#include "sim/sim_daemon.hpp"
#include "sim/sim_store.hpp"
#include "sim/timeline.hpp"

namespace berth::sim {

class Faults {
 public:
  Faults(Timeline& timeline, Random random, SimDaemon& daemon, Machine& machine, SimStore& store,
         Gpus& gpus, Millis duration);

  void begin();
  /// Between any two moments: the daemon may die right here.
  void between_moments();
  /// From here on all is well.
  void end();

 private:
  void strike();

  Timeline& timeline_;
  Random random_;
  SimDaemon& daemon_;
  Machine& machine_;
  SimStore& store_;
  Gpus& gpus_;
  Millis duration_;
  std::uint64_t crash_permille_ = 0;
  std::uint64_t crashes_left_ = 0;
  bool over_ = false;
};

}  // namespace berth::sim
