#include "shim/supervisor.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "proc/control.hpp"
#include "shim/tree.hpp"

namespace berth::shim {
namespace {

/// After the last command, how long processes that are about to end by themselves may take before
/// they count as left over.
constexpr std::int64_t kSettleMillis = 100;
constexpr std::int64_t kKillPauseMaxMillis = 500;
/// What has not died of KILL by then is stuck in the kernel and gets named in the record.
constexpr std::int64_t kStuckMillis = 2'000;
/// How long it takes to look again for somebody who can be warned: at first, and at most.
constexpr std::int64_t kWarnAgainMillis = 200;
constexpr std::int64_t kWarnAgainMaxMillis = 2'000;
constexpr std::size_t kLogPathMax = 3000;
constexpr unsigned kNotesMax = 100;  // the record stays small however often somebody pauses

std::int64_t boot_now() {
  return now_ms(CLOCK_BOOTTIME);
}

/// Whether a daemon holds its lock, that is, will read the record as soon as we are gone.
bool daemon_listens(std::string_view path) {
  int fd = path.empty() ? -1 : ::open(path.data(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    return false;
  }
  struct flock lock{};
  lock.l_type = F_RDLCK;
  lock.l_whence = SEEK_SET;
  const bool held = ::fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
  close_fd(fd);
  return held;
}

}  // namespace

bool Supervisor::run() {
  if (!listen()) {
    return false;
  }
  began_ms_ = boot_now();
  if (spec_.time_limit_ms > 0) {
    set_limit(began_ms_ + static_cast<std::int64_t>(spec_.time_limit_ms));
  }
  cgroup_.make(spec_.cgroup_parent, spec_.attempt);
  const int log_error = spec_.user_log() ? 0 : relay_.open(spec_.log, spec_.log_limit);
  if (log_error != 0) {
    failure_.stage = Stage::log;
    failure_.error = log_error;
    std::memcpy(
        failure_.name, spec_.log.data(),
        spec_.log.size() < sizeof failure_.name ? spec_.log.size() : sizeof failure_.name - 1);
    commands_over_ = true;
  } else {
    start_next();
  }
  while (!(commands_over_ && childless_) || look_outside()) {
    wait_for_something();
    take_report();
    take_signals();
    relay_.pump();
    reap();
    take_deadlines();
  }
  relay_.finish();
  write_exit();
  return true;
}

bool Supervisor::listen() {
  sigset_t listened;
  ::sigemptyset(&listened);
  ::sigaddset(&listened, SIGCHLD);
  ::sigaddset(&listened, SIGTERM);
  ::sigaddset(&listened, control_signal());
  signals_ = ::signalfd(-1, &listened, SFD_CLOEXEC | SFD_NONBLOCK);
  timer_ = ::timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
  return signals_ >= 0 && timer_ >= 0;
}

void Supervisor::start_next() {
  leader_ = start_command(spec_, index_, relay_.write_end(), cgroup_.procs());
  // Read by the child; keeping a large environment in our own memory as well helps nobody.
  ::madvise(const_cast<char*>(spec_bytes_.data()), spec_bytes_.size(), MADV_DONTNEED);
  if (leader_.pid < 0) {
    failure_.stage = Stage::resources;
    failure_.error = errno;
    std::memcpy(failure_.name, "fork", 5);
    commands_over();
    return;
  }
  leader_ended_ = false;
  childless_ = false;
}

void Supervisor::take_report() {
  if (leader_.report < 0) {
    return;
  }
  for (;;) {
    StartFailure failure;
    const ssize_t got = ::read(leader_.report, &failure, sizeof failure);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
      return;
    }
    if (got != static_cast<ssize_t>(sizeof failure)) {
      break;
    }
    if (failure.stage != Stage::none) {
      failure_ = failure;
    } else if (index_ == 0) {
      log_from_ = failure.size;
    }
  }
  close_fd(leader_.report);
}

void Supervisor::take_signals() {
  signalfd_siginfo info;
  while (::read(signals_, &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    const auto number = static_cast<int>(info.ssi_signo);
    if (number == SIGTERM) {
      note_signal("term", info.ssi_uid);
      end_attempt(Cause::killed, static_cast<std::int64_t>(spec_.grace_ms));
    } else if (number == control_signal() && info.ssi_code == SI_QUEUE &&
               (info.ssi_uid == ::getuid() || info.ssi_uid == 0)) {
      take_control(static_cast<std::uint32_t>(info.ssi_int));
    }
  }
}

void Supervisor::take_control(std::uint32_t bits) {
  const ControlWord word = decode_control(bits);
  const std::int64_t grace = word.value == kOwnGrace
                                 ? static_cast<std::int64_t>(spec_.grace_ms)
                                 : static_cast<std::int64_t>(word.value) * kGraceUnitMillis;
  switch (word.kind) {
    case ControlKind::kill:
      note_signal("kill", grace);
      end_attempt(Cause::killed, grace);
      break;
    case ControlKind::warn:
      warn_and_end(grace);
      break;
    case ControlKind::pause:
      pause_all();
      break;
    case ControlKind::resume:
      resume_all();
      break;
    case ControlKind::forward:
      // To the command's process group, as a terminal would: a checkpoint signal is for the
      // command, not for daemons it has left behind.
      if (!leader_ended_ && word.value > 0 && word.value <= static_cast<unsigned>(SIGRTMAX)) {
        note_signal("forward", word.value);
        ::kill(-leader_.pid, static_cast<int>(word.value));
      }
      break;
  }
}

void Supervisor::warn() {
  if (warn_all(static_cast<int>(spec_.warn_signal))) {
    note_signal("warn", spec_.warn_signal);
    warned_ = true;
    warn_at_ms_ = 0;
    return;
  }
  // Who is still starting, or follows as the next command, may have a handler in a while.
  warn_pause_ms_ = warn_pause_ms_ == 0 ? kWarnAgainMillis : warn_pause_ms_ * 2;
  warn_pause_ms_ = warn_pause_ms_ > kWarnAgainMaxMillis ? kWarnAgainMaxMillis : warn_pause_ms_;
  warn_at_ms_ = boot_now() + warn_pause_ms_;
}

void Supervisor::warn_and_end(std::int64_t grace_ms) {
  const bool at_work = phase_ == Phase::running || phase_ == Phase::lingering;
  if (!at_work || spec_.warn_signal == 0) {
    note_signal("kill", grace_ms);
    end_attempt(Cause::killed, grace_ms);
    return;
  }
  if (end_at_ms_ > 0) {
    return;  // it knows
  }
  end_at_ms_ = boot_now() + static_cast<std::int64_t>(spec_.warn_before_ms);
  end_grace_ms_ = grace_ms;
  resume_all();  // what stands still cannot save anything
  warn();
}

void Supervisor::set_limit(std::int64_t at_ms) {
  limit_at_ms_ = at_ms;
  if (spec_.warn_signal > 0 && !warned_) {
    const std::int64_t at = at_ms - static_cast<std::int64_t>(spec_.warn_before_ms);
    warn_at_ms_ = at > 1 ? at : 1;
  }
}

void Supervisor::note_signal(std::string_view what, std::int64_t value) {
  if (++notes_ <= kNotesMax) {
    RecordLine line("SIGNAL");
    record_.append(
        line.text("what", what).number("value", value).number("wall", now_ms(CLOCK_REALTIME)));
  }
}

void Supervisor::pause_all() {
  if (paused_ || end_at_ms_ > 0 || phase_ == Phase::terming || phase_ == Phase::killing) {
    return;
  }
  stop_all();
  paused_ = true;
  note_signal("pause", 0);
  if (limit_at_ms_ > 0) {
    limit_left_ms_ = limit_at_ms_ - boot_now();
    limit_at_ms_ = 0;
    warn_at_ms_ = 0;
  }
}

void Supervisor::resume_all() {
  if (!paused_) {
    return;
  }
  continue_all();
  paused_ = false;
  note_signal("resume", 0);
  if (spec_.time_limit_ms > 0) {
    set_limit(boot_now() + (limit_left_ms_ > 1 ? limit_left_ms_ : 1));
  }
  if (next_waits_) {
    next_waits_ = false;
    ++index_;
    start_next();
  }
}

void Supervisor::reap() {
  for (;;) {
    int status = 0;
    rusage usage{};
    const pid_t pid = ::wait4(-1, &status, WNOHANG | __WALL, &usage);
    if (pid <= 0) {
      childless_ = pid < 0 && errno == ECHILD;
      break;
    }
    // Each child brings the times of the descendants it has waited for itself.
    user_us_ += usage.ru_utime.tv_sec * 1'000'000 + usage.ru_utime.tv_usec;
    system_us_ += usage.ru_stime.tv_sec * 1'000'000 + usage.ru_stime.tv_usec;
    max_rss_kib_ = usage.ru_maxrss > max_rss_kib_ ? usage.ru_maxrss : max_rss_kib_;
    if (pid == leader_.pid && !leader_ended_) {
      leader_ended_ = true;
      status_ = status;
    }
  }
  if (leader_ended_ && !commands_over_ && !next_waits_) {
    command_ended();
  }
}

void Supervisor::command_ended() {
  take_report();
  const bool success =
      failure_.stage == Stage::none && WIFEXITED(status_) && WEXITSTATUS(status_) == 0;
  if (failure_.stage == Stage::none) {
    RecordLine line("COMMAND");
    line.number("index", index_);
    WIFSIGNALED(status_) ? line.number("signal", WTERMSIG(status_))
                         : line.number("code", WEXITSTATUS(status_));
    record_.append(line);
  }
  if (success && end_at_ms_ > 0 && index_ + 1 < spec_.command_count) {
    cause_ = Cause::killed;  // it has ended in time, but not all of it has run
  }
  if (success && cause_ == Cause::none && index_ + 1 < spec_.command_count) {
    // What had already ended when it was to be stopped must not be followed by more.
    if (paused_) {
      next_waits_ = true;
      return;
    }
    ++index_;
    start_next();
    return;
  }
  commands_over();
}

void Supervisor::commands_over() {
  commands_over_ = true;
  oom_kills_ = cgroup_.oom_kills();
  if (childless_ || phase_ != Phase::running) {
    return;
  }
  // What has failed will come to nothing: whoever tries it again finds nobody in the way.
  if (spec_.linger() && outcome() == "ok") {
    phase_ = Phase::lingering;
    return;
  }
  phase_ = Phase::settling;
  phase_at_ms_ = boot_now() + kSettleMillis;
}

bool Supervisor::look_outside() {
  const bool at_work = phase_ == Phase::running || phase_ == Phase::lingering;
  if (looked_outside_ || !at_work || outcome() != "ok" || !outside_.watch(spec_)) {
    return false;
  }
  looked_outside_ = true;
  Tree::outside = &outside_;
  phase_ = Phase::lingering;
  childless_ = false;
  return true;
}

void Supervisor::end_attempt(Cause cause, std::int64_t grace_ms) {
  const std::int64_t kill_at = boot_now() + grace_ms;
  if (phase_ == Phase::killing) {
    return;
  }
  if (phase_ == Phase::terming) {  // asked again: only ever sooner
    phase_at_ms_ = kill_at < phase_at_ms_ ? kill_at : phase_at_ms_;
    return;
  }
  // Once the commands have ended by themselves their result stands, whoever is impatient now;
  // a lingering job is still at work.
  if (phase_ != Phase::settling) {
    cause_ = cause;
  }
  phase_ = Phase::terming;
  phase_at_ms_ = kill_at;
  end_at_ms_ = 0;
  warn_at_ms_ = 0;
  paused_ = false;
  if (next_waits_) {
    next_waits_ = false;
    commands_over();
  }
  terminate_all();
}

void Supervisor::take_deadlines() {
  const std::int64_t now = boot_now();
  const bool at_work = phase_ == Phase::running || phase_ == Phase::lingering;
  if (warn_at_ms_ > 0 && now >= warn_at_ms_) {
    warn_at_ms_ = 0;
    if (at_work) {
      warn();
    }
  }
  if (end_at_ms_ > 0 && now >= end_at_ms_) {
    note_signal("kill", end_grace_ms_);
    end_attempt(Cause::killed, end_grace_ms_);
  }
  if (limit_at_ms_ > 0 && now >= limit_at_ms_) {
    limit_at_ms_ = 0;
    if (phase_ == Phase::running || phase_ == Phase::lingering) {
      note_signal("timeout", static_cast<std::int64_t>(spec_.time_limit_ms));
      end_attempt(Cause::timeout, static_cast<std::int64_t>(spec_.grace_ms));
    }
  }
  if (phase_at_ms_ == 0 || now < phase_at_ms_ || (commands_over_ && childless_)) {
    return;
  }
  if (phase_ == Phase::settling) {
    Tree tree;
    tree.scan();
    leftover_ = tree.alive();
    tree.names(leftover_names_);
    end_attempt(Cause::none, static_cast<std::int64_t>(spec_.grace_ms));
  } else if (phase_ == Phase::terming || phase_ == Phase::killing) {
    kill_round();
  }
}

void Supervisor::kill_round() {
  if (phase_ == Phase::terming) {
    phase_ = Phase::killing;
    killing_since_ms_ = boot_now();
  }
  cgroup_.kill();
  kill_all();
  // Busy at first, against whoever forks faster; then patient, for whoever is stuck in the kernel.
  kill_pause_ms_ = kill_pause_ms_ == 0 ? 1 : kill_pause_ms_ * 2;
  kill_pause_ms_ = kill_pause_ms_ > kKillPauseMaxMillis ? kKillPauseMaxMillis : kill_pause_ms_;
  const std::int64_t now = boot_now();
  phase_at_ms_ = now + kill_pause_ms_;
  if (!ending_noted_ && now - killing_since_ms_ > kStuckMillis) {
    ending_noted_ = true;
    Tree tree;
    tree.scan();
    Text names;
    tree.names(names);
    RecordLine line("ENDING");
    record_.append(line.text("names", names.view()));
  }
}

void Supervisor::wait_for_something() {
  std::int64_t at = phase_at_ms_;
  for (const std::int64_t deadline : {limit_at_ms_, warn_at_ms_, end_at_ms_}) {
    if (deadline > 0 && (at == 0 || deadline < at)) {
      at = deadline;
    }
  }
  // The boot-time clock goes on while the machine sleeps; a timeout of poll does not.
  itimerspec when{};
  when.it_value.tv_sec = at / 1000;
  when.it_value.tv_nsec = at % 1000 * 1'000'000;
  ::timerfd_settime(timer_, TFD_TIMER_ABSTIME, &when, nullptr);
  pollfd waits[] = {{signals_, POLLIN, 0},
                    {timer_, POLLIN, 0},
                    {relay_.read_end(), POLLIN, 0},
                    {leader_.report, POLLIN, 0}};
  ::poll(waits, 4, -1);
}

std::string_view Supervisor::outcome() {
  if (cause_ == Cause::killed) {
    return "killed";
  }
  if (cause_ == Cause::timeout) {
    return "timeout";
  }
  if (failure_.stage != Stage::none) {
    return "cannot_start";
  }
  if (WIFSIGNALED(status_)) {
    return WTERMSIG(status_) == SIGKILL && oom_kills_ > 0 ? "host_oom" : "signal";
  }
  return WEXITSTATUS(status_) == 0 ? "ok" : "exit";
}

void Supervisor::write_exit() {
  std::uint64_t peak = 0;
  const bool peak_known = cgroup_.peak(peak);
  cgroup_.remove();

  RecordLine line("EXIT");
  line.text("why", outcome()).number("index", index_);
  if (failure_.stage != Stage::none) {
    line.text("stage", to_string(failure_.stage)).number("errno", failure_.error);
    line.text("name", failure_.name);
    line.number("size", static_cast<std::int64_t>(failure_.size));
    line.number("largest", static_cast<std::int64_t>(failure_.largest));
  } else if (WIFSIGNALED(status_)) {
    line.number("signal", WTERMSIG(status_));
  } else {
    line.number("code", WEXITSTATUS(status_));
  }
  line.number("utime", user_us_ / 1000).number("stime", system_us_ / 1000);
  line.number("maxrss", max_rss_kib_);
  if (peak_known) {
    line.number("peak", static_cast<std::int64_t>(peak));
  }
  if (leftover_ > 0) {
    line.number("leftover", static_cast<std::int64_t>(leftover_));
    line.text("names", leftover_names_.view(), 200);
  }
  if (relay_.lost() > 0) {
    line.number("lost", static_cast<std::int64_t>(relay_.lost()));
  }
  if (relay_.cut() > 0) {
    line.number("cut", static_cast<std::int64_t>(relay_.cut()));
  }
  line.number("limit", static_cast<std::int64_t>(spec_.time_limit_ms));
  line.number("elapsed", boot_now() - began_ms_).number("wall", now_ms(CLOCK_REALTIME));
  if (outcome() != "ok") {
    // Last: a path that is too long for the line is of no use, and takes nothing from the rest.
    line.number("logfrom", static_cast<std::int64_t>(log_from_))
        .text("log", spec_.log, kLogPathMax);
  }
  failpoint("shim_before_exit_record");
  record_.append_surely(line);
  // With a daemon at work its commit is the durable point; a sync per job would only slow it down.
  if (!daemon_listens(spec_.daemon_lock)) {
    record_.sync();
  }
  failpoint("shim_after_exit_record");
}

}  // namespace berth::shim
