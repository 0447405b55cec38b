#include "proc/launcher.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <thread>

#include "base/assert.hpp"
#include "proc/control.hpp"
#include "proc/launch_spec_view.hpp"
#include "proc/procfs.hpp"
#include "proc/record_line.hpp"

namespace berth {
namespace {

constexpr std::string_view kRecordSuffix = ".rec";
constexpr std::size_t kEndedKept = 4'096;
/// START, the commands of an ordinary job and the longest EXIT fit; so a disk that fills up while
/// an attempt runs cannot swallow its verdict.
constexpr off_t kRecordReserve = 8192;

bool append_revoked(const Fd& record, std::string_view why) {
  RecordLine line("REVOKED");
  line.text("why", why).number("wall", read_clock().wall.count());
  const std::string_view text = line.finish();
  return ::write(record.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

std::string read_all(const Fd& fd) {
  std::string text;
  char buffer[4096];
  for (;;) {
    const ssize_t got = ::pread(fd.get(), buffer, sizeof buffer, static_cast<off_t>(text.size()));
    if (got > 0) {
      text.append(buffer, static_cast<std::size_t>(got));
    } else if (got == 0 || errno != EINTR) {
      return text;
    }
  }
}

Result<Fd> spec_in_memory(const LaunchSpec& spec) {
  TRY_ASSIGN(const std::string bytes, encode_launch_spec(spec));
  Fd fd(::memfd_create("berth-launch", MFD_CLOEXEC));
  if (!fd) {
    return fail_errno("cannot make a launch spec", errno);
  }
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t written = ::write(fd.get(), bytes.data() + done, bytes.size() - done);
    if (written < 0 && errno != EINTR) {
      return fail_errno("cannot write a launch spec", errno);
    }
    done += static_cast<std::size_t>(std::max<ssize_t>(written, 0));
  }
  return fd;
}

/// posix_spawn's attributes and actions with their clean-up.
class SpawnPlan {
 public:
  SpawnPlan() {
    ::posix_spawn_file_actions_init(&actions_);
    ::posix_spawnattr_init(&attributes_);
    // Born with every signal blocked: a command that arrives before it listens waits in the queue
    // instead of ending it.
    sigset_t all;
    ::sigfillset(&all);
    ::posix_spawnattr_setsigmask(&attributes_, &all);
    ::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK);
    ::posix_spawn_file_actions_addopen(&actions_, 0, "/dev/null", O_RDWR, 0);
    ::posix_spawn_file_actions_adddup2(&actions_, 0, 1);
    ::posix_spawn_file_actions_adddup2(&actions_, 0, 2);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;
  ~SpawnPlan() {
    ::posix_spawn_file_actions_destroy(&actions_);
    ::posix_spawnattr_destroy(&attributes_);
  }

  void give(const Fd& fd, int as) { ::posix_spawn_file_actions_adddup2(&actions_, fd.get(), as); }

  int run(pid_t& pid, const std::string& file, char* const* argv, char* const* environment) {
    return ::posix_spawn(&pid, file.c_str(), &actions_, &attributes_, argv, environment);
  }

 private:
  posix_spawn_file_actions_t actions_{};
  posix_spawnattr_t attributes_{};
};

/// A copy well above the numbers a child is given, so that giving one cannot overwrite another.
Fd out_of_the_way(const Fd& fd) {
  return Fd(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 16));
}

/// An error here could not be told from "not started", and a process that is out of descriptors or
/// memory for ten seconds is better restarted: recovery will adopt the supervisor.
Fd watch_child(pid_t pid) {
  Fd pidfd = open_pidfd(pid);
  for (int tries = 0; !pidfd && tries < 1000; ++tries) {
    std::this_thread::sleep_for(Millis(10));
    pidfd = open_pidfd(pid);
  }
  BERTH_ASSERT(pidfd);
  return pidfd;
}

bool has_ended(const Fd& pidfd) {
  pollfd wait{pidfd.get(), POLLIN, 0};
  return ::poll(&wait, 1, 0) == 1;
}

/// waitid on a pidfd; glibc names the constant only since 2.36.
int wait_on(const Fd& pidfd, siginfo_t& info, int flags) {
  constexpr auto kByPidfd = static_cast<idtype_t>(3);
  return ::waitid(kByPidfd, static_cast<id_t>(pidfd.get()), &info, WEXITED | WNOHANG | flags);
}

}  // namespace

Result<std::unique_ptr<Launcher>> Launcher::open(LauncherConfig config) {
  std::unique_ptr<Launcher> launcher(new Launcher(std::move(config)));
  const std::string folder = launcher->config_.state_dir + "/attempts";
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    return fail_errno(fmt::format("cannot make {}", folder), errno);
  }
  const Fd shim(::open(launcher->config_.shim.c_str(), O_PATH | O_CLOEXEC));
  // Not under a number that a supervisor is given something else under.
  launcher->shim_ = shim ? out_of_the_way(shim) : Fd();
  if (!launcher->shim_) {
    return fail_errno(fmt::format("cannot open the supervisor {}; is berth installed completely?",
                                  launcher->config_.shim),
                      errno);
  }
  // Who ignores SIGCHLD never has children to wait for; parents hand that down.
  struct sigaction child{};
  if (::sigaction(SIGCHLD, nullptr, &child) == 0 && child.sa_handler == SIG_IGN) {
    child.sa_handler = SIG_DFL;
    ::sigaction(SIGCHLD, &child, nullptr);
  }
  // All of them before the first survivor is looked for: each protects what runs below it.
  for (const AttemptId attempt : launcher->leftovers()) {
    const Record record = launcher->read(attempt);
    if (record.start && open_pidfd_of(record.start->pid, record.start->start_ticks)) {
      launcher->remember(attempt, {record.start->pid, record.start->start_ticks});
    }
  }
  return launcher;
}

