// Nobody ever sees what a crash could erase: effects and answers come after the commit that covers
// them, and commits are shared.

#include "engine/engine.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/part_submission.hpp"
#include "unit/core/builders.hpp"
#include "unit/engine/fakes.hpp"

namespace berth::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class EngineTest : public ::testing::Test {
 protected:
  Trace trace;
  FakeStore store{trace};
  FakeEffects effects{trace};
  FakeClock clock;
  Engine engine{State{}, store, effects, clock};

  static event::Submit a_submission(JobSpec job, std::string key = {}) {
    event::Submit submit;
    submit.client_key = std::move(key);
    submit.jobs.push_back(std::move(job));
    return submit;
  }
  /// Notes "reply NAME ok" or "reply NAME refused" when it is called.
  Engine::Reply noting(const std::string& name) {
    return [this, name](Result<Answer> answer) {
      trace.push_back(fmt::format("reply {} {}", name, answer ? "ok" : "refused"));
    };
  }
  Engine::Reply keeping(std::optional<Result<Answer>>& kept) {
    return [&kept](Result<Answer> answer) { kept = std::move(answer); };
  }
  static event::AttemptExited exit_of(std::uint64_t attempt, bool success = true) {
    Verdict verdict;
    if (!success) {
      verdict.failure = FailureClass::exit;
    }
    return {AttemptId{attempt}, verdict};
  }
  /// Submits and lets everything that follows become durable.
  void run_to_rest() {
    while (store.busy()) {
      store.finish();
    }
  }
  Trace take_trace() { return std::exchange(trace, {}); }
};

TEST_F(EngineTest, EffectsAndAnswersComeAfterTheCommit) {
  engine.handle(a_submission(a_cpu_job()), noting("a"));
  EXPECT_THAT(trace, ElementsAre("commit"));
  store.finish();
  EXPECT_THAT(trace, ElementsAre("commit", "durable", "start 1", "reply a ok"));
  EXPECT_THAT(store.last_prepared, ElementsAre(AttemptId{1}));
}

TEST_F(EngineTest, WhatArrivesDuringACommitSharesTheNext) {
  engine.handle(a_submission(a_cpu_job()), noting("a"));
  engine.handle(a_submission(a_cpu_job()), noting("b"));
  engine.handle(a_submission(a_cpu_job()), noting("c"));
  EXPECT_EQ(store.commits, 1);
  store.finish();
  EXPECT_THAT(take_trace(), ElementsAre("commit", "durable", "start 1", "reply a ok", "commit"));
  store.finish();
  EXPECT_THAT(take_trace(),
              ElementsAre("durable", "start 2", "start 3", "reply b ok", "reply c ok"));
  EXPECT_EQ(store.commits, 2);
}

TEST_F(EngineTest, ARefusedEventIsAnsweredWithoutACommit) {
  engine.handle(a_submission(a_cpu_job().without_command()), noting("a"));
  EXPECT_THAT(trace, ElementsAre("reply a refused"));
}

TEST_F(EngineTest, ARefusalDuringACommitWaitsForWhatItSaw) {
  engine.handle(a_submission(a_cpu_job()), noting("a"));
  engine.handle(a_submission(a_cpu_job().without_command()), noting("b"));
  EXPECT_THAT(trace, ElementsAre("commit"));
  store.finish();
  EXPECT_THAT(trace, ElementsAre("commit", "durable", "start 1", "reply a ok", "reply b refused"));
  EXPECT_FALSE(store.busy());
}

TEST_F(EngineTest, ABatchThatArrivesInPartsIsWhatWasSubmitted) {
  event::Submit submit = a_submission(a_cpu_job(), "key");
  submit.jobs.push_back(submit.jobs.front());
  submit.batch_name = "sweep";
  submit.batch_max_concurrent = 3;
  submit.batch_rules = {{"order", "random"}};
  submit.traits.mode = "single";
  submit.traits.state_dir = "/data/logs";
  const event::Submit asked = submit;
  submit_in_parts(engine, std::move(submit), [](const std::function<void()>&) {}, noting("a"), 1);
  ASSERT_EQ(engine.state().submissions.size(), 1U);
  const event::SubmitBegin& head = engine.state().submissions.begin()->second.head;
  EXPECT_EQ(head.client_key, asked.client_key);
  EXPECT_EQ(head.batch_name, asked.batch_name);
  EXPECT_EQ(head.batch_max_concurrent, asked.batch_max_concurrent);
  EXPECT_EQ(head.batch_rules, asked.batch_rules);
  EXPECT_EQ(head.traits, asked.traits);
  EXPECT_EQ(head.count, 2U);
}

