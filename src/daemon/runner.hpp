#pragma once
// Carries out what the engine decided: starts supervisors, listens for their end, passes on orders.

#include <functional>
#include <optional>
#include <string>
#include <unordered_map>

#include "core/effect.hpp"
#include "core/event.hpp"
#include "daemon/attempt_env.hpp"
#include "daemon/log_evidence.hpp"
#include "daemon/loop.hpp"
#include "daemon/ports.hpp"
#include "daemon/worker.hpp"
#include "engine/ports.hpp"
#include "gpu/cpu_affinity.hpp"
#include "proc/launcher.hpp"

namespace berth {

class Runner : public EffectSink {
 public:
  struct Hooks {
    std::function<void(Event)> emit;
    std::function<void()> sample;
    /// Asks whether an attempt may have its GPUs, and answers later on the loop with why not;
    /// empty: nobody has to be asked. Called on the loop's thread.
    std::function<void(const effect::Start&, std::function<void(std::optional<std::string>)>)>
        admit;
    std::function<void(Millis at)> wake;  ///< by the monotonic clock
    /// What the attempt is to run. Called on the spawning thread.
    std::function<Result<Payload>(JobId)> payload;
    /// uni_id.json of a batch; empty: it has none. Called on the spawning thread. May be missing.
    std::function<std::string(BatchId)> state_file;
    /// What a log that berth names may grow to. Called on the loop's thread.
    std::function<Bytes()> log_limit;
    /// PCI bus ids of cards, for finding the processors next to them. Called on the loop's thread.
    std::function<std::vector<std::string>(const std::vector<std::string>& uuids)> bus_ids;
    /// Where an open attempt may have spoken of itself, its log apart; answers on the loop.
    std::function<void(AttemptId, std::function<void(EvidencePlaces)>)> papers;
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
  void spawn(const effect::Start& start);
  /// It was committed but must not start; nothing of it has run.
  void give_up(AttemptId attempt, const std::string& why);
  void started(AttemptId attempt, Result<Shim> shim);
  void watch(AttemptId attempt, Shim shim);
  void ended(AttemptId attempt);
  /// Asks `find` on a thread where it may take its time, and acts on what it found.
  void find_out(AttemptId attempt, std::function<Recovery()> find);
  void settle(AttemptId attempt, Recovery found, const std::function<Recovery()>& find);
  /// Its command has not run and never will under this id.
  void revoked(AttemptId attempt);
  /// Tells of the end of an attempt, with what it said of that itself.
  void exited(AttemptId attempt, Verdict verdict);
  void look_at_papers(AttemptId attempt, Verdict verdict, EvidencePlaces papers);
  void kill(const effect::Kill& kill);
  void order(AttemptId attempt, const Control& control);
  [[nodiscard]] Result<LaunchSpec> launch_spec(const effect::Start& start, Payload payload,
                                               Bytes log_limit);

  Loop& loop_;
  Launcher& launcher_;
  InstanceFacts facts_;
  std::string daemon_lock_;
  std::string cgroup_parent_;
  Hooks hooks_;
  std::unordered_map<AttemptId, Running> running_;
  std::unordered_map<std::uint32_t, AttemptId> by_pid_;
  Millis unborn_pause_{0};  ///< grows while one supervisor after the other dies before it begins
  LogEvidence evidence_;
  Ports ports_;
  // Last: they end first, while what their tasks use is still there.
  CpuAffinity affinity_;  ///< for the spawning thread alone
  Worker spawner_;
  Worker finder_;  ///< looks for survivors: what will not die must not keep others from starting
};

}  // namespace berth
