// What events do to jobs: ends, retries, dependencies, kills, revocations.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/core/world.hpp"

namespace berth::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

template <class T>
std::vector<T> changes_of(const Step& step) {
  std::vector<T> found;
  for (const Change& change : step.changes) {
    if (const auto* wanted = std::get_if<T>(&change)) {
      found.push_back(*wanted);
    }
  }
  return found;
}

TEST(Dependencies, AFollowerStartsWhenWhatItFollowsHasSucceeded) {
  World w;
  w.submit({a_cpu_job(), a_cpu_job().after_index(0)});
  EXPECT_EQ(w.decide(), "1:-");
  EXPECT_EQ(w.waits(), "2:dependency");
  w.succeed(1);
  EXPECT_EQ(w.decide(), "2:-");
}

TEST(Dependencies, AFollowerOfSeveralWaitsForAll) {
  World w;
  w.submit({a_cpu_job(), a_cpu_job(), a_cpu_job().after_index(0).after_index(1).after_index(0)});
  w.decide();
  w.succeed(2);
  EXPECT_EQ(w.decide(), "");
  EXPECT_EQ(w.waits(), "3:dependency");
  w.succeed(1);
  EXPECT_EQ(w.decide(), "3:-");
}

TEST(Dependencies, AFailureCancelsFollowersWithTheReason) {
  World w;
  w.submit({a_cpu_job(), a_cpu_job().after_index(0), a_cpu_job()});
  w.decide();
  w.fail(1);
  EXPECT_EQ(w.alive(), "3:running");
  EXPECT_EQ(w.stored(2), "cancelled");
  EXPECT_EQ(w.ledger.job(JobId{2}).message, "job 1, which it was to follow, failed");
}

TEST(Dependencies, AFailureRunsThroughAChainToItsEnd) {
  World w;
  std::vector<JobSpec> chain{a_cpu_job()};
  for (std::uint32_t i = 0; i < 5000; ++i) {
    chain.push_back(a_cpu_job().after_index(i));
  }
  w.submit(std::move(chain));
  w.decide();
  w.fail(1);
  w.go_on();
  EXPECT_TRUE(w.state.jobs.empty());
  EXPECT_EQ(w.ledger.job(JobId{5001}).message, "job 5000, which it was to follow, was cancelled");
  EXPECT_TRUE(w.state.pending.empty());
  EXPECT_TRUE(w.state.dependents.empty());
}

TEST(Dependencies, ADiamondIsCancelledOnce) {
  World w;
  w.submit({a_cpu_job(), a_cpu_job().after_index(0), a_cpu_job().after_index(0),
            a_cpu_job().after_index(1).after_index(2)});
  w.decide();
  w.fail(1);
  EXPECT_EQ(w.alive(), "");
  // The ledger refuses a second end of the same job.
  EXPECT_EQ(changes_of<change::JobUpdate>(w.last).size(), 4U);
}

TEST(Dependencies, ADiamondThatSucceedsRunsItsLastJobOnce) {
  World w;
  w.submit({a_cpu_job(), a_cpu_job().after_index(0), a_cpu_job().after_index(0),
            a_cpu_job().after_index(1).after_index(2)});
  w.decide();
  w.succeed(1);
  EXPECT_EQ(w.decide(), "2:- 3:-");
  w.succeed(3);
  w.succeed(2);
  EXPECT_EQ(w.decide(), "4:-");
}

TEST(Dependencies, AJobCancelledByOneDependencyIgnoresTheOther) {
  World w;
  w.submit({a_cpu_job(), a_cpu_job(), a_cpu_job().after_index(0).after_index(1)});
  w.decide();
  w.fail(1);
  w.succeed(2);
  EXPECT_EQ(w.alive(), "");
  EXPECT_EQ(w.stored(3), "cancelled");
}

TEST(Dependencies, ARetryKeepsFollowersWaiting) {
  World w;
  w.submit({a_cpu_job().retries(1), a_cpu_job().after_index(0)});
  w.decide();
  w.fail(1);
  EXPECT_EQ(w.decide(), "1:-");
  w.succeed(1);
  EXPECT_EQ(w.decide(), "2:-");
}

