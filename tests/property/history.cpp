#include "property/history.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "core/state_ops.hpp"
#include "unit/core/builders.hpp"

namespace berth::testing {
namespace {

constexpr std::uint32_t kCards = 3;

Bytes total_of(std::uint32_t card) {
  return (card == 2 ? 8 : 24) * kGiB;
}

std::vector<JobId> live_jobs(const State& state, bool only_running) {
  std::vector<JobId> ids;
  for (const auto& [id, job] : state.jobs) {
    if (!only_running || job.attempt) {
      ids.push_back(id);
    }
  }
  std::ranges::sort(ids);
  return ids;
}

/// The jobs of a submission come from few shapes, as they do in life.
JobBuilder job_of(std::uint32_t number) {
  JobBuilder job;
  switch (number % 9) {
    case 0:
    case 1:
      break;
    case 2:
      job.gpus(0);
      break;
    case 3:
      job.gpus(0).cpus(3).host_memory(3 * kGiB);
      break;
    case 4:
      job.memory(5 * kGiB);
      break;
    case 5:
      job.memory(11 * kGiB).max_utilization(70);
      break;
    case 6:
      job.gpus(2);
      break;
    case 7:
      job.gpus(1, 3).memory(7 * kGiB);
      break;
    default:
      job.gpus(0).resource("licence", 2);
  }
  return job;
}

}  // namespace

void showValue(const Op& op, std::ostream& out) {
  out << fmt::format("{{{}, {}, {}, {}}}", op.what, op.a, op.b, op.c);
}

Player::Player(Limits limits, Rules rules) : limits_(limits) {
  state.base_rules = std::move(rules);
  state_ops::resolve_instance(state);
  state.host = {8, 8 * kGiB, {}};
}

void Player::send(Event event) {
  Step step;
  const auto answer = berth::apply(state, std::move(event), now, step);
  RC_ASSERT((answer || step.changes.empty()));
  for (const Change& change : step.changes) {
    ledger.write(change);
  }
}

void Player::apply(const Decision& decision) {
  Step step;
  berth::apply(state, decision, now, step);
  for (const Change& change : step.changes) {
    ledger.write(change);
  }
}

void Player::play(const Op& op) {
  if (op.what < 5) {
    submit(op);
  } else if (op.what < 9) {
    end_one(op);
  } else if (op.what == 9) {
    kill(op);
  } else if (op.what >= 16) {
    control(op);
  } else if (op.what < 13) {
    sample(op);
  } else if (op.what == 13) {
    now.mono += Millis{op.a * 8};
    now.wall += Millis{op.a * 8};
    send(event::Tick{});
  } else {
    disturb(op);
  }
}

void Player::submit(const Op& op) {
  static const std::vector<std::string> kQueues = {"default", "serial", "pair"};
  event::Submit submit;
  submit.queues = {{"serial", 1}, {"pair", 2}};
  submit.resources = {{"licence", 3}};
  submit.batch_max_concurrent = op.a % 7 == 0 ? 1 + op.b % 2 : 0;
  if (limits_ == Limits::changing && op.c % 5 == 0) {
    submit.queues = {{"serial", op.a % 3}, {"pair", op.b % 4}};
    submit.resources = {{"licence", 2 + op.b % 4}};
  }
  const auto alive = live_jobs(state, false);
  for (std::uint32_t i = 0; i <= op.a % 4; ++i) {
    auto job = job_of(op.b + i * op.c);
    job.queue(kQueues[(op.c + i) % kQueues.size()]);
    job.priority(static_cast<std::int32_t>((op.a + i) % 3)).retries(op.b % 2);
    if (i > 0 && op.c % 3 == 0) {
      job.after_index(op.b % i);
    }
    if (!alive.empty() && op.c % 4 == 1) {
      job.after(alive[(op.b + i) % alive.size()].value);
    }
    submit.jobs.push_back(job);
  }
  send(std::move(submit));
}

void Player::end_one(const Op& op) {
  const auto running = live_jobs(state, true);
  if (running.empty()) {
    return;
  }
  const Attempt attempt = state.attempts.at(state.job(running[op.a % running.size()])->attempt);
  for (const std::string& uuid : attempt.gpus) {
    if (op.b % 2 == 0) {
      leftovers_[{attempt.id, uuid}] = std::min<Bytes>(kGiB, attempt.gpu_memory);
    }
  }
  if (op.what == 8) {
    send(event::AttemptRevoked{attempt.id, "never began"});
    return;
  }
  Verdict verdict;
  if (op.what == 7) {
    verdict.failure = FailureClass::exit;
  }
  send(event::AttemptExited{attempt.id, verdict});
}

void Player::kill(const Op& op) {
  const auto alive = live_jobs(state, false);
  if (!alive.empty()) {
    send(event::Kill{{alive[op.a % alive.size()], alive[op.b % alive.size()]}, 0, {}});
  }
}

void Player::control(const Op& op) {
  static const std::vector<std::string> kQueues = {"default", "serial", "pair", "new"};
  const auto alive = live_jobs(state, false);
  if (alive.empty()) {
    return;
  }
  std::vector<JobId> jobs{alive[op.a % alive.size()], alive[op.b % alive.size()],
                          JobId{state.last_job.value + 7}};
  std::ranges::sort(jobs);
  jobs.erase(std::ranges::unique(jobs).begin(), jobs.end());
  switch (op.what + op.c % 2 * 6) {
    case 16:
      send(event::Pause{jobs});
      break;
    case 17:
    case 22:
      send(event::Resume{jobs});
      break;
    case 18:
      send(event::Expedite{jobs});
      break;
    case 19:
      send(event::PauseQueue{kQueues[op.a % 4], op.b % 3 == 0});
      break;
    case 20: {
      event::JobPatch patch;
      patch.gpus = GpuCount{op.b % 3, op.b % 3};
      patch.retries = op.a % 3;
      patch.queue = kQueues[op.b % 4];
      send(event::SetJobs{jobs, patch});
      break;
    }
    case 21:
      if (limits_ == Limits::changing) {
        send(event::SetRules{{{"max_concurrent", fmt::format("{}", op.b % 5)},
                              {"queue.pair.limit", fmt::format("{}", op.a % 4)}}});
      }
      break;
    default: {
      event::Move move;
      move.jobs = jobs;
      move.to = static_cast<event::Move::To>(op.a % 5);
      move.before = alive[op.b / 3 % alive.size()];
      move.queue = kQueues[op.b % 4];
      move.priority = static_cast<std::int32_t>(op.b % 3);
      send(std::move(move));
    }
  }
}

void Player::sample(const Op& op) {
  now.mono += Millis{1 + op.a % 50};
  now.wall += Millis{1 + op.a % 50};
  if (op.b % 3 != 0) {
    leftovers_.clear();
  }
  GpuSample sample;
  sample.begun_mono = now.mono - Millis{op.c % 20};
  for (std::uint32_t i = 0; i < kCards; ++i) {
    const std::uint32_t dice = op.a + op.b * (i + 1) + op.c * (i * i + 1);
    if (dice % 29 == 0) {
      continue;  // the driver does not show it this time
    }
    auto card = a_gpu(i);
    card.total(total_of(i)).utilization(dice % 101);
    const GpuFacts named = card;
    for (const auto& [id, attempt] : state.attempts) {
      if (std::ranges::find(attempt.gpus, named.uuid) != attempt.gpus.end()) {
        const Bytes most = attempt.gpu_memory == 0 ? kGiB : attempt.gpu_memory;
        card.with(a_process_of(id.value).memory(most / 4 * (dice % 5)).utilization(dice % 50));
      }
    }
    for (const auto& [where, bytes] : leftovers_) {
      if (where.second == named.uuid) {
        card.with(a_process_of(where.first.value).memory(bytes));
      }
    }
    if (dice % 3 == 0) {
      const Bytes wanted = (dice % 17) * kGiB;
      auto stranger = a_stranger();
      stranger.memory(std::min(wanted, *GpuFacts(card).memory_free));
      if (dice % 2 == 0) {
        stranger.utilization(dice % 60);
      }
      card.with(stranger);
    }
    if (dice % 5 == 1) {
      card.unknown_processes();
    }
    if (dice % 13 == 0) {
      card.unknown_utilization();
    }
    if (dice % 19 == 0) {
      dice % 2 == 0 ? card.lost("fell off the bus") : card.unreadable("Unknown Error");
    } else if (dice % 23 == 0) {
      card.unknown_memory();
    }
    sample.gpus.push_back(card);
  }
  send(event::Sampled{std::move(sample)});
}

void Player::settle() {
  send(event::SpaceChanged{false, ""});
  leftovers_.clear();
  now.mono += Millis{10};
  now.wall += Millis{10};
  GpuSample sample;
  sample.begun_mono = now.mono;
  for (std::uint32_t i = 0; i < kCards; ++i) {
    sample.gpus.push_back(a_gpu(i).total(total_of(i)));
  }
  send(event::Sampled{std::move(sample)});
}

void Player::revive(const Op& op) {
  event::Revive revive;
  for (const std::uint32_t dice : {op.b, op.c, op.b + op.c}) {
    const JobId id{1 + dice % (state.last_job.value + 1)};
    revive.jobs.push_back(id);
    const auto row = ledger.ended(id);
    if (!row) {
      continue;
    }
    for (const JobId dependency : row->after) {
      if (const auto ended = ledger.ended(dependency)) {
        revive.finished_dependencies.emplace(dependency, ended->state);
      }
    }
    revive.ended.push_back(*row);
  }
  send(std::move(revive));
}

void Player::disturb(const Op& op) {
  switch (op.a % 5) {
    case 0:
      send(event::SpaceChanged{op.b % 3 == 0, "test"});
      break;
    case 1:
      send(event::ProbeFailed{"test"});
      break;
    case 2:
      if (limits_ == Limits::changing) {
        send(event::SetHost{{op.b % 9, (op.c % 9) * kGiB, {}}});
      }
      break;
    case 3:
      revive(op);
      break;
    default:
      send(event::Tick{});
  }
}

History any_history() {
  return *rc::gen::scale(2.0, rc::gen::arbitrary<History>());
}

Rules any_rules() {
  Rules rules;
  rules.max_concurrent = *rc::gen::element(0U, 0U, 1U, 4U);
  rules.memory_margin = *rc::gen::element(Bytes{0}, kGiB);
  rules.gpu_left = *rc::gen::element(0U, 0U, 1U, 2U);
  rules.gpu_left_mode = *rc::gen::element(LeftMode::last, LeftMode::any);
  rules.min_gpu = *rc::gen::element(0U, 0U, 1U);
  rules.max_gpu = *rc::gen::element(0U, 0U, 1U, 2U);
  rules.keep_gpu_memory = *rc::gen::element(100U, 100U, 60U);
  rules.strategy =
      *rc::gen::element(Strategy::most_free, Strategy::least_utilized, Strategy::round_robin,
                        Strategy::best_fit, Strategy::pack, Strategy::spread, Strategy::memory_save,
                        Strategy::fragmentation, Strategy::memory_spend);
  rules.order = *rc::gen::element(Order::fifo, Order::random, Order::largest_first);
  rules.backfill = *rc::gen::element(Backfill::easy, Backfill::any);
  rules.hold_after = *rc::gen::element(Millis{0}, Millis{1'000'000'000});
  rules.maximize_resource_utilization = *rc::gen::element(true, true, false);
  rules.preemptible = *rc::gen::element(false, false, true);
  return rules;
}

Rules plain_rules() {
  Rules rules = any_rules();
  rules.backfill = Backfill::any;
  rules.preemptible = false;
  return rules;
}

void expect_none(const std::string& broken) {
  if (!broken.empty()) {
    RC_FAIL(broken);
  }
}

}  // namespace berth::testing
