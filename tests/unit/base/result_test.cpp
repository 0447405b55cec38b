#include "base/result.hpp"

#include <cerrno>
#include <memory>
#include <utility>

#include <gtest/gtest.h>

#include "base/fd.hpp"

#include <fcntl.h>

namespace berth {
namespace {

Result<int> half(int number) {
  if (number % 2 != 0) {
    return fail(ErrorCode::invalid, "odd");
  }
  return number / 2;
}

Result<int> quarter(int number) {
  TRY_ASSIGN(const int once, half(number));
  TRY_ASSIGN(const int twice, half(once));
  return twice;
}

Status check_even(int number) {
  TRY(half(number));
  return {};
}

TEST(ResultTest, TryPassesValuesOnAndErrorsUp) {
  EXPECT_EQ(quarter(8).value(), 2);
  ASSERT_FALSE(quarter(6));
  EXPECT_EQ(quarter(6).error().message, "odd");
  EXPECT_TRUE(check_even(2));
  EXPECT_FALSE(check_even(3));
}

TEST(ResultTest, TryAssignMovesWhatCannotBeCopied) {
  const auto make = []() -> Result<std::unique_ptr<int>> { return std::make_unique<int>(7); };
  const auto use = [&]() -> Result<int> {
    TRY_ASSIGN(const auto owned, make());
    return *owned;
  };
  EXPECT_EQ(use().value(), 7);
}

TEST(ResultTest, ErrnoBecomesAMessageAndAFullDiskItsOwnCode) {
  const Error missing = fail_errno("cannot open 'x'", ENOENT).error();
  EXPECT_EQ(missing.code, ErrorCode::io);
  EXPECT_EQ(missing.message, "cannot open 'x': No such file or directory");
  EXPECT_FALSE(missing.retryable());
  EXPECT_EQ(fail_errno("w", ENOSPC).error().code, ErrorCode::no_space);
  EXPECT_EQ(fail_errno("w", EDQUOT).error().code, ErrorCode::no_space);
  EXPECT_TRUE(fail_errno("w", ENOSPC).error().retryable());
}

bool is_open(int fd) {
  return ::fcntl(fd, F_GETFD) != -1;
}

TEST(FdTest, ClosesItselfOnceAndOnlyWhatItOwns) {
  Fd first(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  ASSERT_TRUE(first);
  const int raw = first.get();
  {
    const Fd second = std::move(first);
    EXPECT_EQ(second.get(), raw);
    EXPECT_TRUE(is_open(raw));
  }
  EXPECT_FALSE(is_open(raw));
  EXPECT_FALSE(first);  // NOLINT(bugprone-use-after-move): a moved-from Fd is empty, by contract

  Fd third(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const int kept = third.release();
  third.reset();
  EXPECT_TRUE(is_open(kept));
  ::close(kept);
}

}  // namespace
}  // namespace berth
