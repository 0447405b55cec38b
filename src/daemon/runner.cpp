#include "daemon/runner.hpp"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "api/paths.hpp"
#include "base/failpoint.hpp"
#include "proc/procfs.hpp"
#include "proc/record_line.hpp"

namespace berth {

namespace {
constexpr Millis kStartingAgain{20};
constexpr Millis kEndingAgain{500};
constexpr Millis kUnbornPauseMin{10};
constexpr Millis kUnbornPauseMax{10'000};
}  // namespace

Runner::Runner(Loop& loop, Launcher& launcher, InstanceFacts facts, std::string daemon_lock,
               std::string cgroup_parent, Hooks hooks)
    : loop_(loop),
      launcher_(launcher),
      facts_(std::move(facts)),
      daemon_lock_(std::move(daemon_lock)),
      cgroup_parent_(std::move(cgroup_parent)),
      hooks_(std::move(hooks)),
      evidence_(loop),
      ports_(usable_ports(read_small_file("/proc/sys/net/ipv4/ip_local_port_range")), facts_.id),
      spawner_("spawner"),
      finder_("finder") {}

void Runner::run(const Effect& effect) {
  if (const auto* start_effect = std::get_if<effect::Start>(&effect)) {
    start(*start_effect);
  } else if (const auto* kill_effect = std::get_if<effect::Kill>(&effect)) {
    kill(*kill_effect);
  } else if (const auto* pause = std::get_if<effect::Pause>(&effect)) {
    order(pause->attempt, control::Pause{});
  } else if (const auto* resume = std::get_if<effect::Resume>(&effect)) {
    order(resume->attempt, control::Resume{});
  } else if (const auto* forget = std::get_if<effect::Forget>(&effect)) {
    ports_.release(forget->attempt);
    spawner_.post([this, attempt = forget->attempt] { launcher_.forget(attempt); });
  } else if (const auto* wake = std::get_if<effect::Wake>(&effect)) {
    hooks_.wake(wake->at);
  } else if (std::holds_alternative<effect::Continue>(effect)) {
    loop_.post([this] { hooks_.emit(event::Continue{}); });
  } else {
    hooks_.sample();
  }
}

Result<LaunchSpec> Runner::launch_spec(const effect::Start& start, Payload payload,
                                       Bytes log_limit) {
  LaunchSpec spec;
  spec.attempt = start.attempt;
  spec.job = start.job;
  LaunchFacts words = launch_facts(start, facts_.id);
  words.work_dir = payload.work_dir.empty() ? payload.cwd : payload.work_dir;
  spec.log_named_by_user = !payload.log.empty();
  spec.log = spec.log_named_by_user ? fill_log_path(payload.log, words)
                                    : own_log_path(facts_.logs, start.job, start.number);
  words.log_path = spec.log;
  if (mentions_placeholder(payload, "port")) {
    TRY_ASSIGN(words.port, ports_.take(start.attempt));
  }
  fill_placeholders(payload, words);
  spec.environment = attempt_environment(
      payload, start, facts_, words.port,
      start.batch && hooks_.state_file ? hooks_.state_file(start.batch) : std::string());
  spec.commands = std::move(payload.commands);
  spec.cwd = std::move(payload.cwd);
  spec.log_limit = spec.log_named_by_user ? 0 : log_limit;
  spec.umask = payload.umask;
  spec.nice = payload.nice;
  spec.time_limit = payload.time_limit;
  spec.grace = payload.grace;
  spec.linger = payload.linger;
  spec.warning = payload.warning;
  spec.cgroup_parent = cgroup_parent_;
  spec.daemon_lock = daemon_lock_;
  return spec;
}

void Runner::start(const effect::Start& start) {
  running_.try_emplace(start.attempt);
  if (start.gpus.empty() || !hooks_.admit) {
    spawn(start);
    return;
  }
  hooks_.admit(start, [this, start](const std::optional<std::string>& why_not) {
    if (why_not) {
      give_up(start.attempt, *why_not);
    } else {
      spawn(start);
    }
  });
}

void Runner::give_up(AttemptId attempt, const std::string& why) {
  hooks_.log("given_up", attempt, why);
  running_.erase(attempt);
  spawner_.post([this, attempt] { launcher_.discard(attempt); });
  hooks_.emit(event::AttemptRevoked{attempt, why});
}

void Runner::spawn(const effect::Start& start) {
  std::vector<std::string> near;
  if (start.cpu_affinity) {
    near = hooks_.bus_ids(start.gpus);
  }
  spawner_.post([this, start, near = std::move(near), log_limit = hooks_.log_limit()] {
    auto shim = [&]() -> Result<Shim> {
      TRY_ASSIGN(Payload payload, hooks_.payload(start.job));
      TRY_ASSIGN(LaunchSpec spec, launch_spec(start, std::move(payload), log_limit));
      if (!near.empty()) {
        spec.cpus = affinity_.near(near);
      }
      // For its report, and for its log if berth names it.
      const std::filesystem::path report = report_path(facts_.logs, start.job.value, start.number);
      std::error_code ignored;  // the supervisor says what is wrong with the log
      std::filesystem::create_directories(report.parent_path(), ignored);
      std::filesystem::remove(report, ignored);  // of an attempt of that number that never began
      failpoint("before_spawn");
      auto spawned = launcher_.spawn(spec);
      failpoint("after_spawn");
      return spawned;
    }();
    auto shared = std::make_shared<Result<Shim>>(std::move(shim));
    loop_.post([this, attempt = start.attempt, shared] { started(attempt, std::move(*shared)); });
  });
}

void Runner::started(AttemptId attempt, Result<Shim> shim) {
  if (shim) {
    running_[attempt].spawned = true;
    watch(attempt, std::move(*shim));
    return;
  }
  hooks_.log("cannot_start", attempt, shim.error().message);
  running_.erase(attempt);
  spawner_.post([this, attempt] { launcher_.discard(attempt); });
  Verdict verdict;
  verdict.failure = FailureClass::cannot_start;
  verdict.message = shim.error().message;
  verdict.ended_wall = read_clock().wall;
  hooks_.emit(event::AttemptExited{attempt, std::move(verdict)});
}

void Runner::watch(AttemptId attempt, Shim shim) {
  Running& entry = running_[attempt];
  by_pid_[static_cast<std::uint32_t>(shim.pid)] = attempt;
  entry.watch = loop_.when_readable(shim.pidfd.get(), [this, attempt] { ended(attempt); });
  entry.shim = std::move(shim);
  if (const auto waiting = std::exchange(entry.order, std::nullopt)) {
    order(attempt, *waiting);
  }
  if (const auto waiting = std::exchange(entry.kill, std::nullopt)) {
    kill(*waiting);
  }
}

void Runner::ended(AttemptId attempt) {
  failpoint("exit_seen");
  Running& entry = running_.at(attempt);
  auto shim = std::make_shared<Shim>(std::move(*entry.shim));
  entry.shim.reset();
  entry.watch.reset();
  by_pid_.erase(static_cast<std::uint32_t>(shim->pid));
  auto collect = [this, attempt, shim] { return launcher_.collect(attempt, *shim); };
  if (launcher_.read(attempt).exit) {
    settle(attempt, collect(), collect);
    return;
  }
  // It died without a word. Ending what it left behind can take a while.
  hooks_.log("supervisor_died", attempt, "its processes are being ended");
  find_out(attempt, collect);
}

void Runner::find_out(AttemptId attempt, std::function<Recovery()> find) {
  finder_.post([this, attempt, find = std::move(find)] {
    auto found = std::make_shared<Recovery>(find());
    loop_.post([this, attempt, found, find] { settle(attempt, std::move(*found), find); });
  });
}

void Runner::kill(const effect::Kill& kill) {
  const auto it = running_.find(kill.attempt);
  if (it == running_.end()) {
    return;  // already ended; its verdict is on the way
  }
  if (!it->second.shim) {
    it->second.kill = kill;
    return;
  }
  // A supervisor of an earlier version knows no warning.
  const auto start = kill.warn ? launcher_.read(kill.attempt).start : std::nullopt;
  const bool warn = start && start->version >= kRecordVersionWithWarning;
  const Control order = warn ? Control(control::Warn{kill.grace}) : control::Kill{kill.grace};
  if (auto sent = launcher_.control(*it->second.shim, order); !sent) {
    hooks_.log("kill_failed", kill.attempt, sent.error().message);
  }
}

void Runner::order(AttemptId attempt, const Control& control) {
  const auto it = running_.find(attempt);
  if (it == running_.end()) {
    return;  // already ended; its verdict is on the way
  }
  if (!it->second.shim) {
    it->second.order = control;
    return;
  }
  if (auto sent = launcher_.control(*it->second.shim, control); !sent) {
    hooks_.log("order_failed", attempt, sent.error().message);
  }
}

void Runner::recover(const std::vector<std::pair<AttemptId, bool>>& open_and_same_boot) {
  for (const auto& [attempt, same_boot] : open_and_same_boot) {
    running_.try_emplace(attempt);
    find_out(attempt, [this, attempt, same_boot] {
      failpoint("before_adopt");
      return launcher_.inspect(attempt, same_boot);
    });
  }
}

void Runner::settle(AttemptId attempt, Recovery found, const std::function<Recovery()>& find) {
  if (auto* adopted = std::get_if<recovery::Adopted>(&found)) {
    hooks_.log("adopted", attempt, fmt::format("supervisor {}", adopted->shim.pid));
    watch(attempt, std::move(adopted->shim));
    failpoint("after_adopt");
    return;
  }
  const auto* ending = std::get_if<recovery::Ending>(&found);
  if (ending != nullptr || std::holds_alternative<recovery::Starting>(found)) {
    if (ending != nullptr) {
      hooks_.log("ending", attempt, ending->what);
    }
    running_[attempt].watch = loop_.after(ending != nullptr ? kEndingAgain : kStartingAgain,
                                          [this, attempt, find] { find_out(attempt, find); });
    return;
  }
  if (std::holds_alternative<recovery::Revoked>(found)) {
    revoked(attempt);
    return;
  }
  running_.erase(attempt);
  unborn_pause_ = Millis(0);
  if (auto* ended = std::get_if<recovery::Ended>(&found)) {
    exited(attempt, std::move(ended->verdict));
  } else if (auto* lost = std::get_if<recovery::Lost>(&found)) {
    hooks_.log("lost", attempt, lost->verdict.message);
    hooks_.emit(event::AttemptExited{attempt, std::move(lost->verdict)});
  }
}

void Runner::exited(AttemptId attempt, Verdict verdict) {
  const bool by_itself =
      !verdict.killed && (!verdict.failure || *verdict.failure == FailureClass::exit);
  if (!by_itself) {
    hooks_.emit(event::AttemptExited{attempt, std::move(verdict)});
    return;
  }
  hooks_.papers(attempt, [this, attempt, verdict = std::move(verdict)](EvidencePlaces papers) {
    look_at_papers(attempt, verdict, std::move(papers));
  });
}

void Runner::look_at_papers(AttemptId attempt, Verdict verdict, EvidencePlaces papers) {
  if (::access(papers.report.c_str(), F_OK) != 0) {
    papers.report.clear();  // in our own directory, so asking does not hang
  }
  papers.failed = verdict.failure.has_value();
  if (papers.failed || !papers.report.empty() || !papers.state_file.empty()) {
    if (const auto record = launcher_.read(attempt).exit) {
      papers.log = {record->log, record->log_from};
    }
  }
  if (papers.log.path.empty() && papers.report.empty() && papers.state_file.empty()) {
    hooks_.emit(event::AttemptExited{attempt, std::move(verdict)});
    return;
  }
  evidence_.read(std::move(papers),
                 [this, attempt, verdict = std::move(verdict)](FoundEvidence found) mutable {
                   hooks_.emit(event::AttemptExited{attempt, heed(std::move(verdict), found.report),
                                                    std::move(found.log_end)});
                 });
}

void Runner::revoked(AttemptId attempt) {
  Running& entry = running_[attempt];
  hooks_.log("revoked", attempt, "it had not started");
  if (!entry.spawned) {
    running_.erase(attempt);
    hooks_.emit(event::AttemptRevoked{attempt, "berth restarted before it had begun"});
    return;
  }
  // The job goes back into its queue uncharged and is due at once. Where supervisors cannot live at
  // all, that would go round as fast as the disk can write.
  entry.watch = loop_.after(unborn_pause_, [this, attempt] {
    running_.erase(attempt);
    hooks_.emit(event::AttemptRevoked{attempt, "its supervisor died before it had begun"});
  });
  unborn_pause_ = std::clamp(unborn_pause_ * 2, kUnbornPauseMin, kUnbornPauseMax);
}

AttemptId Runner::attempt_of_shim(std::uint32_t pid) const {
  const auto it = by_pid_.find(pid);
  return it == by_pid_.end() ? AttemptId{} : it->second;
}

}  // namespace berth
