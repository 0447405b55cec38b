#pragma once
// Virtual time: what will happen, in order of (time, sequence). Nothing ever sleeps.

#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include "base/time.hpp"
#include "engine/ports.hpp"

namespace berth::sim {

class Timeline final : public Clock {
 public:
  /// Whose doing an action is: what the daemon had in mind dies with it, the world goes on.
  enum class Of : std::uint8_t { world, daemon };

  void after(Millis delay, Of of, std::function<void()> action);

  /// Moves to the next action and performs it; false if there is none. No two actions happen at
  /// the same millisecond, so a time names a moment.
  bool step();

  /// Called at each new moment, before its action.
  std::function<void(Now)> on_moment;

  [[nodiscard]] Now now() override;
  /// Since the simulation began, over all reboots.
  [[nodiscard]] Millis elapsed() const { return time_; }
  [[nodiscard]] std::uint64_t steps() const { return steps_; }

  void daemon_died() { ++daemon_life_; }
  /// The monotonic clock counts from zero again.
  void rebooted() { boot_ = time_; }
  void jump_wall(Millis by) { wall_offset_ += by; }

 private:
  struct Action {
    std::uint64_t daemon_life = 0;  ///< 0: the world's
    std::function<void()> run;
  };

  std::map<std::pair<Millis, std::uint64_t>, Action> actions_;
  Millis time_{0};
  Millis boot_{-100'000};
  Millis wall_offset_{1'700'000'000'000};
  std::uint64_t sequence_ = 0;
  std::uint64_t steps_ = 0;
  std::uint64_t daemon_life_ = 1;
};

}  // namespace berth::sim