std::string Launcher::record_path(AttemptId attempt) const {
  return fmt::format("{}/attempts/{}{}", config_.state_dir, attempt.value, kRecordSuffix);
}

std::string Launcher::attempt_cgroup(AttemptId attempt) const {
  return config_.cgroup_parent.empty()
             ? std::string()
             : fmt::format("{}/a{}", config_.cgroup_parent, attempt.value);
}

Status Launcher::prepare(AttemptId attempt) {
  const std::string path = record_path(attempt);
  Fd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600));
  if (!fd) {
    if (errno == EEXIST) {
      return fail(ErrorCode::conflict,
                  fmt::format("attempt {} already has a record: {}", attempt.value, path));
    }
    return fail_errno(fmt::format("cannot create the record {}", path), errno);
  }
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    const int error = errno;
    ::unlink(path.c_str());
    return fail_errno(fmt::format("cannot lock the record {}; is it on a local disk?", path),
                      error);
  }
  if (::fallocate(fd.get(), FALLOC_FL_KEEP_SIZE, 0, kRecordReserve) != 0 &&
      (errno == ENOSPC || errno == EDQUOT)) {
    const int error = errno;
    ::unlink(path.c_str());
    return fail_errno(fmt::format("no room for the record {}", path), error);
  }
  const std::scoped_lock lock(mutex_);
  prepared_[attempt] = std::move(fd);
  return {};
}

Result<Shim> Launcher::spawn(const LaunchSpec& spec) {
  Fd record;
  {
    const std::scoped_lock lock(mutex_);
    const auto found = prepared_.find(spec.attempt);
    if (found == prepared_.end()) {
      return fail(ErrorCode::conflict,
                  fmt::format("attempt {} is not prepared", spec.attempt.value));
    }
    record = out_of_the_way(found->second);
  }
  TRY_ASSIGN(const Fd memory, spec_in_memory(spec));
  const Fd launch = out_of_the_way(memory);
  if (!record || !launch) {
    return fail_errno("cannot start a supervisor", errno);
  }
  SpawnPlan plan;
  plan.give(record, kRecordFd);
  plan.give(launch, kLaunchFd);

  std::vector<std::string> variables = config_.shim_environment;
  if (const char* crash = std::getenv("BERTH_CRASH_AT"); crash != nullptr) {
    variables.push_back(fmt::format("BERTH_CRASH_AT={}", crash));
  }
  std::vector<char*> environment;
  for (std::string& variable : variables) {
    environment.push_back(variable.data());
  }
  environment.push_back(nullptr);
  std::string name = "berth-shim";
  char* const argv[] = {name.data(), nullptr};
  pid_t pid = 0;
  const int error =
      plan.run(pid, fmt::format("/proc/self/fd/{}", shim_.get()), argv, environment.data());
  if (error != 0) {
    return fail_errno(fmt::format("cannot start the supervisor {} of attempt {}", config_.shim,
                                  spec.attempt.value),
                      error);
  }
  // Ours to reap, so the pid stands for this process until collect().
  Shim shim{watch_child(pid), pid};
  if (const auto stat = read_proc_stat(pid)) {
    remember(spec.attempt, {pid, stat->start_ticks});
  }
  {
    const std::scoped_lock lock(mutex_);
    prepared_.erase(spec.attempt);  // from here on the lock is the supervisor's alone
  }
  return shim;
}

