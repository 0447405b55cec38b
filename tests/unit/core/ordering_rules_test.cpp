// Who goes first: fair share, the rule `order`, and who has waited too long.

#include <gtest/gtest.h>

#include <set>

#include <fmt/format.h>

#include "unit/core/policy_table.hpp"

namespace berth::testing {
namespace {

class OrderingRules : public PolicyTable {};
TEST_P(OrderingRules, Holds) {
  expect_row(GetParam());
}

/// The owner's job runs on card 0 for so long and ends. Job 1.
void use(World& w, std::uint32_t owner, Millis time, std::uint32_t gpus = 1) {
  w.see_idle(gpus);
  w.submit(a_submission({a_job().gpus(gpus)}).owner(owner));
  w.decide();
  w.wait(time);
  w.succeed(w.state.last_job.value);
  w.wait(Millis{1});
  w.see_again();
}

/// One job of each user, in this order.
void submit_of(World& w, std::initializer_list<std::uint32_t> owners) {
  for (const std::uint32_t owner : owners) {
    w.submit(a_submission({a_job()}).owner(owner));
  }
}

/// The only card is taken, by job 1.
void take_the_card(World& w) {
  w.see_idle(1);
  w.submit({a_job().priority(0)});
  EXPECT_EQ(w.decide(), "1:0");
}

void free_the_card(World& w) {
  w.succeed(1);
  w.wait(Millis{1});
  w.see_again();
}

const std::vector<Case> kShares = {
    {"WhoHasUsedLessGoesFirst",
     [](World& w) {
       use(w, 1, 10 * kMinute);
       submit_of(w, {1, 2});
     },
     "3:0", "2:gpu(claimed)"},
    {"PriorityGoesBeforeShare",
     [](World& w) {
       use(w, 1, 10 * kMinute);
       w.submit(a_submission({a_job().priority(4)}).owner(1));
       submit_of(w, {2});
     },
     "2:0", "3:gpu(claimed)"},
    {"AFewSecondsMoreAreNoReasonToOvertake",
     [](World& w) {
       use(w, 1, 30 * kSecond);
       submit_of(w, {1, 2});
     },
     "2:0", "3:gpu(claimed)"},
    {"UseIsForgottenOverTheWeeks",
     [](World& w) {
       use(w, 1, 10 * kMinute);
       w.wait(70 * kDay);
       w.see_idle(1);
       submit_of(w, {1, 2});
     },
     "2:0", "3:gpu(claimed)"},
    {"UseIsNotForgottenAfterAWeek",
     [](World& w) {
       use(w, 1, 10 * kMinute);
       w.wait(7 * kDay);
       w.see_idle(1);
       submit_of(w, {1, 2});
     },
     "3:0", "2:gpu(claimed)"},
    {"OldUseCountsLessThanAsMuchOfLate",
     [](World& w) {
       use(w, 1, 30 * kMinute);
       w.wait(7 * kDay);
       use(w, 2, 20 * kMinute);
       submit_of(w, {2, 1});
     },
     "4:0", "3:gpu(claimed)"},
    {"HowFastUseIsForgottenCanBeSet",
     [](World& w) {
       w.rule("half_life", "1h");
       use(w, 1, 10 * kMinute);
       w.wait(10 * kHour);
       w.see_idle(1);
       submit_of(w, {1, 2});
     },
     "2:0", "3:gpu(claimed)"},
    {"WithoutFairShareTheFirstGoesFirst",
     [](World& w) {
       w.rule("fair_share", "false");
       use(w, 1, 10 * kMinute);
       submit_of(w, {1, 2});
     },
     "2:0", "3:gpu(claimed)"},
    {"WhatRunsCountsAsItRuns",
     [](World& w) {
       w.see({a_gpu(0), a_gpu(1).free(0)});
       submit_of(w, {1});
       EXPECT_EQ(w.decide(), "1:0");
       w.wait(10 * kMinute);
       w.see_idle(2);
       submit_of(w, {1, 2});
     },
     "3:1", "2:gpu(claimed,claimed)"},
    {"SeveralCardsCountSeveralTimes",
     [](World& w) {
       use(w, 1, 10 * kMinute, 2);
       use(w, 2, 15 * kMinute, 1);
       submit_of(w, {1, 2});
     },
     "4:0", "3:gpu(claimed)"},
    {"JobsWithoutCardsUseNothing",
     [](World& w) {
       use(w, 1, 10 * kHour, 0);
       w.see_idle(1);
       submit_of(w, {1, 2});
     },
     "2:0", "3:gpu(claimed)"},
    {"OfOneUsersBatchesTheOneThatHasUsedLessGoesFirst",
     [](World& w) {
       w.see_idle(1);
       w.submit(a_submission(copies(2, a_job())).named("a"));
       w.submit(a_submission(copies(2, a_job())).named("b"));
       EXPECT_EQ(w.decide(), "1:0");
       w.wait(10 * kMinute);
       w.succeed(1);
       w.wait(Millis{1});
       w.see_again();
     },
     "3:0", "2:gpu(claimed) 4:gpu(claimed)"},
    {"UsersGoBeforeBatches",
     [](World& w) {
       w.see_idle(1);
       w.submit(a_submission(copies(2, a_job())).named("a").owner(1));
       EXPECT_EQ(w.decide(), "1:0");
       w.submit(a_submission(copies(2, a_job())).named("b").owner(1));
       w.submit(a_submission(copies(2, a_job())).named("c").owner(2));
       w.wait(10 * kMinute);
       w.succeed(1);
       w.wait(Millis{1});
       w.see_again();
     },
     "5:0", "2:gpu(claimed) 3:gpu(claimed) 4:gpu(claimed) 6:gpu(claimed)"},
};

const std::vector<Case> kOrders = {
    {"LargestFirstTakesTheMostCardsFirst",
     [](World& w) {
       w.rule("order", "largest_first");
       w.see_idle(4);
       w.submit({a_job(), a_job().gpus(2), a_job().gpus(3)});
     },
     "3:0+1+2 1:3", "2:gpu(claimed,claimed,claimed,claimed)"},
    {"LargestFirstCountsTheUpperEndOfARange",
     [](World& w) {
       w.rule("order", "largest_first");
       w.see_idle(3);
       w.submit({a_job().gpus(2), a_job().gpus(1, 3)});
     },
     "2:0+1+2", "1:gpu(claimed,claimed,claimed)"},
    {"LargestFirstKeepsPriority",
     [](World& w) {
       w.rule("order", "largest_first");
       w.see_idle(2);
       w.submit({a_job().gpus(2), a_job().priority(1)});
     },
     "2:0", "1:gpu(claimed)"},
    {"LargestFirstLeavesEqualOnesInOrder",
     [](World& w) {
       w.rule("order", "largest_first");
       w.see_idle(1);
       w.submit(copies(2, a_job()));
     },
     "1:0", "2:gpu(claimed)"},
    {"ABatchMayHaveAnOrderOfItsOwn",
     [](World& w) {
       w.see_idle(2);
       w.submit(a_submission({a_job(), a_job().gpus(2)}).rule("order", "largest_first"));
     },
     "2:0+1", "1:gpu(claimed,claimed)"},
    {"ANewOrderFindsANewPlaceForThoseWhoWait",
     [](World& w) {
       w.see_idle(2);
       w.submit({a_job(), a_job().gpus(2)});
       w.rule("order", "largest_first");
     },
     "2:0+1", "1:gpu(claimed,claimed)"},
    {"BackToFifoPutsThemBackInOrder",
     [](World& w) {
       w.rule("order", "largest_first");
       w.see_idle(2);
       w.submit({a_job(), a_job().gpus(2)});
       w.rule("order", "fifo");
     },
     "1:0", "2:gpu(claimed)"},
    {"RandomKeepsPriority",
     [](World& w) {
       w.rule("order", "random");
       w.see_idle(1);
       w.submit({a_job(), a_job(), a_job(), a_job(), a_job().priority(1)});
     },
     "5:0", "1:gpu(claimed) 2:gpu(claimed) 3:gpu(claimed) 4:gpu(claimed)"},
    {"ASerialQueueStaysInOrderUnderRandom",
     [](World& w) {
       w.rule("order", "random");
       w.set_queue("s", 1);
       w.submit(copies(6, a_cpu_job().queue("s")));
       for (std::uint64_t job = 1; job < 6; ++job) {
         EXPECT_EQ(w.decide(), fmt::format("{}:-", job));
         w.succeed(job);
       }
     },
     "6:-", ""},
    {"ASerialQueueStaysInOrderUnderLargestFirst",
     [](World& w) {
       w.rule("order", "largest_first");
       w.see_idle(2);
       w.set_queue("s", 1);
       w.submit({a_job().queue("s"), a_job().gpus(2).queue("s")});
     },
     "1:0", "2:queue_limit+gpu(claimed)"},
    {"TheHeadsOfSerialQueuesAreSortedUnderLargestFirst",
     [](World& w) {
       w.rule("order", "largest_first");
       w.see_idle(2);
       w.set_queue("s", 1);
       w.set_queue("t", 1);
       w.submit({a_job().queue("s"), a_job().gpus(2).queue("t"), a_job().queue("t")});
     },
     "2:0+1", "1:gpu(claimed,claimed) 3:queue_limit+gpu(claimed,claimed)"},
    {"WhoWasMovedToTheFrontGoesFirstUnderRandom",
     [](World& w) {
       w.rule("order", "random");
       w.see_idle(1);
       w.submit(copies(8, a_job()));
       event::Move to_the_front;
       to_the_front.jobs = {JobId{6}};
       ASSERT_TRUE(w.apply(to_the_front));
     },
     "6:0",
     "1:gpu(claimed) 2:gpu(claimed) 3:gpu(claimed) 4:gpu(claimed) 5:gpu(claimed) 7:gpu(claimed) "
     "8:gpu(claimed)"},
};

const std::vector<Case> kAging = {
    {"WhoHasWaitedADayGoesBeforeHigherPriority",
     [](World& w) {
       take_the_card(w);
       w.submit({a_job().priority(9)});
       w.decide();
       w.pass(kDay);
       w.submit({a_job().priority(1)});
       free_the_card(w);
     },
     "2:0", "3:gpu(claimed)"},
    {"NotBefore",
     [](World& w) {
       take_the_card(w);
       w.submit({a_job().priority(9)});
       w.decide();
       w.pass(kDay - kMinute);
       w.submit({a_job().priority(1)});
       free_the_card(w);
     },
     "3:0", "2:gpu(claimed)"},
    {"TheCapCanBeSet",
     [](World& w) {
       w.rule("aging", "1h");
       take_the_card(w);
       w.submit({a_job().priority(9)});
       w.decide();
       w.pass(kHour);
       w.submit({a_job().priority(1)});
       free_the_card(w);
     },
     "2:0", "3:gpu(claimed)"},
    {"TheCapCanBeSwitchedOff",
     [](World& w) {
       w.rule("aging", "0");
       take_the_card(w);
       w.submit({a_job().priority(9)});
       w.decide();
       w.pass(10 * kDay);
       w.submit({a_job().priority(1)});
       free_the_card(w);
     },
     "3:0", "2:gpu(claimed)"},
    {"OfThoseWhoHaveAgedTheLongestGoesFirstWhateverItsPriority",
     [](World& w) {
       take_the_card(w);
       w.submit({a_job().priority(9)});
       w.decide();
       w.wait(kHour);
       w.submit({a_job().priority(1)});
       w.decide();
       w.pass(kDay);
       free_the_card(w);
     },
     "2:0", "3:gpu(claimed)"},
    {"AmongOtherRequestsToo",
     [](World& w) {
       take_the_card(w);
       w.submit({a_job().priority(9).memory(20 * kGiB)});
       w.decide();
       w.wait(kHour);
       w.submit({a_job().priority(1)});
       w.decide();
       w.pass(kDay);
       free_the_card(w);
     },
     "2:0", "3:gpu(claimed)"},
    {"AgeGoesBeforeShare",
     [](World& w) {
       take_the_card(w);
       w.submit(a_submission({a_job()}).owner(0));
       w.decide();
       w.pass(kDay);
       w.submit(a_submission({a_job()}).owner(2));
       free_the_card(w);
     },
     "2:0", "3:gpu(claimed)"},
    {"AgeGoesBeforeTheOrderRandom",
     [](World& w) {
       w.rule("order", "random");
       take_the_card(w);
       w.submit({a_job()});
       w.decide();
       w.pass(kDay);
       w.submit(copies(4, a_job()));
       free_the_card(w);
     },
     "2:0", "3:gpu(claimed) 4:gpu(claimed) 5:gpu(claimed) 6:gpu(claimed)"},
    {"WhoIsStartedByHandGoesBeforeAge",
     [](World& w) {
       take_the_card(w);
       w.submit({a_job()});
       w.decide();
       w.pass(kDay);
       w.submit({a_job()});
       w.force(3);
       free_the_card(w);
     },
     "3:0", "2:gpu(claimed)"},
    {"TheTimeBeforeADependencyEndedIsNoWait",
     [](World& w) {
       take_the_card(w);
       w.submit({a_cpu_job(), a_job().priority(9).after_index(0)});
       w.decide();
       w.pass(kDay);
       w.succeed(2);
       w.submit({a_job().priority(1)});
       free_the_card(w);
     },
     "4:0", "3:gpu(claimed)"},
};

INSTANTIATE_TEST_SUITE_P(Shares, OrderingRules, ::testing::ValuesIn(kShares), row_name);
INSTANTIATE_TEST_SUITE_P(Orders, OrderingRules, ::testing::ValuesIn(kOrders), row_name);
INSTANTIATE_TEST_SUITE_P(Aging, OrderingRules, ::testing::ValuesIn(kAging), row_name);

/// All jobs one after the other, as the order has it.
std::string random_order(const std::string& seed) {
  World w;
  w.rule("order", "random");
  w.rule("seed", seed);
  w.rule("max_concurrent", "1");
  w.submit(copies(8, a_cpu_job()));
  std::string out;
  for (int i = 0; i < 8; ++i) {
    const std::string start = w.decide();
    out += start + " ";
    w.succeed(std::stoull(start));
  }
  return out;
}

TEST(RandomOrder, IsTheSameForTheSameSeed) {
  EXPECT_EQ(random_order("7"), random_order("7"));
}

TEST(RandomOrder, IsAnotherForAnotherSeedAndNeverThatOfSubmission) {
  const std::set<std::string> orders{random_order("1"), random_order("2"), random_order("3"),
                                     "1:- 2:- 3:- 4:- 5:- 6:- 7:- 8:- "};
  EXPECT_EQ(orders.size(), 4U);
}

}  // namespace
}  // namespace berth::testing
