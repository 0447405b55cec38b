// Cards that are not to be trusted any more, and attempts where they should not be.

#include <gtest/gtest.h>

#include "core/health.hpp"
#include "unit/core/policy_table.hpp"

namespace berth::testing {
namespace {

class CardHealth : public PolicyTable {};
TEST_P(CardHealth, Holds) {
  expect_row(GetParam());
}

/// Job 1 runs on card 0.
void run(World& w, std::uint32_t cards = 1) {
  w.see_idle(cards);
  w.submit({a_job()});
  EXPECT_EQ(w.decide(), "1:0");
  w.wait(kSecond);
}

/// A card that reports this is out of use from then on.
void expect_drain(World& w, const GpuFacts& gpu) {
  w.see({gpu});
  EXPECT_EQ(w.told(), "drained");
  w.wait(kSecond);
  w.see_idle(1);
  w.submit({a_job()});
}

void expect_no_drain(World& w, const GpuFacts& gpu) {
  w.see({gpu});
  EXPECT_EQ(w.told(), "");
  w.submit({a_job()});
}

const std::vector<Case> kSick = {
    {"OffTheBusDrains", [](World& w) { expect_drain(w, a_gpu(0).xid(79)); }, "", "1:gpu(drained)"},
    {"ADoubleBitErrorDrains", [](World& w) { expect_drain(w, a_gpu(0).xid(48)); }, "",
     "1:gpu(drained)"},
    {"ATimeoutOfTheFirmwareDrains", [](World& w) { expect_drain(w, a_gpu(0).xid(119)); }, "",
     "1:gpu(drained)"},
    {"AnErrorNobodyKnowsDrains", [](World& w) { expect_drain(w, a_gpu(0).xid(999)); }, "",
     "1:gpu(drained)"},
    {"AHardwareErrorAmongOthersDrains", [](World& w) { expect_drain(w, a_gpu(0).xid(31).xid(79)); },
     "", "1:gpu(drained)"},
    {"AnIllegalAccessDoesNot", [](World& w) { expect_no_drain(w, a_gpu(0).xid(31)); }, "1:0", ""},
    {"AnExceptionOfTheProgramDoesNot", [](World& w) { expect_no_drain(w, a_gpu(0).xid(13)); },
     "1:0", ""},
    {"AProgramThatWasStoppedDoesNot",
     [](World& w) { expect_no_drain(w, a_gpu(0).xid(43).xid(45)); }, "1:0", ""},
    {"UncorrectableErrorsDrain", [](World& w) { expect_drain(w, a_gpu(0).ecc(1)); }, "",
     "1:gpu(drained)"},
    {"NoUncorrectableErrorsDoNot", [](World& w) { expect_no_drain(w, a_gpu(0).ecc(0)); }, "1:0",
     ""},
    {"ErrorsThatWereKnownWhenTheCardWasGivenBackAreNoNews",
     [](World& w) {
       w.see({a_gpu(0).ecc(2)});
       ASSERT_TRUE(w.apply(event::DrainGpu{"0", false, ""}));
       w.wait(kSecond);
       w.see_again();
       w.submit({a_job()});
     },
     "1:0", ""},
    {"OneMoreErrorDrainsAgain",
     [](World& w) {
       w.see({a_gpu(0).ecc(2)});
       ASSERT_TRUE(w.apply(event::DrainGpu{"0", false, ""}));
       w.wait(kSecond);
       w.see({a_gpu(0).ecc(3)});
       w.submit({a_job()});
     },
     "", "1:gpu(drained)"},
    {"ADrainIsToldOnce",
     [](World& w) {
       w.see({a_gpu(0).xid(79)});
       w.wait(kSecond);
       w.see({a_gpu(0).xid(79)});
       EXPECT_EQ(w.told(), "");
     },
     "", ""},
    {"OtherCardsGoOn",
     [](World& w) {
       w.see({a_gpu(0).xid(79), a_gpu(1)});
       w.submit({a_job()});
     },
     "1:1", ""},
};

const std::vector<Case> kRunning = {
    {"ALostCardEndsItsJobWithoutAskingItFirst",
     [](World& w) {
       run(w);
       w.see({a_gpu(0).lost("GPU is lost")});
       EXPECT_EQ(w.effects(), "kill");
       EXPECT_FALSE(std::get<effect::Kill>(w.last.effects[0]).warn);
       EXPECT_EQ(w.told(), "drained gives_way");
       EXPECT_EQ(w.state.attempts.at(AttemptId{1}).gives_way, GivesWay::gpu_lost);
     },
     "", ""},
    {"ALostCardIsToldOnce",
     [](World& w) {
       run(w);
       w.see({a_gpu(0).lost("GPU is lost")});
       w.wait(kSecond);
       w.see_again();
       EXPECT_EQ(w.effects(), "");
     },
     "", ""},
    {"ALostCardIsKnownByItsPlaceToAProbeThatWasStartedAnew",
     [](World& w) {
       run(w, 2);
       w.see({a_gpu(0).lost("GPU is lost").unnamed(), a_gpu(1)});
       EXPECT_EQ(w.effects(), "kill");
       ASSERT_EQ(w.state.gpus.size(), 2U);
       EXPECT_EQ(w.state.gpus[0].facts.uuid, "GPU-0");
       EXPECT_EQ(w.state.gpus[0].facts.name, "Test GPU");
       w.see_idle(2);
       EXPECT_EQ(w.state.gpus.size(), 2U);
     },
     "", ""},
    {"ACardThatMovedIsNotTakenForALostOne",
     [](World& w) {
       w.see_idle(2);
       GpuFacts moved = a_gpu(0);
       moved.index = 1;
       w.see({a_gpu(0).lost("GPU is lost").unnamed(), moved});
       EXPECT_EQ(w.state.gpus[0].facts.uuid, "unknown-0");
     },
     "", ""},
    {"AJobOnAnotherCardIsNotConcerned",
     [](World& w) {
       run(w, 2);
       w.see({a_gpu(0), a_gpu(1).lost("GPU is lost")});
       EXPECT_EQ(w.effects(), "");
     },
     "", ""},
    {"ACardThatCannotBeReadKeepsItsJobAndGetsNoOther",
     [](World& w) {
       run(w);
       w.see({a_gpu(0).unreadable("Unknown Error")});
       EXPECT_EQ(w.effects(), "");
       w.submit({a_job()});
       EXPECT_EQ(w.effects(), "");
       EXPECT_EQ(w.alive(), "1:running 2:queued");
     },
     "", "2:gpu(trouble)"},
    {"AHardwareErrorLeavesTheRunningJobToItsFate",
     [](World& w) {
       run(w);
       w.see({a_gpu(0).xid(48)});
       EXPECT_EQ(w.effects(), "");
       EXPECT_EQ(w.told(), "drained");
       EXPECT_EQ(w.alive(), "1:running");
     },
     "", ""},
    {"AnApplicationErrorIsRememberedForTheJobOnTheCard",
     [](World& w) {
       run(w);
       w.see({a_gpu(0).xid(31)});
       EXPECT_EQ(w.state.attempts.at(AttemptId{1}).xids, std::vector<std::uint32_t>{31});
       EXPECT_EQ(w.effects(), "");
     },
     "", ""},
    {"AnAttemptOnACardItDidNotClaimIsFlagged",
     [](World& w) {
       run(w, 2);
       w.see({a_gpu(0), a_gpu(1).with(a_process_of(1).memory(kGiB))});
       EXPECT_EQ(w.told(), "stray");
     },
     "", ""},
    {"AStrayIsFlaggedOncePerCard",
     [](World& w) {
       run(w, 3);
       w.see({a_gpu(0), a_gpu(1).with(a_process_of(1).memory(kGiB)), a_gpu(2)});
       w.wait(kSecond);
       w.see_again();
       EXPECT_EQ(w.told(), "");
       w.see({a_gpu(0), a_gpu(1).with(a_process_of(1).memory(kGiB)),
              a_gpu(2).with(a_process_of(1).memory(kGiB))});
       EXPECT_EQ(w.told(), "stray");
     },
     "", ""},
    {"OfAStrayThatHasEndedNothingIsKept",
     [](World& w) {
       run(w, 2);
       w.see({a_gpu(0), a_gpu(1).with(a_process_of(1).memory(kGiB))});
       EXPECT_EQ(w.state.strays.size(), 1U);
       w.succeed(1);
       EXPECT_TRUE(w.state.strays.empty());
     },
     "", ""},
    {"AnAttemptOnItsOwnCardIsNoStray",
     [](World& w) {
       run(w, 2);
       w.see({a_gpu(0).with(a_process_of(1).memory(kGiB)), a_gpu(1)});
       EXPECT_EQ(w.told(), "");
     },
     "", ""},
    {"TheMemoryOfAStrayIsNotGivenAway",
     [](World& w) {
       run(w, 2);
       w.see({a_gpu(0), a_gpu(1).with(a_process_of(1).memory(20 * kGiB))});
       w.submit({a_job(), a_job().memory(4 * kGiB)});
     },
     "3:1", "2:gpu(claimed,claimed)"},
};

INSTANTIATE_TEST_SUITE_P(Sick, CardHealth, ::testing::ValuesIn(kSick), row_name);
INSTANTIATE_TEST_SUITE_P(Running, CardHealth, ::testing::ValuesIn(kRunning), row_name);

TEST(CardHealthTest, WhyACardIsOutOfUseTellsWhoTookIt) {
  for (const GpuFacts& facts :
       {GpuFacts(a_gpu(0).xid(79)), GpuFacts(a_gpu(0).ecc(1)), GpuFacts(a_gpu(0).ecc(12))}) {
    const auto why = sickness(facts, 0);
    ASSERT_TRUE(why);
    EXPECT_TRUE(is_sickness(*why)) << *why;
  }
  GpuFacts lost = a_gpu(0);
  lost.lost = true;
  lost.trouble = "fell off the bus";
  EXPECT_TRUE(is_sickness(*sickness(lost, 0)));
  EXPECT_TRUE(is_sickness(reported_sickness(JobId{3}, "an uncorrectable ECC error")));
  for (const char* wanted :
       {"", "taken out of use on request", "fan", "for job 3", "Anna needs it"}) {
    EXPECT_FALSE(is_sickness(wanted)) << wanted;
  }
}

}  // namespace
}  // namespace berth::testing
