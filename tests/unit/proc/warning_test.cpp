// Warnings before the end: a signal for those that handle it, and time to end by themselves.

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>

#include "shim_fixture.hpp"

namespace berth::test {
namespace {

constexpr const char* kSaves =
    "trap 'echo saved; exit 7' USR1; echo up; while :; do sleep 0.02; done";

class WarningTest : public ShimTest {
 protected:
  Shim start_and_wait(const LaunchSpec& job) {
    Shim shim = start(job);
    EXPECT_TRUE(eventually([&] { return log_of(job).starts_with("up\n"); }));
    return shim;
  }
  bool told(const LaunchSpec& job, const std::string& what) {
    const auto signals = launcher_->read(job.attempt).signals;
    return std::find(signals.begin(), signals.end(), what) != signals.end();
  }
};

TEST_F(WarningTest, ComesBeforeTheTimeLimit) {
  LaunchSpec job = shell(kSaves);
  job.time_limit = Millis(43'000);
  job.warning = {SIGUSR1, Millis(40'000)};
  const Shim shim = start_and_wait(job);
  const Verdict verdict = ShimTest::verdict(finish(job.attempt, shim));
  EXPECT_EQ(verdict.failure, FailureClass::exit);
  EXPECT_EQ(verdict.exit_code, 7);
  EXPECT_NE(log_of(job).find("saved\n"), std::string::npos);
  EXPECT_TRUE(told(job, "warn"));
}

TEST_F(WarningTest, IsFollowedByTheLimit) {
  LaunchSpec job = shell("trap 'echo saved' USR1; echo up; while :; do sleep 0.02; done");
  job.time_limit = Millis(5'000);
  job.warning = {SIGUSR1, Millis(2'000)};
  const Shim shim = start_and_wait(job);
  const Verdict verdict = ShimTest::verdict(finish(job.attempt, shim));
  EXPECT_EQ(verdict.failure, FailureClass::timeout);
  EXPECT_EQ(log_of(job), "up\nsaved\n");
}

TEST_F(WarningTest, DoesNotEndWhoHasNoHandler) {
  LaunchSpec job = shell("echo up; sleep 1; echo done");
  job.time_limit = Millis(60'000);
  job.warning = {SIGUSR1, Millis(59'900)};
  EXPECT_EQ(run(job).failure, std::nullopt);
  EXPECT_EQ(log_of(job), "up\ndone\n");
}

TEST_F(WarningTest, ReachesTheProgramBehindAShellThatKnowsNothingOfIt) {
  LaunchSpec job = shell(
      "(trap 'echo saved; exit 0' USR1; echo up; while :; do sleep 0.02; done); "
      "echo after $?");
  job.time_limit = Millis(43'000);
  job.warning = {SIGUSR1, Millis(40'000)};
  const Shim shim = start_and_wait(job);
  EXPECT_EQ(ShimTest::verdict(finish(job.attempt, shim)).failure, std::nullopt);
  EXPECT_EQ(log_of(job), "up\nsaved\nafter 0\n");
}

TEST_F(WarningTest, WaitsForWhoHasNoHandlerYetAndTellsItOnce) {
  LaunchSpec job = shell(
      "sleep 0.6; trap 'echo saved' USR1; echo up; until [ -e go ]; do sleep 0.02; done; exit 7");
  job.time_limit = Millis(60'000);
  job.warning = {SIGUSR1, Millis(120'000)};
  const Shim shim = start_and_wait(job);
  ASSERT_TRUE(eventually([&] { return log_of(job) == "up\nsaved\n"; }));
  // By then it would have been looked for again several times.
  std::this_thread::sleep_for(Millis(2'500));
  std::ofstream(path("go")) << "\n";
  EXPECT_EQ(ShimTest::verdict(finish(job.attempt, shim)).exit_code, 7);
  EXPECT_EQ(log_of(job), "up\nsaved\n");
  EXPECT_EQ(std::ranges::count(launcher_->read(job.attempt).signals, "warn"), 1);
}

TEST_F(WarningTest, ReachesTheCommandThatCanBeWarned) {
  LaunchSpec job = spec({{true, {"sleep 0.5"}}, {true, {kSaves}}});
  job.time_limit = Millis(60'000);
  job.warning = {SIGUSR1, Millis(59'900)};
  const Shim shim = start(job);
  EXPECT_EQ(ShimTest::verdict(finish(job.attempt, shim)).exit_code, 7);
  EXPECT_EQ(log_of(job), "up\nsaved\n");
}

TEST_F(WarningTest, BeforeAKillWaitsForAHandlerToo) {
  LaunchSpec job =
      shell("echo up; sleep 0.6; trap 'echo saved; exit 7' USR1; while :; do sleep 0.02; done");
  job.warning = {SIGUSR1, Millis(60'000)};
  const Shim shim = start_and_wait(job);
  ASSERT_TRUE(launcher_->control(shim, control::Warn{}));
  EXPECT_EQ(ShimTest::verdict(finish(job.attempt, shim)).exit_code, 7);
  EXPECT_EQ(log_of(job), "up\nsaved\n");
}

/// A child on its way to exec seems to have a handler: it is the parent's, and gone a moment later.
TEST_F(WarningTest, DoesNotEndWhatIsJustBeingStarted) {
  LaunchSpec job = spec({{false, {BERTH_SLOW_SPAWN_PATH}}});
  job.warning = {SIGUSR1, Millis(60'000)};
  const Shim shim = start_and_wait(job);
  ASSERT_TRUE(launcher_->control(shim, control::Warn{}));
  EXPECT_EQ(ShimTest::verdict(finish(job.attempt, shim)).exit_code, 7);
  EXPECT_EQ(log_of(job), "up\nsaved\n");
}

TEST_F(WarningTest, ComesBeforeAKillAndLeavesTheTimeAskedFor) {
  LaunchSpec job = shell(kSaves);
  job.warning = {SIGUSR1, Millis(60'000)};
  const Shim shim = start_and_wait(job);
  ASSERT_TRUE(launcher_->control(shim, control::Warn{}));
  const Verdict verdict = ShimTest::verdict(finish(job.attempt, shim));
  EXPECT_FALSE(verdict.killed);
  EXPECT_EQ(verdict.exit_code, 7);
}

TEST_F(WarningTest, EndsInAKillWhereItIsNotHeeded) {
  LaunchSpec job = shell("trap 'echo heard' USR1; echo up; while :; do sleep 0.02; done");
  job.warning = {SIGUSR1, Millis(2'000)};
  const Shim shim = start_and_wait(job);
  ASSERT_TRUE(launcher_->control(shim, control::Warn{}));
  const Verdict verdict = ShimTest::verdict(finish(job.attempt, shim));
  EXPECT_TRUE(verdict.killed);
  EXPECT_EQ(log_of(job), "up\nheard\n");
}

TEST_F(WarningTest, IsShortenedByAKill) {
  LaunchSpec job = shell("trap '' USR1; echo up; while :; do sleep 0.02; done");
  job.warning = {SIGUSR1, Millis(3'600'000)};
  const Shim shim = start_and_wait(job);
  ASSERT_TRUE(launcher_->control(shim, control::Warn{}));
  ASSERT_TRUE(launcher_->control(shim, control::Kill{Millis(0)}));
  EXPECT_TRUE(ShimTest::verdict(finish(job.attempt, shim)).killed);
}

TEST_F(WarningTest, IsAPlainKillForWhoHasAskedForNone) {
  LaunchSpec job = shell("echo up; while :; do sleep 0.02; done");
  const Shim shim = start_and_wait(job);
  ASSERT_TRUE(launcher_->control(shim, control::Warn{}));
  EXPECT_TRUE(ShimTest::verdict(finish(job.attempt, shim)).killed);
}

TEST_F(WarningTest, WakesWhoIsPaused) {
  LaunchSpec job = shell(kSaves);
  job.warning = {SIGUSR1, Millis(60'000)};
  const Shim shim = start_and_wait(job);
  ASSERT_TRUE(launcher_->control(shim, control::Pause{}));
  ASSERT_TRUE(eventually([&] { return told(job, "pause"); }));
  ASSERT_TRUE(launcher_->control(shim, control::Warn{}));
  EXPECT_EQ(ShimTest::verdict(finish(job.attempt, shim)).exit_code, 7);
}

TEST_F(WarningTest, NoFurtherCommandStartsAfterwards) {
  LaunchSpec job = spec({{true, {"trap 'exit 0' USR1; echo up; while :; do sleep 0.02; done"}},
                         {true, {"echo second"}}});
  job.warning = {SIGUSR1, Millis(60'000)};
  const Shim shim = start_and_wait(job);
  ASSERT_TRUE(launcher_->control(shim, control::Warn{}));
  EXPECT_TRUE(ShimTest::verdict(finish(job.attempt, shim)).killed);
  EXPECT_EQ(log_of(job), "up\n");
}

TEST_F(WarningTest, ARecordTellsWhereTheOutputOfAFailureBegins) {
  LaunchSpec job = shell("echo second; exit 3");
  job.log = path("named.log");
  job.log_named_by_user = true;
  std::ofstream(job.log) << "first\n";
  const Shim shim = start(job);
  ASSERT_TRUE(ended_within(shim, Millis(60'000)));
  const auto exit = launcher_->read(job.attempt).exit;
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->log, job.log);
  EXPECT_EQ(exit->log_from, 6U);
  EXPECT_EQ(ShimTest::verdict(finish(job.attempt, shim)).exit_code, 3);
}

}  // namespace
}  // namespace berth::test
