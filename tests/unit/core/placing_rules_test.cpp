// The rules that say which cards a job may have, and what a start by hand may ignore.

#include <gtest/gtest.h>

#include "unit/core/policy_table.hpp"

namespace berth::testing {
namespace {

class PlacingRules : public PolicyTable {};
TEST_P(PlacingRules, Holds) {
  expect_row(GetParam());
}

GpuProcess trainer() {
  return a_stranger().memory(2 * kGiB).utilization(95).uid(2000).age(kHour);
}

const std::vector<Case> kMemory = {
    {"MinFreeMemoryAutoGivesTheDefaultBack",
     [](World& w) {
       w.rule("min_free_memory", "20GiB");
       w.rule("min_free_memory", "auto");
       w.see({a_gpu(0).free(8000 * kMiB)});
       w.submit({a_job()});
     },
     "1:0", ""},
    {"MinFreeMemoryBeyondTheCardIsSaidToBeTooMuch",
     [](World& w) {
       w.rule("min_free_memory", "30GiB");
       w.see_idle(1);
       w.submit({a_job()});
     },
     "", "1:gpu(too_small)"},
    {"MinFreeMemoryOfZeroTakesAFullCard",
     [](World& w) {
       w.rule("min_free_memory", "0");
       w.see({a_gpu(0).free(0)});
       w.submit({a_job()});
     },
     "1:0", ""},
    {"MinFreeMemoryOfAQueueCountsForItsJobsAlone",
     [](World& w) {
       w.queue_rule("careful", "min_free_memory", "20GiB");
       w.see({a_gpu(0).free(10 * kGiB)});
       w.submit({a_job().queue("careful"), a_job()});
     },
     "2:0", "1:gpu(claimed)"},
    {"MinFreeMemoryOfABatchCountsForItsJobsAlone",
     [](World& w) {
       w.see({a_gpu(0).free(10 * kGiB)});
       w.submit(a_submission({a_job()}).rule("min_free_memory", "20GiB"));
       w.submit({a_job()});
     },
     "2:0", "1:gpu(claimed)"},
    {"TheMarginComesOnTopOfMinFreeMemory",
     [](World& w) {
       w.rule("min_free_memory", "10GiB");
       w.rule("memory_margin", "1GiB");
       w.see({a_gpu(0).free(11 * kGiB - 1), a_gpu(1).free(11 * kGiB)});
       w.submit(copies(2, a_job()));
     },
     "1:1", "2:gpu(memory,claimed)"},
    {"TheMarginIsKeptOncePerCardNotPerJob",
     [](World& w) {
       w.rule("memory_margin", "4GiB");
       w.see_idle(1);
       w.submit(copies(3, a_job().memory(10 * kGiB)));
     },
     "1:0 2:0", "3:gpu(memory)"},
    {"AJobMayHaveAMarginOfItsOwn",
     [](World& w) {
       w.see_idle(1);
       w.submit({a_job().memory(20 * kGiB).rule("memory_margin", "5GiB"),
                 a_job().memory(20 * kGiB).rule("memory_margin", "4GiB")});
     },
     "2:0", "1:gpu(memory)"},
};

const std::vector<Case> kUtilization = {
    {"MaxUtilizationOfZeroWantsStrangersToIdle",
     [](World& w) {
       w.rule("max_utilization", "0");
       w.see({a_gpu(0).utilization(1).with(a_stranger().memory(2 * kGiB)),
              a_gpu(1).utilization(0).with(a_stranger().memory(2 * kGiB))});
       w.submit(copies(2, a_job()));
     },
     "1:1", "2:gpu(utilization,claimed)"},
    {"MaxUtilizationOfAHundredToleratesEverybody",
     [](World& w) {
       w.rule("max_utilization", "100");
       w.see({a_gpu(0).utilization(100).with(trainer())});
       w.submit({a_job()});
     },
     "1:0", ""},
    {"MaxUtilizationMayBeWrittenWithAPercentSign",
     [](World& w) {
       w.see({a_gpu(0).utilization(60).with(a_stranger().memory(2 * kGiB))});
       w.submit({a_job().rule("max_utilization", "59%"), a_job().rule("max_utilization", "60%")});
     },
     "2:0", "1:gpu(claimed)"},
    {"MaxUtilizationOfABatchCountsForItsJobsAlone",
     [](World& w) {
       w.see({a_gpu(0).utilization(60).with(a_stranger().memory(2 * kGiB))});
       w.submit({a_job()});
       w.submit(a_submission({a_job()}).rule("max_utilization", "60"));
     },
     "2:0", "1:gpu(claimed)"},
};

const std::vector<Case> kKeep = {
    {"ACardOfWhichExactlyTheKeptShareIsInUseTakesAnotherJob",
     [](World& w) {
       w.rule("keep_gpu_memory", "50");
       w.see({a_gpu(0).free(12 * kGiB)});
       w.submit({a_job().memory(kGiB)});
     },
     "1:0", ""},
    {"ACardOfWhichMoreIsInUseTakesNone",
     [](World& w) {
       w.rule("keep_gpu_memory", "50");
       w.see({a_gpu(0).free(12 * kGiB - 1)});
       w.submit({a_job().memory(kGiB)});
     },
     "", "1:gpu(keep_memory)"},
    {"KeepGpuMemoryCountsWhatIsPromisedToo",
     [](World& w) {
       w.rule("keep_gpu_memory", "50");
       w.see_idle(1);
       w.submit({a_job().memory(13 * kGiB), a_job().memory(kGiB)});
     },
     "1:0", "2:gpu(keep_memory)"},
    {"KeepGpuMemoryLooksAtTheCardNotAtTheJob",
     [](World& w) {
       w.rule("keep_gpu_memory", "50");
       w.see_idle(1);
       w.submit({a_job().memory(23 * kGiB)});
     },
     "1:0", ""},
    {"KeepGpuMemoryOfZeroWantsEmptyCards",
     [](World& w) {
       w.rule("keep_gpu_memory", "0");
       w.see({a_gpu(0).free(24 * kGiB - 1), a_gpu(1)});
       w.submit(copies(2, a_job().memory(kGiB)));
     },
     "1:1", "2:gpu(keep_memory,keep_memory)"},
    {"KeepGpuMemoryOfAHundredIsNoLimit",
     [](World& w) {
       w.see({a_gpu(0).free(kGiB)});
       w.submit({a_job().memory(kGiB)});
     },
     "1:0", ""},
    {"AStartByHandRespectsKeepGpuMemory",
     [](World& w) {
       w.rule("keep_gpu_memory", "50");
       w.see({a_gpu(0).free(11 * kGiB)});
       w.submit({a_job().memory(kGiB)});
       w.force(1);
     },
     "", "1:gpu(keep_memory)"},
    {"HostMemoryThatMustStayAvailableHoldsEveryJob",
     [](World& w) {
       w.rule("keep_host_memory", "4GiB");
       w.host_available = 4 * kGiB - 1;
       w.see_idle(1);
       w.submit({a_job(), a_cpu_job()});
     },
     "", "1:host_memory 2:host_memory"},
    {"AsMuchHostMemoryAsMustStayIsEnough",
     [](World& w) {
       w.rule("keep_host_memory", "4GiB");
       w.host_available = 4 * kGiB;
       w.see_idle(1);
       w.submit({a_job(), a_cpu_job()});
     },
     "1:0 2:-", ""},
    {"HostMemoryOfWhichNothingIsKnownHoldsNobody",
     [](World& w) {
       w.rule("keep_host_memory", "4GiB");
       w.see_idle(1);
       w.submit({a_job()});
     },
     "1:0", ""},
    {"HostMemoryThatWasSeenTooLongAgoIsLookedAtAgain",
     [](World& w) {
       w.rule("keep_host_memory", "4GiB");
       w.host_available = 8 * kGiB;
       w.see_idle(1);
       w.wait(kMinute);
       w.submit({a_cpu_job()});
       EXPECT_TRUE(w.state.wants_samples());
     },
     " ?", "1:host_memory"},
    {"WithoutTheRuleNobodyLooksAtTheHostForAJobWithoutCards",
     [](World& w) {
       w.submit({a_cpu_job()});
       EXPECT_FALSE(w.state.wants_samples());
     },
     "1:-", ""},
    {"ADriverThatFailsKeepsNoJobWithoutCards",
     [](World& w) {
       w.rule("keep_host_memory", "4GiB");
       ASSERT_TRUE(w.apply(event::ProbeFailed{"it hangs", 8 * kGiB}));
       w.wait(kMinute);
       w.submit({a_cpu_job(), a_cpu_job().rule("keep_host_memory", "9GiB")});
     },
     "1:-", "2:host_memory"},
    {"KeepHostMemoryMayBeOneJobsOwn",
     [](World& w) {
       w.host_available = 4 * kGiB;
       w.see_idle(1);
       w.submit({a_cpu_job().rule("keep_host_memory", "8GiB"), a_cpu_job()});
     },
     "2:-", "1:host_memory"},
    {"AStartByHandRespectsKeepHostMemory",
     [](World& w) {
       w.rule("keep_host_memory", "4GiB");
       w.host_available = kGiB;
       w.see_idle(1);
       w.submit({a_cpu_job()});
       w.force(1);
     },
     "", "1:host_memory"},
};

const std::vector<Case> kAllowed = {
    {"AllowedCardsByIndex",
     [](World& w) {
       w.rule("gpus", "1");
       w.see_idle(2);
       w.submit(copies(2, a_job()));
     },
     "1:1", "2:gpu(not_allowed,claimed)"},
    {"AllowedCardsByUuid",
     [](World& w) {
       w.rule("gpus", "GPU-1");
       w.see_idle(2);
       w.submit({a_job()});
     },
     "1:1", ""},
    {"AllowedCardsAsARange",
     [](World& w) {
       w.rule("gpus", "1-2");
       w.see_idle(4);
       w.submit(copies(3, a_job()));
     },
     "1:1 2:2", "3:gpu(not_allowed,claimed,claimed,not_allowed)"},
    {"AnAbsentCardAmongTheAllowedOnesDoesNotMatter",
     [](World& w) {
       w.rule("gpus", "1,7");
       w.see_idle(2);
       w.submit({a_job()});
     },
     "1:1", ""},
    {"OnlyAbsentCardsLeaveNone",
     [](World& w) {
       w.rule("gpus", "7");
       w.see_idle(2);
       w.submit({a_job()});
     },
     "", "1:gpu(not_allowed,not_allowed)"},
    {"AJobsOwnCardsReplaceThoseOfTheInstance",
     [](World& w) {
       w.rule("gpus", "0");
       w.see_idle(3);
       w.submit({a_job().rule("gpus", "2"), a_job().rule("gpus", "all"), a_job()});
     },
     "1:2 2:0", "3:gpu(claimed,not_allowed,not_allowed)"},
    {"AJobOfSeveralCardsNeedsThemAllAmongTheAllowed",
     [](World& w) {
       w.rule("gpus", "0,2");
       w.see_idle(3);
       w.submit({a_job().gpus(3), a_job().gpus(2)});
     },
     "2:0+2", "1:gpu(claimed,not_allowed,claimed)"},
    {"ARangeOfCountsTakesOnlyAllowedCards",
     [](World& w) {
       w.rule("gpus", "0,2");
       w.see_idle(3);
       w.submit({a_job().gpus(1, 3)});
     },
     "1:0+2", ""},
    {"AStartByHandStaysOnAllowedCards",
     [](World& w) {
       w.rule("gpus", "0");
       w.see({a_gpu(0).free(kGiB), a_gpu(1)});
       w.submit({a_job()});
       w.force(1);
     },
     "", "1:gpu(memory,not_allowed)"},
};

const std::vector<Case> kOutOfUse = {
    {"ADrainedCardIsNotUsed",
     [](World& w) {
       w.see_idle(2);
       ASSERT_TRUE(w.apply(event::DrainGpu{"0", true, "noisy fan"}));
       w.submit(copies(2, a_job()));
     },
     "1:1", "2:gpu(drained,claimed)"},
    {"ACardMayBeDrainedByItsUuid",
     [](World& w) {
       w.see_idle(2);
       ASSERT_TRUE(w.apply(event::DrainGpu{"GPU-1", true, ""}));
       w.submit(copies(2, a_job()));
     },
     "1:0", "2:gpu(claimed,drained)"},
    {"ACardThatIsGivenBackIsUsedAgain",
     [](World& w) {
       w.see_idle(1);
       ASSERT_TRUE(w.apply(event::DrainGpu{"0", true, ""}));
       w.submit({a_job()});
       EXPECT_EQ(w.decide(), "");
       ASSERT_TRUE(w.apply(event::DrainGpu{"0", false, ""}));
     },
     "1:0", ""},
    {"DrainingLeavesWhatRunsAlone",
     [](World& w) {
       w.see_idle(1);
       w.submit({a_job()});
       w.decide();
       ASSERT_TRUE(w.apply(event::DrainGpu{"0", true, ""}));
       EXPECT_EQ(w.effects(), "");
       EXPECT_EQ(w.alive(), "1:running");
     },
     "", ""},
    {"ACardStaysDrainedWhateverALookShows",
     [](World& w) {
       w.see_idle(1);
       ASSERT_TRUE(w.apply(event::DrainGpu{"0", true, ""}));
       w.see_again();
       w.submit({a_job()});
     },
     "", "1:gpu(drained)"},
    {"ACardThatAnotherBerthHoldsIsNotUsed",
     [](World& w) {
       w.see_idle(2);
       ASSERT_TRUE(w.apply(event::BoardRead{{{"GPU-0", "another user's berth"}}}));
       w.submit(copies(2, a_job().memory(kGiB)));
     },
     "1:1 2:1", ""},
    {"ACardThatAnotherBerthGivesUpIsUsed",
     [](World& w) {
       w.see_idle(1);
       ASSERT_TRUE(w.apply(event::BoardRead{{{"GPU-0", "another user's berth"}}}));
       w.submit({a_job()});
       EXPECT_EQ(w.decide(), "");
       EXPECT_EQ(w.waits(), "1:gpu(other_berth)");
       ASSERT_TRUE(w.apply(event::BoardRead{}));
     },
     "1:0", ""},
    {"ACardThatCouldNotBeReadIsUsedAgainWhenItCan",
     [](World& w) {
       w.see({a_gpu(0).unreadable("Unknown Error")});
       w.submit({a_job()});
       EXPECT_EQ(w.decide(), "");
       EXPECT_EQ(w.waits(), "1:gpu(trouble)");
       w.see_idle(1);
     },
     "1:0", ""},
    {"ALostCardThatHasComeBackWaitsForSomebodyToLookAtIt",
     [](World& w) {
       w.see({a_gpu(0).lost("GPU is lost")});
       w.submit({a_job()});
       EXPECT_EQ(w.decide(), "");
       EXPECT_EQ(w.waits(), "1:gpu(trouble)");
       w.see_idle(1);
       EXPECT_EQ(w.decide(), "");
       EXPECT_EQ(w.waits(), "1:gpu(drained)");
       ASSERT_TRUE(w.apply(event::DrainGpu{"0", false, ""}));
     },
     "1:0", ""},
};

const std::vector<Case> kForced = {
    {"AStartByHandSkipsTheOrder",
     [](World& w) {
       w.see_idle(1);
       w.submit({a_job().priority(1), a_job().priority(9)});
       w.force(2);
     },
     "2:0", "1:gpu(claimed)"},
    {"AStartByHandSkipsMaxConcurrent",
     [](World& w) {
       w.rule("max_concurrent", "1");
       w.submit(copies(2, a_cpu_job()));
       w.decide();
       w.force(2);
     },
     "2:-", ""},
    {"AStartByHandSkipsUtilization",
     [](World& w) {
       w.see({a_gpu(0).utilization(95).with(trainer())});
       w.submit({a_job()});
       w.force(1);
     },
     "1:0", ""},
    {"AStartByHandSkipsTheWaitForStrangers",
     [](World& w) {
       w.rule("foreign.policy", "wait");
       w.see({a_gpu(0).with(a_stranger().memory(kGiB).utilization(0).age(kHour))});
       w.submit({a_job()});
       w.force(1);
     },
     "1:0", ""},
    {"AStartByHandSkipsGpuLeft",
     [](World& w) {
       w.rule("gpu_left", "1");
       w.see_idle(1);
       w.submit({a_job()});
       w.force(1);
     },
     "1:0", ""},
    {"AStartByHandSkipsTheQuota",
     [](World& w) {
       w.rule("max_gpu", "1");
       w.see_idle(2);
       w.submit(copies(2, a_job()));
       w.decide();
       w.force(2);
     },
     "2:1", ""},
    {"AStartByHandSkipsADelay",
     [](World& w) {
       w.submit({a_cpu_job().start_at(w.now.wall + kHour)});
       w.force(1);
     },
     "1:-", ""},
    {"AStartByHandNeverTakesMemoryThatIsNotThere",
     [](World& w) {
       w.see({a_gpu(0).free(4 * kGiB)});
       w.submit({a_job().memory(4 * kGiB + 1)});
       w.force(1);
     },
     "", "1:gpu(memory)"},
    {"AStartByHandKeepsTheMargin",
     [](World& w) {
       w.rule("memory_margin", "1GiB");
       w.see({a_gpu(0).free(4 * kGiB)});
       w.submit({a_job().memory(4 * kGiB)});
       w.force(1);
     },
     "", "1:gpu(memory)"},
    {"AStartByHandNeverTakesAnothersClaim",
     [](World& w) {
       w.see_idle(1);
       w.submit(copies(2, a_job()));
       w.decide();
       w.force(2);
     },
     "", "2:gpu(claimed)"},
    {"AStartByHandNeverTakesWhatAnotherBerthHolds",
     [](World& w) {
       w.see_idle(1);
       ASSERT_TRUE(w.apply(event::BoardRead{{{"GPU-0", "another user's berth"}}}));
       w.submit({a_job()});
       w.force(1);
     },
     "", "1:gpu(other_berth)"},
    {"AStartByHandNeverTakesADrainedCard",
     [](World& w) {
       w.see_idle(1);
       ASSERT_TRUE(w.apply(event::DrainGpu{"0", true, ""}));
       w.submit({a_job()});
       w.force(1);
     },
     "", "1:gpu(drained)"},
};

INSTANTIATE_TEST_SUITE_P(Memory, PlacingRules, ::testing::ValuesIn(kMemory), row_name);
INSTANTIATE_TEST_SUITE_P(Utilization, PlacingRules, ::testing::ValuesIn(kUtilization), row_name);
INSTANTIATE_TEST_SUITE_P(Keep, PlacingRules, ::testing::ValuesIn(kKeep), row_name);
INSTANTIATE_TEST_SUITE_P(Allowed, PlacingRules, ::testing::ValuesIn(kAllowed), row_name);
INSTANTIATE_TEST_SUITE_P(OutOfUse, PlacingRules, ::testing::ValuesIn(kOutOfUse), row_name);
INSTANTIATE_TEST_SUITE_P(Forced, PlacingRules, ::testing::ValuesIn(kForced), row_name);

TEST(PlacingReasons, ARuleThatLeavesNoCardIsNamedWithTheCardsThatAreAbsent) {
  World w;
  w.rule("gpus", "0,7");
  w.rule("gpu_left", "1");
  w.see_idle(2);
  w.submit({a_job()});
  EXPECT_EQ(w.decide(), "");
  const auto reasons = explain(w.state, *w.state.job(JobId{1}), w.now);
  ASSERT_EQ(reasons.size(), 1U);
  EXPECT_EQ(reasons[0].text, "the rules leave it no card: gpus=0,7 (7 not there), gpu_left=1");
}

TEST(PlacingReasons, ACardThatIsNotThereCannotBeDrained) {
  World w;
  w.see_idle(1);
  const auto answer = w.apply(event::DrainGpu{"7", true, ""});
  ASSERT_FALSE(answer);
  EXPECT_NE(answer.error().message.find("there is no GPU '7'"), std::string::npos);
}

TEST(AllowedCards, OnesThatAreNotThereAreNamed) {
  World w;
  w.see_idle(1);
  w.submit(copies(2, a_job().rule("gpus", "0,7")));
  EXPECT_EQ(w.decide(), "1:0");
  const std::string text = explain(w.state, *w.state.job(JobId{2}), w.now).front().text;
  EXPECT_NE(text.find("the rule gpus names 7, which is not there"), std::string::npos) << text;
}

TEST(AwaitedCards, AreThoseThatOthersAloneKeep) {
  World w;
  w.rule("gpus", "0,1,2,3");
  const auto busy = [](std::uint32_t index) {
    return a_gpu(index).with(a_stranger().memory(20 * kGiB).utilization(90)).utilization(90);
  };
  w.see({busy(0), a_gpu(1), a_gpu(2), a_gpu(3), busy(4)});
  ASSERT_TRUE(w.apply(event::BoardRead{{{"GPU-0", "b"}, {"GPU-1", "b"}, {"GPU-2", "b"}}}));
  ASSERT_TRUE(w.apply(event::DrainGpu{"2", true, ""}));
  EXPECT_EQ(awaited_cards(w.state, w.now), std::set<std::string>{}) << "nobody waits";
  w.submit({a_job(), a_job(), a_job().memory(100 * kGiB)});
  EXPECT_EQ(w.decide(), "1:3");
  EXPECT_EQ(awaited_cards(w.state, w.now), (std::set<std::string>{"GPU-0", "GPU-1"}))
      << "not the drained one, nor the one we use, nor the one that is not allowed";
  ASSERT_TRUE(w.apply(event::BoardRead{}));
  EXPECT_EQ(awaited_cards(w.state, w.now), (std::set<std::string>{"GPU-0"}))
      << "a busy stranger may be another berth's, a free card is simply asked for";
  w.kill({2});
  EXPECT_EQ(awaited_cards(w.state, w.now), std::set<std::string>{}) << "too small for the rest";
}

}  // namespace
}  // namespace berth::testing
