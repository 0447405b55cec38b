// What holds of every history, whatever happens in it.

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <rapidcheck/gtest.h>  // needs the one above

#include "core/decide.hpp"
#include "core/reason.hpp"
#include "core/standing.hpp"
#include "property/history.hpp"
#include "unit/core/builders.hpp"
#include "unit/core/invariants.hpp"

namespace berth::testing {
namespace {

std::vector<const Job*> ready_jobs_in_order(const State& state) {
  std::vector<const Job*> jobs;
  for (const auto& [id, job] : state.jobs) {
    if (job.ready()) {
      jobs.push_back(&job);
    }
  }
  std::ranges::sort(jobs, {}, [&state](const Job* job) { return state.order(*job); });
  return jobs;
}

/// The policy in its plainest form: walk the whole backlog in order.
std::vector<Placement> decide_by_walking(const State& state, Now now) {
  std::vector<Placement> start;
  if (state.low_space) {
    return start;
  }
  Room room(state, now);
  std::map<QueueId, std::uint32_t> in_queue;
  std::map<BatchId, std::uint32_t> in_batch;
  std::set<QueueId> visited;
  std::set<JobId> first_of_queue;
  for (const Job* job : ready_jobs_in_order(state)) {
    if (job->expedited || visited.insert(job->queue).second) {
      first_of_queue.insert(job->id);
    }
  }
  std::vector<const Job*> jobs = ready_jobs_in_order(state);
  std::ranges::sort(jobs, {}, [&](const Job* job) { return standing(state, *job, now); });
  for (const Job* job : jobs) {
    const Queue& queue = state.queues.at(job->queue);
    const auto batch = state.batches.find(job->batch);
    const std::uint32_t batch_limit =
        batch == state.batches.end() ? 0 : batch->second.max_concurrent;
    if ((!job->expedited &&
         ((state.rules.max_concurrent != 0 &&
           state.running + start.size() >= state.rules.max_concurrent) ||
          queue.paused ||
          (queue.limit != 0 && queue.running + in_queue[job->queue] >= queue.limit) ||
          (queue.limit == 1 && !first_of_queue.contains(job->id)) ||
          (batch_limit != 0 && batch->second.running + in_batch[job->batch] >= batch_limit)))) {
      continue;
    }
    const Wish wish = wish_of(state, *job);
    if (const auto gpus = room.place(wish)) {
      room.take(wish, *gpus);
      ++in_queue[job->queue];
      ++in_batch[job->batch];
      start.push_back({job->id, *gpus});
    }
  }
  return start;
}

RC_GTEST_PROP(DecideProps, never_promises_a_card_twice_or_beyond_its_memory, ()) {
  Player player(Limits::changing, any_rules());
  play(player, any_history(), kNothing, [&] { expect_none(broken_claim(player.state)); });
}

RC_GTEST_PROP(DecideProps, counters_equal_their_recomputation, ()) {
  Player player(Limits::changing, any_rules());
  play(player, any_history(), kNothing, [&] { expect_none(broken_counter(player.state)); });
}

RC_GTEST_PROP(DecideProps, the_ready_index_equals_its_recomputation, ()) {
  Player player(Limits::changing, any_rules());
  play(
      player, any_history(), [&](auto&&) { expect_none(broken_index(player.state)); },
      [&] { expect_none(broken_index(player.state)); });
}

RC_GTEST_PROP(DecideProps, limits_hold_while_nobody_changes_them, ()) {
  Player player(Limits::fixed, any_rules());
  play(player, any_history(), kNothing, [&] { expect_none(broken_limit(player.state)); });
}

RC_GTEST_PROP(DecideProps, serial_queues_start_their_first_job, ()) {
  Player player(Limits::changing);
  const auto check = [&player](const Decision& decision) {
    for (const Placement& placement : decision.start) {
      const Job& job = *player.state.job(placement.job);
      if (player.state.queues.at(job.queue).limit != 1 || job.expedited) {
        continue;
      }
      for (const Job* other : ready_jobs_in_order(player.state)) {
        RC_ASSERT((other->queue != job.queue || other->expedited ||
                   !(player.state.order(*other) < player.state.order(job))));
      }
    }
  };
  play(player, any_history(), check, kNothing);
}

RC_GTEST_PROP(DecideProps, nothing_held_starts_and_a_paused_queue_starts_only_what_was_asked_for,
              ()) {
  Player player(Limits::changing);
  const auto check = [&player](const Decision& decision) {
    for (const Placement& placement : decision.start) {
      const Job& job = *player.state.job(placement.job);
      RC_ASSERT(job.state == JobState::queued);
      RC_ASSERT((job.expedited || !player.state.queues.at(job.queue).paused));
    }
  };
  play(player, any_history(), check, kNothing);
}

RC_GTEST_PROP(DecideProps, the_index_finds_what_walking_the_backlog_finds, ()) {
  Player player(Limits::changing, plain_rules());
  const auto check = [&player](const Decision& decision) {
    // Looking only at what changed must miss nothing, and order must be the backlog's.
    RC_ASSERT(decision.start == decide_by_walking(player.state, player.now));
  };
  play(player, any_history(), check, kNothing);
}

RC_GTEST_PROP(DecideProps, equal_states_give_equal_decisions, ()) {
  Player player(Limits::changing, any_rules());
  const auto check = [&player](const Decision& decision) {
    const State copy = player.state;
    const Decision again = decide(copy, player.now);
    RC_ASSERT(again.start == decision.start);
    RC_ASSERT(again.want_sample == decision.want_sample);
    RC_ASSERT(again.preempt == decision.preempt);
    RC_ASSERT(again.hold == decision.hold);
    RC_ASSERT(again.expected == decision.expected);
  };
  play(player, any_history(), check, kNothing);
}

RC_GTEST_PROP(DecideProps, deciding_again_right_away_starts_nothing, ()) {
  // Where cards are kept, a whole look may keep others for somebody else.
  Player player(Limits::changing, plain_rules());
  play(player, any_history(), kNothing, [&player] {
    State again = player.state;
    again.recheck_all = true;
    RC_ASSERT(decide(again, player.now).start.empty());
  });
}

RC_GTEST_PROP(DecideProps, every_waiting_job_has_a_reason_and_none_is_due, ()) {
  Player player(Limits::changing, any_rules());
  play(player, any_history(), kNothing, [&player] {
    for (const auto& [id, job] : player.state.jobs) {
      const auto reasons = explain(player.state, job, player.now);
      RC_ASSERT(reasons.empty() == !job.waits());
      for (const Reason& reason : reasons) {
        RC_ASSERT(reason.kind != Reason::Kind::due);
        RC_ASSERT(!reason.text.empty());
      }
    }
  });
}

RC_GTEST_PROP(DecideProps, what_starts_first_had_no_reason_to_wait, ()) {
  Player player(Limits::changing, any_rules());
  const auto check = [&player](const Decision& decision) {
    if (!decision.start.empty()) {
      const Job& job = *player.state.job(decision.start.front().job);
      const auto reasons = explain(player.state, job, player.now);
      RC_ASSERT(reasons.size() == 1U);
      RC_ASSERT(reasons.front().kind == Reason::Kind::due);
    }
  };
  play(player, any_history(), check, kNothing);
}

RC_GTEST_PROP(DecideProps, the_only_free_card_goes_to_the_first_job_that_fits_it, ()) {
  State state;
  Step step;
  const Now now{Millis{1000}, Millis{0}};
  const Bytes total = 24 * kGiB;
  const std::size_t free_card = *rc::gen::inRange<std::size_t>(0, 4);
  GpuSample sample;
  sample.begun_mono = now.mono;
  for (std::uint32_t i = 0; i < 4; ++i) {
    auto card = a_gpu(i);
    if (i != free_card) {
      card.utilization(90).with(a_stranger().memory(20 * kGiB));
    }
    sample.gpus.push_back(card);
  }
  RC_ASSERT(apply(state, event::Sampled{sample}, now, step).has_value());
  event::Submit submit;
  submit.jobs.resize(*rc::gen::inRange<std::size_t>(1, 30), a_job());
  for (JobSpec& job : submit.jobs) {
    job.priority = *rc::gen::inRange(0, 4);
    job.request.gpus.min = job.request.gpus.max = *rc::gen::inRange(1U, 4U);
    if (*rc::gen::arbitrary<bool>()) {
      job.request.gpu_memory = *rc::gen::inRange<Bytes>(1, 40) * kGiB;
    }
  }
  const auto fits = [&](const JobSpec& job) {
    return job.request.gpus.min == 1 && job.request.gpu_memory.value_or(0) <= total;
  };
  std::optional<OrderKey> expected;
  for (std::size_t i = 0; i < submit.jobs.size(); ++i) {
    const OrderKey key{true,        true, 0, submit.jobs[i].priority, 0, usual_rank(JobId{i + 1}),
                       JobId{i + 1}};
    if (fits(submit.jobs[i]) && (!expected || key < *expected)) {
      expected = key;
    }
  }
  RC_ASSERT(apply(state, submit, now, step).has_value());
  const Decision decision = decide(state, now);
  RC_ASSERT(decision.start.empty() == !expected);
  if (expected) {
    RC_ASSERT(decision.start.front().job == expected->job);
    RC_ASSERT(decision.start.front().gpus == std::vector{free_card});
  }
}

RC_GTEST_PROP(DecideProps, the_last_cards_are_left_to_others, ()) {
  Rules rules = any_rules();
  rules.gpu_left = *rc::gen::inRange(1U, 4U);
  rules.gpu_left_mode = LeftMode::last;
  Player player(Limits::changing, rules);
  const auto check = [&](const Decision& decision) {
    std::vector<std::uint32_t> indices;
    for (const Gpu& gpu : player.state.gpus) {
      if (gpu.known) {
        indices.push_back(gpu.facts.index);
      }
    }
    std::ranges::sort(indices);
    for (const Placement& placement : decision.start) {
      for (const std::size_t gpu : placement.gpus) {
        const auto at = std::ranges::find(indices, player.state.gpus[gpu].facts.index);
        const bool left = indices.end() - at <= std::ptrdiff_t{rules.gpu_left};
        RC_ASSERT((player.state.job(placement.job)->expedited || !left));
      }
    }
  };
  play(player, any_history(), check, kNothing);
}

RC_GTEST_PROP(DecideProps, no_more_cards_are_in_use_than_the_quota_says, ()) {
  Rules rules = any_rules();
  rules.max_gpu = *rc::gen::inRange(1U, 3U);
  Player player(Limits::changing, rules);
  const auto check = [&](const Decision& decision) {
    std::set<std::size_t> used;
    for (std::size_t i = 0; i < player.state.gpus.size(); ++i) {
      if (!player.state.gpus[i].claims.empty()) {
        used.insert(i);
      }
    }
    for (const Placement& placement : decision.start) {
      const bool forced = player.state.job(placement.job)->expedited;
      for (const std::size_t gpu : placement.gpus) {
        RC_ASSERT((forced || used.contains(gpu) || used.size() < rules.max_gpu));
        used.insert(gpu);
      }
    }
  };
  play(player, any_history(), check, kNothing);
}

RC_GTEST_PROP(DecideProps, nobody_overtakes_a_job_of_its_kind_that_has_waited_too_long, ()) {
  Rules rules = any_rules();
  rules.aging = *rc::gen::element(Millis{50}, Millis{1'000}, Millis{10'000});
  Player player(Limits::changing, rules);
  const auto check = [&player](const Decision& decision) {
    std::set<ShapeId> waits;
    for (const auto& [id, job] : player.state.jobs) {
      const bool starts = std::ranges::any_of(
          decision.start, [&job](const Placement& p) { return p.job == job.id; });
      const auto batch = player.state.batches.find(job.batch);
      // One whose lane is closed is not overtaken: the others are closed out with it.
      if (job.ready() && job.aged && !starts && !player.state.avoiding.contains(id) &&
          (batch == player.state.batches.end() || !batch->second.open)) {
        waits.insert(job.shape);
      }
    }
    for (const Placement& placement : decision.start) {
      const Job& job = *player.state.job(placement.job);
      RC_ASSERT((job.aged || job.expedited || !waits.contains(job.shape)));
    }
  };
  play(player, any_history(), check, kNothing);
}

RC_GTEST_PROP(DecideProps, a_paused_instance_starts_nothing, ()) {
  Player player(Limits::changing, any_rules());
  player.state.paused = true;
  const auto check = [](const Decision& decision) { RC_ASSERT(decision.start.empty()); };
  play(player, any_history(), check, kNothing);
}

RC_GTEST_PROP(DecideProps, only_who_agreed_to_it_is_displaced_and_only_by_higher_priority, ()) {
  Player player(Limits::changing, any_rules());
  const auto check = [&player](const Decision& decision) {
    for (const Preemption& preemption : decision.preempt) {
      const Attempt& attempt = player.state.attempts.at(preemption.attempt);
      const Job& victim = *player.state.job(attempt.job);
      RC_ASSERT(player.state.rules_of(victim).preemptible);
      RC_ASSERT(victim.priority > player.state.job(preemption.by)->priority);
      RC_ASSERT(!attempt.leaves());
    }
  };
  play(player, any_history(), check, kNothing);
}

RC_GTEST_PROP(DecideProps, a_job_is_alive_or_has_ended_but_never_lost, ()) {
  Player player(Limits::changing, any_rules());
  play(player, any_history(), kNothing, [&player] {
    for (std::uint64_t id = 1; id <= player.state.last_job.value; ++id) {
      const Job* job = player.state.job(JobId{id});
      const JobState stored = player.ledger.job(JobId{id}).state;
      RC_ASSERT(is_terminal(stored) == (job == nullptr));
      RC_ASSERT((job == nullptr || job->state == stored));  // captured, || would not stop early
    }
  });
}

RC_GTEST_PROP(RestoreProps, a_restart_finds_what_was_there, ()) {
  Rules rules = any_rules();
  // Which card was taken last, and who has waited how long in line, are not stored.
  RC_PRE(rules.strategy != Strategy::round_robin);
  rules.hold_after = Millis{0};
  Player player(Limits::changing, rules);
  const auto history = any_history();
  play(player, history, kNothing, kNothing);
  Player again = player;
  again.state =
      restore(player.ledger.snapshot(), player.state.rules, player.state.host, player.now);
  expect_none(broken_invariant(again.state));
  // What lives in memory only, the sight of the cards and of the disk and where jobs have failed,
  // is made equal first.
  player.state.avoiding.clear();
  player.state.bereft.clear();
  player.settle();
  again.settle();
  const auto decide_both = [&player, &again] {
    RC_ASSERT(fingerprint(again.state) == fingerprint(player.state));
    const Decision live = decide(player.state, player.now);
    RC_ASSERT(decide(again.state, again.now).start == live.start);
    player.apply(live);
    again.apply(live);
    RC_ASSERT(fingerprint(again.state) == fingerprint(player.state));
  };
  decide_both();  // with which it is known who wants to know of the cards
  for (const Op& op : *rc::gen::arbitrary<History>()) {
    player.play(op);
    again.play(op);
    decide_both();
  }
}

}  // namespace
}  // namespace berth::testing
