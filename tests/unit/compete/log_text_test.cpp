#include "compete/log_text.hpp"

#include <fcntl.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "temporary_directory.hpp"

namespace berth::compete {
namespace {

class LogTextTest : public ::testing::Test {
 protected:
  LogText read(const std::string& text, const LogPiece& piece) {
    const std::string path = dir_.write("log", text);
    const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    auto log = read_log(file, path, piece);
    EXPECT_TRUE(log) << log.error().message;
    return log.value_or(LogText{});
  }
  static LogPiece tail(std::uint64_t lines) { return {.tail = lines, .offset = {}}; }
  static LogPiece from(std::uint64_t offset, std::uint64_t limit) {
    return {.offset = offset, .limit = limit};
  }

  TemporaryDirectory dir_;
};

TEST_F(LogTextTest, GivesTheLastLines) {
  const std::string text = "one\ntwo\nthree\nfour\n";
  EXPECT_EQ(read(text, tail(2)).content, "three\nfour\n");
  EXPECT_EQ(read(text, tail(4)).content, text);
  EXPECT_EQ(read(text, tail(100)).content, text);
  EXPECT_EQ(read(text, tail(0)).content, "");
  EXPECT_EQ(read("one\ntwo", tail(1)).content, "two");
  EXPECT_EQ(read("", tail(5)).content, "");
  const LogText log = read(text, tail(2));
  EXPECT_EQ(log.offset, 8U);
  EXPECT_EQ(log.next, 19U);
  EXPECT_EQ(log.size, 19U);
  EXPECT_EQ(log.total_lines, 4U);
  EXPECT_EQ(read("a\nb", tail(1)).total_lines, 2U);
}

TEST_F(LogTextTest, GivesTheLastLinesOfALongOne) {
  std::string text;
  for (int i = 0; i < 50'000; ++i) {
    text += fmt::format("line {}\n", i);
  }
  EXPECT_EQ(read(text, tail(1)).content, "line 49999\n");
  const LogText many = read(text, tail(20'000));
  EXPECT_TRUE(many.content.starts_with("line 30000\n"));
  EXPECT_EQ(many.total_lines, 50'000U);
  LogPiece short_one = tail(20'000);
  short_one.limit = 1'000;
  EXPECT_EQ(read(text, short_one).content.size(), 1'000U);
}

TEST_F(LogTextTest, GivesBytesAndWhereToGoOn) {
  const std::string text = "0123456789";
  EXPECT_EQ(read(text, from(3, 4)).content, "3456");
  EXPECT_EQ(read(text, from(3, 4)).next, 7U);
  EXPECT_EQ(read(text, from(7, 100)).content, "789");
  EXPECT_EQ(read(text, from(10, 100)).content, "");
  EXPECT_EQ(read(text, from(99, 100)).next, 10U);
}

TEST_F(LogTextTest, ACharacterIsNeverCutInTwo) {
  const std::string text = "ab你好";
  std::string all;
  std::uint64_t at = 0;
  while (at < text.size()) {
    const LogText piece = read(text, from(at, 4));
    ASSERT_GT(piece.next, at);
    all += piece.content;
    at = piece.next;
  }
  EXPECT_EQ(all, text);
  EXPECT_EQ(read("a\xFF\n", tail(1)).content, "a\uFFFD\n");
}

}  // namespace
}  // namespace berth::compete
