// Which card a job gets: whole cards, shares, thresholds, strangers, claims, and what is not known.

#include <gtest/gtest.h>

#include "unit/core/world.hpp"

namespace berth::testing {
namespace {

class DecideGpu : public ::testing::TestWithParam<Case> {};

TEST_P(DecideGpu, Holds) {
  World world;
  GetParam().given(world);
  EXPECT_EQ(world.decide(), GetParam().starts);
  EXPECT_EQ(world.waits(), GetParam().waits);
}

constexpr Bytes kMinFree = 8000 * kMiB;

const std::vector<Case> kCards = {
    {"AJobThatDeclaresNoMemoryGetsAWholeCard",
     [](World& w) {
       w.see_idle(1);
       w.submit({a_job(), a_job().memory(kGiB)});
     },
     "1:0", "2:gpu(claimed)"},
    {"AWholeCardIsNotGivenWhereAShareIsClaimed",
     [](World& w) {
       w.see_idle(1);
       w.submit({a_job().memory(kGiB), a_job()});
     },
     "1:0", "2:gpu(claimed)"},
    {"SharesFillACardToTheLastByte",
     [](World& w) {
       w.see_idle(1);
       w.submit({a_job().memory(16 * kGiB), a_job().memory(8 * kGiB), a_job().memory(1)});
     },
     "1:0 2:0", "3:gpu(memory)"},
    {"ASharePrefersTheCardWithMostFreeMemory",
     [](World& w) {
       w.see({a_gpu(0).free(10 * kGiB), a_gpu(1).free(20 * kGiB)});
       w.submit(copies(3, a_job().memory(6 * kGiB)));
     },
     "1:1 2:1 3:0", ""},
    {"AmongEqualCardsTheFirstIsTaken",
     [](World& w) {
       w.see_idle(3);
       w.submit({a_job()});
     },
     "1:0", ""},
    {"AJobWithoutGpusNeedsNoneAndNoSample", [](World& w) { w.submit({a_cpu_job()}); }, "1:-", ""},
    {"SeveralGpusAreTakenTogetherOrNotAtAll",
     [](World& w) {
       w.see_idle(3);
       w.submit(copies(2, a_job().gpus(2)));
     },
     "1:0+1", "2:gpu(claimed,claimed)"},
    {"AShareOnEachOfSeveralGpus",
     [](World& w) {
       w.see_idle(2);
       w.submit(
           {a_job().gpus(2).memory(20 * kGiB), a_job().memory(4 * kGiB), a_job().memory(5 * kGiB)});
     },
     "1:0+1 2:0", "3:gpu(memory,memory)"},
    {"ARangeTakesAsManyAsThereAre",
     [](World& w) {
       w.see_idle(3);
       w.submit({a_job().gpus(1, 8)});
     },
     "1:0+1+2", ""},
    {"ARangeTakesNoMoreThanItsUpperEnd",
     [](World& w) {
       w.see_idle(3);
       w.submit({a_job().gpus(1, 2), a_job()});
     },
     "1:0+1 2:2", ""},
    {"ARangeWaitsForItsLowerEnd",
     [](World& w) {
       w.see({a_gpu(0), a_gpu(1).free(kGiB), a_gpu(2).free(kGiB)});
       w.submit({a_job().gpus(2, 3)});
     },
     "", "1:gpu(memory,memory)"},
    {"ARangeFromZeroStartsWithWhatThereIs",
     [](World& w) {
       w.see({a_gpu(0).free(kGiB)});
       w.submit({a_job().gpus(0, 2)});
     },
     "1:-", ""},
    {"MoreGpusThanTheMachineHasIsSaidPlainly",
     [](World& w) {
       w.see_idle(2);
       w.submit({a_job().gpus(3)});
     },
     "", "1:no_gpu"},
    {"AMachineWithoutGpusIsSaidPlainly",
     [](World& w) {
       w.see({});
       w.submit({a_job()});
     },
     "", "1:no_gpu"},
    {"AShareLargerThanTheCardNeverFits",
     [](World& w) {
       w.see({a_gpu(0), a_gpu(1).total(80 * kGiB).free(10 * kGiB)});
       w.submit({a_job().memory(24 * kGiB + 1)});
     },
     "", "1:gpu(too_small,memory)"},
};

const std::vector<Case> kThresholds = {
    {"ALargeCardNeedsEightThousandMiBFree",
     [](World& w) {
       w.see({a_gpu(0).free(kMinFree - 1), a_gpu(1).free(kMinFree)});
       w.submit(copies(2, a_job()));
     },
     "1:1", "2:gpu(memory,claimed)"},
    {"ASmallCardNeedsNinetyPercentFree",
     [](World& w) {
       w.see({a_gpu(0).total(1000).free(899), a_gpu(1).total(1000).free(900)});
       w.submit(copies(2, a_job()));
     },
     "1:1", "2:gpu(memory,claimed)"},
    {"TheInstanceMayAskForMoreFreeMemory",
     [](World& w) {
       w.state.rules.min_free_memory = 20 * kGiB;
       w.see({a_gpu(0).free(20 * kGiB - 1), a_gpu(1).free(20 * kGiB)});
       w.submit(copies(2, a_job()));
     },
     "1:1", "2:gpu(memory,claimed)"},
    {"AJobMayAskForLessFreeMemory",
     [](World& w) {
       w.see({a_gpu(0).free(kGiB)});
       w.submit({a_job(), a_job().min_free(kGiB)});
     },
     "2:0", "1:gpu(claimed)"},
    {"TheRuleForFreeMemoryDoesNotConcernShares",
     [](World& w) {
       w.state.rules.min_free_memory = 20 * kGiB;
       w.see({a_gpu(0).free(2 * kGiB)});
       w.submit({a_job().memory(2 * kGiB)});
     },
     "1:0", ""},
    {"AShareWithItsOwnThresholdNeedsBoth",
     [](World& w) {
       w.see({a_gpu(0).free(5 * kGiB)});
       w.submit({a_job().memory(2 * kGiB).min_free(6 * kGiB),
                 a_job().memory(2 * kGiB).min_free(5 * kGiB)});
     },
     "2:0", "1:gpu(memory)"},
    {"TheMarginIsKeptFree",
     [](World& w) {
       w.state.rules.memory_margin = kGiB;
       w.see_idle(1);
       w.submit({a_job().memory(23 * kGiB + 1), a_job().memory(23 * kGiB)});
     },
     "2:0", "1:gpu(memory)"},
    {"StrangersAtTheLimitOfUtilizationAreTolerated",
     [](World& w) {
       w.see({a_gpu(0).utilization(31).with(a_stranger().memory(kGiB)),
              a_gpu(1).utilization(30).with(a_stranger().memory(kGiB))});
       w.submit(copies(2, a_job()));
     },
     "1:1", "2:gpu(utilization,claimed)"},
    {"AJobMayAskForAQuieterOrToleratesABusierCard",
     [](World& w) {
       w.see({a_gpu(0).utilization(50).with(a_stranger().memory(kGiB))});
       w.submit({a_job().max_utilization(49), a_job().max_utilization(50)});
     },
     "2:0", "1:gpu(claimed)"},
    {"OwnPackedJobsAtFullUtilizationDoNotBlock",
     [](World& w) {
       w.see_idle(1);
       w.submit({a_job().memory(4 * kGiB)});
       w.decide();
       w.wait(Millis{100});
       w.see({a_gpu(0).utilization(100).with(a_process_of(1).memory(4 * kGiB).utilization(100))});
       w.submit({a_job().memory(4 * kGiB)});
     },
     "2:0", ""},
    {"StrangersBesideOwnJobsAreJudgedByTheirOwnShareWhenItIsKnown",
     [](World& w) {
       w.see_idle(1);
       w.submit({a_job().memory(4 * kGiB)});
       w.decide();
       w.wait(Millis{100});
       w.see({a_gpu(0)
                  .utilization(100)
                  .with(a_process_of(1).memory(4 * kGiB).utilization(80))
                  .with(a_stranger().memory(kGiB).utilization(20))});
       w.submit({a_job().memory(4 * kGiB), a_job().memory(4 * kGiB).max_utilization(19)});
     },
     "2:0", "3:gpu(utilization)"},
    {"StrangersBesideOwnJobsAreAssumedToDoItAllWhenTheirShareIsUnknown",
     [](World& w) {
       w.see_idle(1);
       w.submit({a_job().memory(4 * kGiB)});
       w.decide();
       w.wait(Millis{100});
       w.see({a_gpu(0)
                  .utilization(100)
                  .with(a_process_of(1).memory(4 * kGiB).utilization(80))
                  .with(a_stranger().memory(kGiB))});
       w.submit({a_job().memory(4 * kGiB)});
     },
     "", "2:gpu(utilization)"},
    {"SeveralStrangersAreAddedUp",
     [](World& w) {
       w.see({a_gpu(0)
                  .unknown_utilization()
                  .with(a_stranger().memory(kGiB).utilization(16))
                  .with(a_stranger().memory(kGiB).utilization(15))});
       w.submit({a_job(), a_job().max_utilization(31)});
     },
     "2:0", "1:gpu(claimed)"},
    {"StrangersWhoseUtilizationIsUnknownAreLeftAlone",
     [](World& w) {
       w.see({a_gpu(0).unknown_utilization().with(a_stranger().memory(kGiB))});
       w.submit({a_job()});
     },
     "", "1:gpu(utilization)"},
    {"StrangersOfWhomNothingIsKnownAreLeftAlone",
     [](World& w) {
       w.see({a_gpu(0).unknown_utilization().with(a_stranger())});
       w.submit({a_job()});
     },
     "", "1:gpu(utilization)"},
    {"UnknownUtilizationOfAnEmptyCardDoesNotMatter",
     [](World& w) {
       w.see({a_gpu(0).unknown_utilization()});
       w.submit({a_job()});
     },
     "1:0", ""},
    {"LoadOfUnknownOriginOnACardWithoutClaimsIsAStrangers",
     [](World& w) {
       w.see({a_gpu(0).utilization(31).unknown_processes()});
       w.submit({a_job()});
     },
     "", "1:gpu(utilization)"},
    {"LoadOfUnknownOriginOnAClaimedCardIsOurs",
     [](World& w) {
       w.see({a_gpu(0).unknown_processes()});
       w.submit({a_job().memory(kGiB)});
       w.decide();
       w.wait(Millis{100});
       w.see({a_gpu(0).utilization(100).unknown_processes()});
       w.submit({a_job().memory(kGiB)});
     },
     "2:0", ""},
    {"AClaimDoesNotExplainLoadThatWasThereBeforeIt",
     [](World& w) {
       w.see({a_gpu(0).utilization(50).unknown_processes()});
       w.submit({a_job().memory(kGiB).max_utilization(60), a_job().memory(kGiB)});
       EXPECT_EQ(w.decide(), "1:0");
       ASSERT_TRUE(w.apply(event::Tick{}));
     },
     "", "2:gpu(utilization)"},
};

const std::vector<Case> kUnknown = {
    {"NothingIsDecidedBeforeTheFirstSample", [](World& w) { w.submit({a_job()}); }, " ?", "1:gpu"},
    {"ASampleOfTheGreatestAllowedAgeCounts",
     [](World& w) {
       w.see_idle(2);
       w.submit({a_job()});
       EXPECT_EQ(w.decide(), "1:0");
       w.wait(w.state.rules.sample_age_max);
       w.submit({a_job()});
     },
     "2:1", ""},
    {"AnOlderSampleDecidesNothingAndANewOneIsWanted",
     [](World& w) {
       w.see_idle(1);
       w.wait(w.state.rules.sample_age_max + Millis{1});
       w.submit({a_job()});
     },
     " ?", "1:gpu(stale)"},
    {"AJobMayWantANewerSampleThanOthers",
     [](World& w) {
       w.see_idle(2);
       w.wait(Millis{1'500});
       w.submit({a_job().rule("sample_age_max", "1s"), a_job()});
     },
     "2:0 ?", "1:gpu(stale,stale)"},
    {"AJobMayPutUpWithAnOlderSample",
     [](World& w) {
       w.see_idle(2);
       w.submit({a_job()});
       EXPECT_EQ(w.decide(), "1:0");
       w.wait(Millis{20'000});
       w.submit({a_job().rule("sample_age_max", "1m"), a_job()});
     },
     "2:1 ?", "3:gpu(stale,stale)"},
    {"WhereNobodyWantedAnyASampleOfTwoSecondsCounts",
     [](World& w) {
       w.see_idle(1);
       w.wait(Millis{2'000});
       w.submit({a_job()});
     },
     "1:0", ""},
    {"WhereNobodyWantedAnyAnOlderOneDecidesNothing",
     [](World& w) {
       w.see_idle(1);
       w.wait(Millis{2'001});
       w.submit({a_job()});
     },
     " ?", "1:gpu(stale)"},
    {"NorForThoseThatComeBeforeTheNewOne",
     [](World& w) {
       w.see_idle(1);
       w.wait(Millis{2'001});
       w.submit({a_job()});
       EXPECT_EQ(w.decide(), " ?");
       w.wait(Millis{1});
       w.submit({a_job()});
     },
     " ?", "1:gpu(stale) 2:gpu(stale)"},
    {"TheNewOneDecides",
     [](World& w) {
       w.see_idle(1);
       w.wait(Millis{4'000});
       w.submit({a_job()});
       EXPECT_EQ(w.decide(), " ?");
       w.wait(Millis{1});
       w.see_again();
     },
     "1:0", ""},
    {"WhileSomebodyWaitsAnOlderOneCounts",
     [](World& w) {
       w.see_idle(1);
       w.submit({a_job().gpus(2)});
       EXPECT_EQ(w.decide(), "");
       w.wait(Millis{4'000});
       w.submit({a_job()});
     },
     "2:0", "1:no_gpu"},
    {"AnOldSampleDoesNotHoldUpJobsWithoutGpus",
     [](World& w) {
       w.see_idle(1);
       w.wait(Millis{60'000});
       w.submit({a_job(), a_cpu_job()});
     },
     "2:- ?", "1:gpu(stale)"},
    {"AFreshSampleStartsWhatWaitedForIt",
     [](World& w) {
       w.submit({a_job()});
       w.decide();
       w.see_idle(1);
     },
     "1:0", ""},
    {"AfterAFailedLookNothingStartsAndNoSampleIsAskedFor",
     [](World& w) {
       w.see_idle(1);
       ASSERT_TRUE(w.apply(event::ProbeFailed{"the driver hangs"}));
       w.submit({a_job()});
     },
     "", "1:gpu(stale)"},
    {"AGoodLookAfterAFailedOneIsTrusted",
     [](World& w) {
       ASSERT_TRUE(w.apply(event::ProbeFailed{"the driver hangs"}));
       w.submit({a_job()});
       w.decide();
       w.see_idle(1);
     },
     "1:0", ""},
    {"ACardWithUnknownFreeMemoryIsNotUsed",
     [](World& w) {
       w.see({a_gpu(0).unknown_memory(), a_gpu(1)});
       w.submit(copies(2, a_job()));
     },
     "1:1", "2:gpu(unknown,claimed)"},
    {"ACardInTroubleIsNotUsed",
     [](World& w) {
       w.see({a_gpu(0).lost("GPU is lost"), a_gpu(1)});
       w.submit(copies(2, a_job()));
     },
     "1:1", "2:gpu(trouble,claimed)"},
    {"ACardThatTheDriverNoLongerShowsKeepsItsClaim",
     [](World& w) {
       w.see_idle(2);
       w.submit(copies(2, a_job()));
       w.decide();
       w.wait(Millis{100});
       w.see({a_gpu(0)});
       w.submit({a_job()});
     },
     "", "3:gpu(claimed,trouble)"},
    {"ACardThatComesBackStillHasItsClaim",
     [](World& w) {
       w.see_idle(1);
       w.submit({a_job()});
       w.decide();
       w.see({});
       w.see_idle(1);
       w.submit({a_job()});
     },
     "", "2:gpu(claimed)"},
};

const std::vector<Case> kClaims = {
    {"AClaimCountsFromTheDecisionWhateverTheSampleShows",
     [](World& w) {
       w.see_idle(1);
       w.submit({a_job()});
       w.decide();
       w.see_again();
       w.submit({a_job()});
     },
     "", "2:gpu(claimed)"},
    {"AClaimShrinksByWhatItsAttemptAlreadyUses",
     [](World& w) {
       w.see_idle(1);
       w.submit({a_job().memory(16 * kGiB)});
       w.decide();
       w.wait(Millis{100});
       w.see({a_gpu(0).with(a_process_of(1).memory(10 * kGiB))});  // 14 free, 6 still promised
       w.submit({a_job().memory(8 * kGiB + 1), a_job().memory(8 * kGiB)});
     },
     "3:0", "2:gpu(memory)"},
    {"AnAttemptThatUsesMoreThanItsClaimCountsWithWhatItUses",
     [](World& w) {
       w.see_idle(1);
       w.submit({a_job().memory(2 * kGiB)});
       w.decide();
       w.wait(Millis{100});
       w.see({a_gpu(0).with(a_process_of(1).memory(20 * kGiB))});
       w.submit({a_job().memory(4 * kGiB + 1), a_job().memory(4 * kGiB)});
     },
     "3:0", "2:gpu(memory)"},
    {"AllProcessesOfAnAttemptCountTowardsItsClaim",
     [](World& w) {
       w.see_idle(1);
       w.submit({a_job().memory(16 * kGiB)});
       w.decide();
       w.wait(Millis{100});
       w.see({a_gpu(0)
                  .with(a_process_of(1).memory(8 * kGiB))
                  .with(a_process_of(1).memory(8 * kGiB))});
       w.submit({a_job().memory(8 * kGiB)});
     },
     "2:0", ""},
    {"UnknownUseOfAnAttemptLeavesItsWholeClaimStanding",
     [](World& w) {
       w.see_idle(1);
       w.submit({a_job().memory(16 * kGiB)});
       w.decide();
       w.wait(Millis{100});
       w.see({a_gpu(0).with(a_process_of(1))});
       w.submit({a_job().memory(8 * kGiB + 1), a_job().memory(8 * kGiB)});
     },
     "3:0", "2:gpu(memory)"},
    {"ACardOfAnEndedAttemptIsNotFreeBeforeItHasBeenLookedAt",
     [](World& w) {
       w.see_idle(1);
       w.submit(copies(2, a_job()));
       w.decide();
       w.wait(Millis{100});
       w.succeed(1);
     },
     "", "2:gpu(ending)"},
    {"ASampleBegunBeforeTheEndDoesNotFreeTheCard",
     [](World& w) {
       w.see_idle(1);
       w.submit(copies(2, a_job()));
       w.decide();
       w.wait(Millis{100});
       w.succeed(1);
       w.now.mono -= Millis{50};
       w.see_again();
       w.now.mono += Millis{50};
     },
     "", "2:gpu(ending)"},
    {"ASampleBegunAfterTheEndFreesTheCard",
     [](World& w) {
       w.see_idle(1);
       w.submit(copies(2, a_job()));
       w.decide();
       w.wait(Millis{100});
       w.succeed(1);
       w.wait(Millis{1});
       w.see_again();
     },
     "2:0", ""},
    {"ALaterSampleThatStillShowsItsProcessesDoesNotFreeTheCard",
     [](World& w) {
       w.see_idle(1);
       w.submit(copies(2, a_job()));
       w.decide();
       w.wait(Millis{100});
       w.succeed(1);
       w.wait(Millis{1});
       w.see({a_gpu(0).with(a_process_of(1).memory(kGiB))});
     },
     "", "2:gpu(ending)"},
    {"ACardInTroubleKeepsItsEndedClaim",
     [](World& w) {
       w.see_idle(1);
       w.submit({a_job()});
       w.decide();
       w.succeed(1);
       w.wait(Millis{1});
       w.see({a_gpu(0).lost("GPU is lost")});
       EXPECT_EQ(w.state.gpus[0].claims.size(), 1U);
     },
     "", ""},
    {"TheEndedShareOfACardStaysPromised",
     [](World& w) {
       w.see_idle(1);
       w.submit({a_job().memory(20 * kGiB), a_job().memory(20 * kGiB)});
       w.decide();
       w.succeed(1);
     },
     "", "2:gpu(memory)"},
    {"OtherCardsGoOnWhileOneIsEnding",
     [](World& w) {
       w.see_idle(2);
       w.submit(copies(4, a_job()));
       w.decide();
       w.succeed(1);
       w.succeed(2);
       w.wait(Millis{1});
       w.see({a_gpu(0).with(a_process_of(1).memory(kGiB)), a_gpu(1)});
     },
     "3:1", "4:gpu(ending,claimed)"},
};

std::string name_of(const ::testing::TestParamInfo<Case>& info) {
  return info.param.name;
}
INSTANTIATE_TEST_SUITE_P(Cards, DecideGpu, ::testing::ValuesIn(kCards), name_of);
INSTANTIATE_TEST_SUITE_P(Thresholds, DecideGpu, ::testing::ValuesIn(kThresholds), name_of);
INSTANTIATE_TEST_SUITE_P(Unknown, DecideGpu, ::testing::ValuesIn(kUnknown), name_of);
INSTANTIATE_TEST_SUITE_P(Claims, DecideGpu, ::testing::ValuesIn(kClaims), name_of);

TEST(Explain, NamesTheRulesThatMakeAQuotaSmall) {
  {
    World world;
    world.rule("gpu_left", "4");
    world.rule("gpu_left_mode", "any");
    world.see_idle(4);
    world.submit({a_job()});
    EXPECT_EQ(world.decide(), "");
    EXPECT_EQ(world.said(1),
              "asks for 1 GPU, and berth may use 0 at once (4 available, gpu_left=4 "
              "gpu_left_mode=any)");
  }
  {
    World world;
    world.rule("max_gpu", "1");
    world.see_idle(4);
    world.submit(copies(2, a_job()));
    EXPECT_EQ(world.decide(), "1:0");
    EXPECT_EQ(world.said(2), "the one card that berth may use at once is in use (max_gpu=1)");
    const auto reasons = explain(world.state, *world.state.job(JobId{2}), world.now);
    EXPECT_EQ(reasons[0].facts.names.at("rules"), "max_gpu=1");
  }
  {
    World world;
    world.rule("max_gpu", "1");
    world.see_idle(4);
    world.submit({a_job().gpus(2)});
    EXPECT_EQ(world.decide(), "");
    EXPECT_EQ(world.said(1),
              "asks for 2 GPUs, and berth may use 1 at once (max_gpu=1), so it never starts; "
              "`berth set max_gpu=2` lets it");
  }
  {
    World world;
    world.rule("gpu_left", "3");
    world.rule("gpu_left_mode", "any");
    world.rule("min_gpu", "2");
    world.see_idle(4);
    world.submit(copies(3, a_job()));
    EXPECT_EQ(world.decide(), "1:0 2:1");
    EXPECT_EQ(world.said(3),
              "2 of the 2 cards that berth may use at once are in use (4 available, gpu_left=3 "
              "gpu_left_mode=any, min_gpu=2)");
  }
}

TEST(Explain, SaysThatAJobWantsACardToItself) {
  World world;
  world.see_idle(1);
  world.submit({a_job().memory(2 * kGiB)});
  EXPECT_EQ(world.decide(), "1:0");
  world.submit({a_job(), a_job().memory(kGiB).rule("maximize_resource_utilization", "false")});
  EXPECT_EQ(world.decide(), "");
  EXPECT_EQ(world.said(2),
            "no GPU has room: GPU 0: job 1 is on it, and this job wants a card to itself (with "
            "--gpu-memory it could share)");
  EXPECT_EQ(world.said(3),
            "no GPU has room: GPU 0: job 1 is on it, and this job wants a card to itself "
            "(maximize_resource_utilization is off)");
}

TEST(Explain, PutsCardsTogetherThatAreInTheWayForTheSameReason) {
  World world;
  world.see_idle(16);
  world.submit({a_job().rule("gpus", "3")});
  world.submit({a_job().rule("gpus", "3")});
  EXPECT_EQ(world.decide(), "1:3");
  EXPECT_EQ(world.said(2),
            "no GPU has room: GPUs 0-2, 4-15: not among the cards that the rule gpus allows; GPU "
            "3: taken by job 1");
  const auto reasons = explain(world.state, *world.state.job(JobId{2}), world.now);
  EXPECT_EQ(reasons[0].gpus.size(), 16U) << "each card is told of as data";
}

TEST(Explain, PutsManyTakenCardsTogetherWhoeverHasThem) {
  World world;
  world.see_idle(8);
  world.submit(copies(8, a_job()));
  world.submit({a_job()});
  world.decide();
  EXPECT_EQ(world.said(9), "no GPU has room: GPUs 0-7: taken by jobs 1-8");
}

TEST(Explain, TellsANumberForEveryCardInTheWay) {
  World world;
  world.see({a_gpu(0).utilization(80).with(a_stranger().memory(2 * kGiB)), a_gpu(1).free(kGiB),
             a_gpu(2)});
  world.submit(copies(2, a_job()));
  EXPECT_EQ(world.decide(), "1:2");
  const auto reasons = explain(world.state, *world.state.job(JobId{2}), world.now);
  ASSERT_EQ(reasons.size(), 1U);
  EXPECT_EQ(reasons[0].text,
            "no GPU has room: GPU 0: others keep it 80 % busy, the limit is 30 % "
            "(max_utilization); GPU 1: 1 GiB free, 7.8 GiB needed (min_free_memory); GPU 2: taken "
            "by job 1");
  EXPECT_EQ(reasons[0].jobs, std::vector<JobId>{JobId{1}});
}

TEST(Explain, NamesTheRulesBehindTheNumbers) {
  const auto said = [](const std::string& key, const std::string& value, const JobSpec& job) {
    World world;
    world.rule(key, value);
    world.see({a_gpu(0).free(18 * kGiB)});
    world.submit({job});
    EXPECT_EQ(world.decide(), "");
    return world.said(1);
  };
  EXPECT_EQ(said("memory_margin", "17GiB", a_job().memory(2 * kGiB)),
            "no GPU has room: GPU 0: 1 GiB free (memory_margin=17GiB kept), 2 GiB needed");
  EXPECT_EQ(said("min_free_memory", "20GiB", a_job()),
            "no GPU has room: GPU 0: 18 GiB free, 20 GiB needed (min_free_memory)");
  EXPECT_EQ(said("min_free_memory", "30GiB", a_job()),
            "no GPU has room and never will: the cards are too small: GPU 0: has 24 GiB in all, "
            "30 GiB are needed (min_free_memory)");
  EXPECT_EQ(said("fair_share", "true", a_job().memory(4 * kGiB).min_free(19 * kGiB)),
            "no GPU has room: GPU 0: 18 GiB free, 19 GiB needed (min_free_memory)");
  EXPECT_EQ(said("keep_gpu_memory", "20", a_job().memory(kGiB)),
            "no GPU has room: GPU 0: 6 GiB of 24 GiB are in use, more than the rule "
            "keep_gpu_memory=20 allows");
}

TEST(Explain, SaysNothingOfAJobThatRuns) {
  World world;
  world.submit({a_cpu_job()});
  world.decide();
  EXPECT_TRUE(explain(world.state, *world.state.job(JobId{1}), world.now).empty());
}

TEST(Explain, SaysDueOnlyBeforeTheDecision) {
  World world;
  world.submit({a_cpu_job()});
  EXPECT_EQ(world.waits(), "1:due");
  world.decide();
  EXPECT_EQ(world.waits(), "");
}

}  // namespace
}  // namespace berth::testing