TEST_F(EngineTest, AJobIsRevivedFromWhatIsOnDisk) {
  engine.handle(a_submission(a_cpu_job()));
  run_to_rest();
  Verdict verdict;
  verdict.failure = FailureClass::exit;
  engine.handle(event::AttemptExited{AttemptId{1}, verdict});
  ASSERT_TRUE(store.busy()) << "its end is on its way to the disk";
  take_trace();
  event::Revive revive;
  revive.jobs = {JobId{1}};
  engine.handle(revive, noting("a"));
  EXPECT_EQ(engine.state().jobs.size(), 0U);
  run_to_rest();
  EXPECT_EQ(engine.state().jobs.size(), 1U);
  EXPECT_EQ(engine.state().jobs.at(JobId{1}).attempts, 2U) << "the second attempt has begun";
  EXPECT_THAT(trace, ::testing::Contains("reply a ok"));
}

TEST_F(EngineTest, AJobThatIsBeingRemovedIsNotRevived) {
  engine.handle(a_submission(a_cpu_job()));
  run_to_rest();
  Verdict verdict;
  verdict.failure = FailureClass::exit;
  engine.handle(event::AttemptExited{AttemptId{1}, verdict});
  run_to_rest();
  engine.handle(event::Remove{{JobId{1}}});
  ASSERT_TRUE(store.busy());
  event::Revive revive;
  revive.jobs = {JobId{1}};
  std::optional<Controlled> answer;
  engine.handle(revive, [&](Result<Answer> given) { answer = std::get<Controlled>(*given); });
  EXPECT_FALSE(answer);
  run_to_rest();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->absent, std::vector{JobId{1}});
  EXPECT_TRUE(engine.state().jobs.empty());
}

TEST_F(EngineTest, AReadAtRestIsAnsweredAtOnce) {
  std::size_t seen = 99;
  engine.read([](const State& s) { return s.jobs.size(); }, [&](std::size_t n) { seen = n; });
  EXPECT_EQ(seen, 0U);
  EXPECT_EQ(store.commits, 0);
}

TEST_F(EngineTest, AReadWaitsForTheCommitUnderWayThatCoversWhatItSaw) {
  engine.handle(a_submission(a_cpu_job()));
  std::optional<std::size_t> seen;
  engine.read([](const State& s) { return s.jobs.size(); }, [&](std::size_t n) { seen = n; });
  EXPECT_FALSE(seen);
  store.finish();
  EXPECT_EQ(seen, 1U);
  EXPECT_EQ(store.commits, 1);
}

TEST_F(EngineTest, AReadOfWhatTheNextCommitWillHoldWaitsForThatOne) {
  engine.handle(a_submission(a_cpu_job()));
  engine.handle(a_submission(a_cpu_job()));
  std::optional<std::size_t> seen;
  engine.read([](const State& s) { return s.jobs.size(); }, [&](std::size_t n) { seen = n; });
  store.finish();
  EXPECT_FALSE(seen);
  store.finish();
  EXPECT_EQ(seen, 2U);
}

TEST_F(EngineTest, AReadKeepsTheValueOfItsMoment) {
  engine.handle(a_submission(a_cpu_job()));
  std::optional<std::uint32_t> seen;
  engine.read([](const State& s) { return s.running; }, [&](std::uint32_t n) { seen = n; });
  engine.handle(a_submission(a_cpu_job()));
  store.finish();
  EXPECT_EQ(seen, 1U);
  EXPECT_EQ(engine.state().running, 2U);
}

TEST_F(EngineTest, AnEventThatOnlyAsksForEffectsNeedsNoCommit) {
  engine.handle(a_submission(a_cpu_job()));
  engine.handle(event::Kill{{JobId{1}}, 0, {}});
  run_to_rest();
  take_trace();
  engine.handle(event::Kill{{JobId{1}}, 0, {}}, noting("again"));
  EXPECT_THAT(trace, ElementsAre("kill 1", "reply again ok"));
}

