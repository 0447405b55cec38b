// A restart finds what was there.

#include <random>

#include <gtest/gtest.h>

#include "unit/core/invariants.hpp"
#include "unit/core/policy_table.hpp"

namespace berth::testing {
namespace {

/// The world after a restart: what the ledger kept, and one fresh look at the same cards. What
/// lives in memory only (samples, ended claims, the full disk) is made equal first.
void expect_same_after_restart(World& w) {
  w.fill_disk(false);
  w.wait(Millis{10});
  World again;
  again.state = restore(w.ledger.snapshot(), w.state.rules, w.state.host, w.now);
  again.now = w.now;
  EXPECT_EQ(broken_invariant(again.state), "");
  w.see_idle(3);
  again.see_idle(3);
  EXPECT_EQ(fingerprint(again.state), fingerprint(w.state));
  const Decision live = decide(w.state, w.now);
  const Decision restored = decide(again.state, again.now);
  EXPECT_EQ(live.start, restored.start);
}

TEST(Restore, OfNothingIsEmpty) {
  const State state = restore({}, {}, {});
  EXPECT_TRUE(state.jobs.empty());
  EXPECT_EQ(broken_invariant(state), "");
}

TEST(Restore, KeepsTheClaimsOfOpenAttemptsUntilTheirFateIsKnown) {
  World w;
  w.see_idle(1);
  w.submit(copies(2, a_job()));
  w.decide();
  World again;
  again.state = restore(w.ledger.snapshot(), {}, {});
  EXPECT_EQ(again.decide(), " ?");
  again.see_idle(1);
  EXPECT_EQ(again.decide(), "");
  EXPECT_EQ(again.waits(), "2:gpu(claimed)");
}

TEST(Restore, RemembersWhatOpenAttemptsHaveUsed) {
  World w;
  w.see_idle(3);
  w.submit(a_submission({a_job(), a_job()}).owner(1));
  EXPECT_EQ(w.decide(), "1:0 2:1");
  w.wait(kHour);
  w.succeed(1);  // what was used until now is written down
  w.wait(kHour);
  w.see_idle(3);
  w.submit(a_submission({a_job()}).owner(2));
  EXPECT_EQ(w.decide(), "3:0");
  w.wait(kHour);
  World again;
  again.now = w.now;
  again.state = restore(w.ledger.snapshot(), w.state.rules, w.state.host, w.now);
  ASSERT_EQ(again.state.used_by_owner.size(), 2U);
  for (const auto& [owner, usage] : w.state.used_by_owner) {
    const Usage& known = again.state.used_by_owner.at(owner);
    EXPECT_EQ(known.gpus, usage.gpus) << owner;
    EXPECT_DOUBLE_EQ(known.now(w.now.mono, w.state.rules.half_life),
                     usage.now(w.now.mono, w.state.rules.half_life))
        << owner;
  }
}

/// When the wait of a job began, seen by the next daemon, before now.
Millis waited_after_restart(const World& w, std::uint64_t job) {
  const State state = restore(w.ledger.snapshot(), w.state.rules, w.state.host, w.now);
  return w.now.mono - state.job(JobId{job})->since;
}

TEST(Restore, CountsAWaitFromWhereItBegan) {
  World w;
  w.see_idle(1);
  w.submit({a_job().time(30 * kDay)});
  EXPECT_EQ(w.decide(), "1:0");
  w.submit({a_job(), a_job().start_at(w.now.wall + 20 * kHour)});
  w.submit({a_cpu_job()});
  w.submit({a_job().after(4)});
  w.decide();
  w.pass(21 * kHour);
  w.succeed(4);
  w.pass(2 * kHour);
  EXPECT_EQ(waited_after_restart(w, 2), 23 * kHour);
  EXPECT_EQ(waited_after_restart(w, 3), 3 * kHour) << "its delay does not count";
  EXPECT_EQ(waited_after_restart(w, 5), 2 * kHour) << "nor does what it followed";
}

TEST(Restore, CountsAWaitAfterAnAttemptFromItsEnd) {
  World w;
  w.see_idle(1);
  w.submit({a_job().retries(1)});
  EXPECT_EQ(w.decide(), "1:0");
  w.pass(5 * kHour);
  w.fail(1);
  w.pass(kHour);
  EXPECT_EQ(waited_after_restart(w, 1), kHour);
}

TEST(Restore, NeverIssuesAnIdAgain) {
  World w;
  w.submit(copies(2, a_cpu_job()));
  w.decide();
  w.succeed(1);
  w.succeed(2);
  World again;
  again.state = restore(w.ledger.snapshot(), {}, {});
  EXPECT_EQ(again.submit(copies(2, a_cpu_job())), (Submitted{BatchId{2}, JobId{3}, 2}));
  again.decide();
  EXPECT_EQ(again.attempt_of(3), AttemptId{3});
}

TEST(Restore, KeepsSerialQueuesSerial) {
  World w;
  w.set_queue("s", 1);
  w.submit(copies(3, a_cpu_job().queue("s")));
  w.decide();
  World again;
  again.state = restore(w.ledger.snapshot(), {}, {});
  EXPECT_EQ(again.decide(), "");
  EXPECT_EQ(again.waits(), "2:queue_limit 3:queue_limit");
}

TEST(Restore, KeepsAQueueClosedThatRunsMoreThanItsLoweredLimit) {
  World w;
  w.set_queue("q", 3);
  w.submit(copies(4, a_cpu_job().queue("q")));
  w.decide();
  w.set_queue("q", 2);
  w.submit({a_cpu_job().queue("q")});
  expect_same_after_restart(w);
}

TEST(Restore, KeepsAKillThatWasUnderWay) {
  World w;
  w.submit({a_cpu_job().retries(3)});
  w.decide();
  w.kill({1});
  const State state = restore(w.ledger.snapshot(), {}, {});
  EXPECT_TRUE(state.job(JobId{1})->kill_requested);
}

TEST(Restore, EqualsTheLiveStateAfterAnyHistory) {
  for (std::uint32_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const auto below = [&random](std::size_t n) {
      return static_cast<std::uint32_t>(random() % n);
    };
    World w;
    w.set_resource("licence", 3);
    w.see_idle(3);
    for (int step = 0; step < 80; ++step) {
      std::vector<std::uint64_t> running;
      std::vector<std::uint64_t> alive;
      for (std::uint64_t id = 1; id <= w.state.last_job.value; ++id) {
        if (const Job* job = w.state.job(JobId{id})) {
          alive.push_back(id);
          if (job->state == JobState::running) {
            running.push_back(id);
          }
        }
      }
      const std::uint32_t what = below(8);
      if (what < 3 || alive.empty()) {
        w.set_queue("q", below(4));
        event::Submit submit;
        submit.batch_max_concurrent = below(3);
        submit.queues = {{"q", below(4)}};
        submit.resources = {{"licence", 3}};
        for (std::uint32_t i = 0; i <= below(4); ++i) {
          auto job = a_job().gpus(below(3)).queue(below(2) == 0 ? "q" : "default");
          job.priority(static_cast<std::int32_t>(below(3))).retries(below(2));
          if (below(2) == 0) {
            job.memory((1 + below(12)) * kGiB);
          }
          if (below(4) == 0) {
            job.resource("licence", 1 + below(2)).cpus(1);
          }
          if (i > 0 && below(3) == 0) {
            job.after_index(below(i));
          }
          if (!alive.empty() && below(4) == 0) {
            job.after(alive[below(alive.size())]);
          }
          submit.jobs.push_back(job);
        }
        w.submit(std::move(submit));
      } else if (what == 3) {
        w.kill({alive[below(alive.size())]});
      } else if (what == 4) {
        w.wait(Millis{10});
        w.see_again();
      } else if (!running.empty()) {
        const std::uint64_t id = running[below(running.size())];
        what == 5 ? w.succeed(id) : what == 6 ? w.fail(id) : w.revoke(id);
      }
      w.decide();
    }
    expect_same_after_restart(w);
    if (::testing::Test::HasFailure()) {
      return;
    }
  }
}

}  // namespace
}  // namespace berth::testing
