// Jobs of higher priority displace those that agreed to it, as few as possible.

#include <gtest/gtest.h>

#include "unit/core/policy_table.hpp"

namespace berth::testing {
namespace {

class Preempting : public PolicyTable {};
TEST_P(Preempting, Holds) {
  expect_row(GetParam());
}

JobBuilder lesser(std::int32_t priority = 9) {
  return a_job().priority(priority).rule("preemptible", "true");
}
JobBuilder on(JobBuilder job, const std::string& cards) {
  return job.rule("gpus", cards);
}
JobBuilder urgent() {
  return a_job().priority(1);
}

/// These run since a minute, on idle cards.
void run(World& w, const std::vector<JobSpec>& jobs, std::uint32_t cards) {
  w.see_idle(cards);
  w.submit(jobs);
  w.decide();
  w.wait(kMinute);
  w.see_again();
}

/// Decides, and expects that nothing starts and these are displaced.
void expect_displaced(World& w, const std::string& displaced) {
  EXPECT_EQ(w.decide(), "");
  EXPECT_EQ(w.displaced(), displaced);
}

const std::vector<Case> kWho = {
    {"APreemptibleJobIsDisplacedWithItsWarningFirst",
     [](World& w) {
       run(w, {lesser()}, 1);
       w.submit({urgent()});
       expect_displaced(w, "1<2");
       EXPECT_EQ(w.effects(), "kill");
       EXPECT_TRUE(std::get<effect::Kill>(w.last.effects[0]).warn);
       EXPECT_EQ(w.told(), "gives_way");
     },
     "", "2:gpu(claimed)"},
    {"OthersAreNot",
     [](World& w) {
       run(w, {a_job().priority(9)}, 1);
       w.submit({urgent()});
       expect_displaced(w, "");
     },
     "", "2:gpu(claimed)"},
    {"EqualPriorityDisplacesNobody",
     [](World& w) {
       run(w, {lesser(1)}, 1);
       w.submit({urgent()});
       expect_displaced(w, "");
     },
     "", "2:gpu(claimed)"},
    {"LowerPriorityDisplacesNobody",
     [](World& w) {
       run(w, {lesser(0)}, 1);
       w.submit({urgent()});
       expect_displaced(w, "");
     },
     "", "2:gpu(claimed)"},
    {"AQueueMayBePreemptible",
     [](World& w) {
       w.queue_rule("spare", "preemptible", "true");
       run(w, {a_job().priority(9).queue("spare")}, 1);
       w.submit({urgent()});
       expect_displaced(w, "1<2");
     },
     "", "2:gpu(claimed)"},
    {"NobodyIsDisplacedWhereThereIsRoomBeside",
     [](World& w) {
       run(w, {lesser().memory(4 * kGiB)}, 1);
       w.submit({urgent().memory(20 * kGiB)});
     },
     "2:0", ""},
    {"NobodyIsDisplacedIfItWouldNotHelp",
     [](World& w) {
       run(w, {lesser(), a_job()}, 2);
       w.submit({urgent().gpus(2)});
       expect_displaced(w, "");
     },
     "", "3:gpu(claimed,claimed)"},
    {"NobodyIsDisplacedForAJobThatAskedForMoreThanThereIs",
     [](World& w) {
       run(w, {lesser()}, 1);
       w.submit({urgent().memory(30 * kGiB)});
       expect_displaced(w, "");
     },
     "", "2:gpu(too_small)"},
    {"NobodyIsDisplacedForAJobThatALimitHoldsBack",
     [](World& w) {
       w.rule("max_concurrent", "1");
       run(w, {lesser()}, 1);
       w.submit({urgent()});
       expect_displaced(w, "");
     },
     "", "2:max_concurrent+gpu(claimed)"},
    {"NobodyIsDisplacedForAJobWithoutCards",
     [](World& w) {
       w.state.host = {4, 0};
       run(w, {lesser().gpus(0).cpus(4)}, 1);
       w.submit({a_cpu_job().cpus(4).priority(1)});
       expect_displaced(w, "");
     },
     "", "2:cpus"},
};

const std::vector<Case> kHowMany = {
    {"OneWholeCardIsRatherTakenThanTwoShares",
     [](World& w) {
       run(w,
           {on(lesser(), "0"), on(lesser().memory(12 * kGiB), "1"),
            on(lesser().memory(12 * kGiB), "1")},
           2);
       w.submit({urgent()});
       expect_displaced(w, "1<4");
     },
     "", "4:gpu(claimed,claimed)"},
    {"OneShareIsEnoughForAShare",
     [](World& w) {
       run(w, copies(2, lesser().memory(12 * kGiB)), 1);
       w.submit({urgent().memory(10 * kGiB)});
       expect_displaced(w, "2<3");
     },
     "", "3:gpu(memory)"},
    {"TheLeastImportantGoes",
     [](World& w) {
       run(w, {on(lesser(9), "0"), on(lesser(8), "1")}, 2);
       w.submit({urgent()});
       expect_displaced(w, "1<3");
     },
     "", "3:gpu(claimed,claimed)"},
    {"OfEqualsTheYoungestGoes",
     [](World& w) {
       run(w, copies(3, lesser()), 3);
       w.submit({urgent()});
       expect_displaced(w, "3<4");
     },
     "", "4:gpu(claimed,claimed,claimed)"},
    {"AsManyGoAsCardsAreWanted",
     [](World& w) {
       run(w, copies(3, lesser()), 3);
       w.submit({urgent().gpus(2)});
       expect_displaced(w, "2<4 3<4");
     },
     "", "4:gpu(claimed,claimed,claimed)"},
    {"AFreeCardIsUsedBeforeAnybodyGoes",
     [](World& w) {
       run(w, copies(2, lesser()), 3);
       w.submit({urgent().gpus(2)});
       expect_displaced(w, "2<3");
     },
     "", "3:gpu(claimed,claimed)"},
    {"ARangeDisplacesForItsLowerEndOnly",
     [](World& w) {
       run(w, copies(2, lesser()), 2);
       w.submit({urgent().gpus(1, 2)});
       expect_displaced(w, "2<3");
     },
     "", "3:gpu(claimed,claimed)"},
};

const std::vector<Case> kMeanwhile = {
    {"NobodyElseGoesWhileVictimsEnd",
     [](World& w) {
       run(w, copies(2, lesser()), 2);
       w.submit({urgent()});
       expect_displaced(w, "2<3");
       w.wait(kSecond);
       w.see_again();
       expect_displaced(w, "");
       w.wait(kSecond);
       w.see_again();
     },
     "", "3:gpu(claimed,claimed)"},
    {"ASecondUrgentJobDisplacesAnotherOne",
     [](World& w) {
       run(w, copies(2, lesser()), 2);
       w.submit({urgent()});
       expect_displaced(w, "2<3");
       w.revoke(2);
       w.wait(kSecond);
       w.see_again();
       EXPECT_EQ(w.decide(), "3:1");
       w.submit({urgent()});
       expect_displaced(w, "1<4");
     },
     "", "2:gpu(claimed,claimed) 4:gpu(claimed,claimed)"},
    {"ThePreemptorGetsTheCardOfItsVictim",
     [](World& w) {
       run(w, {lesser()}, 1);
       w.submit({urgent()});
       expect_displaced(w, "1<2");
       w.revoke(1);
       w.submit({a_job().priority(0).memory(kGiB).rule("gpus", "7")});
       w.wait(kSecond);
       w.see_again();
     },
     "2:0", "1:gpu(claimed) 3:gpu(not_allowed)"},
    {"TheCardOfAVictimIsKeptUntilTheOthersAreGone",
     [](World& w) {
       run(w, copies(2, lesser()), 2);
       w.submit({urgent().gpus(2)});
       expect_displaced(w, "1<3 2<3");
       w.revoke(1);
       w.wait(kSecond);
       w.see_again();
       w.submit({a_job().priority(5).memory(kGiB)});
     },
     "", "1:gpu(held,claimed) 3:gpu(claimed) 4:gpu(held,claimed)"},
    {"TheCardOfAVictimIsKeptEvenWhereAnybodyMayOvertake",
     [](World& w) {
       w.rule("backfill", "any");
       run(w, copies(2, lesser()), 2);
       w.submit({urgent().gpus(2)});
       expect_displaced(w, "1<3 2<3");
       w.revoke(1);
       w.wait(kSecond);
       w.see_again();
       w.submit({a_job().priority(5).memory(kGiB)});
     },
     "", "1:gpu(held,claimed) 3:gpu(claimed) 4:gpu(held,claimed)"},
    {"NobodyGoesForACardWhoseJobHasJustEnded",
     [](World& w) {
       run(w, {on(a_job(), "0"), on(lesser(), "1")}, 2);
       w.submit({urgent()});
       w.succeed(1);
       expect_displaced(w, "");
       w.wait(kSecond);
       w.see_again();
     },
     "3:0", ""},
    {"NobodyGoesForACardWhoseJobIsBeingKilled",
     [](World& w) {
       run(w, {on(a_job(), "0"), on(lesser(), "1")}, 2);
       w.kill({1});
       w.submit({urgent()});
       expect_displaced(w, "");
     },
     "", "3:gpu(claimed,claimed)"},
    {"ADisplacedJobWaitsAgain",
     [](World& w) {
       run(w, {lesser()}, 1);
       w.submit({urgent()});
       expect_displaced(w, "1<2");
       w.revoke(1);
       w.wait(kSecond);
       w.see_again();
       EXPECT_EQ(w.decide(), "2:0");
       w.succeed(2);
       w.wait(kSecond);
       w.see_again();
     },
     "1:0", ""},
    {"WhenThePreemptorIsCancelledItsCardsAreFreeForAll",
     [](World& w) {
       run(w, {lesser()}, 1);
       w.submit({urgent()});
       expect_displaced(w, "1<2");
       w.revoke(1);
       w.kill({2});
       w.wait(kSecond);
       w.see_again();
     },
     "1:0", ""},
};

INSTANTIATE_TEST_SUITE_P(Who, Preempting, ::testing::ValuesIn(kWho), row_name);
INSTANTIATE_TEST_SUITE_P(HowMany, Preempting, ::testing::ValuesIn(kHowMany), row_name);
INSTANTIATE_TEST_SUITE_P(Meanwhile, Preempting, ::testing::ValuesIn(kMeanwhile), row_name);

}  // namespace
}  // namespace berth::testing
