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
    out_.clear();
    EXPECT_TRUE(LogText::of(fd.get(), {})->copy(path, lines, sink()).has_value());
    return out_;
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

TEST_F(LogStreamTest, TheLogOfTheNextAttemptMayComeLaterThanTheAttempt) {
  LogFollower follower({}, {}, sink());
  const auto next = [](std::uint32_t) {};
  JobDetail detail;
  detail.job.state = JobState::running;
  detail.attempts = {attempt(10, 1, write("1", "first\n"))};
  ASSERT_TRUE(follower.look(detail, next).has_value());
  detail.attempts.push_back(attempt(11, 2, (dir_ / "2").string()));
  ASSERT_TRUE(follower.look(detail, next).has_value());
  ASSERT_TRUE(follower.drain().has_value());
  write("2", "second\n");
  ASSERT_TRUE(follower.drain().has_value());
  EXPECT_EQ(out_, "first\nsecond\n");
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

/// A supervisor's files, with a head of 4 bytes.
class LimitedLogTest : public LogStreamTest {
 protected:
  void tail_file(const std::string& name, std::uint64_t seq, std::uint64_t from,
                 const std::string& text) {
    fs::remove(dir_ / name);
    write(name, std::string(format_tail_header({seq, 4, from, kLogLimitMin}).view()) + text);
  }
  std::string whole(std::optional<std::uint64_t> lines = {}) {
    out_.clear();
    const Fd fd = std::move(*open_log(log_));
    const auto tails = open_tails(log_);
    EXPECT_TRUE(LogText::of(fd.get(), tails)->copy(log_, lines, sink()).has_value());
    return out_;
  }
  static std::string gap(std::uint64_t bytes) {
    return std::string(left_out_line(bytes, kLogLimitMin).view());
  }

  std::string log_ = write("log", "head");
};

TEST_F(LimitedLogTest, PartsAreReadAsOneText) {
  EXPECT_EQ(whole(), "head");
  tail_file("log.tail", 0, 4, "a\nb");
  EXPECT_EQ(whole(), "heada\nb") << "nothing is missing yet";
  EXPECT_EQ(whole(1), "b");
  EXPECT_EQ(whole(0), "");
  tail_file("log.tail.old", 4, 20, "c\nd\n");
  EXPECT_EQ(whole(), "head") << "parts that do not follow each other are not shown";
  tail_file("log.tail", 5, 24, "e\n");
  EXPECT_EQ(whole(), "head\n" + gap(16) + "c\nd\ne\n");
  EXPECT_EQ(whole(2), "d\ne\n");
  EXPECT_EQ(whole(4), gap(16) + "c\nd\ne\n");
  EXPECT_EQ(whole(5), "head\n" + gap(16) + "c\nd\ne\n");
  // Interrupted while it was put together: what is behind the head is not shown twice.
  write("log", "\n" + gap(16) + "c\n");
  EXPECT_EQ(whole(), "head\n" + gap(16) + "c\nd\ne\n");
  fs::remove(dir_ / "log.tail");
  EXPECT_EQ(whole(), "head\n" + gap(16) + "c\nd\n");
}

TEST_F(LimitedLogTest, ALaterPartWithoutTheOneBeforeMeansTheLogIsWhole) {
  write("log", "\n" + gap(16) + "c\nd\ne\n");
  tail_file("log.tail", 5, 24, "e\n");
  EXPECT_EQ(whole(), "head\n" + gap(16) + "c\nd\ne\n");
}

TEST_F(LimitedLogTest, SomebodyElsesFilesAreNoParts) {
  write("log.tail", "a file of the user's\n");
  write("log.tail.old", std::string(500, 'x'));
  EXPECT_EQ(whole(), "head");
}

TEST_F(LimitedLogTest, FollowingGoesOnThroughTheParts) {
  LogFollower follower({}, {}, sink());
  const auto next = [](std::uint32_t) {};
  JobDetail detail;
  detail.job.state = JobState::running;
  detail.attempts = {attempt(10, 1, log_)};
  ASSERT_TRUE(follower.look(detail, next).has_value());
  tail_file("log.tail", 0, 4, "aa");
  ASSERT_TRUE(follower.drain().has_value());
  EXPECT_EQ(out_, "headaa");
  write("log.tail", "a.");
  fs::rename(dir_ / "log.tail", dir_ / "log.tail.old");
  tail_file("log.tail", 1, 8, "bb");
  ASSERT_TRUE(follower.drain().has_value());
  EXPECT_EQ(out_, "headaaa.bb");
  // Two parts further since the last look.
  fs::remove(dir_ / "log.tail.old");
  tail_file("log.tail.old", 3, 16, "dddd");
  tail_file("log.tail", 4, 20, "e");
  ASSERT_TRUE(follower.drain().has_value());
  EXPECT_EQ(out_, "headaaa.bb\n" + gap(6) + "dddde");
  // The end: what came since is in the log alone.
  fs::remove(dir_ / "log.tail.old");
  fs::remove(dir_ / "log.tail");
  write("log", "\n" + gap(12) + "ddddeEND\n");
  detail.attempts[0].log_dropped = 12;
  detail.attempts[0].ended_at = Millis(5);
  detail.job.state = JobState::succeeded;
  ASSERT_TRUE(follower.look(detail, next).has_value());
  EXPECT_EQ(out_, "headaaa.bb\n" + gap(6) + "ddddeEND\n");
  EXPECT_TRUE(follower.over());
}

TEST_F(LimitedLogTest, FollowingFromTheLastLinesOn) {
  tail_file("log.tail.old", 1, 8, "a\nb\n");
  tail_file("log.tail", 2, 12, "c\n");
  LogFollower follower({}, 2, sink());
  JobDetail detail;
  detail.job.state = JobState::running;
  detail.attempts = {attempt(10, 1, log_)};
  ASSERT_TRUE(follower.look(detail, [](std::uint32_t) {}).has_value());
  write("log.tail", "d\n");
  ASSERT_TRUE(follower.drain().has_value());
  EXPECT_EQ(out_, "b\nc\nd\n");
}

TEST_F(LimitedLogTest, ALogPutTogetherBeforeTheTailWasSeenIsReadOn) {
  LogFollower follower({}, {}, sink());
  JobDetail detail;
  detail.job.state = JobState::running;
  detail.attempts = {attempt(10, 1, log_)};
  ASSERT_TRUE(follower.look(detail, [](std::uint32_t) {}).has_value());
  write("log", "\n" + gap(9) + "tail\n");
  detail.attempts[0].log_dropped = 9;
  detail.attempts[0].ended_at = Millis(5);
  detail.job.state = JobState::succeeded;
  ASSERT_TRUE(follower.look(detail, [](std::uint32_t) {}).has_value());
  EXPECT_EQ(out_, "head\n" + gap(9) + "tail\n");
}

}  // namespace
}  // namespace berth::cli
