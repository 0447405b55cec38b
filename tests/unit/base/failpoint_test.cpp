#include "base/failpoint.hpp"

#include <csignal>
#include <cstdlib>

#include <gtest/gtest.h>

namespace berth {
namespace {

[[noreturn]] void pass_three_times(const char* armed) {
  ::setenv("BERTH_CRASH_AT", armed, 1);
  arm_failpoints();
  failpoint("elsewhere");
  failpoint("here");
  failpoint("here");
  failpoint("here");
  std::_Exit(0);
}

TEST(FailpointDeathTest, KillsAtTheNamedPass) {
  EXPECT_EXIT(pass_three_times("here"), testing::KilledBySignal(SIGKILL), "");
  EXPECT_EXIT(pass_three_times("here:3"), testing::KilledBySignal(SIGKILL), "");
}

TEST(FailpointDeathTest, LeavesOthersAlone) {
  EXPECT_EXIT(pass_three_times("here:4"), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(pass_three_times("nowhere"), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(pass_three_times(""), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace berth
