#pragma once
// Carries out what the engine decided: starts supervisors, listens for their end, passes on orders.

#include <functional>
#include <optional>
#include <string>
#include <unordered_map>

#include "core/effect.hpp"
#include "core/event.hpp"
#include "daemon/attempt_env.hpp"
#include "daemon/loop.hpp"
#include "daemon/worker.hpp"
#include "engine/ports.hpp"
#include "proc/launcher.hpp"

namespace berth {

class Runner : public EffectSink {
 public:
  struct Hooks {
    std::function<void(Event)> emit;
    std::function<void()> sample;
    /// What the attempt is to run. Called on the spawning thread.
    std::function<Result<Payload>(JobId)> payload;
    /// What a log that berth names may grow to. Called on the loop's thread.
    std::function<Bytes()> log_limit;
    std::function<void(std::string_view what, AttemptId attempt, const std::string& detail)> log;
  };

  Runner(Loop& loop, Launcher& launcher, InstanceFacts facts, std::string daemon_lock,
         std::string cgroup_parent, Hooks hooks);

  void run(const Effect& effect) override;

  /// Finds out what became of the attempts that were open when the last daemon ended.
  void recover(const std::vector<std::pair<AttemptId, bool>>& open_and_same_boot);
  [[nodiscard]] AttemptId attempt_of_shim(std::uint32_t pid) const;

 private:
  struct Running {
    std::optional<Shim> shim;
    // Asked for before the supervisor was there.
    std::optional<effect::Kill> kill;
    std::optional<Control> order;  ///< to pause or to go on, whichever came last
    bool spawned = false;          ///< by this daemon
    Loop::Handle watch;
  };

  void start(const effect::Start& start);
  void started(AttemptId attempt, Result<Shim> shim);
  void watch(AttemptId attempt, Shim shim);
  void ended(AttemptId attempt);
  /// Asks `find` on a thread where it may take its time, and acts on what it found.
  void find_out(AttemptId attempt, std::function<Recovery()> find);
  void settle(AttemptId attempt, Recovery found, const std::function<Recovery()>& find);
  /// Its command has not run and never will under this id.
  void revoked(AttemptId attempt);
  void kill(const effect::Kill& kill);
  void order(AttemptId attempt, const Control& control);
  [[nodiscard]] LaunchSpec launch_spec(const effect::Start& start, Payload payload,
                                       Bytes log_limit) const;

  Loop& loop_;
  Launcher& launcher_;
  InstanceFacts facts_;
  std::string daemon_lock_;
  std::string cgroup_parent_;
  Hooks hooks_;
  std::unordered_map<AttemptId, Running> running_;
  std::unordered_map<std::uint32_t, AttemptId> by_pid_;
  Millis unborn_pause_{0};  ///< grows while one supervisor after the other dies before it begins
  // Last: they end first, while what their tasks use is still there.
  Worker spawner_;
  Worker finder_;  ///< looks for survivors: what will not die must not keep others from starting
};

}  // namespace berth
