// Delays, limits to a wait, pauses, and what follows what.

#include <gtest/gtest.h>

#include "core/apply_context.hpp"
#include "unit/core/policy_table.hpp"

namespace berth::testing {
namespace {

class Waits : public PolicyTable {};
TEST_P(Waits, Holds) {
  expect_row(GetParam());
}

const std::vector<Case> kDelays = {
    {"ADelayedJobDoesNotStartBefore",
     [](World& w) {
       w.submit({a_cpu_job().start_at(w.now.wall + kHour)});
       w.pass(kHour - Millis{1});
     },
     "", "1:delayed"},
    {"ADelayedJobStartsThen",
     [](World& w) {
       w.submit({a_cpu_job().start_at(w.now.wall + kHour)});
       w.pass(kHour);
     },
     "1:-", ""},
    {"ATimeThatHasPassedIsNoDelay",
     [](World& w) { w.submit({a_cpu_job().start_at(w.now.wall - kHour)}); }, "1:-", ""},
    {"ADelayedJobHoldsUpNobodyOfItsSerialQueue",
     [](World& w) {
       w.set_queue("s", 1);
       w.submit({a_cpu_job().queue("s").start_at(w.now.wall + kHour), a_cpu_job().queue("s")});
     },
     "2:-", "1:delayed+queue_limit"},
    {"ADelayedJobThatAlsoFollowsAnotherWaitsForBoth",
     [](World& w) {
       w.submit({a_cpu_job(), a_cpu_job().after_index(0).start_at(w.now.wall + kHour)});
       EXPECT_EQ(w.decide(), "1:-");
       w.succeed(1);
     },
     "", "2:delayed"},
    {"ADelayOverBeforeItsDependencyWaitsForThat",
     [](World& w) {
       w.submit({a_cpu_job(), a_cpu_job().after_index(0).start_at(w.now.wall + kHour)});
       EXPECT_EQ(w.decide(), "1:-");
       w.pass(kHour);
     },
     "", "2:dependency"},
    {"ADelayedJobKeepsItsPlaceByPriority",
     [](World& w) {
       w.see_idle(1);
       w.submit({a_job().priority(1).start_at(w.now.wall + kSecond), a_job()});
       w.pass(kSecond);
     },
     "1:0", "2:gpu(claimed)"},
};

/// The only card is taken by job 1; job 2 does not wait for ever.
void wait_an_hour_at_most(World& w, JobBuilder job = a_job()) {
  w.see_idle(1);
  w.submit({a_job()});
  EXPECT_EQ(w.decide(), "1:0");
  w.submit({job.rule("max_wait", "1h")});
}

/// A decision on a fresh look, and later the time.
void decide_and_pass(World& w, Millis time) {
  w.see_again();
  w.decide();
  w.pass(time);
  w.see_again();
}

const std::vector<Case> kLimits = {
    {"AJobThatOnlyMissingGpusHoldIsCancelledAfterItsMaxWait",
     [](World& w) {
       wait_an_hour_at_most(w);
       decide_and_pass(w, kHour);
       EXPECT_EQ(w.alive(), "1:running");
       EXPECT_EQ(w.stored(2), "cancelled");
       EXPECT_EQ(w.ledger.job(JobId{2}).message, "no GPU for it within 1h 00m, its max_wait");
     },
     "", ""},
    {"NotBefore",
     [](World& w) {
       wait_an_hour_at_most(w);
       decide_and_pass(w, kHour - Millis{1});
     },
     "", "2:gpu(claimed)"},
    {"JobsWaitForEverUnlessToldOtherwise",
     [](World& w) {
       w.see_idle(1);
       w.submit(copies(2, a_job()));
       decide_and_pass(w, 30 * kDay);
     },
     "", "2:gpu(claimed)"},
    {"WhatFollowsAGivenUpJobIsCancelledToo",
     [](World& w) {
       wait_an_hour_at_most(w);
       w.submit({a_cpu_job().after(2)});
       decide_and_pass(w, kHour);
       EXPECT_EQ(w.stored(3), "cancelled");
     },
     "", ""},
    {"APausedInstanceStopsTheClock",
     [](World& w) {
       wait_an_hour_at_most(w);
       decide_and_pass(w, 30 * kMinute);
       ASSERT_TRUE(w.apply(event::PauseInstance{true}));
       decide_and_pass(w, 10 * kHour);
       ASSERT_TRUE(w.apply(event::PauseInstance{false}));
       decide_and_pass(w, 29 * kMinute);
       EXPECT_EQ(w.alive(), "1:running 2:queued");
       decide_and_pass(w, kMinute);
     },
     "", ""},
    {"APausedQueueStopsTheClock",
     [](World& w) {
       wait_an_hour_at_most(w, a_job().queue("q"));
       decide_and_pass(w, 30 * kMinute);
       ASSERT_TRUE(w.apply(event::PauseQueue{"q", true}));
       decide_and_pass(w, 10 * kHour);
     },
     "", "2:queue_paused+gpu(claimed)"},
    {"APausedJobDoesNotWait",
     [](World& w) {
       wait_an_hour_at_most(w);
       decide_and_pass(w, 30 * kMinute);
       ASSERT_TRUE(w.apply(event::Pause{{JobId{2}}}));
       decide_and_pass(w, 10 * kHour);
       ASSERT_TRUE(w.apply(event::Resume{{JobId{2}}}));
       decide_and_pass(w, 29 * kMinute);
     },
     "", "2:gpu(claimed)"},
    {"AFullDiskStopsTheClock",
     [](World& w) {
       wait_an_hour_at_most(w);
       decide_and_pass(w, 30 * kMinute);
       w.fill_disk();
       decide_and_pass(w, 10 * kHour);
     },
     "", "2:space+gpu(claimed)"},
    {"ALimitThatHoldsItStopsTheClock",
     [](World& w) {
       w.rule("max_concurrent", "1");
       wait_an_hour_at_most(w);
       decide_and_pass(w, 10 * kHour);
     },
     "", "2:max_concurrent+gpu(claimed)"},
    {"MissingProcessorsStopTheClock",
     [](World& w) {
       w.state.host = {4, 0};
       w.see_idle(1);
       w.submit({a_job().cpus(4)});
       w.decide();
       w.submit({a_job().cpus(4).rule("max_wait", "1h")});
       decide_and_pass(w, 10 * kHour);
     },
     "", "2:cpus+gpu(claimed)"},
    {"ABlindProberStopsTheClock",
     [](World& w) {
       wait_an_hour_at_most(w);
       w.decide();
       ASSERT_TRUE(w.apply(event::ProbeFailed{"the driver hangs"}));
       ASSERT_TRUE(w.apply(event::Tick{}));
       w.decide();
       w.pass(10 * kHour);
     },
     "", "2:gpu(stale)"},
    {"AJobThatFollowsAnotherDoesNotWaitYet",
     [](World& w) {
       w.see_idle(1);
       w.submit({a_job(), a_job().after_index(0).rule("max_wait", "1h")});
       decide_and_pass(w, 10 * kHour);
     },
     "", "2:dependency+gpu(claimed)"},
    {"ADelayedJobDoesNotWaitYet",
     [](World& w) {
       wait_an_hour_at_most(w, a_job().start_at(w.now.wall + 5 * kHour));
       decide_and_pass(w, 5 * kHour);
       EXPECT_EQ(w.decide(), "");
       w.pass(kHour - Millis{1});
       w.see_again();
     },
     "", "2:gpu(claimed)"},
    {"InASerialQueueOnlyTheFirstWaitsForGpus",
     [](World& w) {
       w.see_idle(1);
       w.set_queue("s", 1);
       w.submit({a_job()});
       w.decide();
       w.submit(copies(3, a_job().queue("s").rule("max_wait", "1h")));
       decide_and_pass(w, kHour);
       EXPECT_EQ(w.alive(), "1:running 3:queued 4:queued");
       decide_and_pass(w, kHour - Millis{1});
       EXPECT_EQ(w.alive(), "1:running 3:queued 4:queued");
       decide_and_pass(w, Millis{1});
     },
     "", "4:gpu(claimed)"},
    {"WhoComesLaterInAnOpenQueueHasItsOwnHour",
     [](World& w) {
       wait_an_hour_at_most(w);
       decide_and_pass(w, 30 * kMinute);
       w.submit({a_job().rule("max_wait", "1h")});
       decide_and_pass(w, 30 * kMinute);
       EXPECT_EQ(w.alive(), "1:running 3:queued");
       decide_and_pass(w, 29 * kMinute);
     },
     "", "3:gpu(claimed)"},
    {"AQuotaThatHoldsItStopsTheClock",
     [](World& w) {
       w.rule("max_gpu", "1");
       w.see_idle(2);
       w.submit({a_job()});
       EXPECT_EQ(w.decide(), "1:0");
       w.submit({a_job().rule("max_wait", "1h")});
       decide_and_pass(w, 10 * kHour);
     },
     "", "2:quota"},
    {"TheQuotaOfItsBatchStopsTheClock",
     [](World& w) {
       w.see_idle(2);
       w.submit(a_submission(copies(2, a_job())).rule("max_gpu", "1").rule("max_wait", "1h"));
       EXPECT_EQ(w.decide(), "1:0");
       decide_and_pass(w, 10 * kHour);
     },
     "", "2:quota"},
    {"JobsOfItsOwnBatchOnTheCardsStopTheClock",
     [](World& w) {
       w.see_idle(2);
       w.submit(a_submission(copies(24, a_job())).rule("max_wait", "1h"));
       EXPECT_EQ(w.decide(), "1:0 2:1");
       for (std::uint64_t done = 1; done < 24; done += 2) {
         decide_and_pass(w, kHour);
         w.succeed(done);
         w.succeed(done + 1);
         w.wait(kSecond);
         w.see_idle(2);
         w.decide();
       }
       EXPECT_EQ(w.stored(24), "succeeded");
     },
     "", ""},
    {"ItsBatchOnOneOfTheCardsIsEnough",
     [](World& w) {
       w.see_idle(2);
       w.submit({a_job()});
       EXPECT_EQ(w.decide(), "1:0");
       w.submit(a_submission(copies(2, a_job())).rule("max_wait", "1h"));
       EXPECT_EQ(w.decide(), "2:1");
       decide_and_pass(w, 10 * kHour);
     },
     "", "3:gpu(claimed,claimed)"},
    {"OthersOnTheCardsThatItsBatchHadLetTheClockGoOn",
     [](World& w) {
       w.see_idle(1);
       w.submit(a_submission(copies(2, a_job())).rule("max_wait", "1h"));
       EXPECT_EQ(w.decide(), "1:0");
       decide_and_pass(w, 10 * kHour);
       w.submit({a_job().priority(1)});
       w.succeed(1);
       w.wait(kSecond);
       w.see_idle(1);
       EXPECT_EQ(w.decide(), "3:0");
       decide_and_pass(w, kHour - kSecond);
       EXPECT_EQ(w.alive(), "2:queued 3:running");
       decide_and_pass(w, kSecond);
       EXPECT_EQ(w.alive(), "3:running");
     },
     "", ""},
    {"ItsBatchOnACardThatItMayNotUseDoesNotStopTheClock",
     [](World& w) {
       w.see_idle(2);
       w.submit({a_job().rule("gpus", "0")});
       EXPECT_EQ(w.decide(), "1:0");
       w.submit(a_submission({a_job().rule("gpus", "1"), a_job().rule("gpus", "0")})
                    .rule("max_wait", "1h"));
       EXPECT_EQ(w.decide(), "2:1");
       decide_and_pass(w, kHour);
       EXPECT_EQ(w.alive(), "1:running 2:running");
     },
     "", ""},
    {"OfTwoUsersWithEqualRequestsBothAreGivenUp",
     [](World& w) {
       w.see_idle(1);
       w.submit({a_job()});
       w.decide();
       w.submit(a_submission({a_job().rule("max_wait", "1h")}).owner(1));
       w.submit(a_submission({a_job().rule("max_wait", "1h")}).owner(2));
       decide_and_pass(w, kHour);
       EXPECT_EQ(w.alive(), "1:running");
     },
     "", ""},
    {"AMaxWaitSetWhileItWaitsCountsFromThen",
     [](World& w) {
       w.see_idle(1);
       w.submit({a_job()});
       w.submit({a_job()});
       decide_and_pass(w, 10 * kHour);
       w.rule("max_wait", "1h");
       decide_and_pass(w, kHour - Millis{1});
       EXPECT_EQ(w.alive(), "1:running 2:queued");
       decide_and_pass(w, Millis{1});
     },
     "", ""},
};

const std::vector<Case> kPauses = {
    {"APausedInstanceStartsNothing",
     [](World& w) {
       w.see_idle(1);
       w.submit({a_job(), a_cpu_job()});
       ASSERT_TRUE(w.apply(event::PauseInstance{true}));
     },
     "", "1:instance_paused 2:instance_paused"},
    {"WhatRunsInAPausedInstanceGoesOn",
     [](World& w) {
       w.submit({a_cpu_job()});
       w.decide();
       ASSERT_TRUE(w.apply(event::PauseInstance{true}));
       EXPECT_EQ(w.effects(), "");
       EXPECT_EQ(w.alive(), "1:running");
     },
     "", ""},
    {"AResumedInstanceStartsWhatWaited",
     [](World& w) {
       w.submit({a_cpu_job()});
       ASSERT_TRUE(w.apply(event::PauseInstance{true}));
       EXPECT_EQ(w.decide(), "");
       ASSERT_TRUE(w.apply(event::PauseInstance{false}));
     },
     "1:-", ""},
    {"APausedInstanceTakesSubmissions",
     [](World& w) {
       ASSERT_TRUE(w.apply(event::PauseInstance{true}));
       w.submit({a_cpu_job()});
     },
     "", "1:instance_paused"},
    {"APausedInstanceStartsNothingByHandEither",
     [](World& w) {
       w.submit({a_cpu_job()});
       ASSERT_TRUE(w.apply(event::PauseInstance{true}));
       w.force(1);
     },
     "", "1:instance_paused"},
    {"OtherQueuesGoOnWhenOneIsPaused",
     [](World& w) {
       w.submit({a_cpu_job().queue("a"), a_cpu_job().queue("b")});
       ASSERT_TRUE(w.apply(event::PauseQueue{"a", true}));
     },
     "2:-", "1:queue_paused"},
    {"AResumedQueueStartsWhatWaited",
     [](World& w) {
       w.submit({a_cpu_job().queue("a")});
       ASSERT_TRUE(w.apply(event::PauseQueue{"a", true}));
       EXPECT_EQ(w.decide(), "");
       ASSERT_TRUE(w.apply(event::PauseQueue{"a", false}));
     },
     "1:-", ""},
};

/// Job 1 runs, and job 2 follows it.
void follow(World& w, After kind) {
  w.submit({a_cpu_job(), a_cpu_job().after_index(0).after_kind(kind)});
  EXPECT_EQ(w.decide(), "1:-");
}

const std::vector<Case> kFollowers = {
    {"AfterOkStartsAfterASuccess",
     [](World& w) {
       follow(w, After::ok);
       w.succeed(1);
     },
     "2:-", ""},
    {"AfterOkIsCancelledAfterAFailure",
     [](World& w) {
       follow(w, After::ok);
       w.fail(1);
       EXPECT_EQ(w.stored(2), "cancelled");
     },
     "", ""},
    {"AfterAnyStartsAfterASuccess",
     [](World& w) {
       follow(w, After::any);
       w.succeed(1);
     },
     "2:-", ""},
    {"AfterAnyStartsAfterAFailure",
     [](World& w) {
       follow(w, After::any);
       w.fail(1);
     },
     "2:-", ""},
    {"AfterAnyStartsAfterACancellation",
     [](World& w) {
       w.submit({a_cpu_job().start_at(w.now.wall + kHour),
                 a_cpu_job().after_index(0).after_kind(After::any)});
       w.kill({1});
     },
     "2:-", ""},
    {"AfterFailedStartsAfterAFailure",
     [](World& w) {
       follow(w, After::failed);
       w.fail(1);
     },
     "2:-", ""},
    {"AfterFailedIsCancelledAfterASuccess",
     [](World& w) {
       follow(w, After::failed);
       w.succeed(1);
       EXPECT_EQ(w.stored(2), "cancelled");
       EXPECT_EQ(w.ledger.job(JobId{2}).message, "job 1, which it was to follow, succeeded");
     },
     "", ""},
    {"AfterAnyOfSeveralWaitsForAll",
     [](World& w) {
       w.submit({a_cpu_job(), a_cpu_job(),
                 a_cpu_job().after_index(0).after_index(1).after_kind(After::any)});
       EXPECT_EQ(w.decide(), "1:- 2:-");
       w.fail(1);
     },
     "", "3:dependency"},
};

TEST(WaitClocks, OfJobsThatHaveRunAreForgottenEvenWhereNobodyAges) {
  World w;
  w.rule("aging", "0");
  for (std::uint64_t id = 1; id <= 20; ++id) {
    w.submit({a_cpu_job()});
    w.decide();
    w.succeed(id);
  }
  EXPECT_LE(w.state.wait_clocks.size(), 2U);
}

TEST(Delays, ThatEndAtOnceAreWorkedOffInSlices) {
  World w;
  constexpr std::size_t kJobs = kSlice + 100;
  w.submit(copies(kJobs, a_cpu_job().start_at(w.now.wall + kHour)));
  w.decide();
  w.wait(kHour);
  ASSERT_TRUE(w.apply(event::Tick{}));
  EXPECT_EQ(w.state.delays.size(), kJobs - kSlice);
  w.decide();
  EXPECT_EQ(w.state.waking, w.now.mono + Millis{1}) << "for the others";
  w.wait(Millis{1});
  ASSERT_TRUE(w.apply(event::Tick{}));
  EXPECT_TRUE(w.state.delays.empty());
}

INSTANTIATE_TEST_SUITE_P(Delays, Waits, ::testing::ValuesIn(kDelays), row_name);
INSTANTIATE_TEST_SUITE_P(Limits, Waits, ::testing::ValuesIn(kLimits), row_name);
INSTANTIATE_TEST_SUITE_P(Pauses, Waits, ::testing::ValuesIn(kPauses), row_name);
INSTANTIATE_TEST_SUITE_P(Followers, Waits, ::testing::ValuesIn(kFollowers), row_name);

}  // namespace
}  // namespace berth::testing
