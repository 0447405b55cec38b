// Logs with a limit, written by a real supervisor: head and tail stay, byte for byte.

#include <fmt/format.h>
#include <sys/mount.h>

#include "base/log_tail.hpp"
#include "shim_fixture.hpp"

namespace berth::test {
namespace {

constexpr Bytes kLimit = 64 * kKiB;
constexpr Bytes kHead = kLimit / 2;
constexpr Bytes kPart = kLimit / 4;

class LogLimitTest : public ShimTest {
 protected:
  /// A job that writes these bytes by `how`, a command that reads them from "$IN".
  LaunchSpec writer(const std::string& bytes, const std::string& how = "cat \"$IN\"") {
    LaunchSpec job = shell(how);
    const std::string in = path("input" + std::to_string(job.attempt.value));
    std::ofstream(in, std::ios::binary) << bytes;
    job.environment.push_back("IN=" + in);
    job.log_limit = kLimit;
    return job;
  }

  static std::string bytes_of(std::size_t size) {
    std::string bytes(size, '\0');
    std::uint32_t x = 12345;
    for (char& c : bytes) {
      x = x * 1664525U + 1013904223U;
      c = static_cast<char>(x >> 24U);
    }
    return bytes;
  }
  static std::string lines_of(std::size_t size) {
    std::string text;
    for (int i = 0; text.size() < size; ++i) {
      text += fmt::format("line {}\n", i);
    }
    return text;
  }

  /// How much of the end stays: the part being written and the whole one before it.
  static std::size_t tail_size(std::size_t size) {
    const std::size_t rest = size - kHead;
    return rest <= 2 * kPart ? rest : kPart + (rest - 1) % kPart + 1;
  }

  static std::string expected(const std::string& bytes) {
    const std::size_t tail = tail_size(bytes.size());
    const std::size_t gone = bytes.size() - kHead - tail;
    return bytes.substr(0, kHead) + (bytes[kHead - 1] == '\n' ? "" : "\n") +
           std::string(left_out_line(gone, kLimit).view()) + bytes.substr(bytes.size() - tail);
  }

  static bool exists(const std::string& file) { return std::filesystem::exists(file); }
  static void expect_no_parts(const LaunchSpec& job) {
    EXPECT_FALSE(exists(job.log + ".tail"));
    EXPECT_FALSE(exists(job.log + ".tail.old"));
  }

