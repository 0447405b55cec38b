// A pause that comes between two commands.

#include <fmt/format.h>

#include <csignal>
#include <iterator>

#include "shim_fixture.hpp"

namespace berth::test {
namespace {

class PausedShimTest : public ShimTest {
 protected:
  /// Lets the first of two commands end while the shim hears nothing, tells the shim to pause, and
  /// lets it hear both at once.
  Shim pause_between_commands(LaunchSpec& job) {
    const std::string gate = path("gate");
    job = shell("echo one; until test -e " + gate + "; do sleep 0.01; done");
    job.commands.push_back({true, {"echo two"}});
    Shim shim = start(job);
    EXPECT_TRUE(eventually([&] { return log_of(job) == "one\n"; }));
    EXPECT_EQ(::kill(shim.pid, SIGSTOP), 0);
    std::ofstream(gate).put('\n');
    const std::string children = fmt::format("/proc/{0}/task/{0}/children", shim.pid);
    EXPECT_TRUE(eventually([&] {
      std::ifstream in(children);
      int child = 0;
      if (!(in >> child)) {
        return false;
      }
      std::ifstream stat(fmt::format("/proc/{}/stat", child));
      const std::string text(std::istreambuf_iterator<char>(stat), {});
      const auto end = text.rfind(") ");
      return end != std::string::npos && text[end + 2] == 'Z';
    }));
    EXPECT_TRUE(launcher_->control(shim, control::Pause{}));
    EXPECT_EQ(::kill(shim.pid, SIGCONT), 0);
    EXPECT_TRUE(eventually([&] { return launcher_->read(job.attempt).signals.size() == 1; }));
    return shim;
  }
};

TEST_F(PausedShimTest, NoCommandStartsWhilePaused) {
  LaunchSpec job;
  const Shim shim = pause_between_commands(job);
  std::this_thread::sleep_for(Millis(300));
  EXPECT_EQ(log_of(job), "one\n");
  ASSERT_TRUE(launcher_->control(shim, control::Resume{}));
  EXPECT_EQ(ShimTest::verdict(finish(job.attempt, shim)).failure, std::nullopt);
  EXPECT_EQ(log_of(job), "one\ntwo\n");
}

TEST_F(PausedShimTest, AKillBetweenTwoCommandsOfAPausedJobEndsIt) {
  LaunchSpec job;
  const Shim shim = pause_between_commands(job);
  ASSERT_TRUE(launcher_->control(shim, control::Kill{Millis(60'000)}));
  EXPECT_TRUE(ShimTest::verdict(finish(job.attempt, shim)).killed);
  EXPECT_EQ(log_of(job), "one\n");
}

}  // namespace
}  // namespace berth::test
