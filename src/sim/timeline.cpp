#include "sim/timeline.hpp"

#include <algorithm>

namespace berth::sim {

void Timeline::after(Millis delay, Of of, std::function<void()> action) {
  actions_.emplace(std::pair{time_ + delay, ++sequence_},
                   Action{of == Of::daemon ? daemon_life_ : 0, std::move(action)});
}

bool Timeline::step() {
  while (!actions_.empty()) {
    const auto node = actions_.extract(actions_.begin());
    if (node.mapped().daemon_life != 0 && node.mapped().daemon_life != daemon_life_) {
      continue;
    }
    time_ = std::max(node.key().first, time_ + Millis{1});
    ++steps_;
    if (on_moment) {
      on_moment(now());
    }
    node.mapped().run();
    return true;
  }
  return false;
}

Now Timeline::now() {
  return {time_ - boot_, wall_offset_ + time_};
}

}  // namespace berth::sim
