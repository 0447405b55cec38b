#include "daemon/attempt_log.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "daemon/log_routes.hpp"

namespace berth {
namespace {

namespace fs = std::filesystem;

class AttemptLogTest : public testing::Test {
 protected:
  AttemptLogTest() {
    char name[] = "/tmp/berth-log-XXXXXX";
    dir_ = fs::canonical(::mkdtemp(name));
  }
  ~AttemptLogTest() override { fs::remove_all(dir_); }

  void write(const std::string& name, const std::string& text) const {
    std::ofstream(dir_ / name, std::ios::binary) << text;
  }
  void write_tail(const std::string& name, const TailHeader& header,
                  const std::string& text) const {
    write(name, std::string(format_tail_header(header).view()) + text);
  }
  [[nodiscard]] std::string path() const { return dir_ / "a.log"; }
  [[nodiscard]] ShownFiles mine() const {
    return {::getuid(), dir_ / "instance", dir_ / "instance/logs"};
  }
  [[nodiscard]] ShownFiles others() const { return {::getuid() + 1, mine().dir, mine().logs}; }

  fs::path dir_;
};

TEST_F(AttemptLogTest, NeitherFollowsALinkInItsPlaceNorOpensAPipe) {
  write("secret", "text");
  fs::create_symlink(dir_ / "secret", path());
  EXPECT_EQ(AttemptLog::open(path(), mine()).error().code, ErrorCode::refused);
  LogTailer tailer(path(), mine(), 0);
  EXPECT_EQ(tailer.read(100, {}).error().code, ErrorCode::refused);
  fs::remove(path());
  ASSERT_EQ(::mkfifo(path().c_str(), 0600), 0);
  EXPECT_FALSE(AttemptLog::open(path(), mine()));
}

TEST_F(AttemptLogTest, WhatTheInstanceKeepsIsNoLogWhicheverWayLeadsThere) {
  fs::create_directories(dir_ / "instance/logs");
  write("instance/access.json", "hashes");
  write("instance/logs/1.log", "text");
  fs::create_symlink("instance", dir_ / "way");
  fs::create_symlink("instance/access.json", dir_ / "b.log");
  for (const char* name : {"instance/access.json", "way/access.json", "b.log"}) {
    EXPECT_EQ(mine().open(dir_ / name, EndLink::follow).error().code, ErrorCode::refused) << name;
  }
  EXPECT_EQ(AttemptLog::open(dir_ / "way/access.json", mine()).error().code, ErrorCode::refused);
  EXPECT_EQ(mine().open("/proc/self/environ", EndLink::follow).error().code, ErrorCode::refused);
  EXPECT_TRUE(mine().open(dir_ / "instance/logs/1.log", EndLink::refuse));
  EXPECT_TRUE(mine().open(dir_ / "way/logs/1.log", EndLink::refuse));
  fs::create_directories(dir_ / "instance/snapshots/key/tree");
  write("instance/snapshots/key/tree/1.log", "text");
  EXPECT_TRUE(mine().open(dir_ / "instance/snapshots/key/tree/1.log", EndLink::refuse));
  fs::create_directory_symlink(dir_ / "instance", dir_ / "moved");
  const ShownFiles linked{::getuid(), dir_ / "moved", dir_ / "moved/logs"};
  EXPECT_EQ(linked.open(dir_ / "instance/access.json", EndLink::follow).error().code,
            ErrorCode::refused);
  EXPECT_TRUE(linked.open(dir_ / "moved/logs/1.log", EndLink::refuse));
}

TEST_F(AttemptLogTest, AFileOfAnotherUserIsNotRead) {
  write("a.log", "text");
  EXPECT_EQ(AttemptLog::open(path(), others()).error().code, ErrorCode::refused);
}

TEST_F(AttemptLogTest, LinksOnTheWayAreTheUsersOwn) {
  fs::create_directory(dir_ / "data");
  write("data/a.log", "text");
  fs::create_symlink("data", dir_ / "way");
  EXPECT_TRUE(AttemptLog::open(dir_ / "way/a.log", mine()));
  if (::getuid() == 0) {
    ASSERT_EQ(::lchown((dir_ / "way").c_str(), 4242, 4242), 0);
    EXPECT_EQ(AttemptLog::open(dir_ / "way/a.log", mine()).error().code, ErrorCode::refused);
  }
}

TEST_F(AttemptLogTest, ReadsAnyPartOfALog) {
  write("a.log", "0123456789");
  const auto log = AttemptLog::open(path(), mine());
  ASSERT_TRUE(log);
  EXPECT_EQ(log->size(), 10U);
  EXPECT_EQ(*log->read(0, 100), "0123456789");
  EXPECT_EQ(*log->read(3, 4), "3456");
  EXPECT_EQ(*log->read(10, 4), "");
  write("a.log", "0123456789ab");
  EXPECT_NE(AttemptLog::open(path(), mine())->tag(), log->tag());
}

TEST_F(AttemptLogTest, ALogThatHasOutgrownItsLimitIsOneText) {
  write("a.log", "head");
  write_tail("a.log.tail.old", {3, 4, 100, 64 * 1024}, "old-");
  write_tail("a.log.tail", {4, 4, 104, 64 * 1024}, "new\n");
  const auto log = AttemptLog::open(path(), mine());
  ASSERT_TRUE(log);
  const std::string expected =
      "head\n[berth: 96 bytes left out here, log_limit is 64KiB]\nold-new\n";
  EXPECT_EQ(*log->read(0, 1000), expected);
  EXPECT_EQ(log->size(), expected.size());
  EXPECT_EQ(*log->read(2, 6), expected.substr(2, 6));
  EXPECT_EQ(*log->read(expected.size() - 5, 100), "-new\n");
}

TEST_F(AttemptLogTest, FindsTheLastLines) {
  write("a.log", "one\ntwo\nthree\n");
  const auto log = AttemptLog::open(path(), mine());
  ASSERT_TRUE(log);
  EXPECT_EQ(*log->last_lines(0), 14U);
  EXPECT_EQ(*log->last_lines(1), 8U);
  EXPECT_EQ(*log->last_lines(2), 4U);
  EXPECT_EQ(*log->last_lines(9), 0U);
  write("a.log", "one\ntwo");
  EXPECT_EQ(*AttemptLog::open(path(), mine())->last_lines(1), 4U);
  const std::string block(300 * 1024, 'x');
  write("a.log", "first\n" + block + "\nlast\n");
  EXPECT_EQ(*AttemptLog::open(path(), mine())->last_lines(2), 6U);
}

TEST_F(AttemptLogTest, FollowsFromTheLastLinesOn) {
  LogTailer early(path(), mine(), 0);
  ASSERT_TRUE(early.skip_to_last(1, {})) << "it is not there yet";
  write("a.log", "one\ntwo\nthree\n");
  EXPECT_EQ(early.read(100, {})->text, "one\ntwo\nthree\n") << "all of it is new";
  LogTailer tailer(path(), mine(), 0);
  ASSERT_TRUE(tailer.skip_to_last(2, {}));
  EXPECT_EQ(tailer.read(100, {})->text, "two\nthree\n");
  LogTailer none(path(), mine(), 0);
  ASSERT_TRUE(none.skip_to_last(0, {}));
  EXPECT_EQ(none.read(100, {})->text, "");
  write_tail("a.log.tail", {0, 14, 100, 64 * 1024}, "four\nfive\n");
  LogTailer beyond(path(), mine(), 0);
  ASSERT_TRUE(beyond.skip_to_last(1, {}));
  EXPECT_EQ(beyond.read(100, {})->text, "five\n");
}

TEST_F(AttemptLogTest, FollowsALogThatIsNotThereYetAndGrows) {
  LogTailer tailer(path(), mine(), 0);
  EXPECT_EQ(tailer.read(100, {})->text, "");
  write("a.log", "one\n");
  auto piece = tailer.read(100, {});
  EXPECT_EQ(piece->text, "one\n");
  EXPECT_EQ(piece->at, 4U);
  write("a.log", "one\ntwo\n");
  piece = tailer.read(2, {});
  EXPECT_EQ(piece->text, "tw");
  EXPECT_TRUE(piece->more);
  EXPECT_EQ(tailer.read(100, {})->text, "o\n");
  EXPECT_FALSE(tailer.read(100, 0)->more);
  EXPECT_EQ(LogTailer(path(), mine(), 4).read(100, 0)->text, "two\n");
}

TEST_F(AttemptLogTest, FollowsBeyondTheLimitAndToTheEnd) {
  constexpr std::uint64_t kLimit = 64UL * 1024;
  const std::string head(kLimit / 2, 'h');
  write("a.log", head);
  LogTailer tailer(path(), mine(), kLimit / 2 - 3);
  EXPECT_EQ(tailer.read(100, {})->text, "hhh");
  write_tail("a.log.tail", {0, kLimit / 2, kLimit / 2 + 50, kLimit}, "tail");
  auto piece = tailer.read(1000, {});
  EXPECT_EQ(piece->text, "\n[berth: 50 bytes left out here, log_limit is 64KiB]\ntail");
  EXPECT_EQ(piece->at, kLimit / 2 + 54);
  // The supervisor has put it together, with two more bytes at the end.
  fs::remove(dir_ / "a.log.tail");
  write("a.log", head + std::string(left_out_line(50, kLimit).view()) + "tail!\n");
  EXPECT_EQ(tailer.read(1000, 50)->text, "!\n");
  EXPECT_EQ(tailer.read(1000, 50)->text, "");
}

TEST(ByteRangeTest, UnderstandsWhatBrowsersAskFor) {
  EXPECT_EQ(**parse_range("bytes=0-4", 10), (ByteRange{0, 4}));
  EXPECT_EQ(**parse_range("bytes=5-", 10), (ByteRange{5, 9}));
  EXPECT_EQ(**parse_range("bytes=5-100", 10), (ByteRange{5, 9}));
  EXPECT_EQ(**parse_range("bytes=-3", 10), (ByteRange{7, 9}));
  EXPECT_EQ(**parse_range("bytes=-30", 10), (ByteRange{0, 9}));
  for (const auto* all : {"", "lines=1-2", "bytes=1-2,4-5", "bytes=x-2", "bytes=4-2", "bytes=-",
                          "bytes=1-y", "bytes=", "bytes=--1"}) {
    EXPECT_EQ(*parse_range(all, 10), std::nullopt) << all;
  }
  EXPECT_FALSE(parse_range("bytes=10-", 10));
  EXPECT_FALSE(parse_range("bytes=0-0", 0));
  EXPECT_FALSE(parse_range("bytes=-0", 10));
}

}  // namespace
}  // namespace berth
