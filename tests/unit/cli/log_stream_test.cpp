#include "cli/log_stream.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace berth::cli {
namespace {

namespace fs = std::filesystem;

class LogStreamTest : public ::testing::Test {
 protected:
  LogStreamTest() {
    std::string name = (fs::temp_directory_path() / "berth-log-XXXXXX").native();
    dir_ = ::mkdtemp(name.data());
  }
  ~LogStreamTest() override { fs::remove_all(dir_); }

  std::string write(const std::string& name, const std::string& text) {
    const std::string path = dir_ / name;
    std::ofstream(path, std::ios::app | std::ios::binary) << text;
    return path;
  }

  std::string tail(const std::string& text, std::uint64_t lines) {
    const std::string path = dir_ / "tail";
    std::ofstream(path, std::ios::binary) << text;
    const Fd fd = std::move(*open_log(path));
    return text.substr(*tail_offset(fd.get(), lines));
  }

  LogSink sink() {
    return [this](std::string_view text) { out_ += text; };
  }

  static AttemptView attempt(std::uint64_t id, std::uint32_t number, const std::string& log) {
    AttemptView view;
    view.id = id;
    view.number = number;
    view.log = log;
    return view;
  }

  fs::path dir_;
  std::string out_;
};

TEST_F(LogStreamTest, TheTailIsCountedFromTheEnd) {
  EXPECT_EQ(tail("a\nb\nc\n", 2), "b\nc\n");
  EXPECT_EQ(tail("a\nb\nc", 2), "b\nc");
  EXPECT_EQ(tail("a\nb\nc\n", 9), "a\nb\nc\n");
  EXPECT_EQ(tail("a\nb\n", 0), "");
  EXPECT_EQ(tail("", 3), "");
  EXPECT_EQ(tail("\n\n\n", 2), "\n\n");
  // Over the blocks in which it is read.
  std::string large;
  for (int i = 0; i < 40'000; ++i) {
    large += std::to_string(i) + "\n";
  }
  EXPECT_EQ(tail(large, 1), "39999\n");
  EXPECT_EQ(tail(large, 30'000).substr(0, 6), "10000\n");
}

TEST_F(LogStreamTest, LinesGetTheirPrefixWhole) {
  PrefixedLines lines("x | ", sink());
  lines.feed("on");
  EXPECT_EQ(out_, "");
  lines.feed("e\ntwo\n\nthr");
  EXPECT_EQ(out_, "x | one\nx | two\nx | \n");
  lines.feed("ee");
  lines.finish();
  lines.finish();
  EXPECT_EQ(out_, "x | one\nx | two\nx | \nx | three\n");
}

TEST_F(LogStreamTest, OfAProgressBarTheLastStateIsKept) {
  PrefixedLines lines("x | ", sink());
  lines.feed("10%\r50%\r100%\ndos line\r\n");
  EXPECT_EQ(out_, "x | 100%\nx | dos line\n");
}

TEST_F(LogStreamTest, NoAttemptIsLeftOutWhileFollowing) {
  LogFollower follower({}, {}, sink());
  std::vector<std::uint32_t> begun;
  const auto next = [&](std::uint32_t number) { begun.push_back(number); };
  JobDetail detail;
  detail.job.state = JobState::running;
  ASSERT_TRUE(follower.look(detail, next).has_value());  // nothing has started
  detail.attempts = {attempt(10, 1, write("1", "first "))};
  ASSERT_TRUE(follower.look(detail, next).has_value());
  write("1", "and more\n");
  ASSERT_TRUE(follower.drain().has_value());
  EXPECT_EQ(out_, "first and more\n");
  // Two have come and gone since the last look, and the first wrote a last word.
  write("1", "last word\n");
  detail.attempts.push_back(attempt(11, 2, write("2", "second\n")));
  detail.attempts.push_back(attempt(12, 3, write("3", "third\n")));
  detail.job.state = JobState::succeeded;
  ASSERT_TRUE(follower.look(detail, next).has_value());
  EXPECT_EQ(out_, "first and more\nlast word\nsecond\nthird\n");
  EXPECT_EQ(begun, (std::vector<std::uint32_t>{2, 3}));
  EXPECT_TRUE(follower.over());
}

TEST_F(LogStreamTest, ALogTheUserNamedGoesOnWhereItWas) {
  LogFollower follower({}, {}, sink());
  const auto next = [](std::uint32_t) {};
  JobDetail detail;
  detail.job.state = JobState::running;
  const std::string path = write("own", "one\n");
  detail.attempts = {attempt(10, 1, path)};
  ASSERT_TRUE(follower.look(detail, next).has_value());
  write("own", "two\n");
  detail.attempts.push_back(attempt(11, 2, path));
  ASSERT_TRUE(follower.look(detail, next).has_value());
  EXPECT_EQ(out_, "one\ntwo\n");
}

TEST_F(LogStreamTest, OneAttemptAloneIsOverWhenItHasEnded) {
  LogFollower follower(1, 1, sink());
  JobDetail detail;
  detail.job.state = JobState::running;
  detail.attempts = {attempt(10, 1, write("1", "a\nb\n")), attempt(11, 2, write("2", "x\n"))};
  detail.attempts[0].ended_at = Millis(5);
  ASSERT_TRUE(follower.look(detail, [](std::uint32_t) {}).has_value());
  EXPECT_EQ(out_, "b\n");
  EXPECT_TRUE(follower.over());
}

TEST_F(LogStreamTest, AFollowFromTheLastAttemptOn) {
  LogFollower follower({}, {}, sink());
  JobDetail detail;
  detail.job.state = JobState::running;
  detail.attempts = {attempt(10, 1, write("1", "old\n")), attempt(11, 2, write("2", "new\n"))};
  ASSERT_TRUE(follower.look(detail, [](std::uint32_t) {}).has_value());
  EXPECT_EQ(out_, "new\n");
}

}  // namespace
}  // namespace berth::cli
