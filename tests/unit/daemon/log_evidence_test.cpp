#include "daemon/log_evidence.hpp"

#include <sys/stat.h>

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>

#include "base/log_tail.hpp"

namespace berth {
namespace {

class LogEvidenceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "berth-log-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    dir_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(dir_); }

  std::string write(const std::string& name, const std::string& text) {
    std::ofstream(dir_ / name, std::ios::binary) << text;
    return (dir_ / name).string();
  }

  std::filesystem::path dir_;
};

TEST_F(LogEvidenceTest, AShortLogIsReadWhole) {
  EXPECT_EQ(read_log_end({write("log", "one\ntwo\n"), 0}), "one\ntwo\n");
}

TEST_F(LogEvidenceTest, WhatAnEarlierAttemptWroteIsLeftOut) {
  EXPECT_EQ(read_log_end({write("log", "one\ntwo\n"), 4}), "two\n");
}

TEST_F(LogEvidenceTest, ALogThatBeganAnewIsReadWhole) {
  EXPECT_EQ(read_log_end({write("log", "new\n"), 1000}), "new\n");
}

TEST_F(LogEvidenceTest, OfALongLogTheEndIsRead) {
  const std::string end = read_log_end({write("log", std::string(1 << 20, 'x') + "end"), 0});
  EXPECT_EQ(end.size(), kLogEvidenceSize);
  EXPECT_TRUE(end.ends_with("xend"));
}

TEST_F(LogEvidenceTest, TailsThatNobodyJoinedComeLast) {
  const std::string path = write("log", "head\n");
  write("log" + std::string(kOldTailSuffix), "older\n");
  write("log" + std::string(kTailSuffix), "newest\n");
  EXPECT_EQ(read_log_end({path, 0}), "older\nnewest\n");
}

TEST_F(LogEvidenceTest, WhatIsNoFileIsNothing) {
  EXPECT_EQ(read_log_end({(dir_ / "absent").string(), 0}), "");
  EXPECT_EQ(read_log_end({dir_.string(), 0}), "");
  ASSERT_EQ(::mkfifo((dir_ / "fifo").c_str(), 0600), 0);
  EXPECT_EQ(read_log_end({(dir_ / "fifo").string(), 0}), "");
}

TEST_F(LogEvidenceTest, ArrivesOnTheLoop) {
  Loop loop;
  LogEvidence evidence(loop, Millis(60'000));
  std::optional<std::string> got;
  evidence.read({.log = {write("log", "said\n"), 0}, .failed = true}, [&](FoundEvidence found) {
    got = std::move(found.log_end);
    loop.stop();
  });
  loop.run();
  EXPECT_EQ(got, "said\n");
}

TEST_F(LogEvidenceTest, AMountThatHangsHoldsUpNobody) {
  // It outlives the test if need be, as a thread in the kernel would.
  static std::atomic<bool> hangs{true};
  Loop loop;
  int told = 0;
  {
    LogEvidence evidence(loop, Millis(50), [](const EvidencePlaces& places) {
      if (places.log.path == "hangs") {
        hangs.wait(true);
      }
      return FoundEvidence{"text", {}};
    });
    constexpr int kReads = 40;  // more than threads are worth having
    for (int i = 0; i < kReads; ++i) {
      evidence.read({.log = {"hangs", 0}}, [&](const FoundEvidence& found) {
        EXPECT_EQ(found.log_end, "");
        if (++told == kReads) {
          loop.stop();
        }
      });
    }
    loop.run();
    EXPECT_EQ(told, kReads);
  }
  hangs = false;
  hangs.notify_all();
}

}  // namespace
}  // namespace berth
