#include "base/moment.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>

namespace berth {
namespace {

/// 2024-05-01 12:00:00 UTC.
constexpr Millis kNow{1'714'564'800'000};
constexpr Millis kHour{3'600'000};

class MomentTest : public testing::Test {
 protected:
  MomentTest() {
    ::setenv("TZ", "UTC", 1);
    ::tzset();
  }
};

TEST_F(MomentTest, ATimeOfDayIsTheNextOne) {
  EXPECT_EQ(parse_moment("13:00", kNow).value(), kNow + kHour);
  EXPECT_EQ(parse_moment("12:00:01", kNow).value(), kNow + Millis(1'000));
  EXPECT_EQ(parse_moment("12:00", kNow).value(), kNow + 24 * kHour);
  EXPECT_EQ(parse_moment("8:30", kNow).value(), kNow + 20 * kHour + kHour / 2);
}

TEST_F(MomentTest, DaysAndDates) {
  EXPECT_EQ(parse_moment("tomorrow", kNow).value(), kNow + 12 * kHour);
  EXPECT_EQ(parse_moment("tomorrow 8:00", kNow).value(), kNow + 20 * kHour);
  EXPECT_EQ(parse_moment("2024-05-01", kNow).value(), kNow - 12 * kHour);
  EXPECT_EQ(parse_moment("2024-05-01 13:00", kNow).value(), kNow + kHour);
  EXPECT_EQ(parse_moment("2024-05-01T12:00:00.25Z", kNow).value(), kNow + Millis(250));
}

TEST_F(MomentTest, ZMeansUtcWhereverOneIs) {
  ::setenv("TZ", "XYZ-3", 1);  // three hours east
  ::tzset();
  EXPECT_EQ(parse_moment("2024-05-01 15:00", kNow).value(), kNow);
  EXPECT_EQ(parse_moment("2024-05-01T12:00Z", kNow).value(), kNow);
  EXPECT_EQ(parse_moment("15:30", kNow).value(), kNow + kHour / 2);
}

TEST_F(MomentTest, WhatIsWrittenIsReadAgain) {
  for (const Millis moment : {kNow, kNow + Millis(7), Millis(0), Millis(1'714'564'812'340)}) {
    EXPECT_EQ(parse_moment(exact_moment(moment), Millis(0)).value(), moment);
  }
  EXPECT_EQ(exact_moment(kNow), "2024-05-01T12:00:00Z");
}

TEST_F(MomentTest, AnythingElseIsAnError) {
  for (const char* text : {"", "soon", "25:00", "12", "12:30 tomorrow", "tomorrow12:30",
                           "2024-05-01 12:30:00.", "2024-05-01 12:30:00.x", "2h"}) {
    EXPECT_FALSE(parse_moment(text, kNow)) << text;
  }
}

}  // namespace
}  // namespace berth
