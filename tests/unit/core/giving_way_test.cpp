// Opportunistic jobs make room for strangers, and come back when the card has been quiet.

#include <gtest/gtest.h>

#include "core/reason.hpp"
#include "unit/core/policy_table.hpp"

namespace berth::testing {
namespace {

class GivingWay : public PolicyTable {};
TEST_P(GivingWay, Holds) {
  expect_row(GetParam());
}

ProcessBuilder own() {
  return a_process_of(1).memory(4 * kGiB).utilization(90);
}
/// Came a few seconds ago and works.
ProcessBuilder newcomer() {
  return a_stranger().memory(10 * kGiB).utilization(80).uid(2000).age(5 * kSecond);
}
/// Was there before.
ProcessBuilder neighbour() {
  return a_stranger().memory(2 * kGiB).utilization(0).uid(2000).age(kHour);
}

JobBuilder opportunist(const std::string& how) {
  return a_job().memory(4 * kGiB).rule("opportunistic", how);
}

/// Job 1 runs on card 0 since a minute.
void run(World& w, const JobSpec& job, std::uint32_t cards = 1) {
  w.see_idle(cards);
  w.submit({job});
  w.decide();
  w.wait(kMinute);
}

/// It has made room and waits again; a stranger is at work on its card.
void give_way(World& w, std::uint32_t cards = 1) {
  run(w, opportunist("requeue"), cards);
  std::vector<GpuFacts> gpus{a_gpu(0).with(own()).with(newcomer())};
  for (std::uint32_t i = 1; i < cards; ++i) {
    gpus.push_back(a_gpu(i));
  }
  w.see(gpus);
  EXPECT_EQ(w.effects(), "kill");
  w.revoke(1);
  w.wait(kSecond);
  gpus[0] = a_gpu(0).utilization(80).with(newcomer());
  w.see(gpus);
}

void park(World& w) {
  run(w, opportunist("pause"));
  w.see({a_gpu(0).with(own()).with(newcomer())});
  EXPECT_EQ(w.effects(), "pause");
  EXPECT_EQ(w.told(), "parked");
}

const std::vector<Case> kArrival = {
    {"AnOpportunisticJobEndsForAStrangerWithItsWarningFirst",
     [](World& w) {
       run(w, opportunist("requeue"));
       w.see({a_gpu(0).with(own()).with(newcomer())});
       EXPECT_EQ(w.effects(), "kill");
       EXPECT_TRUE(std::get<effect::Kill>(w.last.effects[0]).warn);
       EXPECT_EQ(w.told(), "gives_way");
       EXPECT_EQ(w.state.attempts.at(AttemptId{1}).gives_way, GivesWay::stranger);
     },
     "", ""},
    {"OtherJobsStay",
     [](World& w) {
       run(w, a_job().memory(4 * kGiB));
       w.see({a_gpu(0).with(own()).with(newcomer())});
       EXPECT_EQ(w.effects(), "");
     },
     "", ""},
    {"ASmallIdleNewcomerDisturbsNobody",
     [](World& w) {
       run(w, opportunist("requeue"));
       w.see({a_gpu(0).with(own()).with(newcomer().memory(600 * kMiB).utilization(0))});
       EXPECT_EQ(w.effects(), "");
     },
     "", ""},
    {"ALargeNewcomerIsMadeRoomForBeforeItWorks",
     [](World& w) {
       run(w, opportunist("requeue"));
       w.see({a_gpu(0).with(own()).with(newcomer().utilization(0))});
       EXPECT_EQ(w.effects(), "kill");
     },
     "", ""},
    {"WhoWasThereBeforeAndIdlesDisturbsNobody",
     [](World& w) {
       w.see({a_gpu(0).with(neighbour())});
       w.submit({opportunist("requeue")});
       EXPECT_EQ(w.decide(), "1:0");
       w.wait(kMinute);
       w.see({a_gpu(0).with(own()).with(neighbour())});
       EXPECT_EQ(w.effects(), "");
     },
     "", ""},
    {"WhoWasThereBeforeAndBeginsToWorkIsMadeRoomFor",
     [](World& w) {
       w.see({a_gpu(0).with(neighbour())});
       w.submit({opportunist("requeue")});
       EXPECT_EQ(w.decide(), "1:0");
       w.wait(kMinute);
       w.see({a_gpu(0).with(own()).with(neighbour().utilization(31))});
       EXPECT_EQ(w.effects(), "kill");
     },
     "", ""},
    {"AStrangerOfUnknownAgeThatIdlesDisturbsNobody",
     [](World& w) {
       run(w, opportunist("requeue"));
       w.see({a_gpu(0).with(own()).with(a_stranger().memory(4 * kGiB).utilization(0))});
       EXPECT_EQ(w.effects(), "");
     },
     "", ""},
    {"ANewcomerOfUnknownLoadIsMadeRoomFor",
     [](World& w) {
       run(w, opportunist("requeue"));
       w.see({a_gpu(0).with(own()).with(a_stranger().memory(kGiB).age(kSecond))});
       EXPECT_EQ(w.effects(), "kill");
     },
     "", ""},
    {"AJobIsToldOnlyOnce",
     [](World& w) {
       run(w, opportunist("requeue"));
       w.see({a_gpu(0).with(own()).with(newcomer())});
       w.wait(kSecond);
       w.see_again();
       EXPECT_EQ(w.effects(), "");
       EXPECT_EQ(w.told(), "");
     },
     "", ""},
    {"AJobThatIsBeingKilledIsNotToldAgain",
     [](World& w) {
       run(w, opportunist("requeue"));
       w.kill({1});
       w.see({a_gpu(0).with(own()).with(newcomer())});
       EXPECT_EQ(w.effects(), "");
     },
     "", ""},
    {"AStrangerOnOneOfItsCardsEndsAJobOnce",
     [](World& w) {
       run(w, opportunist("requeue").gpus(2), 2);
       w.see({a_gpu(0).with(own()).with(newcomer()), a_gpu(1).with(own()).with(newcomer())});
       EXPECT_EQ(w.effects(), "kill");
     },
     "", ""},
    {"NobodyMakesRoomForOnesOwnProcess",
     [](World& w) {
       w.state.host.uid = 1000;
       run(w, opportunist("requeue"));
       w.see({a_gpu(0).with(own()).with(newcomer().uid(1000))});
       EXPECT_EQ(w.effects(), "");
     },
     "", ""},
    {"UnlessTheRuleSaysSo",
     [](World& w) {
       w.state.host.uid = 1000;
       run(w, opportunist("requeue").rule("foreign.own", "wait"));
       w.see({a_gpu(0).with(own()).with(newcomer().uid(1000))});
       EXPECT_EQ(w.effects(), "kill");
       Verdict verdict;
       verdict.failure = FailureClass::exit;
       verdict.killed = true;
       w.end(1, verdict);
       EXPECT_EQ(w.ledger.job(JobId{1}).message,
                 "gave way to your own process on its card; waiting again");
     },
     "", "1:gpu(strangers)"},
    {"OnlyTheJobOnTheStrangersCardMakesRoom",
     [](World& w) {
       w.see_idle(2);
       w.submit(copies(2, opportunist("requeue")));
       EXPECT_EQ(w.decide(), "1:0 2:1");
       w.wait(kMinute);
       w.see({a_gpu(0).with(own()), a_gpu(1).with(newcomer())});
       EXPECT_EQ(w.effects(), "kill");
       EXPECT_FALSE(w.state.attempts.at(AttemptId{1}).gives_way);
       EXPECT_TRUE(w.state.attempts.at(AttemptId{2}).gives_way);
     },
     "", ""},
};

const std::vector<Case> kReturn = {
    {"WhoGaveWayDoesNotComeBackWhileTheStrangerWorks", [](World& w) { give_way(w); }, "",
     "1:gpu(strangers)"},
    {"WhoGaveWayDoesNotComeBackAsSoonAsTheStrangerHasLeft",
     [](World& w) {
       give_way(w);
       w.wait(kSecond);
       w.see_idle(1);
     },
     "", "1:gpu(quiet)"},
    {"WhoGaveWayDoesNotComeBackBeforeAMinute",
     [](World& w) {
       give_way(w);
       w.wait(kMinute - Millis{1});
       w.see_idle(1);
     },
     "", "1:gpu(quiet)"},
    {"WhoGaveWayComesBackAfterAQuietMinute",
     [](World& w) {
       give_way(w);
       w.wait(kMinute);
       w.see_idle(1);
     },
     "1:0", ""},
    {"TheQuietMinuteBeginsWhenTheStrangerWasLastSeenAtWork",
     [](World& w) {
       give_way(w);
       for (int minute = 0; minute < 10; ++minute) {
         w.wait(kMinute);
         w.see_again();
         EXPECT_EQ(w.decide(), "");
       }
       w.wait(kSecond);
       w.see_idle(1);
     },
     "", "1:gpu(quiet)"},
    {"AStrangerThatPausesForHalfAMinuteDoesNotMakeItFlap",
     [](World& w) {
       give_way(w);
       for (int pause = 0; pause < 5; ++pause) {
         w.wait(30 * kSecond);
         w.see_idle(1);
         EXPECT_EQ(w.decide(), "");
         w.wait(kSecond);
         w.see({a_gpu(0).utilization(80).with(newcomer())});
         EXPECT_EQ(w.decide(), "");
       }
       w.wait(59 * kSecond);
       w.see_idle(1);
     },
     "", "1:gpu(quiet)"},
    {"JobsThatDoNotGiveWayNeedNoQuiet",
     [](World& w) {
       give_way(w);
       w.wait(kSecond);
       w.see_idle(1);
       w.submit({a_job()});
     },
     "2:0", "1:gpu(claimed)"},
    {"AnotherCardIsTakenAtOnce", [](World& w) { give_way(w, 2); }, "1:1", ""},
    {"TheQuietMinuteIsByTheRulesOfTheQueue",
     [](World& w) {
       w.queue_rule("night", "opportunistic", "requeue");
       w.queue_rule("night", "max_utilization", "10");
       run(w, a_job().memory(4 * kGiB).queue("night"));
       w.see({a_gpu(0).with(own()).with(newcomer().utilization(20))});
       EXPECT_EQ(w.effects(), "kill");
       w.revoke(1);
       for (int i = 0; i < 10; ++i) {
         w.wait(30 * kSecond);
         w.see({a_gpu(0).utilization(20).with(newcomer().utilization(20).age(kHour))});
         EXPECT_EQ(w.decide(), "") << "20 % is too busy for its queue, though not for others";
       }
       w.wait(kSecond);
       w.see_idle(1);
     },
     "", "1:gpu(quiet)"},
    {"TheQuietMinuteIsByThePolicyOfTheQueue",
     [](World& w) {
       w.queue_rule("night", "opportunistic", "requeue");
       w.queue_rule("night", "foreign.policy", "wait");
       run(w, a_job().memory(4 * kGiB).queue("night"));
       w.see({a_gpu(0).with(own()).with(newcomer())});
       EXPECT_EQ(w.effects(), "kill");
       w.revoke(1);
       for (int i = 0; i < 10; ++i) {
         w.wait(30 * kSecond);
         w.see({a_gpu(0).with(neighbour())});
         EXPECT_EQ(w.decide(), "");
       }
       w.wait(kSecond);
       w.see_idle(1);
     },
     "", "1:gpu(quiet)"},
    {"WhoMindsLessThanTheOneThatGaveWayComesEarlier",
     [](World& w) {
       run(w, opportunist("requeue").max_utilization(10));
       w.see({a_gpu(0).with(own()).with(newcomer().utilization(20))});
       EXPECT_EQ(w.effects(), "kill");
       w.revoke(1);
       w.submit({opportunist("requeue").max_utilization(50)});
       for (int i = 0; i < 3; ++i) {
         w.wait(29 * kSecond);
         w.see({a_gpu(0).utilization(20).with(newcomer().utilization(20).age(kHour))});
         EXPECT_EQ(w.decide(), i < 2 ? "" : "2:0");
       }
     },
     "", "1:gpu(utilization)"},
    {"TheQuietTimeCanBeSet",
     [](World& w) {
       w.rule("quiet_time", "5s");
       give_way(w);
       w.wait(5 * kSecond);
       w.see_idle(1);
     },
     "1:0", ""},
};

const std::vector<Case> kPause = {
    {"APausedOpportunistKeepsItsClaim",
     [](World& w) {
       park(w);
       w.submit({a_job()});
     },
     "", "2:gpu(claimed)"},
    {"APausedOpportunistIsPausedForItsUserAndSaysForWhom",
     [](World& w) {
       park(w);
       EXPECT_EQ(w.alive(), "1:paused");
       EXPECT_NE(w.stored(1).find("paused"), std::string::npos) << w.stored(1);
       const auto reasons = explain(w.state, *w.state.job(JobId{1}), w.now);
       ASSERT_EQ(reasons.size(), 1U);
       EXPECT_EQ(reasons[0].kind, Reason::Kind::parked);
       EXPECT_NE(reasons[0].text.find("somebody else on GPU 0"), std::string::npos);
     },
     "", ""},
    {"ItsUserCannotMakeItGoOnUnderTheStranger",
     [](World& w) {
       park(w);
       const auto answer = w.apply(event::Resume{{JobId{1}}});
       ASSERT_TRUE(answer);
       EXPECT_EQ(std::get<Controlled>(*answer).refused.size(), 1U);
       EXPECT_EQ(w.effects(), "");
       EXPECT_EQ(w.alive(), "1:paused");
     },
     "", ""},
    {"ARestartDoesNotMistakeItForOneThatItsUserPaused",
     [](World& w) {
       park(w);
       w.state = restore(w.ledger.snapshot(), w.state.rules, w.state.host, w.now);
       w.see({a_gpu(0).with(own().utilization(0)).with(newcomer())});
       EXPECT_EQ(w.effects(), "");
       EXPECT_EQ(w.alive(), "1:paused");
       w.wait(kMinute);
       w.see({a_gpu(0).with(own().utilization(0))});
       EXPECT_EQ(w.effects(), "resume");
       EXPECT_EQ(w.alive(), "1:running");
     },
     "", ""},
    {"ItWaitsAgainIfItIsEndedMeanwhileAndIsNotHeld",
     [](World& w) {
       park(w);
       w.fail(1, FailureClass::node_lost);
       EXPECT_EQ(w.alive(), "1:queued");
       w.see_idle(2);
     },
     "1:1", ""},
    {"ItMakesRoomForAJobOfHigherPriorityAllTheSame",
     [](World& w) {
       run(w, opportunist("pause").priority(9).rule("preemptible", "true"));
       w.see({a_gpu(0).with(own()).with(newcomer().utilization(20))});
       EXPECT_EQ(w.effects(), "pause");
       w.submit({a_job().memory(12 * kGiB).priority(1).rule("foreign.policy", "ignore")});
       w.decide();
       EXPECT_EQ(w.displaced(), "1<2");
       w.revoke(1);
       EXPECT_EQ(w.alive(), "1:queued 2:queued");
       w.wait(kSecond);
       w.see({a_gpu(0).with(newcomer())});
     },
     "2:0", "1:gpu(strangers)"},
    {"ItIsPausedOnlyOnce",
     [](World& w) {
       park(w);
       w.wait(kSecond);
       w.see_again();
       EXPECT_EQ(w.effects(), "");
     },
     "", ""},
    {"ItDoesNotGoOnAsSoonAsTheStrangerHasLeft",
     [](World& w) {
       park(w);
       w.wait(kMinute - Millis{1});
       w.see({a_gpu(0).with(own().utilization(0))});
       EXPECT_EQ(w.effects(), "");
     },
     "", ""},
    {"ItGoesOnAfterAQuietMinute",
     [](World& w) {
       park(w);
       w.wait(kMinute);
       w.see({a_gpu(0).with(own().utilization(0))});
       EXPECT_EQ(w.effects(), "resume");
       EXPECT_EQ(w.told(), "unparked");
     },
     "", ""},
    {"ARestartDoesNotMakeItGoOnSooner",
     [](World& w) {
       park(w);
       w.wait(30 * kSecond);
       w.state = restore(w.ledger.snapshot(), w.state.rules, w.state.host, w.now);
       w.see({a_gpu(0).with(own().utilization(0))});
       EXPECT_EQ(w.effects(), "");
       const auto reasons = explain(w.state, *w.state.job(JobId{1}), w.now);
       ASSERT_EQ(reasons.size(), 1U);
       EXPECT_NE(reasons[0].text.find("somebody else on GPU 0;"), std::string::npos)
           << reasons[0].text;
       w.wait(kMinute);
       w.see({a_gpu(0).with(own().utilization(0))});
       EXPECT_EQ(w.effects(), "resume");
     },
     "", ""},
    {"AStrangerThatComesAndGoesDoesNotMakeItFlap",
     [](World& w) {
       park(w);
       for (int i = 0; i < 5; ++i) {
         w.wait(40 * kSecond);
         w.see({a_gpu(0).with(own().utilization(0))});
         EXPECT_EQ(w.effects(), "");
         w.wait(10 * kSecond);
         w.see({a_gpu(0).with(own().utilization(0)).with(newcomer())});
         EXPECT_EQ(w.effects(), "");
       }
     },
     "", ""},
    {"WhomItsUserPausedBerthDoesNotLetGoOn",
     [](World& w) {
       park(w);
       ASSERT_TRUE(w.apply(event::Pause{{JobId{1}}}));
       w.wait(kMinute);
       w.see({a_gpu(0).with(own().utilization(0))});
       EXPECT_EQ(w.effects(), "");
       ASSERT_TRUE(w.apply(event::Resume{{JobId{1}}}));
       EXPECT_EQ(w.effects(), "resume");
     },
     "", ""},
    {"WhoIsResumedByItsUserMakesRoomAgainForAStrangerWhoIsStillThere",
     [](World& w) {
       park(w);
       ASSERT_TRUE(w.apply(event::Pause{{JobId{1}}}));
       ASSERT_TRUE(w.apply(event::Resume{{JobId{1}}}));
       EXPECT_EQ(w.effects(), "resume");
       w.see_again();
       EXPECT_EQ(w.effects(), "pause");
       EXPECT_EQ(w.alive(), "1:paused");
       w.wait(kMinute);
       w.see({a_gpu(0).with(own().utilization(0))});
       EXPECT_EQ(w.effects(), "resume");
     },
     "", ""},
    {"AKilledOneIsNotResumedForNothing",
     [](World& w) {
       park(w);
       w.kill({1});
       w.wait(kMinute);
       w.see({a_gpu(0).with(own().utilization(0))});
       EXPECT_EQ(w.effects(), "");
     },
     "", ""},
};

INSTANTIATE_TEST_SUITE_P(Arrival, GivingWay, ::testing::ValuesIn(kArrival), row_name);
INSTANTIATE_TEST_SUITE_P(Return, GivingWay, ::testing::ValuesIn(kReturn), row_name);
INSTANTIATE_TEST_SUITE_P(Pause, GivingWay, ::testing::ValuesIn(kPause), row_name);

}  // namespace
}  // namespace berth::testing