TEST_F(EngineTest, EffectsWithoutChangesStillWaitForTheCommitUnderWay) {
  engine.handle(a_submission(a_cpu_job()));
  store.finish();
  engine.handle(event::Kill{{JobId{1}}, 0, {}});
  take_trace();
  engine.handle(event::Kill{{JobId{1}}, 0, {}}, noting("again"));
  EXPECT_THAT(trace, IsEmpty());
  store.finish();
  EXPECT_THAT(trace, ElementsAre("durable", "kill 1", "reply again ok", "kill 1"));
}

TEST_F(EngineTest, AKillOfAnAttemptNotYetDurableComesAfterItsStart) {
  engine.handle(a_submission(a_cpu_job()));
  engine.handle(event::Kill{{JobId{1}}, 0, {}});
  run_to_rest();
  EXPECT_THAT(trace, ElementsAre("commit", "durable", "start 1", "commit", "durable", "kill 1"));
}

TEST_F(EngineTest, TheSameClientKeyGivesTheSameIdsWhereverItIs) {
  std::optional<Result<Answer>> first, in_flight, open, open_again, stored;
  engine.handle(a_submission(a_cpu_job(), "one"), keeping(first));
  engine.handle(a_submission(a_cpu_job(), "one"), keeping(in_flight));
  engine.handle(a_submission(a_cpu_job(), "two"), keeping(open));
  engine.handle(a_submission(a_cpu_job(), "two"), keeping(open_again));
  EXPECT_FALSE(in_flight);
  store.finish();
  ASSERT_TRUE(first && in_flight);
  EXPECT_EQ(std::get<Submitted>(in_flight->value()), std::get<Submitted>(first->value()));
  EXPECT_FALSE(open_again) << "answered before the commit that holds the jobs";
  store.finish();
  ASSERT_TRUE(open && open_again);
  EXPECT_EQ(std::get<Submitted>(open->value()).first, JobId{2});
  EXPECT_EQ(std::get<Submitted>(open_again->value()), std::get<Submitted>(open->value()));
  engine.handle(a_submission(a_cpu_job(), "one"), keeping(stored));
  ASSERT_TRUE(stored);
  EXPECT_EQ(std::get<Submitted>(stored->value()), std::get<Submitted>(first->value()));
  EXPECT_EQ(engine.state().last_job, JobId{2});
}

TEST_F(EngineTest, AClientKeyBelongsToItsOwner) {
  auto mine = a_submission(a_cpu_job(), "k");
  mine.owner = 1;
  auto theirs = a_submission(a_cpu_job(), "k");
  theirs.owner = 2;
  engine.handle(mine);
  engine.handle(theirs);
  run_to_rest();
  EXPECT_EQ(engine.state().last_job, JobId{2});
}

TEST_F(EngineTest, ARefusedSubmissionDoesNotUseUpItsKey) {
  engine.handle(a_submission(a_cpu_job().without_command(), "k"), noting("a"));
  engine.handle(a_submission(a_cpu_job(), "k"), noting("b"));
  store.finish();
  EXPECT_THAT(trace, ElementsAre("reply a refused", "commit", "durable", "start 1", "reply b ok"));
}

TEST_F(EngineTest, DependenciesThatHaveLeftMemoryAreLookedUp) {
  engine.handle(a_submission(a_cpu_job()));
  run_to_rest();
  engine.handle(exit_of(1));
  run_to_rest();
  ASSERT_TRUE(engine.state().jobs.empty());
  take_trace();
  engine.handle(a_submission(a_cpu_job().after(1)), noting("after"));
  run_to_rest();
  EXPECT_THAT(trace, ElementsAre("commit", "durable", "start 2", "reply after ok"));
}

