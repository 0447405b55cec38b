#include "access/rate_limit.hpp"

#include <gtest/gtest.h>

namespace berth {
namespace {

TEST(RateLimitTest, ABurstIsTakenAndThenOnlyTheRate) {
  RateLimit limit({.per_second = 10, .burst = 5, .addresses = 10});
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(limit.take("a", Millis(0)));
  }
  EXPECT_FALSE(limit.take("a", Millis(0)));
  EXPECT_FALSE(limit.take("a", Millis(99)));
  EXPECT_TRUE(limit.take("a", Millis(200)));
}

TEST(RateLimitTest, OneAddressDoesNotTakeFromAnother) {
  RateLimit limit({.per_second = 1, .burst = 1, .addresses = 10});
  EXPECT_TRUE(limit.take("a", Millis(0)));
  EXPECT_FALSE(limit.take("a", Millis(0)));
  EXPECT_TRUE(limit.take("b", Millis(0)));
}

TEST(RateLimitTest, WhatIsRememberedIsBounded) {
  RateLimit limit({.per_second = 1, .burst = 1, .addresses = 2});
  EXPECT_TRUE(limit.take("a", Millis(0)));
  EXPECT_TRUE(limit.take("b", Millis(0)));
  EXPECT_FALSE(limit.take("c", Millis(0)));
  EXPECT_TRUE(limit.take("c", Millis(2'000))) << "those before are forgotten by then";
}

TEST(RateLimitTest, RestingFillsNoMoreThanTheBurst) {
  RateLimit limit({.per_second = 1'000, .burst = 2, .addresses = 2});
  EXPECT_TRUE(limit.take("a", Millis(0)));
  EXPECT_TRUE(limit.take("a", Millis(60'000)));
  EXPECT_TRUE(limit.take("a", Millis(60'000)));
  EXPECT_FALSE(limit.take("a", Millis(60'000)));
}

}  // namespace
}  // namespace berth
