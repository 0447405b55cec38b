#include "sim/faults.hpp"

#include <array>

namespace berth::sim {

using Of = Timeline::Of;

Faults::Faults(Timeline& timeline, Random random, SimDaemon& daemon, Machine& machine,
               SimStore& store, Gpus& gpus, Millis duration)
    : timeline_(timeline),
      random_(random),
      daemon_(daemon),
      machine_(machine),
      store_(store),
      gpus_(gpus),
      duration_(duration) {}

void Faults::begin() {
  // Some worlds are peaceful, some are not; both find bugs that the other hides.
  constexpr std::array<std::uint64_t, 5> kCrashes = {0, 2, 5, 15, 40};
  constexpr std::array<std::uint64_t, 4> kStrikes = {0, 6, 20, 40};
  crash_permille_ = random_.pick(kCrashes);
  crashes_left_ = random_.between(1, 12);
  const auto duration = static_cast<std::uint64_t>(duration_.count());
  for (std::uint64_t i = random_.pick(kStrikes); i > 0; --i) {
    timeline_.after(random_.millis(1, duration), Of::world, [this] { strike(); });
  }
}

void Faults::between_moments() {
  if (over_ || crashes_left_ == 0 || !daemon_.up() || !random_.permille(crash_permille_)) {
    return;
  }
  --crashes_left_;
  if (random_.percent(30)) {
    machine_.kill_a_supervisor();
  }
  daemon_.crash(random_.skewed(5, 3'000));
}

void Faults::strike() {
  if (over_) {
    return;
  }
  const std::uint64_t dice = random_.below(100);
  if (dice < 30) {
    gpus_.stranger_comes();
  } else if (dice < 45) {
    machine_.kill_a_supervisor();
  } else if (dice < 55) {
    const auto by = Millis{static_cast<Millis::rep>(random_.below(7'200'000))};
    timeline_.jump_wall(random_.percent(50) ? by : -by);
  } else if (dice < 65) {
    gpus_.trouble(random_.percent(50));
  } else if (dice < 80) {
    store_.set_disk(random_.percent(50) ? SimStore::Disk::low : SimStore::Disk::full);
    timeline_.after(random_.skewed(200, 8'000), Of::world,
                    [this] { store_.set_disk(SimStore::Disk::roomy); });
  } else if (dice < 86) {
    machine_.fail_next_record();
  } else if (dice < 92) {
    store_.fail_next_commit();
  } else {
    daemon_.power_cut(random_.millis(500, 5'000));
  }
}

void Faults::end() {
  over_ = true;
  store_.set_disk(SimStore::Disk::roomy);
  gpus_.calm();
}

}  // namespace berth::sim