TEST_F(EngineTest, ADependencyWhoseEndIsNotYetDurableIsKnownAllTheSame) {
  engine.handle(a_submission(a_cpu_job()));
  engine.handle(a_submission(a_cpu_job()));
  run_to_rest();
  engine.handle(exit_of(1));         // in the commit under way
  engine.handle(exit_of(2, false));  // in the one after
  take_trace();
  engine.handle(a_submission(a_cpu_job().after(1)), noting("after success"));
  std::optional<Result<Answer>> after_failure;
  engine.handle(a_submission(a_cpu_job().after(2)), keeping(after_failure));
  run_to_rest();
  EXPECT_THAT(trace, ElementsAre("durable", "forget 1", "commit", "durable", "forget 2", "start 3",
                                 "reply after success ok"));
  ASSERT_TRUE(after_failure && !*after_failure);
  EXPECT_THAT(after_failure->error().message, ::testing::HasSubstr("job 2, which has failed"));
}

TEST_F(EngineTest, AFailedCommitReleasesNothingAndEverythingLaterIsRefused) {
  std::vector<std::string> reported;
  engine.on_broken = [&](const Error& error) { reported.push_back(error.message); };
  engine.handle(a_submission(a_cpu_job()), noting("a"));
  engine.handle(a_submission(a_cpu_job()), noting("b"));
  store.finish({.status = fail(ErrorCode::io, "fsync failed"),
                .unprepared = {},
                .low_space = false,
                .space_detail = {}});
  EXPECT_THAT(reported, ElementsAre("fsync failed"));
  EXPECT_THAT(trace, ElementsAre("commit"));
  ASSERT_TRUE(engine.broken());
  engine.handle(a_submission(a_cpu_job()), noting("c"));
  bool read = false;
  engine.read([](const State&) { return 0; }, [&](int) { read = true; });
  EXPECT_THAT(trace, ElementsAre("commit", "reply c refused"));
  EXPECT_FALSE(read) << "the State is ahead of the disk";
  EXPECT_FALSE(store.busy());
}

TEST_F(EngineTest, AnAttemptWithoutARecordNeverStartsAndItsJobFails) {
  engine.handle(a_submission(a_cpu_job()));
  CommitOutcome outcome;
  outcome.unprepared.emplace_back(AttemptId{1}, Error{ErrorCode::io, "no directory"});
  store.finish(outcome);
  run_to_rest();
  EXPECT_THAT(trace, ElementsAre("commit", "durable", "commit", "durable", "forget 1"));
  EXPECT_EQ(store.find_job_state(JobId{1}), JobState::failed);
}

TEST_F(EngineTest, OneAttemptWithoutARecordDoesNotStopTheOthers) {
  event::Submit two;
  two.jobs = {a_cpu_job(), a_cpu_job()};
  engine.handle(two);
  CommitOutcome outcome;
  outcome.unprepared.emplace_back(AttemptId{1}, Error{ErrorCode::io, "no directory"});
  store.finish(outcome);
  EXPECT_THAT(trace, ElementsAre("commit", "durable", "start 2", "commit"));
}

TEST_F(EngineTest, AnAttemptWithoutARecordForLackOfSpaceIsNotCharged) {
  engine.handle(a_submission(a_cpu_job()));
  CommitOutcome full;
  full.unprepared.emplace_back(AttemptId{1}, Error{ErrorCode::no_space, "disk full"});
  full.low_space = true;
  store.finish(full);
  EXPECT_TRUE(engine.state().low_space);
  full.unprepared.clear();
  store.finish(full);
  EXPECT_FALSE(store.busy()) << "nothing starts while the disk is full";
  EXPECT_EQ(engine.state().job(JobId{1})->state, JobState::queued);
  EXPECT_EQ(engine.state().job(JobId{1})->attempts, 0U);
  engine.handle(event::SpaceChanged{false, ""});
  store.finish();
  EXPECT_EQ(trace.back(), "start 2");
}

TEST_F(EngineTest, NoRoomForRecordsDoesNotSpinWhileTheDatabaseHasRoom) {
  engine.handle(a_submission(a_cpu_job()));
  CommitOutcome no_inodes;
  no_inodes.unprepared.emplace_back(AttemptId{1}, Error{ErrorCode::no_space, "no inodes"});
  store.finish(no_inodes);
  store.finish();  // the revocation; the database itself has room
  EXPECT_FALSE(store.busy()) << "started again at once";
  EXPECT_TRUE(engine.state().low_space);
  EXPECT_EQ(engine.state().space_detail, "no inodes");
  engine.handle(event::SpaceChanged{false, ""});  // the daemon's own look at the disk
  store.finish();
  EXPECT_EQ(trace.back(), "start 2");
}

