#pragma once
// One attempt, from its first command to the end of its last process.

#include <sys/types.h>

#include <cstdint>

#include "proc/launch_spec_view.hpp"
#include "shim/attempt_cgroup.hpp"
#include "shim/log_relay.hpp"
#include "shim/outside.hpp"
#include "shim/payload.hpp"
#include "shim/sys.hpp"

struct rusage;

namespace berth::shim {

/// A loop over signals, one timer, the output pipe and the newborn's report. It waits for nothing
/// else, so it can be told to kill at any time.
class Supervisor {
 public:
  Supervisor(const LaunchSpecView& spec, std::string_view spec_bytes, RecordWriter& record)
      : spec_(spec), spec_bytes_(spec_bytes), record_(record) {}

  /// Runs the attempt and appends EXIT. False when it could not even begin to listen.
  bool run();

 private:
  /// running: commands are to run. settling: the last has ended, others may be about to.
  /// lingering: the job waits for what it left behind or named. terming, killing: on the way out.
  enum class Phase { running, settling, lingering, terming, killing };
  enum class Cause { none, killed, timeout };

  bool listen();
  void start_next();
  void take_report();
  void take_signals();
  void take_control(std::uint32_t bits);
  void take_deadlines();
  void reap();
  void command_ended();
  void commands_over();
  /// Nothing of ours is left; somebody whom the attempt has named may be. False: nobody is looked
  /// for.
  bool look_outside();
  void end_attempt(Cause cause, std::int64_t grace_ms);
  /// Lets it know that its end is near, and ends it when it has had its time.
  void warn_and_end(std::int64_t grace_ms);
  /// Tells those who have a handler; as long as nobody has, looks again later.
  void warn();
  void set_limit(std::int64_t at_ms);
  void kill_round();
  void pause_all();
  void resume_all();
  void note_signal(std::string_view what, std::int64_t value);
  void wait_for_something();
  void write_exit();
  [[nodiscard]] std::string_view outcome();

  const LaunchSpecView& spec_;
  std::string_view spec_bytes_;
  RecordWriter& record_;
  AttemptCgroup cgroup_;
  LogRelay relay_;
  Outside outside_;
  StartFailure failure_;

  int signals_ = -1;
  int timer_ = -1;
  Child leader_;
  std::uint32_t index_ = 0;
  int status_ = 0;            ///< of the leader, once it has ended
  bool leader_ended_ = true;  ///< no command is running
  bool commands_over_ = false;
  bool childless_ = true;
  bool looked_outside_ = false;
  bool paused_ = false;
  bool next_waits_ = false;  ///< a command ended well while paused: the next one starts later

  Phase phase_ = Phase::running;
  Cause cause_ = Cause::none;
  std::int64_t began_ms_ = 0;
  std::int64_t limit_at_ms_ = 0;  ///< 0: none
  std::int64_t limit_left_ms_ = 0;
  std::int64_t warn_at_ms_ = 0;  ///< 0: never, or done
  std::int64_t warn_pause_ms_ = 0;
  bool warned_ = false;         ///< somebody has heard that the end is near
  std::int64_t end_at_ms_ = 0;  ///< when it is to be killed, having been warned; 0: it is not
  std::int64_t end_grace_ms_ = 0;
  std::uint64_t log_from_ = 0;
  std::int64_t phase_at_ms_ = 0;  ///< when the phase has to move on; 0: never
  std::int64_t kill_pause_ms_ = 0;
  std::int64_t killing_since_ms_ = 0;
  bool ending_noted_ = false;
  unsigned notes_ = 0;

  std::int64_t user_us_ = 0;
  std::int64_t system_us_ = 0;
  std::int64_t max_rss_kib_ = 0;
  std::uint64_t oom_kills_ = 0;
  std::size_t leftover_ = 0;
  Text leftover_names_;
};

}  // namespace berth::shim
