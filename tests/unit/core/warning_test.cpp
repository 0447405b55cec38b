#include <csignal>

#include <gtest/gtest.h>

#include "core/job.hpp"

namespace berth {
namespace {

struct WarningCase {
  const char* text;
  std::int32_t signal;
  std::int64_t before_ms;
  const char* shown;
};

class Warnings : public ::testing::TestWithParam<WarningCase> {};

TEST_P(Warnings, AreReadAndWritten) {
  const auto warning = parse_warning(GetParam().text);
  ASSERT_TRUE(warning) << warning.error().message;
  EXPECT_EQ(warning->signal, GetParam().signal);
  EXPECT_EQ(warning->before, Millis{GetParam().before_ms});
  EXPECT_EQ(format_warning(*warning), GetParam().shown);
  EXPECT_EQ(*parse_warning(format_warning(*warning)), *warning);
}

INSTANTIATE_TEST_SUITE_P(All, Warnings,
                         ::testing::Values(WarningCase{"USR1@120", SIGUSR1, 120'000, "USR1@2m"},
                                           WarningCase{"SIGUSR2@2m", SIGUSR2, 120'000, "USR2@2m"},
                                           WarningCase{"usr1", SIGUSR1, 60'000, "USR1@1m"},
                                           WarningCase{"10@1.5s", 10, 1'500, "USR1@1500ms"},
                                           WarningCase{"40@30", 40, 30'000, "40@30s"},
                                           WarningCase{"TERM@1h", SIGTERM, 3'600'000, "TERM@1h"}));

TEST(RefusedWarnings, OfWhatNobodyCanHandleAreRefused) {
  for (const char* text : {"", "@10", "KILL@10", "9@10", "STOP", "19", "0@10", "65@10", "-1@10",
                           "USR1@", "USR1@soon", "USR1@0", "USR3@10", "USR1@-5"}) {
    EXPECT_FALSE(parse_warning(text)) << text;
  }
  EXPECT_EQ(format_warning({}), "");
}

}  // namespace
}  // namespace berth
