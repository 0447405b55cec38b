// How many cards are in use at once, who shares one, and what a claim is worth over time.

#include <gtest/gtest.h>

#include "unit/core/policy_table.hpp"

namespace berth::testing {
namespace {

class Quotas : public PolicyTable {};
TEST_P(Quotas, Holds) {
  expect_row(GetParam());
}

GpuProcess trainer() {
  return a_stranger().memory(2 * kGiB).utilization(95).uid(2000).age(kHour);
}

/// Idle for an hour, as notebooks are.
GpuProcess notebook(std::uint32_t uid) {
  return a_stranger().memory(600 * kMiB).utilization(0).uid(uid).age(kHour);
}

void leave(World& w, const std::string& count, const std::string& mode) {
  w.rule("gpu_left", count);
  w.rule("gpu_left_mode", mode);
}

const std::vector<Case> kLeft = {
    {"NoCardIsLeftUnlessAskedFor",
     [](World& w) {
       w.see_idle(2);
       w.submit(copies(2, a_job()));
     },
     "1:0 2:1", ""},
    {"TheLastCardsAreLeftFreeOrNot",
     [](World& w) {
       leave(w, "1", "last");
       w.see({a_gpu(0), a_gpu(1), a_gpu(2).utilization(95).with(trainer())});
       w.submit(copies(3, a_job()));
     },
     "1:0 2:1", "3:gpu(claimed,claimed,left)"},
    {"TheLastCardIsLeftEvenWhenTheOthersAreTaken",
     [](World& w) {
       leave(w, "1", "last");
       w.see({a_gpu(0).utilization(95).with(trainer()), a_gpu(1)});
       w.submit({a_job()});
     },
     "", "1:gpu(utilization,left)"},
    {"TheLastOfTheAllowedCardsIsLeft",
     [](World& w) {
       leave(w, "1", "last");
       w.rule("gpus", "0-2");
       w.see_idle(4);
       w.submit(copies(3, a_job()));
     },
     "1:0 2:1", "3:gpu(claimed,claimed,left,not_allowed)"},
    {"TheLastIsTheLastOfTheListAsItIsWritten",
     [](World& w) {
       leave(w, "1", "last");
       w.rule("gpus", "2,0,1");
       w.see_idle(3);
       w.submit(copies(3, a_job()));
     },
     "1:0 2:2", "3:gpu(claimed,left,claimed)"},
    {"MoreLeftThanThereAreLeavesNone",
     [](World& w) {
       leave(w, "5", "last");
       w.see_idle(2);
       w.submit({a_job()});
     },
     "", "1:gpu(left,left)"},
    {"OneJobMayLeaveCardsThatOthersTake",
     [](World& w) {
       w.see_idle(1);
       w.submit({a_job().rule("gpu_left", "1"), a_job()});
     },
     "2:0", "1:gpu(left)"},
    {"AnyLeavesSoManyWhicheverTheyAre",
     [](World& w) {
       leave(w, "1", "any");
       w.see_idle(3);
       w.submit(copies(3, a_job()));
     },
     "1:0 2:1", "3:quota"},
    {"AnyTakesTheLastCardWhenOthersAreFree",
     [](World& w) {
       leave(w, "1", "any");
       w.see({a_gpu(0).free(20 * kGiB), a_gpu(1)});
       w.submit({a_job()});
     },
     "1:1", ""},
    {"AnyCountsOnlyCardsThatAreAvailable",
     [](World& w) {
       leave(w, "1", "any");
       w.see({a_gpu(0).utilization(95).with(trainer()), a_gpu(1), a_gpu(2)});
       w.submit(copies(2, a_job()));
     },
     "1:1", "2:quota"},
    {"AnyDoesNotHoldUpSharesOfACardInUse",
     [](World& w) {
       leave(w, "1", "any");
       w.see_idle(2);
       w.submit(copies(3, a_job().memory(4 * kGiB)));
     },
     "1:0 2:0 3:0", ""},
    {"AnyOfAllCardsLeavesNone",
     [](World& w) {
       leave(w, "3", "any");
       w.see_idle(3);
       w.submit({a_job()});
     },
     "", "1:quota"},
    {"AnyIsSkippedByAStartByHand",
     [](World& w) {
       leave(w, "1", "any");
       w.see_idle(1);
       w.submit({a_job()});
       w.force(1);
     },
     "1:0", ""},
};

const std::vector<Case> kQuota = {
    {"NoMoreCardsThanMaxGpuAreInUse",
     [](World& w) {
       w.rule("max_gpu", "2");
       w.see_idle(4);
       w.submit(copies(3, a_job()));
     },
     "1:0 2:1", "3:quota"},
    {"MaxGpuOfZeroIsNoLimit",
     [](World& w) {
       w.rule("max_gpu", "0");
       w.see_idle(3);
       w.submit(copies(3, a_job()));
     },
     "1:0 2:1 3:2", ""},
    {"MinGpuRaisesWhatGpuLeftWouldAllow",
     [](World& w) {
       leave(w, "3", "any");
       w.rule("min_gpu", "2");
       w.see_idle(4);
       w.submit(copies(3, a_job()));
     },
     "1:0 2:1", "3:quota"},
    {"MaxGpuGoesBeforeMinGpu",
     [](World& w) {
       w.rule("min_gpu", "3");
       w.rule("max_gpu", "1");
       w.see_idle(4);
       w.submit(copies(2, a_job()));
     },
     "1:0", "2:quota"},
    {"TheLastCardsAreNotSubtractedTwice",
     [](World& w) {
       leave(w, "1", "last");
       w.rule("max_gpu", "2");
       w.see_idle(3);
       w.submit(copies(3, a_job()));
     },
     "1:0 2:1", "3:quota"},
    {"AnyCardsAreSubtractedOnceBesideMaxGpu",
     [](World& w) {
       leave(w, "1", "any");
       w.rule("max_gpu", "3");
       w.see_idle(4);
       w.submit(copies(4, a_job()));
     },
     "1:0 2:1 3:2", "4:quota"},
    {"CardsInUseStayAvailableSoTheyAreNotSubtractedTwice",
     [](World& w) {
       leave(w, "1", "any");
       w.see_idle(3);
       w.submit({a_job()});
       EXPECT_EQ(w.decide(), "1:0");
       w.wait(kSecond);
       w.see({a_gpu(0).utilization(99).with(a_process_of(1).memory(23 * kGiB).utilization(99)),
              a_gpu(1), a_gpu(2)});
       w.submit(copies(2, a_job()));
     },
     "2:1", "3:quota"},
    {"ACardThatIsNearlyFullIsNotAvailable",
     [](World& w) {
       leave(w, "1", "any");
       w.see({a_gpu(0).free(512 * kMiB), a_gpu(1), a_gpu(2)});
       w.submit(copies(2, a_job()));
     },
     "1:1", "2:quota"},
    {"ADrainedCardIsNotAvailable",
     [](World& w) {
       leave(w, "1", "any");
       w.see_idle(3);
       ASSERT_TRUE(w.apply(event::DrainGpu{"0", true, ""}));
       w.submit(copies(2, a_job()));
     },
     "1:1", "2:quota"},
    {"ACardThatAnotherBerthHoldsIsNotAvailable",
     [](World& w) {
       leave(w, "1", "any");
       w.see_idle(3);
       ASSERT_TRUE(w.apply(event::BoardRead{{{"GPU-0", "another user's berth"}}}));
       w.submit(copies(2, a_job()));
     },
     "1:1", "2:quota"},
    {"OnesOwnProcessOutsideBerthCountsAsACardInUse",
     [](World& w) {
       w.state.host.uid = 1000;
       w.rule("max_gpu", "1");
       w.see({a_gpu(0).with(notebook(1000)), a_gpu(1)});
       w.submit({a_job(), a_job()});
     },
     "1:0", "2:quota"},
    {"AnotherUsersProcessDoesNotCountAsACardInUse",
     [](World& w) {
       w.state.host.uid = 1000;
       w.rule("max_gpu", "1");
       w.see({a_gpu(0).with(notebook(2000)), a_gpu(1)});
       w.submit({a_job(), a_job()});
     },
     "1:1", "2:quota"},
    {"SharesOfOneCardCountOnce",
     [](World& w) {
       w.rule("max_gpu", "1");
       w.see_idle(2);
       w.submit(copies(3, a_job().memory(4 * kGiB)));
     },
     "1:0 2:0 3:0", ""},
    {"AJobOfSeveralCardsNeedsThemWithinTheQuota",
     [](World& w) {
       w.rule("max_gpu", "2");
       w.see_idle(4);
       w.submit({a_job().gpus(3), a_job().gpus(2)});
     },
     "2:0+1", "1:quota"},
    {"ARangeTakesWhatTheQuotaLeaves",
     [](World& w) {
       w.rule("max_gpu", "2");
       w.see_idle(4);
       w.submit({a_job().gpus(1, 4)});
     },
     "1:0+1", ""},
    {"ALoweredQuotaLetsWhatRunsGoOn",
     [](World& w) {
       w.see_idle(3);
       w.submit(copies(2, a_job()));
       w.decide();
       w.rule("max_gpu", "1");
       w.submit({a_job()});
       EXPECT_EQ(w.alive(), "1:running 2:running 3:queued");
     },
     "", "3:quota"},
    {"ABatchHasAQuotaOfItsOwn",
     [](World& w) {
       w.see_idle(3);
       w.submit(a_submission(copies(2, a_job())).rule("max_gpu", "1"));
       w.submit({a_job()});
     },
     "1:0 3:1", "2:quota"},
    {"TwoBatchesDoNotUseEachOthersQuota",
     [](World& w) {
       w.see_idle(4);
       w.submit(a_submission(copies(2, a_job())).rule("max_gpu", "1"));
       w.submit(a_submission(copies(2, a_job())).rule("max_gpu", "1"));
     },
     "1:0 3:1", "2:quota 4:quota"},
    {"OfTwoQuotasTheNarrowerCounts",
     [](World& w) {
       w.rule("max_gpu", "1");
       w.see_idle(4);
       w.submit(a_submission(copies(3, a_job())).rule("max_gpu", "3"));
     },
     "1:0", "2:quota 3:quota"},
    {"ABatchsQuotaMayBeRaisedLater",
     [](World& w) {
       w.see_idle(3);
       w.submit(a_submission(copies(3, a_job())).rule("max_gpu", "1"));
       EXPECT_EQ(w.decide(), "1:0");
       w.batch_rule(1, "max_gpu", "2");
     },
     "2:1", "3:quota"},
    {"ABatchLeavesCardsWhateverOthersUse",
     [](World& w) {
       w.see_idle(3);
       w.submit(copies(1, a_job()));
       w.submit(
           a_submission(copies(2, a_job())).rule("gpu_left", "1").rule("gpu_left_mode", "any"));
     },
     "1:0 2:1", "3:quota"},
    {"ABatchWithAQuotaLeavesCardsWhateverOthersUse",
     [](World& w) {
       w.see_idle(4);
       w.submit(copies(2, a_job()));
       w.submit(a_submission(copies(2, a_job()))
                    .rule("max_gpu", "2")
                    .rule("gpu_left", "1")
                    .rule("gpu_left_mode", "any"));
     },
     "1:0 2:1 3:2", "4:quota"},
    {"UnlessItsMinGpuIsNotReached",
     [](World& w) {
       w.see_idle(4);
       w.submit(copies(3, a_job()));
       w.submit(a_submission(copies(2, a_job()))
                    .rule("min_gpu", "1")
                    .rule("gpu_left", "1")
                    .rule("gpu_left_mode", "any"));
     },
     "1:0 2:1 3:2 4:3", "5:quota"},
    {"CardsThatOthersUseCountForABatchThatJoinsThem",
     [](World& w) {
       w.rule("max_gpu", "3");
       w.rule("strategy", "spread");
       w.see_idle(4);
       w.submit(copies(3, a_job().memory(4 * kGiB)));
       w.submit(a_submission({a_job().gpus(1, 3).memory(4 * kGiB)}).rule("max_gpu", "2"));
       w.submit(a_submission({a_job().gpus(3).memory(4 * kGiB)}).rule("max_gpu", "2"));
     },
     "1:0 2:1 3:2 4:0+1", "5:quota"},
    {"CardsCloseToEachOtherAreTakenWithinTheQuota",
     [](World& w) {
       w.rule("max_gpu", "2");
       w.see({a_gpu(0), a_gpu(1).link(3, GpuLink::nvlink), a_gpu(2),
              a_gpu(3).link(1, GpuLink::nvlink)});
       w.submit({a_job().gpus(2)});
     },
     "1:1+3", ""},
    {"CardsInUseAreTakenBeforeCloserOnesBeyondTheQuota",
     [](World& w) {
       w.rule("max_gpu", "2");
       w.see({a_gpu(0), a_gpu(1).link(3, GpuLink::nvlink), a_gpu(2),
              a_gpu(3).link(1, GpuLink::nvlink)});
       w.submit({a_job().memory(4 * kGiB)});
       EXPECT_EQ(w.decide(), "1:0");
       w.submit({a_job().gpus(2).memory(4 * kGiB)});
     },
     "2:1+0", ""},
};

const std::vector<Case> kSharing = {
    {"JobsThatDeclareTheirMemoryShareACard",
     [](World& w) {
       w.see_idle(1);
       w.submit(copies(2, a_job().memory(12 * kGiB)));
     },
     "1:0 2:0", ""},
    {"AJobThatDoesNotDeclareItsMemoryJoinsNobody",
     [](World& w) {
       w.see_idle(1);
       w.submit({a_job().memory(4 * kGiB), a_job()});
     },
     "1:0", "2:gpu(claimed)"},
    {"NobodyJoinsAJobThatDoesNotDeclareItsMemory",
     [](World& w) {
       w.see_idle(1);
       w.submit({a_job(), a_job().memory(4 * kGiB)});
     },
     "1:0", "2:gpu(claimed)"},
    {"WithoutMaximizingOnesOwnJobsDoNotShare",
     [](World& w) {
       w.rule("maximize_resource_utilization", "false");
       w.see_idle(1);
       w.submit(copies(2, a_job().memory(4 * kGiB)));
     },
     "1:0", "2:gpu(claimed)"},
    {"WithoutMaximizingOneJobDoesNotJoinOthersThatWould",
     [](World& w) {
       w.see_idle(1);
       w.submit({a_job().memory(kGiB),
                 a_job().memory(kGiB).rule("maximize_resource_utilization", "false"),
                 a_job().memory(kGiB)});
     },
     "1:0 3:0", "2:gpu(claimed)"},
    {"WithoutMaximizingOnesOwnIdleNotebookKeepsItsCard",
     [](World& w) {
       w.state.host.uid = 1000;
       w.rule("maximize_resource_utilization", "false");
       w.see({a_gpu(0).with(notebook(1000))});
       w.submit({a_job()});
     },
     "", "1:gpu(own_process)"},
    {"WithoutMaximizingOnesOwnBusyProcessKeepsItsCard",
     [](World& w) {
       w.state.host.uid = 1000;
       w.rule("maximize_resource_utilization", "false");
       w.rule("max_utilization", "100");
       w.see({a_gpu(0).utilization(50).with(
           a_stranger().memory(4 * kGiB).utilization(50).uid(1000).age(kHour))});
       w.submit({a_job()});
     },
     "", "1:gpu(own_process)"},
    {"MaximizingTakesTheCardOfOnesOwnIdleNotebook",
     [](World& w) {
       w.state.host.uid = 1000;
       w.see({a_gpu(0).with(notebook(1000))});
       w.submit({a_job()});
     },
     "1:0", ""},
    {"WithoutMaximizingAnotherUsersIdleNotebookDoesNotMatter",
     [](World& w) {
       w.state.host.uid = 1000;
       w.rule("maximize_resource_utilization", "false");
       w.see({a_gpu(0).with(notebook(2000))});
       w.submit({a_job()});
     },
     "1:0", ""},
    {"WithoutMaximizingAProcessOfUnknownOwnerIsNotOnesOwn",
     [](World& w) {
       w.state.host.uid = 1000;
       w.rule("maximize_resource_utilization", "false");
       w.see({a_gpu(0).with(a_stranger().memory(600 * kMiB).utilization(0).age(kHour))});
       w.submit({a_job()});
     },
     "1:0", ""},
    {"WithoutMaximizingTheNextCardIsTaken",
     [](World& w) {
       w.state.host.uid = 1000;
       w.rule("maximize_resource_utilization", "false");
       w.see({a_gpu(0).with(notebook(1000)), a_gpu(1).free(20 * kGiB)});
       w.submit({a_job().memory(kGiB)});
     },
     "1:1", ""},
};

/// Job 1 was promised 16 GiB, and uses `first`, a minute later `second`.
void use_over_a_minute(World& w, Bytes first, Bytes second, const std::string& flat) {
  w.rule("shrink_claims", flat);
  w.see_idle(1);
  w.submit({a_job().memory(16 * kGiB)});
  EXPECT_EQ(w.decide(), "1:0");
  w.wait(kSecond);
  w.see({a_gpu(0).with(a_process_of(1).memory(first))});
  w.wait(kMinute);
  w.see({a_gpu(0).with(a_process_of(1).memory(second))});
}

const std::vector<Case> kRamp = {
    {"ManyJobsStartInOneDecisionWithoutCollision",
     [](World& w) {
       w.see_idle(2);
       w.submit(copies(9, a_job().memory(6 * kGiB)));
     },
     "1:0 2:1 3:0 4:1 5:0 6:1 7:0 8:1", "9:gpu(memory,memory)"},
    {"DeclaredMemoryCountsBeforeAnyOfItIsUsed",
     [](World& w) {
       w.see_idle(1);
       w.submit({a_job().memory(16 * kGiB)});
       w.decide();
       w.wait(kSecond);
       w.see_idle(1);
       w.submit({a_job().memory(9 * kGiB), a_job().memory(8 * kGiB)});
     },
     "3:0", "2:gpu(memory)"},
    {"AClaimIsNotReleasedUnlessAskedFor",
     [](World& w) {
       use_over_a_minute(w, 4 * kGiB, 4 * kGiB, "0");
       w.submit({a_job().memory(9 * kGiB)});
     },
     "", "2:gpu(memory)"},
    {"TheRestOfAClaimIsReleasedWhenItsUseHasBeenFlat",
     [](World& w) {
       use_over_a_minute(w, 4 * kGiB, 4 * kGiB, "1m");
       w.submit({a_job().memory(20 * kGiB)});
     },
     "2:0", ""},
    {"TheRestOfAClaimIsNotReleasedBefore",
     [](World& w) {
       use_over_a_minute(w, 4 * kGiB, 4 * kGiB, "61s");
       w.submit({a_job().memory(9 * kGiB), a_job().memory(8 * kGiB)});
     },
     "3:0", "2:gpu(memory)"},
    {"GrowthBeginsTheTimeAnew",
     [](World& w) {
       use_over_a_minute(w, 4 * kGiB, 6 * kGiB, "1m");
       w.submit({a_job().memory(9 * kGiB), a_job().memory(8 * kGiB)});
     },
     "3:0", "2:gpu(memory)"},
    {"AHundredthMoreOrLessIsFlat",
     [](World& w) {
       use_over_a_minute(w, 4 * kGiB, 4 * kGiB + 40 * kMiB, "1m");
       w.submit({a_job().memory(19 * kGiB)});
     },
     "2:0", ""},
    {"AReleasedClaimKeepsTheMostThatWasUsed",
     [](World& w) {
       use_over_a_minute(w, 10 * kGiB, 10 * kGiB, "1m");
       w.wait(kSecond);
       w.see({a_gpu(0).with(a_process_of(1).memory(2 * kGiB))});
       w.submit({a_job().memory(14 * kGiB + 1), a_job().memory(14 * kGiB)});
     },
     "3:0", "2:gpu(memory)"},
    {"GrowthAfterAReleaseBringsTheClaimBack",
     [](World& w) {
       use_over_a_minute(w, 4 * kGiB, 4 * kGiB, "1m");
       w.wait(kSecond);
       w.see({a_gpu(0).with(a_process_of(1).memory(6 * kGiB))});
       w.submit({a_job().memory(8 * kGiB + 1), a_job().memory(8 * kGiB)});
     },
     "3:0", "2:gpu(memory)"},
    {"AJobThatHasNotBegunToUseItsCardKeepsItsClaim",
     [](World& w) {
       use_over_a_minute(w, 0, 0, "1m");
       w.submit({a_job().memory(9 * kGiB)});
     },
     "", "2:gpu(memory)"},
    {"AWholeCardIsNeverReleasedInPart",
     [](World& w) {
       w.rule("shrink_claims", "1s");
       w.see_idle(1);
       w.submit({a_job()});
       w.decide();
       w.wait(kSecond);
       w.see({a_gpu(0).with(a_process_of(1).memory(kGiB))});
       w.wait(kHour);
       w.see_again();
       w.submit({a_job().memory(kGiB)});
     },
     "", "2:gpu(claimed)"},
};

INSTANTIATE_TEST_SUITE_P(Left, Quotas, ::testing::ValuesIn(kLeft), row_name);
INSTANTIATE_TEST_SUITE_P(Quota, Quotas, ::testing::ValuesIn(kQuota), row_name);
INSTANTIATE_TEST_SUITE_P(Sharing, Quotas, ::testing::ValuesIn(kSharing), row_name);
INSTANTIATE_TEST_SUITE_P(Ramp, Quotas, ::testing::ValuesIn(kRamp), row_name);

}  // namespace
}  // namespace berth::testing
