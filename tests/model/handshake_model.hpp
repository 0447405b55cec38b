#pragma once
// The start handshake as a finite machine: one acknowledged job, a daemon, supervisors, their
// payloads, a store and record files; any of them may crash between any two steps, and the power
// may go. Everything reachable is enumerated, so what holds here holds in every interleaving.
//
// A step of the model is one system call or one commit of the real code; names follow
// src/proc/launcher.cpp and src/shim/main.cpp.

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace berth::model {

/// The guards of the handshake. Taking any one away must lead to a violation.
struct Guards {
  bool record_before_commit = true;  ///< the record exists, locked, before the attempt is durable
  bool commit_before_spawn = true;   ///< the attempt is durable before its supervisor is born
  bool lock_inherited = true;        ///< the supervisor holds the lock from before its birth
  bool start_before_run = true;      ///< START is written before the command can run
  bool recovery_takes_lock = true;   ///< "empty" counts only with the lock won
  bool missing_is_lost = true;       ///< a missing file is not evidence of "not started"
  bool boot_is_checked = true;       ///< what another boot left empty is not "not started"
  bool survivors_are_ended = true;   ///< before an attempt is called lost
  bool child_keeps_lock = true;      ///< until exec makes the payload visible to recovery
  bool commit_before_forget = true;  ///< the record goes only when the end is durable
};

enum class Content : std::uint8_t { empty, start, start_exit, revoked, mixed };
enum class Db : std::uint8_t { none, starting, revoked, ended, lost };
enum class ShimStep : std::uint8_t {
  none,
  born,
  checked,
  started,
  launched,
  ended,
  recorded,
  gone
};
enum class ChildStep : std::uint8_t { none, before_exec, alive, dead };

struct Attempt {
  Db db = Db::none;
  bool same_boot = true;
  bool file = false;
  bool file_durable = false;
  Content content = Content::empty;
  bool lock_daemon = false;
  bool lock_shim = false;
  bool lock_child = false;
  ShimStep shim = ShimStep::none;
  ChildStep child = ChildStep::none;
  // What nobody in the model can see, for the checks:
  std::uint8_t runs = 0;
  bool exit_written = false;
  bool shim_crashed = false;
  bool power_lost = false;

  [[nodiscard]] bool shim_alive() const { return shim != ShimStep::none && shim != ShimStep::gone; }
  [[nodiscard]] bool locked() const { return lock_daemon || lock_shim || lock_child; }
};

enum class DaemonStep : std::uint8_t {
  dead,
  recover,
  settle,
  append_revoked,
  end_survivors,
  commit_end,
  forget,
  idle,
  prepare,
  commit_start,
  spawn,
  close_record,
  watch
};

inline constexpr std::size_t kAttemptsMax = 3;

struct State {
  std::array<Attempt, kAttemptsMax> attempts{};
  DaemonStep daemon = DaemonStep::idle;
  std::uint8_t current = 0;       ///< the attempt the daemon is busy with
  std::uint8_t next = 0;          ///< the id it would issue next, in memory
  Db outcome = Db::none;          ///< what it is about to commit
  std::uint8_t job_queued = 1;    ///< durable: 1 queued, 0 otherwise
  std::uint8_t job_terminal = 0;  ///< durable

  friend bool operator==(const State& a, const State& b) { return a.key() == b.key(); }
  [[nodiscard]] std::string key() const;
};

struct Step {
  std::string name;
  bool crash = false;  ///< a failure rather than progress
  State next;
};

/// Every step possible in a state.
[[nodiscard]] std::vector<Step> steps(const State& state, const Guards& guards);

/// What is wrong with getting here; empty: nothing.
[[nodiscard]] std::string violation(const State& before, const Step& step);

struct Exploration {
  std::size_t states = 0;
  std::size_t transitions = 0;
  std::string violation;           ///< of the first that was found; empty: none
  std::vector<std::string> trace;  ///< the shortest way to it
};

/// Visits everything reachable, breadth first; afterwards checks that from every state the job
/// still gets to an end when nothing more fails.
[[nodiscard]] Exploration explore(const Guards& guards);

}  // namespace berth::model
