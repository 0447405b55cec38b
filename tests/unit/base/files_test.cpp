#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/owned_file.hpp"
#include "base/whole_file.hpp"

namespace berth {
namespace {

namespace fs = std::filesystem;

class FilesTest : public ::testing::Test {
 protected:
  FilesTest() {
    std::string name = (fs::temp_directory_path() / "berth-files-XXXXXX").native();
    dir_ = fs::canonical(::mkdtemp(name.data()));
  }
  ~FilesTest() override { fs::remove_all(dir_); }

  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(dir_ / name) << text;
    return (dir_ / name).native();
  }
  [[nodiscard]] std::string path(const std::string& name) const { return (dir_ / name).native(); }

  static std::string content(const Result<Fd>& file) {
    if (!file) {
      return "error: " + file.error().message;
    }
    std::array<char, 100> buffer{};
    const ssize_t size = ::read(file->get(), buffer.data(), buffer.size());
    return {buffer.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0))};
  }

  fs::path dir_;
  uid_t me_ = ::getuid();
};

TEST_F(FilesTest, WhoeverHoldsALockForeverIsNotWaitedForForever) {
  const auto held = FileLock::take(path("a"));
  ASSERT_TRUE(held);
  const Fd other(::open(path("a.lock").c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_TRUE(other);
  EXPECT_EQ(lock_file(other, path("a.lock"), std::chrono::milliseconds(30)).error().code,
            ErrorCode::busy);
}

TEST_F(FilesTest, NobodyElseCanTakeALock) {
  write("a.lock", "");
  ASSERT_EQ(::chmod(path("a.lock").c_str(), 0644), 0);
  ASSERT_TRUE(FileLock::take(path("a")));
  EXPECT_EQ(fs::status(path("a.lock")).permissions(), fs::perms(0600));
}

TEST_F(FilesTest, AFileIsReadAndReplacedAsAWhole) {
  EXPECT_EQ(*read_whole(path("none"), 10), std::nullopt);
  EXPECT_EQ(*read_whole(path("none/deeper"), 10), std::nullopt);
  ASSERT_TRUE(replace_whole(path("a"), "one", 0600));
  EXPECT_EQ(*read_whole(path("a"), 3), "one");
  EXPECT_FALSE(read_whole(path("a"), 2));
  ASSERT_EQ(::chmod(path("a").c_str(), 0640), 0);
  ASSERT_TRUE(replace_whole(path("a"), "two"));
  EXPECT_EQ(*read_whole(path("a"), 3), "two");
  EXPECT_EQ(fs::status(path("a")).permissions(), fs::perms(0640));
  EXPECT_EQ(std::distance(fs::directory_iterator(dir_), fs::directory_iterator()), 1);
}

TEST_F(FilesTest, AFileThatWouldKeepUsWaitingIsNotRead) {
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  EXPECT_EQ(read_whole(path("pipe"), 10).error().code, ErrorCode::invalid);
  EXPECT_EQ(read_whole(dir_.native(), 10).error().code, ErrorCode::invalid);
  EXPECT_EQ(open_owned(path("pipe"), me_).error().code, ErrorCode::invalid);
}

TEST_F(FilesTest, ALinkIsReplacedAndNotWrittenThrough) {
  const std::string other = write("other", "theirs");
  fs::create_symlink(other, dir_ / "link");
  ASSERT_TRUE(replace_whole(path("link"), "ours"));
  EXPECT_EQ(*read_whole(other, 10), "theirs");
  EXPECT_FALSE(fs::is_symlink(path("link")));
}

TEST_F(FilesTest, WhatSeveralChangeUnderTheLockIsLostToNobody) {
  const std::string file = path("count");
  const auto count = [&] {
    for (int i = 0; i < 50; ++i) {
      const auto lock = FileLock::take(file);
      ASSERT_TRUE(lock);
      const int old = std::atoi(read_whole(file, 100)->value_or("0").c_str());
      ASSERT_TRUE(replace_whole(file, std::to_string(old + 1)));
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back(count);
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(*read_whole(file, 100), "200");
}

TEST_F(FilesTest, OnesOwnFileIsOpened) {
  const std::string file = write("log", "text");
  EXPECT_EQ(content(open_owned(file, me_)), "text");
  EXPECT_EQ(open_owned(path("none"), me_).error().code, ErrorCode::not_found);
  EXPECT_EQ(open_owned(path("log/deeper"), me_).error().code, ErrorCode::not_found);
  EXPECT_EQ(open_owned(dir_.native(), me_).error().code, ErrorCode::invalid);
  EXPECT_EQ(open_owned("log", me_).error().code, ErrorCode::invalid);
  EXPECT_EQ(open_owned(path("x/../log"), me_).error().code, ErrorCode::invalid);
}

TEST_F(FilesTest, OnesOwnLinksAreFollowed) {
  fs::create_directories(dir_ / "data" / "deep");
  write("data/log", "text");
  fs::create_directory_symlink("data", dir_ / "short");
  fs::create_symlink("../log", dir_ / "data" / "deep" / "up");
  fs::create_symlink(dir_ / "data" / "log", dir_ / "absolute");
  fs::create_symlink("./short/deep/up", dir_ / "long");
  EXPECT_EQ(content(open_owned(path("short/log"), me_)), "text");
  EXPECT_EQ(content(open_owned(path("short/deep/up"), me_)), "text");
  EXPECT_EQ(content(open_owned(path("absolute"), me_)), "text");
  EXPECT_EQ(content(open_owned(path("long"), me_)), "text");
  fs::create_symlink("round", dir_ / "round");
  EXPECT_EQ(open_owned(path("round"), me_).error().code, ErrorCode::refused);
}

TEST_F(FilesTest, FilesAndLinksOfOthersAreNot) {
  const std::string file = write("log", "text");
  const uid_t other = me_ + 1;
  EXPECT_EQ(open_owned(file, other).error().code, ErrorCode::refused);
  if (me_ != 0) {
    GTEST_SKIP() << "giving files away takes root";
  }
  constexpr uid_t kOwner = 1000;
  constexpr uid_t kStranger = 1001;
  ASSERT_EQ(::chown(file.c_str(), kOwner, kOwner), 0);
  fs::create_symlink(file, dir_ / "link");
  ASSERT_EQ(::lchown(path("link").c_str(), kStranger, kStranger), 0);
  EXPECT_EQ(content(open_owned(file, kOwner)), "text");
  EXPECT_EQ(open_owned(path("link"), kOwner).error().code, ErrorCode::refused);
  ASSERT_EQ(::lchown(path("link").c_str(), kOwner, kOwner), 0);
  EXPECT_EQ(content(open_owned(path("link"), kOwner)), "text");
}

}  // namespace
}  // namespace berth
