#pragma once
// Starting supervisors so that an attempt runs at most once, and finding out afterwards, after
// whatever crash, how it went.
//
// The record file of an attempt is its identity on this machine. It is created and locked before
// the attempt is committed, and the lock travels with the open file into the supervisor; so "lock
// free and record empty" proves that nothing ran, and nothing else proves it.

#include <sys/types.h>

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/fd.hpp"
#include "base/ids.hpp"
#include "base/result.hpp"
#include "core/job.hpp"
#include "proc/launch_spec.hpp"
#include "proc/record.hpp"
#include "proc/survivors.hpp"

namespace berth {

/// A supervisor. The descriptor becomes readable when it has ended.
struct Shim {
  Fd pidfd;
  pid_t pid = 0;
};

namespace control {
/// TERM to everything, grace, KILL. Repeated with a shorter grace, it is shortened.
struct Kill {
  std::optional<Millis> grace;  ///< none: the job's own
};
/// The job's warning signal and the time it has asked for first. Without one: as Kill.
struct Warn {
  std::optional<Millis> grace;
};
struct Pause {};
struct Resume {};
/// To the process group of the running command.
struct Forward {
  int signal = 0;
};
}  // namespace control
using Control =
    std::variant<control::Kill, control::Warn, control::Pause, control::Resume, control::Forward>;

/// What became of an attempt.
namespace recovery {
/// Its supervisor lives.
struct Adopted {
  Shim shim;
};
/// Its supervisor is being born and has not written START; ask again shortly.
struct Starting {};
/// Its supervisor is gone, but something of it is not: ask again. `what` names it for people.
struct Ending {
  std::string what;
};
/// Its command never ran and never will.
struct Revoked {};
/// It ended, and this is how.
struct Ended {
  Verdict verdict;
};
/// It may have run; how it went, nobody knows. Nothing of it is left.
struct Lost {
  Verdict verdict;
};
}  // namespace recovery
using Recovery = std::variant<recovery::Adopted, recovery::Starting, recovery::Ending,
                              recovery::Revoked, recovery::Ended, recovery::Lost>;

struct LauncherConfig {
  std::string state_dir;
  std::string shim;           ///< path of berth-shim; opened once
  std::string instance;       ///< first half of the marker; distinct per state directory
  std::string cgroup_parent;  ///< of find_cgroup_parent(); empty: none
  std::vector<std::string> shim_environment;  ///< of the supervisor itself, for tests
};

/// Thread-safe. In the daemon prepare() runs on the commit thread, spawn() on a spawner, the rest
/// on the loop. collect() and inspect() end survivors, for which they take up to
/// `kSurvivorPatience`.
class Launcher {
 public:
  static constexpr Millis kSurvivorPatience{1'000};

  /// Makes `<state>/attempts`, opens the supervisor's binary (replacing it on disk later changes
  /// nothing), and looks up which supervisors of earlier daemons still live.
  [[nodiscard]] static Result<std::unique_ptr<Launcher>> open(LauncherConfig config);

  /// Creates and locks the record, with room reserved for START and EXIT. Comes before the commit.
  [[nodiscard]] Status prepare(AttemptId attempt);

  /// Starts the supervisor of a prepared, committed attempt, without copying this process. After an
  /// error the attempt is still prepared: spawn again or discard.
  [[nodiscard]] Result<Shim> spawn(const LaunchSpec& spec);

  /// A prepared attempt will not be spawned: REVOKED, and the record is gone.
  void discard(AttemptId attempt);

  /// `not_found` when the supervisor is gone.
  [[nodiscard]] Status control(const Shim& shim, const Control& control);

  /// After `shim.pidfd` became readable: reaps it, and says how the attempt went. Never Adopted or
  /// Starting; after Ending, call again.
  [[nodiscard]] Recovery collect(AttemptId attempt, const Shim& shim);

  /// For each attempt that the store says is open when a daemon starts.
  [[nodiscard]] Recovery inspect(AttemptId attempt, bool same_boot);

  /// What the supervisor has written so far.
  [[nodiscard]] Record read(AttemptId attempt) const;

  /// Of its supervisor, which lives as long as the attempt; still known of the last ones that have
  /// ended. None: it has not started, or ended long ago. From any thread.
  [[nodiscard]] std::optional<pid_t> pid(AttemptId attempt);

  /// The end of the attempt is durable: removes the record.
  void forget(AttemptId attempt);

  /// The attempts that have a record on disk, ascending. Those that the store has never heard of
  /// were prepared but not committed, hence never spawned: forget them, and issue no id that is not
  /// above all of them.
  [[nodiscard]] std::vector<AttemptId> leftovers() const;

 private:
  explicit Launcher(LauncherConfig config) : config_(std::move(config)) {}

  [[nodiscard]] std::string record_path(AttemptId attempt) const;
  [[nodiscard]] std::string attempt_cgroup(AttemptId attempt) const;
  [[nodiscard]] Recovery settle(AttemptId attempt, const Fd& locked, pid_t session);
  [[nodiscard]] Recovery lose(AttemptId attempt, pid_t session, std::string why);
  void remember(AttemptId attempt, ProcessIdentity shim);
  void forget_shim(AttemptId attempt);
  [[nodiscard]] std::vector<ProcessIdentity> other_shims(AttemptId attempt);

  LauncherConfig config_;
  Fd shim_;
  std::mutex mutex_;  ///< guards the maps
  std::map<AttemptId, Fd> prepared_;
  std::map<AttemptId, ProcessIdentity> shims_;
  std::map<AttemptId, pid_t> ended_;  ///< of the last supervisors that have ended
};

}  // namespace berth
