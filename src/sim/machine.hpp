#pragma once
// The machine that attempts run on: record files, their locks, supervisors and the commands below
// them. Follows the start handshake to the letter; what it cannot know it does not tell.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/effect.hpp"
#include "core/event.hpp"
#include "sim/observer.hpp"
#include "sim/plant.hpp"
#include "sim/random.hpp"
#include "sim/timeline.hpp"

namespace berth::sim {

class Machine {
 public:
  /// What an attempt's processes hold on one card at this moment.
  struct Use {
    AttemptId attempt;
    std::string gpu;
    Bytes memory = 0;
    std::uint32_t utilization = 0;
  };

  Machine(Timeline& timeline, Random random, Observer& observer, Plant plant);

  /// How the daemon that is up learns of things.
  std::function<void(Event)> tell_daemon;

  /// Makes the record file of an attempt and locks it.
  [[nodiscard]] Status prepare(AttemptId attempt);
  /// Spawns the supervisor. The lock goes over to it.
  void spawn(const effect::Start& start, std::shared_ptr<const JobSpec> spec);
  void kill(AttemptId attempt, std::optional<Millis> grace);
  void pause(AttemptId attempt);
  void resume(AttemptId attempt);
  void forget(AttemptId attempt);

  /// What a new daemon does with the attempts it finds open: adopts those whose record is still
  /// locked, and tells what became of the others. From here on it is told of exits.
  void recover(const Snapshot& snapshot);
  void daemon_died();
  /// Everything dies, and what was not synced may be gone.
  void power_cut();
  /// Kills one supervisor, if there is any; its command lives on.
  bool kill_a_supervisor();
  /// The next record cannot be made.
  void fail_next_record() { fail_next_record_ = true; }

  [[nodiscard]] const std::string& boot_id() const { return boot_id_; }
  [[nodiscard]] bool quiet() const;
  /// How often the planted bug has really struck.
  [[nodiscard]] std::uint64_t struck() const { return struck_; }
  [[nodiscard]] std::vector<Use> gpu_use(const std::map<std::string, Bytes>& totals);

 private:
  struct Record {
    bool started = false;
    bool revoked = false;
    bool synced = false;
    std::optional<Verdict> exit;
  };
  struct Run {
    AttemptId attempt;
    JobId job;
    std::shared_ptr<const JobSpec> spec;
    std::vector<std::string> gpus;
    bool supervised = true;  ///< its supervisor lives, and holds the lock
    bool started = false;
    bool running = false;
    std::optional<Millis> kill_grace;  ///< asked to end
    bool dying = false;
    bool paused = false;
    Verdict verdict;          ///< how it will end by itself
    Millis end_at{0};         ///< and when, while it is not paused
    Millis left{0};           ///< how long it has to go, while it is
    std::uint64_t plans = 0;  ///< an earlier plan of its end is void
    Millis since{0};
    Millis over{0};
    Millis shown_after_end{0};  ///< the driver is slow to notice
    Millis ramp{1};
    std::uint32_t share = 100;  ///< percent of what it may use
    std::uint32_t utilization = 0;
  };
  using Key = std::pair<AttemptId, int>;  ///< a planted second run of an attempt has its own

  void begin(Key key);
  void end(Key key, Verdict verdict);
  void end_after(Key key, Millis runtime);
  void ask_to_end(Key key, Millis grace);
  [[nodiscard]] Verdict plan(const Run& run, Millis& runtime);
  /// The lock is free: what the record says is all that will ever be known.
  void settle(AttemptId attempt, const std::string& boot_id);
  void settle_soon(AttemptId attempt);
  [[nodiscard]] bool locked(AttemptId attempt) const;

  Timeline& timeline_;
  Random random_;
  Observer& observer_;
  Plant plant_;
  std::map<AttemptId, Record> records_;
  std::map<Key, Run> runs_;
  std::map<AttemptId, Millis> early_kills_;  ///< for supervisors that are not there yet
  std::set<AttemptId> early_pauses_;
  std::string boot_id_ = "boot-1";
  std::uint64_t boots_ = 1;
  std::set<AttemptId> lost_;  ///< planted: nobody will ever hear of their end
  std::uint64_t struck_ = 0;
  bool listening_ = false;
  bool fail_next_record_ = false;
};

}  // namespace berth::sim