TEST(Retries, AreUsedUpAndThenTheJobHasFailed) {
  World w;
  w.submit({a_cpu_job().retries(2)});
  for (std::uint32_t attempt = 1; attempt <= 3; ++attempt) {
    EXPECT_EQ(w.decide(), "1:-");
    const auto started = changes_of<change::AttemptPut>(w.last);
    ASSERT_EQ(started.size(), 1U);
    EXPECT_EQ(started[0].number, attempt);
    EXPECT_EQ(started[0].id, AttemptId{attempt});  // a new id every time
    w.fail(1, FailureClass::timeout);
  }
  EXPECT_EQ(w.alive(), "");
  EXPECT_EQ(w.stored(1), "failed");
  EXPECT_EQ(w.ledger.job(JobId{1}).failure, FailureClass::timeout);
  EXPECT_EQ(w.ledger.job(JobId{1}).attempts, 3U);
}

TEST(Retries, AKilledJobIsNotRetried) {
  World w;
  w.submit({a_cpu_job().retries(2)});
  w.decide();
  w.kill({1});
  w.fail(1);
  EXPECT_EQ(w.alive(), "");
  EXPECT_EQ(w.stored(1), "killed");
  EXPECT_FALSE(w.ledger.job(JobId{1}).failure);
}

TEST(Exits, AnAttemptThatIsNotOpenIsRefusedAndChangesNothing) {
  World w;
  w.submit({a_cpu_job()});
  w.decide();
  const AttemptId attempt = w.attempt_of(1);
  w.succeed(1);
  const std::string before = fingerprint(w.state);
  EXPECT_FALSE(w.apply(event::AttemptExited{attempt, {}}));
  EXPECT_FALSE(w.apply(event::AttemptRevoked{attempt, "late"}));
  EXPECT_FALSE(w.apply(event::AttemptExited{AttemptId{99}, {}}));
  EXPECT_TRUE(w.last.changes.empty());
  EXPECT_EQ(fingerprint(w.state), before);
}

TEST(Exits, AskForASampleOnlyWhereACardWasHeld) {
  World w;
  w.see_idle(1);
  w.submit({a_job(), a_cpu_job()});
  w.decide();
  EXPECT_EQ(w.effects(), "start start");
  EXPECT_THAT(w.last.prepare, ElementsAre(AttemptId{1}, AttemptId{2}));
  w.succeed(1);
  EXPECT_EQ(w.effects(), "sample forget");
  w.succeed(2);
  EXPECT_EQ(w.effects(), "forget");
}

TEST(Exits, ABatchIsForgottenWithItsLastJob) {
  World w;
  w.submit(copies(2, a_cpu_job()));
  w.decide();
  w.succeed(1);
  EXPECT_EQ(w.state.batches.size(), 1U);
  w.fail(2);
  EXPECT_TRUE(w.state.batches.empty());
}

TEST(Kills, AQueuedJobIsCancelledAtOnce) {
  World w;
  w.see({});
  w.submit({a_job()});
  const Killed answer = w.kill({1});
  EXPECT_THAT(answer.cancelled, ElementsAre(JobId{1}));
  EXPECT_THAT(answer.killed, IsEmpty());
  EXPECT_EQ(w.effects(), "");
  EXPECT_EQ(w.stored(1), "cancelled");
  EXPECT_EQ(w.decide(), "");
}

TEST(Kills, ARunningJobStaysUntilItsSupervisorHasReported) {
  World w;
  w.submit({a_cpu_job(), a_cpu_job().after_index(0)});
  w.decide();
  const Killed answer = w.kill({1});
  EXPECT_THAT(answer.killed, ElementsAre(JobId{1}));
  EXPECT_EQ(w.effects(), "kill");
  EXPECT_EQ(w.alive(), "1:running 2:queued");
  EXPECT_TRUE(w.ledger.job(JobId{1}).kill_requested);
  Verdict verdict;
  verdict.killed = true;
  verdict.signal = 15;
  verdict.failure = FailureClass::exit;
  w.end(1, verdict);
  EXPECT_EQ(w.stored(1), "killed");
  EXPECT_EQ(w.ledger.job(JobId{2}).message, "job 1, which it was to follow, was killed");
}

