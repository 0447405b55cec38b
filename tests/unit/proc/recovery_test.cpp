// What recovery makes of an attempt, for every state a crash can leave it in.

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/wait.h>

#include "proc/daemon_lock.hpp"
#include "proc/record_line.hpp"
#include "shim_fixture.hpp"

namespace berth::test {
namespace {

class RecoveryTest : public ShimTest {
 protected:
  [[nodiscard]] std::string record_of(AttemptId attempt) const {
    return path(fmt::format("attempts/{}.rec", attempt.value));
  }
  void write_record(AttemptId attempt, const std::string& bytes) {
    std::ofstream(record_of(attempt), std::ios::binary) << bytes;
  }
  static std::string start_line(pid_t pid, std::int64_t ticks) {
    RecordLine line("START");
    line.number("v", 1).number("pid", pid).number("start", ticks).number("wall", 5);
    return std::string(line.finish());
  }
  static std::string exit_line(int code) {
    RecordLine line("EXIT");
    line.text("why", code == 0 ? "ok" : "exit").number("code", code).number("wall", 77);
    return std::string(line.finish());
  }
  /// As after a crash of the daemon: everything it held in memory and descriptors is gone.
  void restart() {
    launcher_.reset();
    open_launcher();
  }
  template <class T>
  static T as(Recovery recovery) {
    T* held = std::get_if<T>(&recovery);
    EXPECT_NE(held, nullptr) << "alternative " << recovery.index();
    return held != nullptr ? std::move(*held) : T{};
  }
};

TEST_F(RecoveryTest, PreparedButNeverSpawnedIsRevokedForGood) {
  ASSERT_TRUE(launcher_->prepare({7}));
  restart();
  (void)as<recovery::Revoked>(launcher_->inspect({7}, true));
  EXPECT_TRUE(launcher_->read({7}).revoked);
  (void)as<recovery::Revoked>(launcher_->inspect({7}, true));
  (void)as<recovery::Revoked>(launcher_->inspect({7}, false));
  EXPECT_EQ(launcher_->leftovers(), std::vector<AttemptId>{{7}});
  EXPECT_EQ(launcher_->prepare({7}).error().code, ErrorCode::conflict);
  launcher_->forget({7});
  EXPECT_TRUE(launcher_->leftovers().empty());
}

TEST_F(RecoveryTest, PreparedAndStillHeldIsStarting) {
  ASSERT_TRUE(launcher_->prepare({7}));
  (void)as<recovery::Starting>(launcher_->inspect({7}, true));
  EXPECT_TRUE(launcher_->read({7}).start == std::nullopt && !launcher_->read({7}).revoked);
  launcher_->discard({7});
  EXPECT_FALSE(std::filesystem::exists(record_of({7})));
  EXPECT_EQ(launcher_->spawn(shell("true")).error().code, ErrorCode::conflict);
}

TEST_F(RecoveryTest, AMissingRecordIsNeverNotStarted) {
  for (const bool same_boot : {true, false}) {
    const auto lost = as<recovery::Lost>(launcher_->inspect({99}, same_boot));
    EXPECT_EQ(lost.verdict.failure, FailureClass::node_lost);
    EXPECT_NE(lost.verdict.message.find("record has disappeared"), std::string::npos);
  }
}

TEST_F(RecoveryTest, ARunningAttemptIsAdoptedAndItsExitCodeKept) {
  const LaunchSpec job = shell("while [ ! -e go ]; do sleep 0.02; done; exit 5");
  {
    const Shim shim = start(job);
    ASSERT_TRUE(eventually([&] { return launcher_->read(job.attempt).start.has_value(); }));
  }
  restart();
  const auto adopted = as<recovery::Adopted>(launcher_->inspect(job.attempt, true));
  ASSERT_TRUE(adopted.shim.pidfd);
  EXPECT_FALSE(ended_within(adopted.shim, Millis(50)));
  (void)as<recovery::Ending>(launcher_->collect(job.attempt, adopted.shim));  // too early
  std::ofstream(path("go")).close();
  EXPECT_EQ(verdict(finish(job.attempt, adopted.shim)).exit_code, 5);
}

TEST_F(RecoveryTest, AnAdoptedAttemptCanBeKilled) {
  const LaunchSpec job = shell("sleep 1000");
  {
    const Shim shim = start(job);
  }
  restart();
  Recovery seen = launcher_->inspect(job.attempt, true);
  ASSERT_TRUE(eventually([&] {
    seen = launcher_->inspect(job.attempt, true);
    return !std::holds_alternative<recovery::Starting>(seen);
  }));
  const auto adopted = as<recovery::Adopted>(std::move(seen));
  ASSERT_TRUE(launcher_->control(adopted.shim, control::Kill{Millis(0)}));
  EXPECT_TRUE(verdict(finish(job.attempt, adopted.shim)).killed);
}

TEST_F(RecoveryTest, AnExitWhileNoDaemonListensIsFound) {
  const LaunchSpec job = shell("exit 6");
  {
    const Shim shim = start(job);
    ASSERT_TRUE(ended_within(shim, Millis(60'000)));
  }
  restart();
  for (const bool same_boot : {true, false}) {
    EXPECT_EQ(as<recovery::Ended>(launcher_->inspect(job.attempt, same_boot)).verdict.exit_code, 6);
  }
}

TEST_F(RecoveryTest, RecordsOfAnotherBoot) {
  write_record({1}, start_line(1, 1));
  EXPECT_EQ(as<recovery::Lost>(launcher_->inspect({1}, false)).verdict.message,
            "the machine restarted while it ran");
  write_record({2}, start_line(1, 1) + exit_line(4));
  const auto ended = as<recovery::Ended>(launcher_->inspect({2}, false));
  EXPECT_EQ(ended.verdict.exit_code, 4);
  EXPECT_EQ(ended.verdict.ended_wall, Millis(77));
  write_record({3}, "");  // the bytes of START may have been lost with the power
  (void)as<recovery::Lost>(launcher_->inspect({3}, false));
}

TEST_F(RecoveryTest, AReusedPidIsNotAdopted) {
  // This very process has the pid, but not the start time.
  write_record({1}, start_line(::getpid(), 12345));
  const auto lost = as<recovery::Lost>(launcher_->inspect({1}, true));
  EXPECT_EQ(lost.verdict.failure, FailureClass::node_lost);
  // The same with the lock busy: somebody hangs between fork and exec.
  write_record({2}, start_line(::getpid(), 12345));
  const Fd holder(::open(record_of({2}).c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(::flock(holder.get(), LOCK_EX | LOCK_NB), 0);
  (void)as<recovery::Ending>(launcher_->inspect({2}, true));
}

TEST_F(RecoveryTest, ATornStartIsNotEvidenceOfNotStarted) {
  write_record({1}, start_line(1, 1).substr(0, 20));
  (void)as<recovery::Lost>(launcher_->inspect({1}, true));
}

TEST_F(RecoveryTest, ASupervisorRunsNothingWhenTheRecordIsNotEmpty) {
  const LaunchSpec job = shell("touch ran");
  ASSERT_TRUE(launcher_->prepare(job.attempt));
  write_record(job.attempt, "REVOKED in the meantime");
  auto shim = launcher_->spawn(job);
  ASSERT_TRUE(shim);
  ASSERT_TRUE(ended_within(*shim, Millis(60'000)));
  EXPECT_FALSE(std::filesystem::exists(path("ran")));
  (void)launcher_->collect(job.attempt, *shim);
}

class CrashPointTest : public RecoveryTest {
 protected:
  Recovery crash_at(const std::string& point, const LaunchSpec& job) {
    open_launcher({"BERTH_CRASH_AT=" + point});
    const Shim shim = start(job);
    return finish(job.attempt, shim);
  }
};

TEST_F(CrashPointTest, BeforeStartNothingRanAndItIsRevoked) {
  (void)as<recovery::Revoked>(crash_at("shim_before_start", shell("touch ran")));
  EXPECT_FALSE(std::filesystem::exists(path("ran")));
}

TEST_F(CrashPointTest, AfterStartItIsLost) {
  (void)as<recovery::Lost>(crash_at("shim_after_start", shell("touch ran")));
  EXPECT_FALSE(std::filesystem::exists(path("ran")));
}

TEST_F(CrashPointTest, BeforeTheExitRecordItIsLostAfterwardsNot) {
  (void)as<recovery::Lost>(crash_at("shim_before_exit_record:1", shell("exit 9")));
  EXPECT_EQ(
      as<recovery::Ended>(crash_at("shim_after_exit_record", shell("exit 9"))).verdict.exit_code,
      9);
}

TEST_F(CrashPointTest, ThePayloadDoesNotSeeTheCrashPoint) {
  open_launcher({"BERTH_CRASH_AT=some_other_point"});
  const LaunchSpec job = shell("env | grep -c CRASH");
  EXPECT_EQ(run(job).exit_code, 1);
  EXPECT_EQ(log_of(job), "0\n");
}

TEST_F(RecoveryTest, ASpecItDoesNotUnderstandIsReported) {
  LaunchSpec job = shell("true");
  job.commands.clear();
  ASSERT_TRUE(launcher_->prepare(job.attempt));
  EXPECT_EQ(launcher_->spawn(job).error().code, ErrorCode::invalid);
  job.commands = {{false, {std::string("a\0b", 3)}}};
  EXPECT_EQ(launcher_->spawn(job).error().code, ErrorCode::invalid);
  launcher_->discard(job.attempt);
  EXPECT_TRUE(launcher_->leftovers().empty());
}

TEST_F(RecoveryTest, AMissingSupervisorProgramIsNamed) {
  const auto opened = Launcher::open({dir_, path("nowhere"), kInstance, {}, {}});
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().message.find(path("nowhere")), std::string::npos);
}

TEST_F(RecoveryTest, OneDaemonPerDirectory) {
  const std::string lock_path = path("daemon.lock");
  auto first = DaemonLock::acquire(lock_path);
  ASSERT_TRUE(first) << first.error().message;
  const auto second = DaemonLock::acquire(lock_path);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::conflict);
  EXPECT_NE(second.error().message.find(fmt::format("pid {}", ::getpid())), std::string::npos)
      << second.error().message;
  // Reading the file elsewhere in the process does not drop the lock.
  (void)slurp(lock_path);
  EXPECT_FALSE(DaemonLock::acquire(lock_path));
  {
    const DaemonLock gone = std::move(*first);
  }
  EXPECT_TRUE(DaemonLock::acquire(lock_path));
}

TEST_F(RecoveryTest, TheLockSurvivesTheDaemonsChildren) {
  // A supervisor inherits nothing that would keep the directory locked after the daemon is gone.
  const std::string lock_path = path("daemon.lock");
  LaunchSpec job = shell("sleep 1000");
  job.daemon_lock = lock_path;
  auto lock = DaemonLock::acquire(lock_path);
  ASSERT_TRUE(lock);
  const Shim shim = start(job);
  ASSERT_TRUE(eventually([&] { return launcher_->read(job.attempt).start.has_value(); }));
  {
    const DaemonLock gone = std::move(*lock);
  }
  EXPECT_TRUE(DaemonLock::acquire(lock_path));
  ASSERT_TRUE(launcher_->control(shim, control::Kill{Millis(0)}));
  EXPECT_TRUE(verdict(finish(job.attempt, shim)).killed);
}

}  // namespace
}  // namespace berth::test
