// An attempt whose work is done by a process that its supervisor is not above of.

#include <csignal>
#include <cstdlib>

#include "shim_fixture.hpp"

namespace berth::test {
namespace {

/// A process that no supervisor is above of, and a command that names it in uni_id.json.
class OutsideTest : public ShimTest {
 protected:
  void SetUp() override {
    ShimTest::SetUp();
    // Not a child of this test, which could not be told from its zombie.
    ASSERT_EQ(std::system(("setsid sleep 1000 & echo $! > " + path("pid")).c_str()), 0);
    outside_ = std::stoi(slurp(path("pid")));
  }
  void TearDown() override {
    ::kill(outside_, SIGKILL);
    ShimTest::TearDown();
  }

  LaunchSpec names(const std::string& pid, const std::string& more = R"(,"state":"running")") {
    LaunchSpec job =
        shell("echo '{\"'$BERTH_ATTEMPT'\":{\"pid\":'" + pid + "'" + more + "}}' > uni_id.json");
    job.environment.push_back("BERTH_STATE_FILE=" + path("uni_id.json"));
    return job;
  }
  LaunchSpec names_it() { return names(std::to_string(outside_)); }
  [[nodiscard]] bool alive() const {
    const auto process = read_proc_stat(outside_);
    return process && !process->dead();
  }

  pid_t outside_ = 0;
};

TEST_F(OutsideTest, TheAttemptLastsAsLongAsAProcessThatItNames) {
  const LaunchSpec job = names_it();
  const Shim shim = start(job);
  EXPECT_FALSE(ended_within(shim, Millis(700)));
  ::kill(outside_, SIGKILL);
  const Verdict verdict = ShimTest::verdict(finish(job.attempt, shim));
  EXPECT_EQ(verdict.failure, std::nullopt);
  EXPECT_FALSE(verdict.killed);
}

TEST_F(OutsideTest, KillingTheAttemptEndsThatProcess) {
  const LaunchSpec job = names_it();
  const Shim shim = start(job);
  EXPECT_FALSE(ended_within(shim, Millis(500)));
  ASSERT_TRUE(launcher_->control(shim, control::Kill{Millis(60'000)}));
  EXPECT_TRUE(ShimTest::verdict(finish(job.attempt, shim)).killed);
  EXPECT_TRUE(eventually([&] { return !alive(); }));
}

TEST_F(OutsideTest, TheTimeLimitHoldsForIt) {
  LaunchSpec job = names_it();
  job.time_limit = Millis(500);
  EXPECT_EQ(run(job).failure, FailureClass::timeout);
  EXPECT_TRUE(eventually([&] { return !alive(); }));
}

TEST_F(OutsideTest, PauseStopsIt) {
  const LaunchSpec job = names_it();
  const Shim shim = start(job);
  EXPECT_FALSE(ended_within(shim, Millis(500)));
  const auto state = [&] { return read_proc_stat(outside_).value_or(ProcStat{}).state; };
  ASSERT_TRUE(launcher_->control(shim, control::Pause{}));
  EXPECT_TRUE(eventually([&] { return state() == 'T'; }));
  ASSERT_TRUE(launcher_->control(shim, control::Resume{}));
  EXPECT_TRUE(eventually([&] { return state() == 'S'; }));
  ::kill(outside_, SIGKILL);
  EXPECT_EQ(ShimTest::verdict(finish(job.attempt, shim)).failure, std::nullopt);
}

TEST_F(OutsideTest, NobodyWaitsForWhatIsNotTheAttempts) {
  const std::string it = std::to_string(outside_);
  for (const LaunchSpec& job :
       {names(it, R"(,"state":"normal_exit")"), names(it, R"(,"state":"abnormal_exit")"),
        names("1"), names("null"), names("$PPID"), names("4000000"), names("'\"x\"'"), names("'{'"),
        names(std::to_string(::getpid()))}) {
    EXPECT_EQ(run(job).failure, std::nullopt);
  }
  EXPECT_TRUE(alive());
}

TEST_F(OutsideTest, AProcessOfAnotherAttemptIsNotTheOneThatWasNamed) {
  LaunchSpec other = shell("echo $$ > other; exec sleep 1000");
  const Shim shim = start(other);
  ASSERT_TRUE(eventually([&] { return slurp(path("other")).ends_with("\n"); }));
  EXPECT_EQ(run(names(std::to_string(std::stoi(slurp(path("other")))))).failure, std::nullopt);
  ASSERT_TRUE(launcher_->control(shim, control::Kill{Millis(0)}));
  EXPECT_TRUE(ShimTest::verdict(finish(other.attempt, shim)).killed);
}

TEST_F(OutsideTest, ASupervisorThatDiesLeavesNoLockBehind) {
  const LaunchSpec job = names_it();
  const Shim shim = start(job);
  EXPECT_FALSE(ended_within(shim, Millis(500)));
  ::kill(shim.pid, SIGKILL);
  EXPECT_TRUE(std::holds_alternative<recovery::Lost>(finish(job.attempt, shim)));
}

}  // namespace
}  // namespace berth::test