TEST(Kills, ARepeatedKillIsCarriedOutAgainButWrittenOnce) {
  World w;
  w.submit({a_cpu_job()});
  w.decide();
  w.kill({1});
  w.kill({1});
  EXPECT_EQ(w.effects(), "kill");
  EXPECT_TRUE(w.last.changes.empty());
}

TEST(Kills, AJobThatSucceededBeforeTheSignalReachedItHasSucceeded) {
  World w;
  w.submit({a_cpu_job()});
  w.decide();
  w.kill({1});
  w.succeed(1);
  EXPECT_EQ(w.stored(1), "succeeded");
}

TEST(Kills, JobsThatAreNotAliveAreNamed) {
  World w;
  w.submit({a_cpu_job()});
  w.decide();
  w.succeed(1);
  const Killed answer = w.kill({1, 77});
  EXPECT_THAT(answer.unknown, ElementsAre(JobId{1}, JobId{77}));
  EXPECT_TRUE(w.last.changes.empty());
}

TEST(Kills, AFollowerNamedTogetherWithWhatItFollowsIsCancelledNotUnknown) {
  World w;
  w.see({});
  w.submit({a_job(), a_job().after_index(0)});
  const Killed answer = w.kill({1, 2, 1, 2});
  EXPECT_THAT(answer.cancelled, ElementsAre(JobId{1}, JobId{2}));
  EXPECT_THAT(answer.unknown, IsEmpty());
}

TEST(Kills, AJobNamedTwiceIsKilledOnce) {
  World w;
  w.submit({a_cpu_job()});
  w.decide();
  EXPECT_THAT(w.kill({1, 1}).killed, ElementsAre(JobId{1}));
  EXPECT_EQ(w.effects(), "kill");
}

TEST(Kills, AJobThatWaitsForADependencyCanBeKilled) {
  World w;
  w.submit({a_cpu_job(), a_cpu_job().after_index(0)});
  w.decide();
  EXPECT_THAT(w.kill({2}).cancelled, ElementsAre(JobId{2}));
  w.succeed(1);
  EXPECT_EQ(w.alive(), "");
}

TEST(Revocations, AreNotCharged) {
  World w;
  w.see_idle(1);
  w.submit({a_job()});
  w.decide();
  w.revoke(1);
  EXPECT_EQ(w.alive(), "1:queued");
  EXPECT_EQ(w.ledger.job(JobId{1}).attempts, 0U);
  EXPECT_EQ(w.ledger.job(JobId{1}).retries_used, 0U);
  w.wait(Millis{1});
  w.see_again();
  EXPECT_EQ(w.decide(), "1:0");
  EXPECT_EQ(w.attempt_of(1), AttemptId{2});  // under a new id
  EXPECT_EQ(w.ledger.job(JobId{1}).attempts, 1U);
}

TEST(Revocations, KeepTheJobsPlaceInLine) {
  World w;
  w.set_queue("s", 1);
  w.submit(copies(2, a_cpu_job().queue("s")));
  w.decide();
  w.revoke(1);
  EXPECT_EQ(w.decide(), "1:-");
}

TEST(Revocations, OfAJobToBeKilledEndIt) {
  World w;
  w.submit({a_cpu_job(), a_cpu_job().after_index(0)});
  w.decide();
  w.kill({1});
  w.revoke(1);
  EXPECT_EQ(w.alive(), "");
  EXPECT_EQ(w.stored(1), "killed");
  EXPECT_EQ(w.stored(2), "cancelled");
}

TEST(Samples, AreWantedWhileAGpuJobWaitsRunsOrHasJustEnded) {
  World w;
  EXPECT_FALSE(w.state.wants_samples());
  w.submit({a_cpu_job()});
  EXPECT_FALSE(w.state.wants_samples());
  w.submit({a_job()});
  EXPECT_TRUE(w.state.wants_samples());
  w.see_idle(1);
  w.decide();
  EXPECT_TRUE(w.state.wants_samples());
  w.succeed(2);
  EXPECT_TRUE(w.state.wants_samples());
  w.wait(Millis{1});
  w.see_again();
  EXPECT_FALSE(w.state.wants_samples());
}

}  // namespace
}  // namespace berth::testing