void Launcher::discard(AttemptId attempt) {
  const std::scoped_lock lock(mutex_);
  const auto found = prepared_.find(attempt);
  if (found != prepared_.end()) {
    append_revoked(found->second, "not to be started");
    ::unlink(record_path(attempt).c_str());
    prepared_.erase(found);
  }
}

Status Launcher::control(const Shim& shim, const Control& control) {
  struct Encoder {
    static std::uint32_t encode(const std::optional<Millis>& grace) {
      if (!grace) {
        return kOwnGrace;
      }
      const auto units =
          (std::max<std::int64_t>(grace->count(), 0) + kGraceUnitMillis - 1) / kGraceUnitMillis;
      return static_cast<std::uint32_t>(std::min<std::int64_t>(units, kControlValueMax));
    }
    ControlWord operator()(const control::Kill& kill) const {
      return {ControlKind::kill, encode(kill.grace)};
    }
    ControlWord operator()(const control::Warn& warn) const {
      return {ControlKind::warn, encode(warn.grace)};
    }
    ControlWord operator()(const control::Pause&) const { return {ControlKind::pause, 0}; }
    ControlWord operator()(const control::Resume&) const { return {ControlKind::resume, 0}; }
    ControlWord operator()(const control::Forward& forward) const {
      return {ControlKind::forward, static_cast<std::uint32_t>(forward.signal)};
    }
  };
  siginfo_t info{};
  info.si_signo = control_signal();
  info.si_code = SI_QUEUE;
  info.si_pid = ::getpid();
  info.si_uid = ::getuid();
  info.si_value.sival_int = static_cast<int>(encode_control(std::visit(Encoder{}, control)));
  if (::syscall(SYS_pidfd_send_signal, shim.pidfd.get(), info.si_signo, &info, 0) == 0) {
    return {};
  }
  if (errno == ESRCH) {
    return fail(ErrorCode::not_found, fmt::format("supervisor {} has ended", shim.pid));
  }
  return fail_errno(fmt::format("cannot reach supervisor {}", shim.pid), errno);
}

Recovery Launcher::collect(AttemptId attempt, const Shim& shim) {
  siginfo_t info{};
  // Looked at but not reaped yet: until then nobody else can have its pid, nor its session.
  const bool ours = wait_on(shim.pidfd, info, WNOWAIT) == 0;
  if (ours ? info.si_pid == 0 : !has_ended(shim.pidfd)) {
    return recovery::Ending{fmt::format("its supervisor (pid {}) is still at work", shim.pid)};
  }
  forget_shim(attempt);
  Recovery outcome = recovery::Ending{};
  const Fd record(::open(record_path(attempt).c_str(), O_RDWR | O_APPEND | O_CLOEXEC));
  if (!record && errno != ENOENT) {
    return recovery::Ending{fmt::format("its record cannot be read: {}", std::strerror(errno))};
  }
  if (!record) {
    outcome = lose(attempt, ours ? shim.pid : 0, "its record has disappeared");
  } else if (const Record seen = parse_record(read_all(record)); seen.exit) {
    outcome = recovery::Ended{verdict_of(*seen.exit)};
  } else if (::flock(record.get(), LOCK_EX | LOCK_NB) == 0) {
    outcome = settle(attempt, record, ours ? shim.pid : 0);
  } else {
    // A child of the supervisor between fork and exec. It goes with its parent unless the kernel
    // holds it, as on a mount that hangs.
    outcome = recovery::Ending{"a process of it hangs before its command could begin"};
  }
  if (ours && !std::holds_alternative<recovery::Ending>(outcome)) {
    wait_on(shim.pidfd, info, 0);
  }
  return outcome;
}

Recovery Launcher::inspect(AttemptId attempt, bool same_boot) {
  const Fd record(::open(record_path(attempt).c_str(), O_RDWR | O_APPEND | O_CLOEXEC));
  if (!record) {
    if (errno != ENOENT) {
      return recovery::Ending{fmt::format("its record cannot be read: {}", std::strerror(errno))};
    }
    const std::string why = "its record has disappeared";
    return same_boot ? lose(attempt, 0, why)
                     : recovery::Lost{verdict_lost("the machine restarted while it ran, and " + why,
                                                   read_clock().wall)};
  }
  if (!same_boot) {
    const Record seen = parse_record(read_all(record));
    if (seen.exit) {
      return recovery::Ended{verdict_of(*seen.exit)};
    }
    if (seen.revoked) {
      return recovery::Revoked{};
    }
    return recovery::Lost{verdict_lost("the machine restarted while it ran", read_clock().wall)};
  }
  if (::flock(record.get(), LOCK_EX | LOCK_NB) == 0) {
    return settle(attempt, record, 0);
  }
  Record seen = parse_record(read_all(record));
  if (!seen.start) {
    return recovery::Starting{};
  }
  const ProcessIdentity identity{seen.start->pid, seen.start->start_ticks};
  if (Fd pidfd = open_pidfd_of(identity.pid, identity.start_ticks)) {
    remember(attempt, identity);
    return recovery::Adopted{Shim{std::move(pidfd), identity.pid}};
  }
  // It ended between the two looks, or left a child on the way to exec behind.
  seen = parse_record(read_all(record));
  if (seen.exit) {
    return recovery::Ended{verdict_of(*seen.exit)};
  }
  if (::flock(record.get(), LOCK_EX | LOCK_NB) == 0) {
    return settle(attempt, record, 0);
  }
  return recovery::Ending{"a process of it hangs before its command could begin"};
}

