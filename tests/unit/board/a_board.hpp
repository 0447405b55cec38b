#pragma once
// A board of a test's own.

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "board/board.hpp"

namespace berth {

class BoardTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string made = "/tmp/berth-board-XXXXXX";
    ASSERT_NE(::mkdtemp(made.data()), nullptr);
    dir = made;
    ASSERT_EQ(::chmod(dir.c_str(), 01777), 0);
  }
  void TearDown() override { std::filesystem::remove_all(dir); }

  [[nodiscard]] BoardConfig config(const std::string& instance) {
    BoardConfig config;
    config.directory = dir;
    config.instance = instance;
    config.boot = "boot-1";
    config.uid = ::geteuid();
    config.now = [this] { return now; };
    return config;
  }
  std::unique_ptr<Board> open(const std::string& instance) {
    auto board = Board::open(config(instance));
    EXPECT_TRUE(board) << board.error().message;
    return board ? std::move(*board) : nullptr;
  }
  [[nodiscard]] BoardDirectory directory() const {
    auto opened = BoardDirectory::open(dir);
    EXPECT_TRUE(opened);
    return std::move(*opened);
  }
  /// What every reader sees.
  [[nodiscard]] std::vector<FoundEntry> seen() const {
    auto read = directory().read();
    EXPECT_TRUE(read);
    return read.value_or(std::vector<FoundEntry>{});
  }
  /// A place as another berth of this user would leave it. Nobody listens there.
  std::string put(const BoardEntry& entry) const {
    return put(board_place_name(entry.uid, entry.instance), encode_board_entry(entry));
  }
  std::string put(const std::string& name, const std::string& text) const {
    const std::string place = dir + "/" + name;
    ::mkdir(place.c_str(), 0755);
    std::ofstream(place + "/" + kBoardFile) << text;
    return place;
  }
  [[nodiscard]] BoardEntry entry_of(const std::string& instance, bool held,
                                    Millis since = Millis{0}) const {
    return {::geteuid(),
            instance,
            "boot-1",
            {{"GPU-0", AttemptId{1}, 0, since, held ? ClaimState::held : ClaimState::wanted}}};
  }

  std::string dir;
  Millis now{1'000'000};
  /// A look at the cards that begins now: nobody is there; a process of ours; nobody knows.
  [[nodiscard]] CardUsers idle() const {
    return {{"GPU-0", {std::set<std::uint32_t>{}, now}},
            {"GPU-1", {std::set<std::uint32_t>{}, now}}};
  }
  [[nodiscard]] CardUsers ours() const {
    return {{"GPU-0", {std::set<std::uint32_t>{::geteuid()}, now}}};
  }
  [[nodiscard]] CardUsers unknown() const { return {{"GPU-0", {std::nullopt, now}}}; }
};

}  // namespace berth
