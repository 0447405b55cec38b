// What processes outside berth mean for a card: by owner, memory, utilisation and age.

#include <gtest/gtest.h>

#include "unit/core/policy_table.hpp"

namespace berth::testing {
namespace {

class ForeignProcesses : public PolicyTable {};
TEST_P(ForeignProcesses, Holds) {
  expect_row(GetParam());
}

/// Somebody's notebook: 600 MB, idle, there since long.
ProcessBuilder idler() {
  return a_stranger().memory(600 * kMiB).utilization(0).uid(2000).age(kHour);
}
ProcessBuilder trainer() {
  return a_stranger().memory(4 * kGiB).utilization(95).uid(2000).age(kHour);
}

/// Under a rule that tolerates nobody at work, only who is passed over is no obstacle.
void tolerate_nobody(World& w) {
  w.rule("max_utilization", "0");
}

const std::vector<Case> kGrade = {
    {"ASmallIdleProcessDoesNotBlockALargeCard",
     [](World& w) {
       w.see({a_gpu(0).with(idler())});
       w.submit({a_job()});
     },
     "1:0", ""},
    {"ASmallIdleProcessDoesNotBlockAShare",
     [](World& w) {
       w.see({a_gpu(0).with(idler())});
       w.submit({a_job().memory(23 * kGiB)});
     },
     "1:0", ""},
    {"TheMemoryOfASmallIdleProcessIsNotThereAllTheSame",
     [](World& w) {
       w.see({a_gpu(0).with(idler())});
       w.submit({a_job().memory(24 * kGiB)});
     },
     "", "1:gpu(memory)"},
    {"OneThatTrainsBlocksTheCard",
     [](World& w) {
       w.see({a_gpu(0).utilization(95).with(trainer())});
       w.submit({a_job(), a_job().memory(kGiB)});
     },
     "", "1:gpu(utilization) 2:gpu(utilization)"},
    {"OneThatTrainsWithLittleMemoryBlocksTheCard",
     [](World& w) {
       w.see({a_gpu(0).utilization(95).with(idler().utilization(95))});
       w.submit({a_job()});
     },
     "", "1:gpu(utilization)"},
    {"ALargeIdleProcessSharesItsCard",
     [](World& w) {
       w.see({a_gpu(0).with(idler().memory(10 * kGiB))});
       w.submit({a_job()});
     },
     "1:0", ""},
    {"ALargeIdleProcessBlocksByItsMemory",
     [](World& w) {
       w.see({a_gpu(0).with(idler().memory(20 * kGiB))});
       w.submit({a_job()});
     },
     "", "1:gpu(memory)"},
    {"SmallIsUpToOneGibibyte",
     [](World& w) {
       tolerate_nobody(w);
       w.see({a_gpu(0).utilization(5).with(idler().memory(kGiB + 1).utilization(5)),
              a_gpu(1).utilization(5).with(idler().memory(kGiB).utilization(5))});
       w.submit(copies(2, a_job()));
     },
     "1:1", "2:gpu(utilization,claimed)"},
    {"IdleIsUpToFivePercent",
     [](World& w) {
       tolerate_nobody(w);
       w.see({a_gpu(0).utilization(6).with(idler().utilization(6)),
              a_gpu(1).utilization(5).with(idler().utilization(5))});
       w.submit(copies(2, a_job()));
     },
     "1:1", "2:gpu(utilization,claimed)"},
    {"WhatSmallMeansCanBeSet",
     [](World& w) {
       tolerate_nobody(w);
       w.rule("foreign.small_memory", "2GiB");
       w.see({a_gpu(0).utilization(5).with(idler().memory(2 * kGiB).utilization(5))});
       w.submit({a_job()});
     },
     "1:0", ""},
    {"WhatIdleMeansCanBeSet",
     [](World& w) {
       tolerate_nobody(w);
       w.rule("foreign.idle_utilization", "20");
       w.see({a_gpu(0).utilization(20).with(idler().utilization(20))});
       w.submit({a_job()});
     },
     "1:0", ""},
    {"AYoungProcessMayBeAboutToBegin",
     [](World& w) {
       w.see({a_gpu(0).with(idler().age(10 * kSecond - Millis{1})),
              a_gpu(1).with(idler().age(10 * kSecond))});
       w.submit(copies(2, a_job()));
     },
     "1:1", "2:gpu(strangers,claimed)"},
    {"WhatYoungMeansCanBeSet",
     [](World& w) {
       w.rule("foreign.young", "1m");
       w.see(
           {a_gpu(0).with(idler().age(kMinute - Millis{1})), a_gpu(1).with(idler().age(kMinute))});
       w.submit(copies(2, a_job()));
     },
     "1:1", "2:gpu(strangers,claimed)"},
    {"NobodyIsYoungIfThatIsSwitchedOff",
     [](World& w) {
       w.rule("foreign.young", "0");
       w.see({a_gpu(0).with(idler().age(Millis{0}))});
       w.submit({a_job()});
     },
     "1:0", ""},
    {"SeveralSmallOnesArePassedOverOneByOne",
     [](World& w) {
       w.see({a_gpu(0).with(idler().memory(kGiB)).with(idler().memory(kGiB)).with(idler())});
       w.submit({a_job().memory(22 * kGiB), a_job().memory(21 * kGiB)});
     },
     "2:0", "1:gpu(memory)"},
    {"OneThatTrainsAmongIdleOnesBlocksTheCard",
     [](World& w) {
       w.see({a_gpu(0).utilization(95).with(idler()).with(trainer()).with(idler())});
       w.submit({a_job()});
     },
     "", "1:gpu(utilization)"},
    {"AYoungOneAmongOldOnesIsWaitedFor",
     [](World& w) {
       w.see({a_gpu(0).with(idler()).with(idler().age(kSecond))});
       w.submit({a_job()});
     },
     "", "1:gpu(strangers)"},
    {"OnesOwnProcessThatTrainsOutsideBerthBlocksLikeAnybodys",
     [](World& w) {
       w.state.host.uid = 1000;
       w.see({a_gpu(0).utilization(95).with(trainer().uid(1000))});
       w.submit({a_job()});
     },
     "", "1:gpu(utilization)"},
    {"OnesOwnProcessIsCalledThat",
     [](World& w) {
       w.state.host.uid = 1000;
       w.see({a_gpu(0).utilization(95).with(trainer().uid(1000)),
              a_gpu(1).with(idler().uid(1000).age(kSecond)),
              a_gpu(2).with(idler().uid(1000).memory(20 * kGiB))});
       w.submit({a_job()});
       EXPECT_EQ(w.decide(), "");
       EXPECT_EQ(w.said(1),
                 "no GPU has room: GPU 0: your own process outside berth keeps it 95 % busy, the "
                 "limit is 30 % (max_utilization); GPU 1: your own process has just begun there, "
                 "outside berth; GPU 2: 4 GiB free, 7.8 GiB needed (min_free_memory), your own "
                 "processes outside berth hold 20 GiB");
     },
     "", "1:gpu(utilization,strangers,memory)"},
    {"AStrangerBesideOnesOwnProcessIsNotCalledOnesOwn",
     [](World& w) {
       w.state.host.uid = 1000;
       w.see({a_gpu(0).utilization(95).with(idler().uid(1000).memory(4 * kGiB)).with(trainer())});
       w.submit({a_job()});
       EXPECT_EQ(w.decide(), "");
       EXPECT_NE(w.said(1).find("others keep it 95 % busy"), std::string::npos) << w.said(1);
     },
     "", "1:gpu(utilization)"},
    {"OnesOwnProcessMayBeIgnored",
     [](World& w) {
       w.state.host.uid = 1000;
       w.rule("foreign.own", "ignore");
       w.see({a_gpu(0).utilization(95).with(trainer().uid(1000))});
       w.submit({a_job()});
     },
     "1:0", ""},
    {"TheMemoryOfOnesOwnIgnoredProcessCounts",
     [](World& w) {
       w.state.host.uid = 1000;
       w.rule("foreign.own", "ignore");
       w.see({a_gpu(0).utilization(95).with(trainer().uid(1000).memory(20 * kGiB))});
       w.submit({a_job()});
     },
     "", "1:gpu(memory)"},
    {"IgnoringOnesOwnProcessDoesNotHideStrangers",
     [](World& w) {
       w.state.host.uid = 1000;
       w.rule("foreign.own", "ignore");
       w.see({a_gpu(0)
                  .utilization(95)
                  .with(idler().uid(1000).utilization(55))
                  .with(trainer().utilization(40))});
       w.submit({a_job()});
     },
     "", "1:gpu(utilization)"},
    {"OnesOwnProcessMayKeepItsCardHoweverSmall",
     [](World& w) {
       w.state.host.uid = 1000;
       w.rule("foreign.own", "wait");
       w.see({a_gpu(0).with(idler().uid(1000)), a_gpu(1).with(idler())});
       w.submit(copies(2, a_job()));
     },
     "1:1", "2:gpu(strangers,claimed)"},
    {"ASmallIdleProcessBesideOurOwnBusyJobIsPassedOver",
     [](World& w) {
       tolerate_nobody(w);
       w.see_idle(1);
       w.submit({a_job().memory(4 * kGiB)});
       w.decide();
       w.wait(kSecond);
       w.see({a_gpu(0)
                  .utilization(99)
                  .with(a_process_of(1).memory(4 * kGiB).utilization(99))
                  .with(idler())});
       w.submit({a_job().memory(4 * kGiB)});
     },
     "2:0", ""},
};

const std::vector<Case> kUnknowns = {
    {"AProcessOfUnknownAgeIsNotYoung",
     [](World& w) {
       w.see({a_gpu(0).with(a_stranger().memory(600 * kMiB).utilization(0))});
       w.submit({a_job()});
     },
     "1:0", ""},
    {"AProcessOfUnknownMemoryIsNotPassedOver",
     [](World& w) {
       tolerate_nobody(w);
       w.see({a_gpu(0).utilization(1).with(a_stranger().utilization(1).age(kHour))});
       w.submit({a_job()});
     },
     "", "1:gpu(utilization)"},
    {"AProcessOfUnknownMemoryThatIdlesSharesItsCard",
     [](World& w) {
       w.see({a_gpu(0).with(a_stranger().utilization(0).age(kHour))});
       w.submit({a_job()});
     },
     "1:0", ""},
    {"AProcessOfUnknownLoadIdlesOnAnIdleCard",
     [](World& w) {
       tolerate_nobody(w);
       w.see({a_gpu(0).utilization(0).with(a_stranger().memory(600 * kMiB).age(kHour))});
       w.submit({a_job()});
     },
     "1:0", ""},
    {"TheLoadOfABusyCardIsThatOfTheProcessOfUnknownLoad",
     [](World& w) {
       w.see({a_gpu(0).utilization(40).with(a_stranger().memory(600 * kMiB).age(kHour))});
       w.submit({a_job()});
     },
     "", "1:gpu(utilization)"},
    {"AProcessOfUnknownLoadOnACardOfUnknownLoadIsWaitedFor",
     [](World& w) {
       w.see({a_gpu(0).unknown_utilization().with(a_stranger().memory(600 * kMiB).age(kHour))});
       w.submit({a_job()});
     },
     "", "1:gpu(utilization)"},
    {"AProcessOfUnknownOwnerIsAStranger",
     [](World& w) {
       w.state.host.uid = 1000;
       w.see({a_gpu(0).utilization(95).with(a_stranger().memory(4 * kGiB).utilization(95))});
       w.submit({a_job()});
     },
     "", "1:gpu(utilization)"},
};

const std::vector<Case> kPolicies = {
    {"IgnoredStrangersMayTrain",
     [](World& w) {
       w.rule("foreign.policy", "ignore");
       w.see({a_gpu(0).utilization(95).with(trainer())});
       w.submit({a_job()});
     },
     "1:0", ""},
    {"IgnoredStrangersMayBeYoung",
     [](World& w) {
       w.rule("foreign.policy", "ignore");
       w.see({a_gpu(0).with(idler().age(kSecond))});
       w.submit({a_job()});
     },
     "1:0", ""},
    {"TheMemoryOfIgnoredStrangersCounts",
     [](World& w) {
       w.rule("foreign.policy", "ignore");
       w.see({a_gpu(0).with(trainer().memory(20 * kGiB))});
       w.submit({a_job(), a_job().memory(4 * kGiB)});
     },
     "2:0", "1:gpu(claimed)"},
    {"SharingToleratesIdleStrangersOfAnySizeAndAge",
     [](World& w) {
       w.rule("foreign.policy", "share");
       w.see({a_gpu(0).with(idler().memory(10 * kGiB).age(kSecond))});
       w.submit({a_job()});
     },
     "1:0", ""},
    {"SharingDoesNotTolerateBusyStrangers",
     [](World& w) {
       w.rule("foreign.policy", "share");
       w.see({a_gpu(0).utilization(31).with(idler().utilization(31))});
       w.submit({a_job()});
     },
     "", "1:gpu(utilization)"},
    {"SharingPassesNobodyOver",
     [](World& w) {
       w.rule("foreign.policy", "share");
       tolerate_nobody(w);
       w.see({a_gpu(0).utilization(1).with(idler().utilization(1))});
       w.submit({a_job()});
     },
     "", "1:gpu(utilization)"},
    {"WaitingIsForAnybodyAtAll",
     [](World& w) {
       w.rule("foreign.policy", "wait");
       w.see({a_gpu(0).with(idler()), a_gpu(1)});
       w.submit(copies(2, a_job()));
     },
     "1:1", "2:gpu(strangers,claimed)"},
    {"WaitingIsNotForOurOwnJobs",
     [](World& w) {
       w.rule("foreign.policy", "wait");
       w.see_idle(1);
       w.submit({a_job().memory(4 * kGiB)});
       w.decide();
       w.wait(kSecond);
       w.see({a_gpu(0).utilization(99).with(a_process_of(1).memory(4 * kGiB).utilization(99))});
       w.submit({a_job().memory(4 * kGiB)});
     },
     "2:0", ""},
    {"WaitingEndsWhenTheyHaveLeft",
     [](World& w) {
       w.rule("foreign.policy", "wait");
       w.see({a_gpu(0).with(idler())});
       w.submit({a_job()});
       EXPECT_EQ(w.decide(), "");
       w.see_idle(1);
     },
     "1:0", ""},
    {"AJobMayIgnoreWhomOthersWaitFor",
     [](World& w) {
       w.see({a_gpu(0).utilization(95).with(trainer())});
       w.submit({a_job(), a_job().rule("foreign.policy", "ignore")});
     },
     "2:0", "1:gpu(claimed)"},
    {"AQueueMayWaitForWhomOthersPassOver",
     [](World& w) {
       w.queue_rule("polite", "foreign.policy", "wait");
       w.see({a_gpu(0).with(idler())});
       w.submit({a_job().queue("polite"), a_job()});
     },
     "2:0", "1:gpu(claimed)"},
    {"AStrangerThatBeginsToTrainBetweenTwoLooksIsSeen",
     [](World& w) {
       w.see({a_gpu(0).with(idler())});
       w.submit({a_job().memory(4 * kGiB)});
       EXPECT_EQ(w.decide(), "1:0");
       w.wait(kSecond);
       w.see({a_gpu(0)
                  .utilization(99)
                  .with(a_process_of(1).memory(4 * kGiB).utilization(40))
                  .with(idler().utilization(59))});
       w.submit({a_job().memory(4 * kGiB)});
     },
     "", "2:gpu(utilization)"},
};

INSTANTIATE_TEST_SUITE_P(Grade, ForeignProcesses, ::testing::ValuesIn(kGrade), row_name);
INSTANTIATE_TEST_SUITE_P(Unknowns, ForeignProcesses, ::testing::ValuesIn(kUnknowns), row_name);
INSTANTIATE_TEST_SUITE_P(Policies, ForeignProcesses, ::testing::ValuesIn(kPolicies), row_name);

}  // namespace
}  // namespace berth::testing
