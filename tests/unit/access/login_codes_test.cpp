#include "access/login_codes.hpp"

#include <gtest/gtest.h>

#include "api/access.hpp"

namespace berth {
namespace {

TEST(LoginCodesTest, ACodeIsGoodOnce) {
  LoginCodes codes;
  const std::string code = codes.issue(Millis(0));
  EXPECT_TRUE(codes.redeem(code, Millis(1)));
  EXPECT_FALSE(codes.redeem(code, Millis(1)));
}

TEST(LoginCodesTest, ACodeSaysWhatTheBrowserMayDo) {
  LoginCodes codes;
  const std::string all = codes.issue(Millis(0));
  const std::string look = codes.issue(Millis(0), "read");
  EXPECT_EQ(codes.redeem(look, Millis(1)), "read");
  EXPECT_EQ(codes.redeem(all, Millis(1)), "full");
}

TEST(LoginCodesTest, ACodeIsGoodForAFewMinutes) {
  LoginCodes codes;
  const std::string code = codes.issue(Millis(0));
  EXPECT_FALSE(codes.redeem(code, kLoginTime));
}

TEST(LoginCodesTest, SeveralMayBeOut) {
  LoginCodes codes;
  const std::string one = codes.issue(Millis(0));
  const std::string two = codes.issue(Millis(0));
  EXPECT_TRUE(codes.redeem(two, Millis(1)));
  EXPECT_TRUE(codes.redeem(one, Millis(1)));
}

TEST(LoginCodesTest, GuessingDoesNotLockOutWhoHasTheRightOne) {
  LoginCodes codes;
  const std::string code = codes.issue(Millis(0));
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(codes.redeem("guess", Millis(1)));
  }
  EXPECT_TRUE(codes.redeem(code, Millis(1)));
}

TEST(LoginCodesTest, OfManyTheOldestGo) {
  LoginCodes codes;
  const std::string first = codes.issue(Millis(0));
  std::string last;
  for (int i = 0; i < 100; ++i) {
    last = codes.issue(Millis(0));
  }
  EXPECT_FALSE(codes.redeem(first, Millis(1)));
  EXPECT_TRUE(codes.redeem(last, Millis(1)));
}

}  // namespace
}  // namespace berth