  void expect_cut(const LaunchSpec& job, const std::string& bytes) {
    const Verdict verdict = run(job);
    EXPECT_EQ(verdict.failure, std::nullopt) << verdict.message;
    EXPECT_EQ(verdict.message, "");
    EXPECT_EQ(verdict.log_dropped, bytes.size() - kHead - tail_size(bytes.size()));
    EXPECT_TRUE(log_of(job) == expected(bytes)) << "the log differs";
    expect_no_parts(job);
  }
};

TEST_F(LogLimitTest, HeadAndTailOfBinaryOutputAreKept) {
  for (const std::size_t size : {1'000'000UL, 65'537UL, 16 * kPart, 16 * kPart + 1}) {
    SCOPED_TRACE(size);
    const std::string bytes = bytes_of(size);
    expect_cut(writer(bytes), bytes);
  }
}

TEST_F(LogLimitTest, WhatFitsIsWholeWhereverItsPartsWere) {
  for (const std::size_t size : {0UL, 1UL, kHead, kHead + 1, kHead + kPart + 1, kLimit}) {
    SCOPED_TRACE(size);
    const std::string bytes = bytes_of(size);
    const LaunchSpec job = writer(bytes);
    EXPECT_EQ(run(job).log_dropped, 0U);
    EXPECT_TRUE(log_of(job) == bytes);
    expect_no_parts(job);
  }
}

TEST_F(LogLimitTest, ManySmallWritesAreCutAlike) {
  const std::string text = lines_of(150'000);
  expect_cut(writer(text, "while read -r line; do echo \"$line\"; done < \"$IN\""), text);
}

TEST_F(LogLimitTest, OneHugeLineIsCutAlike) {
  const std::string text(3'000'000, 'z');
  expect_cut(writer(text), text);
}

TEST_F(LogLimitTest, ATinyLimitIsRaised) {
  const std::string bytes = bytes_of(200'000);
  LaunchSpec job = writer(bytes);
  job.log_limit = 1;
  expect_cut(job, bytes);
}

TEST_F(LogLimitTest, NeitherNoLimitNorALogOfTheUsersIsCut) {
  const std::string bytes = bytes_of(300'000);
  LaunchSpec unlimited = writer(bytes);
  unlimited.log_limit = 0;
  EXPECT_EQ(run(unlimited).log_dropped, 0U);
  EXPECT_TRUE(log_of(unlimited) == bytes);
  LaunchSpec named = writer(bytes);
  named.log_named_by_user = true;
  EXPECT_EQ(run(named).log_dropped, 0U);
  EXPECT_TRUE(log_of(named) == bytes);
  expect_no_parts(named);
}

TEST_F(LogLimitTest, AKilledSupervisorLeavesHeadAndTail) {
  const std::string bytes = bytes_of(kHead + 5 * kPart + 100);
  const LaunchSpec job = writer(bytes, "cat \"$IN\"; sleep 1000");
  const Shim shim = start(job);
  ASSERT_TRUE(eventually([&] { return slurp(job.log + ".tail").size() == kTailHeaderSize + 100; }));
  ASSERT_EQ(::kill(shim.pid, SIGKILL), 0);
  (void)finish(job.attempt, shim);
  EXPECT_TRUE(log_of(job) == bytes.substr(0, kHead));
  const std::string old = slurp(job.log + ".tail.old");
  const std::string tail = slurp(job.log + ".tail");
  TailHeader before;
  TailHeader last;
  ASSERT_TRUE(parse_tail_header(old, before) && parse_tail_header(tail, last));
  EXPECT_EQ(before.seq, 4U);
  EXPECT_EQ(last.seq, 5U);
  EXPECT_EQ(before.head, kHead);
  EXPECT_EQ(before.limit, kLimit);
  EXPECT_EQ(before.from, kHead + 4 * kPart);
  EXPECT_EQ(last.from, kHead + 5 * kPart);
  EXPECT_TRUE(old.substr(kTailHeaderSize) + tail.substr(kTailHeaderSize) ==
              bytes.substr(before.from));
}

TEST_F(LogLimitTest, KilledWhilePuttingTogetherItLosesNothing) {
  const std::string bytes = bytes_of(500'000);
  for (const char* point :
       {"shim_log_half_together", "shim_log_together", "shim_log_old_tail_gone"}) {
    SCOPED_TRACE(point);
    open_launcher({std::string("BERTH_CRASH_AT=") + point});
    const LaunchSpec job = writer(bytes);
    const Shim shim = start(job);
    (void)finish(job.attempt, shim);
    const std::string wanted = expected(bytes);
    const std::string log = log_of(job);
    EXPECT_TRUE(log.substr(0, kHead) == bytes.substr(0, kHead));
    if (exists(job.log + ".tail.old")) {
      const std::string old = slurp(job.log + ".tail.old");
      TailHeader before;
      ASSERT_TRUE(parse_tail_header(old, before));
      EXPECT_TRUE(old.substr(kTailHeaderSize) + slurp(job.log + ".tail").substr(kTailHeaderSize) ==
                  bytes.substr(before.from));
    } else {
      EXPECT_TRUE(log == wanted);
    }
  }
}

TEST_F(LogLimitTest, WithoutRoomToPutItTogetherTheTailStaysBesideIt) {
  const std::string small = path("small");
  std::filesystem::create_directory(small);
  // Enough for the head and both parts of the tail, not for a copy of one.
  if (::mount("tmpfs", small.c_str(), "tmpfs", 0, "size=80k") != 0) {
    GTEST_SKIP() << "mounting a small file system needs root";
  }
  const std::string bytes = bytes_of(kHead + 4 * kPart);
  LaunchSpec job = writer(bytes);
  job.log = small + "/log";
  const Verdict verdict = run(job);
  const std::string log = log_of(job);
  const std::string old = slurp(job.log + ".tail.old");
  const std::string tail = slurp(job.log + ".tail");
  ::umount(small.c_str());
  EXPECT_EQ(verdict.failure, std::nullopt);
  EXPECT_EQ(verdict.message, "");
  EXPECT_EQ(verdict.log_dropped, 2 * kPart);
  EXPECT_TRUE(log == bytes.substr(0, kHead));
  TailHeader before;
  ASSERT_TRUE(parse_tail_header(old, before));
  EXPECT_EQ(before.from - before.head, verdict.log_dropped);
  ASSERT_GT(tail.size(), kTailHeaderSize);
  EXPECT_TRUE(old.substr(kTailHeaderSize) + tail.substr(kTailHeaderSize) ==
              bytes.substr(before.from));
}

TEST(LogTailTest, HeadersAreReadBackAndNothingElseIsTaken) {
  const TailHeader header{7, kHead, 123456789012345ULL, ~0ULL};
  const std::string text(format_tail_header(header).view());
  TailHeader read;
  ASSERT_TRUE(parse_tail_header(text + "data", read));
  EXPECT_EQ(read.seq, 7U);
  EXPECT_EQ(read.head, kHead);
  EXPECT_EQ(read.from, 123456789012345ULL);
  EXPECT_EQ(read.limit, ~0ULL);
  for (std::size_t size = 0; size < text.size(); ++size) {
    EXPECT_FALSE(parse_tail_header(std::string_view(text).substr(0, size), read));
    std::string bent = text;
    bent[size] = 'x';
    EXPECT_FALSE(parse_tail_header(bent, read)) << size;
  }
}

TEST(LogTailTest, TheLineNamesTheLimitAsItIsSet) {
  EXPECT_EQ(left_out_line(5, kGiB).view(), "[berth: 5 bytes left out here, log_limit is 1GiB]\n");
  EXPECT_EQ(left_out_line(0, 1536 * kKiB).view(),
            "[berth: 0 bytes left out here, log_limit is 1536KiB]\n");
  EXPECT_EQ(left_out_line(1, 70'001).view(),
            "[berth: 1 bytes left out here, log_limit is 70001]\n");
}

}  // namespace
}  // namespace berth::test
