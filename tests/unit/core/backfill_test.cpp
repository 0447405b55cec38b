// Who may overtake a job that waits for cards.

#include <gtest/gtest.h>

#include "unit/core/policy_table.hpp"

namespace berth::testing {
namespace {

class Backfilling : public PolicyTable {};
TEST_P(Backfilling, Holds) {
  expect_row(GetParam());
}

/// Of two cards one is taken by job 1, and job 2 waits for both. Card 1 is free.
void wait_for_both(World& w, const JobSpec& running) {
  w.see_idle(2);
  w.submit({running});
  EXPECT_EQ(w.decide(), "1:0");
  w.submit({a_job().gpus(2)});
  EXPECT_EQ(w.decide(), "");
  w.see_again();
}

const std::vector<Case> kKnown = {
    {"AJobThatIsGoneInTimeMayOvertake",
     [](World& w) {
       wait_for_both(w, a_job().time(kHour));
       w.submit({a_job().time(kHour)});
     },
     "3:1", "2:gpu(claimed,claimed)"},
    {"AJobThatTakesLongerMayNot",
     [](World& w) {
       wait_for_both(w, a_job().time(kHour));
       w.submit({a_job().time(kHour + Millis{1})});
     },
     "", "2:gpu(claimed) 3:gpu(claimed,held)"},
    {"AJobThatMayTakeForEverMayNot",
     [](World& w) {
       wait_for_both(w, a_job().time(kHour));
       w.submit({a_job()});
     },
     "", "2:gpu(claimed) 3:gpu(claimed,held)"},
    {"WhatIsLeftOfARunCountsNotAllOfIt",
     [](World& w) {
       wait_for_both(w, a_job().time(kHour));
       w.wait(40 * kMinute);
       w.see_again();
       w.submit({a_job().time(30 * kMinute), a_job().time(20 * kMinute)});
     },
     "4:1", "2:gpu(claimed,claimed) 3:gpu(claimed,claimed)"},
    {"ASmallShareMayNotEither",
     [](World& w) {
       wait_for_both(w, a_job().time(kHour));
       w.submit({a_job().memory(kGiB)});
     },
     "", "2:gpu(claimed) 3:gpu(claimed,held)"},
    {"OtherCardsAreNotKept",
     [](World& w) {
       w.see_idle(3);
       w.submit({a_job().time(kHour).rule("gpus", "0")});
       w.decide();
       w.submit({a_job().gpus(2).rule("gpus", "0-1")});
       w.decide();
       w.see_again();
       w.submit({a_job()});
     },
     "3:2", "2:gpu(claimed,not_allowed)"},
    {"JobsWithoutCardsAreNotConcerned",
     [](World& w) {
       wait_for_both(w, a_job().time(kHour));
       w.submit({a_cpu_job()});
     },
     "3:-", "2:gpu(claimed)"},
    {"WhoWaitedGetsItsCardsInTheEnd",
     [](World& w) {
       wait_for_both(w, a_job().time(kHour));
       w.submit({a_job()});
       EXPECT_EQ(w.decide(), "");
       w.succeed(1);
       w.wait(Millis{1});
       w.see_again();
     },
     "2:0+1", "3:gpu(claimed,claimed)"},
    {"AJobOfHigherPriorityIsNotHeldUp",
     [](World& w) {
       wait_for_both(w, a_job().time(kHour));
       EXPECT_EQ(w.decide(), "");
       w.submit({a_job().priority(1)});
     },
     "3:1", "2:gpu(claimed,claimed)"},
    {"WhatIsStartedByHandIsNotHeldUp",
     [](World& w) {
       wait_for_both(w, a_job().time(kHour));
       w.submit({a_job()});
       EXPECT_EQ(w.decide(), "");
       w.force(3);
     },
     "3:1", "2:gpu(claimed,claimed)"},
    {"CardsAreKeptBetweenLooksToo",
     [](World& w) {
       wait_for_both(w, a_job().time(kHour));
       EXPECT_EQ(w.decide(), "");
       w.submit({a_job()});
     },
     "", "2:gpu(claimed) 3:gpu(claimed,held)"},
    {"CardsAreNotKeptForACancelledJob",
     [](World& w) {
       wait_for_both(w, a_job().time(kHour));
       w.submit({a_job()});
       EXPECT_EQ(w.decide(), "");
       w.kill({2});
     },
     "3:1", ""},
    {"CardsAreNotKeptForAHeldJob",
     [](World& w) {
       wait_for_both(w, a_job().time(kHour));
       w.submit({a_job()});
       EXPECT_EQ(w.decide(), "");
       ASSERT_TRUE(w.apply(event::Pause{{JobId{2}}}));
     },
     "3:1", "2:held+gpu(claimed,claimed)"},
    {"CardsAreKeptForTheFirstOnly",
     [](World& w) {
       w.see_idle(3);
       w.submit({a_job().time(kHour).rule("gpus", "0")});
       w.decide();
       w.submit({a_job().gpus(2).rule("gpus", "0-1"), a_job().gpus(3), a_job()});
       w.see_again();
     },
     "4:2", "2:gpu(claimed,not_allowed) 3:gpu(claimed,held,claimed)"},
    {"ACardWhoseJobHasJustEndedIsKeptToo",
     [](World& w) {
       wait_for_both(w, a_job());
       w.submit({a_job()});
       w.succeed(1);
     },
     "", "2:gpu(ending) 3:gpu(ending,held)"},
};

const std::vector<Case> kUnknownEnds = {
    {"ForAStartThatCannotBeForetoldNoCardIsKeptAtFirst",
     [](World& w) {
       wait_for_both(w, a_job());
       w.submit({a_job()});
     },
     "3:1", "2:gpu(claimed,claimed)"},
    {"AfterTenMinutesItIs",
     [](World& w) {
       wait_for_both(w, a_job());
       w.wait(10 * kMinute);
       w.see_again();
       w.submit({a_job()});
     },
     "", "2:gpu(claimed) 3:gpu(claimed,held)"},
    {"NotBefore",
     [](World& w) {
       wait_for_both(w, a_job());
       w.wait(10 * kMinute - Millis{1});
       w.see_again();
       w.submit({a_job()});
     },
     "3:1", "2:gpu(claimed,claimed)"},
    {"ThenNotEvenShortJobsOvertake",
     [](World& w) {
       wait_for_both(w, a_job());
       w.wait(10 * kMinute);
       w.see_again();
       w.submit({a_job().time(kSecond)});
     },
     "", "2:gpu(claimed) 3:gpu(claimed,held)"},
    {"HowLongCanBeSet",
     [](World& w) {
       w.rule("hold_after", "1h");
       wait_for_both(w, a_job());
       w.wait(59 * kMinute);
       w.see_again();
       w.submit({a_job()});
     },
     "3:1", "2:gpu(claimed,claimed)"},
    {"HowLongMayBeNothing",
     [](World& w) {
       w.rule("hold_after", "0");
       wait_for_both(w, a_job());
       w.submit({a_job()});
     },
     "", "2:gpu(claimed) 3:gpu(claimed,held)"},
    {"TheEndOfAPausedJobCannotBeForetold",
     [](World& w) {
       wait_for_both(w, a_job().time(kHour));
       ASSERT_TRUE(w.apply(event::Pause{{JobId{1}}}));
       w.see_again();
       w.submit({a_job()});
     },
     "3:1", "2:gpu(claimed,claimed)"},
    {"NoCardIsKeptWhereStrangersAreInTheWay",
     [](World& w) {
       w.see({a_gpu(0).utilization(95).with(a_stranger().memory(4 * kGiB).utilization(95)),
              a_gpu(1)});
       w.submit({a_job().gpus(2)});
       EXPECT_EQ(w.decide(), "");
       w.wait(kHour);
       w.see_again();
       w.submit({a_job()});
     },
     "2:1", "1:gpu(utilization,claimed)"},
};

const std::vector<Case> kModes = {
    {"AnybodyMayOvertakeIfThatIsTheRule",
     [](World& w) {
       w.rule("backfill", "any");
       wait_for_both(w, a_job().time(kHour));
       w.submit({a_job()});
     },
     "3:1", "2:gpu(claimed,claimed)"},
    {"NobodyMayOvertakeIfThatIsTheRule",
     [](World& w) {
       w.rule("backfill", "none");
       wait_for_both(w, a_job().time(kHour));
       w.submit({a_job().time(kSecond), a_cpu_job()});
       EXPECT_EQ(w.decide(), "4:-");
     },
     "", "2:gpu(claimed) 3:gpu(claimed,held)"},
    {"NobodyMayOvertakeBetweenLooksEither",
     [](World& w) {
       w.rule("backfill", "none");
       wait_for_both(w, a_job().time(kHour));
       EXPECT_EQ(w.decide(), "");
       w.submit({a_job().time(kSecond)});
     },
     "", "2:gpu(claimed) 3:gpu(claimed,held)"},
    {"NobodyMayOvertakeOnOtherCardsEither",
     [](World& w) {
       w.rule("backfill", "none");
       w.see_idle(3);
       w.submit({a_job().time(kHour).rule("gpus", "0")});
       w.decide();
       w.submit({a_job().gpus(2).rule("gpus", "0-1"), a_job()});
       w.see_again();
     },
     "", "2:gpu(claimed,not_allowed) 3:gpu(claimed,held,held)"},
    {"NobodyStillStartsWhatGoesFirst",
     [](World& w) {
       w.rule("backfill", "none");
       wait_for_both(w, a_job().time(kHour));
       w.submit({a_job().priority(1)});
     },
     "3:1", "2:gpu(claimed,claimed)"},
};

/// Job 1 has just left three of four cards, job 2 wants two of them, and job 3 the fourth.
void leave_three(World& w, std::vector<JobSpec> jobs) {
  w.see_idle(4);
  event::Submit submit;
  submit.jobs = std::move(jobs);
  submit.batch_max_concurrent = submit.jobs.front().name == "batch" ? 1 : 0;
  w.submit(submit);
  EXPECT_EQ(w.decide(), "1:0+1+2");
  w.succeed(1);
  w.wait(Millis{1});
}

const std::vector<Case> kPlaces = {
    {"WhoGoesFirstKeepsItsPlaceUntilItsCardsAreSeen",
     [](World& w) {
       w.rule("max_concurrent", "1");
       leave_three(w, {a_job().gpus(3), a_job().gpus(2), a_job()});
       EXPECT_EQ(w.decide(), "");
       EXPECT_EQ(w.said(3), "job 2 goes first and has the last place that max_concurrent leaves");
       w.see_again();
     },
     "2:0+1", "3:max_concurrent"},
    {"ItKeepsItBetweenLooksToo",
     [](World& w) {
       w.rule("max_concurrent", "1");
       leave_three(w, {a_job().gpus(3), a_job().gpus(2)});
       EXPECT_EQ(w.decide(), "");
       w.submit({a_cpu_job()});
     },
     "", "2:gpu(ending,ending,ending) 3:max_concurrent"},
    {"ItKeepsThatOfItsBatch",
     [](World& w) { leave_three(w, {a_job().gpus(3).named("batch"), a_job().gpus(2), a_job()}); },
     "", "2:gpu(ending,ending,ending) 3:batch_limit"},
    {"ItKeepsThatOfItsQueue",
     [](World& w) {
       w.set_queue("pair", 2);
       w.submit({a_cpu_job().queue("pair")});
       EXPECT_EQ(w.decide(), "1:-");
       w.see_idle(4);
       w.submit(
           {a_job().gpus(3).queue("pair"), a_job().gpus(2).queue("pair"), a_job().queue("pair")});
       EXPECT_EQ(w.decide(), "2:0+1+2");
       w.succeed(2);
     },
     "", "3:gpu(ending,ending,ending) 4:queue_limit"},
    {"OthersHaveIfTheLookShowsThatItDoesNotFit",
     [](World& w) {
       w.rule("max_concurrent", "1");
       leave_three(w, {a_job().gpus(3), a_job().gpus(2), a_job()});
       EXPECT_EQ(w.decide(), "");
       const auto taken = [](std::uint32_t index) {
         return a_gpu(index).utilization(90).with(a_stranger().memory(20 * kGiB).utilization(90));
       };
       w.see({taken(0), taken(1), taken(2), a_gpu(3)});
     },
     "3:3", "2:max_concurrent+gpu(utilization,utilization,utilization,claimed)"},
    {"OthersHaveItIfTheJobIsCancelled",
     [](World& w) {
       w.rule("max_concurrent", "1");
       leave_three(w, {a_job().gpus(3), a_job().gpus(2), a_job()});
       EXPECT_EQ(w.decide(), "");
       w.kill({2});
     },
     "3:3", ""},
    {"OthersHaveItWhereAnybodyMayOvertake",
     [](World& w) {
       w.rule("max_concurrent", "1");
       w.rule("backfill", "any");
       leave_three(w, {a_job().gpus(3), a_job().gpus(2), a_job()});
     },
     "3:3", "2:max_concurrent+gpu(ending,ending,ending,claimed)"},
    {"TheLargestKeepsItsPlaceWhereItGoesFirst",
     [](World& w) {
       w.rule("max_concurrent", "1");
       w.rule("order", "largest_first");
       leave_three(w, {a_job().gpus(3), a_job(), a_job().gpus(2)});
       EXPECT_EQ(w.decide(), "");
       w.see_again();
     },
     "3:0+1", "2:max_concurrent"},
    {"WhoWaitsForTheFirstLookKeepsItsPlace",
     [](World& w) {
       w.rule("max_concurrent", "1");
       w.submit({a_job(), a_cpu_job()});
       EXPECT_EQ(w.decide(), " ?");
       w.see_idle(1);
     },
     "1:0", "2:max_concurrent"},
};

INSTANTIATE_TEST_SUITE_P(Places, Backfilling, ::testing::ValuesIn(kPlaces), row_name);
INSTANTIATE_TEST_SUITE_P(Known, Backfilling, ::testing::ValuesIn(kKnown), row_name);
INSTANTIATE_TEST_SUITE_P(UnknownEnds, Backfilling, ::testing::ValuesIn(kUnknownEnds), row_name);
INSTANTIATE_TEST_SUITE_P(Modes, Backfilling, ::testing::ValuesIn(kModes), row_name);

}  // namespace
}  // namespace berth::testing