TEST_F(EngineTest, LowSpaceRefusesSubmissionsUntilACommitSaysOtherwise) {
  engine.handle(a_submission(a_cpu_job()));
  store.finish({.status = {}, .unprepared = {}, .low_space = true, .space_detail = "/var: 0 B"});
  std::optional<Result<Answer>> refused;
  engine.handle(a_submission(a_cpu_job()), keeping(refused));
  ASSERT_TRUE(refused && !*refused);
  EXPECT_EQ(refused->error().code, ErrorCode::no_space);
  EXPECT_THAT(refused->error().message, ::testing::HasSubstr("/var: 0 B"));
  engine.handle(exit_of(1));  // verdicts are still committed
  store.finish();
  EXPECT_FALSE(engine.state().low_space);
}

TEST_F(EngineTest, AReplyMaySubmitAgain) {
  int left = 3;
  Engine::Reply again = [&](Result<Answer> answer) {
    EXPECT_TRUE(answer);
    if (--left > 0) {
      engine.handle(a_submission(a_cpu_job()), again);
    }
  };
  engine.handle(a_submission(a_cpu_job()), again);
  run_to_rest();
  EXPECT_EQ(left, 0);
  EXPECT_EQ(store.commits, 3);
  EXPECT_EQ(engine.state().jobs.size(), 3U);
}

TEST_F(EngineTest, AReplyThatNeededNoCommitMaySubmitSeveralTimes) {
  engine.read([](const State&) { return 0; },
              [&](int) {
                engine.handle(a_submission(a_cpu_job()), noting("a"));
                engine.handle(a_submission(a_cpu_job()), noting("b"));
              });
  EXPECT_THAT(take_trace(), ElementsAre("commit"));
  store.finish();
  EXPECT_THAT(take_trace(), ElementsAre("durable", "start 1", "reply a ok", "commit"));
  store.finish();
  EXPECT_THAT(take_trace(), ElementsAre("durable", "start 2", "reply b ok"));
}

TEST_F(EngineTest, AReplyMayReadWhatItsOwnSubmissionLedTo) {
  std::optional<std::size_t> seen;
  engine.handle(a_submission(a_cpu_job()), [&](const Result<Answer>&) {
    engine.handle(a_submission(a_cpu_job()));
    engine.read([](const State& s) { return s.jobs.size(); }, [&](std::size_t n) { seen = n; });
  });
  store.finish();
  EXPECT_FALSE(seen);
  store.finish();
  EXPECT_EQ(seen, 2U);
}

TEST_F(EngineTest, OrdersAreRepeatedAfterARestart) {
  engine.handle(a_submission(a_cpu_job()));
  engine.handle(a_submission(a_cpu_job()));
  engine.handle(a_submission(a_cpu_job()));
  engine.handle(event::Kill{{JobId{2}}, 0, {}});
  engine.handle(event::Pause{{JobId{3}}});
  run_to_rest();
  Engine restarted{engine.state(), store, effects, clock};
  take_trace();
  restarted.repeat_orders();
  EXPECT_THAT(trace, ElementsAre("resume 1", "kill 2", "pause 3"));
}

TEST_F(EngineTest, AJobIsPausedOnceThatIsDurable) {
  engine.handle(a_submission(a_cpu_job()));
  run_to_rest();
  take_trace();
  engine.handle(event::Pause{{JobId{1}}});
  EXPECT_THAT(take_trace(), ElementsAre("commit"));
  store.finish();
  EXPECT_THAT(take_trace(), ElementsAre("durable", "pause 1"));
}

TEST_F(EngineTest, ADecisionFollowsEveryEvent) {
  engine.handle(a_submission(a_job()));
  store.finish();
  EXPECT_THAT(take_trace(), ElementsAre("commit", "durable", "sample"));
  engine.handle(event::Sampled{{clock.now().mono, {a_gpu(0)}, "test", {}}});
  store.finish();
  EXPECT_THAT(take_trace(), ElementsAre("commit", "durable", "start 1"));
}

}  // namespace
}  // namespace berth::testing