/// With the lock held: nobody is on the way to running anything, so the record is the whole truth.
Recovery Launcher::settle(AttemptId attempt, const Fd& locked, pid_t session) {
  const std::string bytes = read_all(locked);
  const Record record = parse_record(bytes);
  if (record.exit) {
    return recovery::Ended{verdict_of(*record.exit)};
  }
  if (record.revoked) {
    return recovery::Revoked{};
  }
  if (bytes.empty()) {
    if (!append_revoked(locked, "never started")) {
      return recovery::Ending{"its record cannot be written"};
    }
    return recovery::Revoked{};
  }
  return lose(attempt, session, "its supervisor died");
}

Recovery Launcher::lose(AttemptId attempt, pid_t session, std::string why) {
  forget_shim(attempt);
  const SurvivorTraits traits{attempt_marker(config_.instance, attempt), session,
                              attempt_cgroup(attempt), other_shims(attempt)};
  const SurvivorsEnded survivors = end_survivors(traits, kSurvivorPatience);
  if (!survivors.left.empty()) {
    const ProcStat& first = survivors.left.front();
    return recovery::Ending{
        fmt::format("{}; {} of its processes cannot be ended, first {}[{}] in "
                    "state {}",
                    why, survivors.left.size(), first.name, first.pid, first.state)};
  }
  if (survivors.ended > 0) {
    why += survivors.ended == 1
               ? "; 1 process of it was still running and was ended"
               : fmt::format("; {} processes of it were still running and were ended",
                             survivors.ended);
  }
  return recovery::Lost{verdict_lost(std::move(why), read_clock().wall)};
}

Record Launcher::read(AttemptId attempt) const {
  return parse_record(read_small_file(record_path(attempt)));
}

std::optional<pid_t> Launcher::pid(AttemptId attempt) {
  if (const auto start = read(attempt).start; start && start->pid > 0) {
    return start->pid;
  }
  // Whoever ends an attempt makes a note here before its record goes.
  const std::scoped_lock lock(mutex_);
  const auto ended = ended_.find(attempt);
  return ended == ended_.end() ? std::nullopt : std::optional(ended->second);
}

void Launcher::forget(AttemptId attempt) {
  forget_shim(attempt);
  ::unlink(record_path(attempt).c_str());
}

std::vector<AttemptId> Launcher::leftovers() const {
  std::vector<AttemptId> found;
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(
      ::opendir((config_.state_dir + "/attempts").c_str()), ::closedir);
  while (const dirent* entry = dir ? ::readdir(dir.get()) : nullptr) {
    const std::string_view name = entry->d_name;
    AttemptId attempt;
    const auto parsed = std::from_chars(name.data(), name.data() + name.size(), attempt.value);
    if (parsed.ec == std::errc{} &&
        parsed.ptr == name.data() + name.size() - kRecordSuffix.size() &&
        name.ends_with(kRecordSuffix)) {
      found.push_back(attempt);
    }
  }
  std::ranges::sort(found);
  return found;
}

void Launcher::remember(AttemptId attempt, ProcessIdentity shim) {
  const std::scoped_lock lock(mutex_);
  shims_[attempt] = shim;
}

void Launcher::forget_shim(AttemptId attempt) {
  const std::scoped_lock lock(mutex_);
  const auto shim = shims_.find(attempt);
  if (shim == shims_.end()) {
    return;
  }
  ended_[attempt] = shim->second.pid;
  if (ended_.size() > kEndedKept) {
    ended_.erase(ended_.begin());
  }
  shims_.erase(shim);
}

std::vector<ProcessIdentity> Launcher::other_shims(AttemptId attempt) {
  const std::scoped_lock lock(mutex_);
  std::vector<ProcessIdentity> others;
  for (const auto& [id, shim] : shims_) {
    if (id != attempt) {
      others.push_back(shim);
    }
  }
  return others;
}

}  // namespace berth
