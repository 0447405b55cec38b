#include "sim/machine.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

namespace berth::sim {
namespace {

constexpr std::uint64_t kLongestRun = 20'000;

Verdict node_lost(Now now) {
  Verdict verdict;
  verdict.failure = FailureClass::node_lost;
  verdict.message = "its supervisor is gone; what happened is not known";
  verdict.ended_wall = now.wall;
  return verdict;
}

}  // namespace

Machine::Machine(Timeline& timeline, Random random, Observer& observer, Plant plant)
    : timeline_(timeline), random_(random), observer_(observer), plant_(plant) {}

Status Machine::prepare(AttemptId attempt) {
  if (std::exchange(fail_next_record_, false)) {
    return fail(ErrorCode::io, "the record cannot be made");
  }
  if (!records_.try_emplace(attempt).second) {
    return fail(ErrorCode::conflict, fmt::format("there is a record {} already", attempt.value));
  }
  return {};
}

void Machine::spawn(const effect::Start& start, std::shared_ptr<const JobSpec> spec) {
  Run run;
  run.attempt = start.attempt;
  run.job = start.job;
  run.spec = std::move(spec);
  run.gpus = start.gpus;
  run.ramp = random_.millis(1, 4'000);
  run.share = static_cast<std::uint32_t>(random_.percent(5) ? random_.between(101, 115)
                                                            : random_.between(20, 100));
  run.utilization = static_cast<std::uint32_t>(random_.below(101));
  run.shown_after_end = random_.percent(30) ? random_.millis(50, 1'500) : Millis{0};
  if (const auto early = early_kills_.extract(start.attempt); !early.empty()) {
    run.kill_grace = early.mapped();
  }
  run.paused = early_pauses_.erase(start.attempt) > 0;
  const bool twice = plant_ == Plant::double_start && random_.percent(10);
  for (int copy = 0; copy < (twice ? 2 : 1); ++copy) {
    const Key key{start.attempt, copy};
    runs_.insert_or_assign(key, run);
    // The twin comes second: alone it would be an ordinary run under a number nobody knows.
    const Millis birth = copy == 0 ? random_.millis(1, 60) : random_.millis(61, 120);
    timeline_.after(birth, Timeline::Of::world, [this, key] { begin(key); });
  }
}

void Machine::begin(Key key) {
  const auto it = runs_.find(key);
  if (it == runs_.end() || !it->second.supervised || it->second.started) {
    return;
  }
  Run& run = it->second;
  const auto record = records_.find(run.attempt);
  const bool empty = record != records_.end() && !record->second.started && !record->second.revoked;
  if (!empty && key.second == 0) {
    runs_.erase(it);
    return;
  }
  struck_ += empty ? 0 : 1;
  records_[run.attempt].started = true;
  run.started = true;
  run.running = true;
  run.since = timeline_.elapsed();
  observer_.run_started(run.attempt, run.job);
  run.verdict = plan(run, run.left);
  if (!run.paused) {
    end_after(key, run.left);
  }
  if (run.kill_grace) {
    ask_to_end(key, *run.kill_grace);
  }
}

void Machine::end_after(Key key, Millis runtime) {
  Run& run = runs_.at(key);
  run.end_at = timeline_.elapsed() + runtime;
  const std::uint64_t plan = ++run.plans;
  timeline_.after(runtime, Timeline::Of::world, [this, key, plan] {
    if (const auto it = runs_.find(key); it != runs_.end() && it->second.plans == plan) {
      end(key, it->second.verdict);
    }
  });
}

void Machine::pause(AttemptId attempt) {
  bool there = false;
  for (auto& [key, run] : runs_) {
    if (key.first != attempt) {
      continue;
    }
    there = true;
    // It is the supervisor that stops what runs; on the way out it does not.
    if (!run.supervised || run.dying || std::exchange(run.paused, true)) {
      continue;
    }
    if (run.running) {
      run.left = run.end_at - timeline_.elapsed();
      ++run.plans;
    }
  }
  if (!there) {
    early_pauses_.insert(attempt);
  }
}

void Machine::resume(AttemptId attempt) {
  early_pauses_.erase(attempt);
  for (auto& [key, run] : runs_) {
    if (key.first == attempt && run.supervised && std::exchange(run.paused, false) && run.running) {
      end_after(key, run.left);
    }
  }
}

Verdict Machine::plan(const Run& run, Millis& runtime) {
  Verdict verdict;
  runtime = random_.skewed(3, kLongestRun);
  verdict.exit_code = 0;
  if (random_.percent(25)) {
    constexpr std::array kFailures = {
        FailureClass::exit,     FailureClass::exit,     FailureClass::exit,
        FailureClass::gpu_oom,  FailureClass::host_oom, FailureClass::cannot_start,
        FailureClass::gpu_lost,
    };
    verdict.failure = random_.pick(kFailures);
    verdict.exit_code.reset();
    if (*verdict.failure == FailureClass::host_oom) {
      verdict.signal = 9;
    } else {
      verdict.exit_code = static_cast<std::int32_t>(random_.between(1, 255));
    }
    verdict.message = fmt::format("ended with {}", to_string(*verdict.failure));
  }
  const Millis limit = run.spec->payload.time_limit;
  if (limit > Millis{0} && runtime > limit) {
    runtime = limit;
    verdict = {};
    verdict.failure = FailureClass::timeout;
    verdict.signal = 15;
    verdict.message = "ran into its time limit";
  }
  verdict.user_time = runtime;
  return verdict;
}

void Machine::end(Key key, Verdict verdict) {
  const auto it = runs_.find(key);
  if (it == runs_.end() || !it->second.running) {
    return;
  }
  Run& run = it->second;
  run.running = false;
  run.over = timeline_.elapsed();
  if (!run.supervised) {
    observer_.run_vanished(run.attempt);
    return;
  }
  run.supervised = false;
  Record& record = records_[run.attempt];
  verdict.ended_wall = timeline_.now().wall;
  record.exit = verdict;
  // With a daemon listening its commit is the durable point; alone, the supervisor syncs.
  record.synced = !listening_;
  if (plant_ == Plant::lost_exit && random_.percent(10)) {
    lost_.insert(run.attempt);
    ++struck_;
  }
  observer_.run_ended(run.attempt, verdict);
  settle_soon(run.attempt);
}

void Machine::kill(AttemptId attempt, std::optional<Millis> grace) {
  bool there = false;
  for (auto& [key, run] : runs_) {
    if (key.first != attempt) {
      continue;
    }
    there = true;
    const Millis patience = grace.value_or(run.spec->payload.grace);
    run.kill_grace = patience;
    if (run.running) {
      ask_to_end(key, patience);
    }
  }
  if (!there) {
    early_kills_[attempt] = grace.value_or(Millis{1'000});
  }
}

void Machine::ask_to_end(Key key, Millis grace) {
  Run& run = runs_.at(key);
  if (!run.supervised || std::exchange(run.dying, true)) {
    return;
  }
  if (std::exchange(run.paused, false)) {
    end_after(key, run.left);  // woken up, it may yet end by itself
  }
  Verdict verdict;
  verdict.killed = true;
  verdict.message = "killed on request";
  Millis takes = grace;
  const auto patience = static_cast<std::uint64_t>(grace.count());
  if (patience > 0 && random_.percent(70)) {
    takes = random_.millis(0, std::min<std::uint64_t>(patience, 500));
    if (random_.percent(20)) {
      verdict.exit_code = 0;
    } else {
      verdict.signal = 15;
      verdict.failure = FailureClass::exit;
    }
  } else {
    verdict.signal = 9;
    verdict.failure = FailureClass::exit;
  }
  timeline_.after(takes + Millis{1}, Timeline::Of::world,
                  [this, key, verdict] { end(key, verdict); });
}

void Machine::forget(AttemptId attempt) {
  records_.erase(attempt);
  early_kills_.erase(attempt);
  early_pauses_.erase(attempt);
}

bool Machine::locked(AttemptId attempt) const {
  const auto it = runs_.find({attempt, 0});
  return it != runs_.end() && it->second.supervised;
}

void Machine::settle_soon(AttemptId attempt) {
  if (listening_) {
    timeline_.after(random_.millis(0, 40), Timeline::Of::daemon,
                    [this, attempt] { settle(attempt, boot_id_); });
  }
}

void Machine::settle(AttemptId attempt, const std::string& boot_id) {
  const auto it = records_.find(attempt);
  const bool same_boot = boot_id == boot_id_;
  if (lost_.contains(attempt)) {
    return;
  }
  if (it != records_.end() && it->second.exit) {
    tell_daemon(event::AttemptExited{attempt, *it->second.exit});
    return;
  }
  // A missing record, or one that a power cut may have emptied, proves nothing.
  if (it != records_.end() && same_boot && !it->second.started) {
    it->second.revoked = true;
    tell_daemon(event::AttemptRevoked{attempt, "its supervisor never came up"});
    return;
  }
  for (auto& [key, run] : runs_) {
    if (key.first == attempt && run.running) {
      run.running = false;
      run.over = timeline_.elapsed();
      observer_.run_vanished(attempt);
    }
  }
  tell_daemon(event::AttemptExited{attempt, node_lost(timeline_.now())});
}

void Machine::recover(const Snapshot& snapshot) {
  std::map<AttemptId, std::string> open;
  for (const Snapshot::OpenAttempt& attempt : snapshot.attempts) {
    open.emplace(attempt.id, attempt.boot_id);
  }
  // Records of attempts that never became durable, and of those that have ended.
  std::erase_if(records_, [&](const auto& entry) { return !open.contains(entry.first); });
  listening_ = true;
  for (const auto& [attempt, boot_id] : open) {
    if (!locked(attempt)) {
      settle(attempt, boot_id);
    }
  }
}

void Machine::daemon_died() {
  listening_ = false;
  early_kills_.clear();
  early_pauses_.clear();
}

void Machine::power_cut() {
  for (const auto& [key, run] : runs_) {
    if (run.running) {
      observer_.run_vanished(run.attempt);
    }
  }
  runs_.clear();
  for (auto it = records_.begin(); it != records_.end();) {
    Record& record = it->second;
    if (!record.synced && random_.percent(60)) {
      if (std::exchange(record.exit, std::nullopt)) {
        observer_.exit_forgotten(it->first);
      }
      if (random_.percent(50)) {
        it = records_.erase(it);
        continue;
      }
      record.started = record.started && random_.percent(50);
    }
    ++it;
  }
  boot_id_ = fmt::format("boot-{}", ++boots_);
}

bool Machine::kill_a_supervisor() {
  std::vector<Key> alive;
  for (const auto& [key, run] : runs_) {
    if (run.supervised && key.second == 0) {  // a planted twin shares the first one's record
      alive.push_back(key);
    }
  }
  if (alive.empty()) {
    return false;
  }
  const Key key = random_.pick(std::span<const Key>(alive));
  runs_.at(key).supervised = false;
  settle_soon(key.first);
  return true;
}

bool Machine::quiet() const {
  return std::ranges::none_of(runs_, [](const auto& entry) {
    return (entry.second.running && !entry.second.paused) ||
           (entry.second.supervised && !entry.second.started);
  });
}

std::vector<Machine::Use> Machine::gpu_use(const std::map<std::string, Bytes>& totals) {
  std::vector<Use> result;
  const Millis now = timeline_.elapsed();
  std::erase_if(runs_, [&](const auto& entry) {
    const Run& run = entry.second;
    return !run.supervised && !run.running && now > run.over + run.shown_after_end;
  });
  for (const auto& [key, run] : runs_) {
    if (!run.started) {
      continue;
    }
    const auto grown = static_cast<Bytes>(std::min(now - run.since, run.ramp).count());
    for (const std::string& gpu : run.gpus) {
      const Bytes most = run.spec->request.gpu_memory.value_or(totals.at(gpu) * 9 / 10);
      result.push_back({run.attempt, gpu,
                        most / 100 * run.share / static_cast<Bytes>(run.ramp.count()) * grown,
                        run.utilization});
    }
  }
  return result;
}

}  // namespace berth::sim
