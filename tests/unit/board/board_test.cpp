// The protocol, turn by turn. What happens when two really race is in board_race_test.cpp.

#include "board/board.hpp"

#include "unit/board/a_board.hpp"

namespace berth {
namespace {

namespace fs = std::filesystem;
constexpr AttemptId kOne{1};
constexpr AttemptId kTwo{2};

/// Nobody in the way.
bool got(const Result<std::optional<CardHolder>>& answer) {
  return answer && !*answer;
}
bool refused(const Result<std::optional<CardHolder>>& answer) {
  return answer && answer->has_value();
}

TEST_F(BoardTest, ACardThatOneHoldsIsNotForAnother) {
  const auto a = open("a");
  const auto b = open("b");
  EXPECT_TRUE(got(a->ask(kOne, 0, {"GPU-0"}, idle())));
  const auto answer = b->ask(kOne, 4 * kGiB, {"GPU-0"}, idle());
  ASSERT_TRUE(refused(answer));
  EXPECT_EQ(**answer, (CardHolder{"GPU-0", ::geteuid(), "a", ClaimState::held}));
  EXPECT_TRUE(got(b->ask(kTwo, 0, {"GPU-1"}, idle()))) << "another card is free";
  EXPECT_TRUE(a->keep_only({}));
  EXPECT_TRUE(got(b->ask(AttemptId{3}, 0, {"GPU-0"}, idle())));
}

TEST_F(BoardTest, MemoryIsNotSharedBetweenStrangers) {
  const auto a = open("a");
  const auto b = open("b");
  EXPECT_TRUE(got(a->ask(kOne, kGiB, {"GPU-0"}, idle())));
  EXPECT_TRUE(got(a->ask(kTwo, kGiB, {"GPU-0"}, idle()))) << "with oneself it is";
  EXPECT_TRUE(refused(b->ask(kOne, kGiB, {"GPU-0"}, idle())));
}

TEST_F(BoardTest, AllCardsOrNone) {
  const auto a = open("a");
  const auto b = open("b");
  EXPECT_TRUE(got(a->ask(kOne, 0, {"GPU-1"}, idle())));
  EXPECT_TRUE(refused(b->ask(kOne, 0, {"GPU-0", "GPU-1"}, idle())));
  EXPECT_TRUE(got(a->ask(kTwo, 0, {"GPU-0"}, idle()))) << "nothing of the refused one is left";
}

TEST_F(BoardTest, LetsGoOfWhatIsNotKept) {
  const auto a = open("a");
  EXPECT_TRUE(got(a->ask(kOne, 0, {"GPU-0"}, idle())));
  EXPECT_TRUE(got(a->ask(kTwo, 0, {"GPU-1"}, idle())));
  EXPECT_TRUE(a->keep_only({{"GPU-1", kTwo}}));
  ASSERT_EQ(seen().size(), 1U);
  ASSERT_EQ(seen()[0].entry.claims.size(), 1U);
  EXPECT_EQ(seen()[0].entry.claims[0].gpu, "GPU-1");
  EXPECT_TRUE(a->keep_only({}));
  EXPECT_TRUE(seen().empty());
}

TEST_F(BoardTest, ADaemonWithoutClaimsWritesNothing) {
  const auto a = open("a");
  EXPECT_TRUE(a->begin({}));
  EXPECT_TRUE(a->keep_only({}));
  EXPECT_TRUE(a->others(idle()));
  a->leave();
  EXPECT_TRUE(fs::is_empty(dir));
}

TEST_F(BoardTest, LeavesNothingBehindUnlessAttemptsRunOn) {
  auto a = open("a");
  EXPECT_TRUE(got(a->ask(kOne, 0, {"GPU-0"}, idle())));
  a->leave();
  a.reset();
  EXPECT_EQ(seen().size(), 1U);
  a = open("a");
  EXPECT_TRUE(a->begin({}));
  EXPECT_TRUE(seen().empty());
  a->leave();
  EXPECT_TRUE(fs::is_empty(dir));
}

TEST_F(BoardTest, AttemptsThatRunAlreadyAreSaidAtOnce) {
  const auto a = open("a");
  EXPECT_TRUE(a->begin({{"GPU-0", kOne, 0, now, ClaimState::wanted}}));
  const auto b = open("b");
  EXPECT_TRUE(refused(b->ask(kOne, 0, {"GPU-0"}, idle())));
}

TEST_F(BoardTest, AnIntentOfTheDeadMeansNothing) {
  put(entry_of("dead", false, now));
  EXPECT_TRUE(got(open("b")->ask(kOne, 0, {"GPU-0"}, unknown())));
}

TEST_F(BoardTest, TheDeadHoldACardWhileTheirProcessIsOnIt) {
  put(entry_of("dead", true, now));
  const auto b = open("b");
  now += Millis{600'000};
  EXPECT_TRUE(refused(b->ask(kOne, 0, {"GPU-0"}, ours())));
  EXPECT_TRUE(refused(b->ask(kOne, 0, {"GPU-0"}, unknown()))) << "unknown is not nobody";
  EXPECT_TRUE(refused(b->ask(kOne, 0, {"GPU-0"}, {}))) << "unknown is not nobody";
  EXPECT_TRUE(got(b->ask(kOne, 0, {"GPU-0"}, idle())));
}

TEST_F(BoardTest, WhatTheDeadStartedJustNowMayStillCome) {
  put(entry_of("dead", true, now));
  const auto b = open("b");
  now += Millis{119'000};
  EXPECT_TRUE(refused(b->ask(kOne, 0, {"GPU-0"}, idle())));
  now += Millis{1'000};
  EXPECT_TRUE(got(b->ask(kOne, 0, {"GPU-0"}, idle())));
}

TEST_F(BoardTest, AClaimWithoutAProcessStopsCountingAfterTwoMinutes) {
  const auto a = open("a");
  const auto b = open("b");
  EXPECT_TRUE(got(a->ask(kOne, 0, {"GPU-0"}, idle())));
  now += Millis{300'000};
  EXPECT_EQ(b->others(ours())->size(), 1U) << "it has one";
  now += Millis{119'000};
  EXPECT_EQ(b->others(idle())->size(), 1U) << "it had one less than two minutes ago";
  now += Millis{1'000};
  EXPECT_TRUE(b->others(idle())->empty());
  EXPECT_TRUE(got(b->ask(kOne, 0, {"GPU-0"}, idle())));
}

TEST_F(BoardTest, ALookSaysNothingOfWhoCameAfterIt) {
  put(entry_of("dead", true, now));
  const CardUsers early = idle();
  now += Millis{600'000};
  const auto b = open("b");
  EXPECT_TRUE(refused(b->ask(kOne, 0, {"GPU-0"}, early)));
  EXPECT_TRUE(got(b->ask(kOne, 0, {"GPU-0"}, idle())));
}

TEST_F(BoardTest, AnEntryOfAnEarlierBootMeansNothing) {
  BoardEntry old = entry_of("old", true, now);
  old.boot = "boot-0";
  put(old);
  EXPECT_TRUE(got(open("b")->ask(kOne, 0, {"GPU-0"}, unknown())));
}

TEST_F(BoardTest, TheFirstOfTwoIntentsStandsAndTheOtherWithdraws) {
  // The other is alive (a place where somebody listens), and its intent neither goes nor is kept.
  const auto other = open("other");
  ASSERT_TRUE(other->begin({{"GPU-1", kOne, 0, now, ClaimState::held}}));
  const auto b = open("b");
  BoardEntry intent = entry_of("other", false, now - Millis{1});
  put(intent);
  auto answer = b->ask(kOne, 0, {"GPU-0"}, idle());
  ASSERT_TRUE(refused(answer));
  EXPECT_EQ((*answer)->state, ClaimState::wanted);
  // Even a later intent is waited for, not overruled: its owner may have read before we wrote.
  intent.claims[0].since = now + Millis{1};
  put(intent);
  EXPECT_TRUE(refused(b->ask(kOne, 0, {"GPU-0"}, idle())));
  for (const FoundEntry& found : seen()) {
    const ClaimState state = found.entry.claims.at(0).state;
    EXPECT_EQ(state, found.entry.instance == "b" ? ClaimState::waiting : ClaimState::wanted);
  }
}

TEST_F(BoardTest, WhoHadTheCardLetsWhoeverWaitsGoFirst) {
  const auto a = open("a");
  const auto b = open("b");
  EXPECT_TRUE(got(a->ask(kOne, 0, {"GPU-0"}, idle())));
  EXPECT_TRUE(refused(b->ask(kOne, 0, {"GPU-0"}, idle())));
  EXPECT_TRUE(a->others(idle())->empty()) << "who waits holds nothing";
  now += Millis{10'000};
  EXPECT_TRUE(a->keep_only({}));
  const auto answer = a->ask(kTwo, 0, {"GPU-0"}, idle());
  ASSERT_TRUE(refused(answer));
  EXPECT_EQ((*answer)->state, ClaimState::waiting);
  EXPECT_EQ(a->others(idle())->at("GPU-0").instance, "b");
  EXPECT_TRUE(b->others(idle())->empty());
  EXPECT_TRUE(got(b->ask(kTwo, 0, {"GPU-0"}, idle())));
  // And the other way round.
  now += Millis{10'000};
  EXPECT_TRUE(b->keep_only({}));
  EXPECT_TRUE(refused(b->ask(AttemptId{3}, 0, {"GPU-0"}, idle())));
  EXPECT_TRUE(got(a->ask(AttemptId{3}, 0, {"GPU-0"}, idle())));
}

TEST_F(BoardTest, WhoQueuesWithoutAskingHasItsTurn) {
  const auto a = open("a");
  const auto b = open("b");
  EXPECT_TRUE(got(a->ask(kOne, 0, {"GPU-0"}, idle())));
  EXPECT_TRUE(b->queue_for({"GPU-0"}));
  now += Millis{10'000};
  EXPECT_TRUE(b->queue_for({"GPU-0"})) << "and does not lose its place by saying it again";
  EXPECT_TRUE(a->keep_only({}));
  EXPECT_TRUE(refused(a->ask(kTwo, 0, {"GPU-0"}, idle())));
  EXPECT_TRUE(got(a->ask(kTwo, 0, {"GPU-1"}, idle()))) << "it queued for one card alone";
  EXPECT_TRUE(b->keep_only({}, false)) << "nothing of it waits any more";
  EXPECT_TRUE(got(a->ask(AttemptId{3}, 0, {"GPU-0"}, idle())));
}

TEST_F(BoardTest, ATurnThatIsNotTakenPasses) {
  const auto a = open("a");
  auto b = open("b");
  EXPECT_TRUE(got(a->ask(kOne, 0, {"GPU-0"}, idle())));
  EXPECT_TRUE(refused(b->ask(kOne, 0, {"GPU-0"}, idle())));
  now += Millis{10'000};
  EXPECT_TRUE(a->keep_only({}));
  EXPECT_TRUE(refused(a->ask(kTwo, 0, {"GPU-0"}, idle())));
  now += Millis{5'000};
  EXPECT_TRUE(got(a->ask(kTwo, 0, {"GPU-0"}, idle())));
  now += Millis{10'000};
  EXPECT_TRUE(a->keep_only({}));
  EXPECT_TRUE(b->keep_only({}, false)) << "nothing of it waits any more";
  EXPECT_TRUE(got(a->ask(AttemptId{3}, 0, {"GPU-0"}, idle())));
  EXPECT_TRUE(refused(b->ask(kOne, 0, {"GPU-0"}, idle())));
  now += Millis{10'000};
  EXPECT_TRUE(a->keep_only({}));
  b.reset();
  EXPECT_TRUE(got(a->ask(AttemptId{4}, 0, {"GPU-0"}, idle()))) << "the dead do not wait";
}

TEST_F(BoardTest, OthersAreShownByCard) {
  const auto a = open("a");
  EXPECT_TRUE(got(a->ask(kOne, 0, {"GPU-0", "GPU-1"}, idle())));
  const auto b = open("b");
  const auto others = b->others(idle());
  ASSERT_TRUE(others);
  EXPECT_EQ(others->size(), 2U);
  EXPECT_EQ(others->at("GPU-1").instance, "a");
  EXPECT_TRUE(a->others(idle())->empty()) << "one is not one's own other";
}

TEST_F(BoardTest, WhatSomebodyRemovedIsSaidAgain) {
  const auto a = open("a");
  EXPECT_TRUE(got(a->ask(kOne, 0, {"GPU-0"}, idle())));
  fs::remove_all(dir + "/" + board_place_name(::geteuid(), "a"));
  EXPECT_TRUE(seen().empty());
  EXPECT_TRUE(a->keep_only({{"GPU-0", kOne}}));
  ASSERT_EQ(seen().size(), 1U);
  EXPECT_TRUE(directory().answers(seen()[0]));
}

TEST_F(BoardTest, ANameThatSomebodyElseTookIsGoneRound) {
  // What a stranger can put there: a file, a link, or a directory in which he can write.
  const std::string taken = dir + "/" + board_place_name(::geteuid(), "a");
  std::ofstream(taken) << "mine";
  auto a = open("a");
  EXPECT_TRUE(got(a->ask(kOne, 0, {"GPU-0"}, idle())));
  ASSERT_EQ(seen().size(), 1U);
  EXPECT_TRUE(seen()[0].name.starts_with(board_place_name(::geteuid(), "a") + "."));
  a.reset();
  a = open("a");
  EXPECT_TRUE(a->begin({})) << "the next daemon finds it again";
  EXPECT_TRUE(seen().empty());
}

TEST_F(BoardTest, WhenNothingCanBeWrittenNothingIsClaimed) {
  const auto a = open("a");
  EXPECT_FALSE(a->ask(kOne, 0, {"no name"}, idle()));
  fs::remove_all(dir);
  const auto answer = a->ask(kOne, 0, {"GPU-0"}, idle());
  ASSERT_FALSE(answer);
  EXPECT_NE(answer.error().message.find(dir), std::string::npos) << answer.error().message;
}

}  // namespace
}  // namespace berth
