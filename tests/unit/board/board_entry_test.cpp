#include "board/board_entry.hpp"

#include <gtest/gtest.h>

#include <random>

#include "base/crc32.hpp"
#include "fmt/format.h"

namespace berth {
namespace {

BoardEntry an_entry() {
  return {1000,
          "0123456789abcdef",
          "5f0b5e9a-1111",
          {{"GPU-aa", AttemptId{7}, 8 * kGiB, Millis{12'345}, ClaimState::held},
           {"MIG-GPU-bb/1/0", AttemptId{8}, 0, Millis{12'400}, ClaimState::wanted},
           {"GPU-cc", AttemptId{0}, 0, Millis{12'500}, ClaimState::waiting}}};
}

std::string summed(const std::string& text) {
  return text + fmt::format("*{:08x}\n", crc32(text));
}

TEST(BoardEntry, ComesBackAsItWas) {
  const auto back = decode_board_entry(encode_board_entry(an_entry()));
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(*back, an_entry());
}

TEST(BoardEntry, IsWrittenAsTheFormatSays) {
  EXPECT_EQ(encode_board_entry(an_entry()),
            summed("berth-claims 1\n"
                   "uid 1000\n"
                   "instance 0123456789abcdef\n"
                   "boot 5f0b5e9a-1111\n"
                   "claim GPU-aa held attempt=7 memory=8589934592 since=12345\n"
                   "claim MIG-GPU-bb/1/0 wanted attempt=8 memory=0 since=12400\n"
                   "claim GPU-cc waiting attempt=0 memory=0 since=12500\n"));
}

TEST(BoardEntry, LinesAndKeysOfLaterVersionsAreLeftOut) {
  const auto entry =
      decode_board_entry(summed("berth-claims 1\nuid 5\ninstance a\nboot b\nmood good\n"
                                "claim GPU-1 held since=3 colour=blue attempt=2 memory=1\n"));
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->claims,
            (std::vector<BoardClaim>{{"GPU-1", AttemptId{2}, 1, Millis{3}, ClaimState::held}}));
}

TEST(BoardEntry, EveryCutAndEveryFlippedBitIsNoticed) {
  const std::string good = encode_board_entry(an_entry());
  for (std::size_t size = 0; size < good.size(); ++size) {
    EXPECT_FALSE(decode_board_entry(std::string_view(good).substr(0, size))) << size;
  }
  for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
    std::string bad = good;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_FALSE(decode_board_entry(bad)) << bit;
  }
}

TEST(BoardEntry, WhatIsWellSummedButWrongIsRefused) {
  const std::string head = "berth-claims 1\nuid 5\ninstance a\nboot b\n";
  for (const std::string& text : {
           std::string(),
           std::string("berth-claims 2\nuid 5\ninstance a\nboot b\n"),
           std::string("berth-claims 1\ninstance a\nboot b\n"),
           std::string("berth-claims 1\nuid -5\ninstance a\nboot b\n"),
           std::string("berth-claims 1\nuid 5000000000\ninstance a\nboot b\n"),
           std::string("berth-claims 1\nuid 5\ninstance ../x\nboot b\n"),
           std::string("berth-claims 1\nuid 5\ninstance a\n"),
           head + "claim\n",
           head + "claim GPU-1\n",
           head + "claim GPU-1 perhaps\n",
           head + "claim GPU-1 held since=-1\n",
           head + "claim GPU-1 held since=99999999999999999999\n",
           head + "claim " + std::string(300, 'x') + " held\n",
           head + "claim GPU-\x01 held\n",
           head + "no newline",
           head + std::string(kBoardTextMax, 'x') + "\n",
       }) {
    EXPECT_FALSE(decode_board_entry(summed(text))) << text.substr(0, 100);
  }
}

TEST(BoardEntry, NoiseIsRefusedAndNothingWorse) {
  std::minstd_rand random{7};  // NOLINT: the same noise each time
  std::uniform_int_distribution<int> byte(0, 255);
  for (int turn = 0; turn < 2'000; ++turn) {
    std::string noise(static_cast<std::size_t>(turn % 200), '\0');
    for (char& c : noise) {
      c = static_cast<char>(byte(random));
    }
    EXPECT_FALSE(decode_board_entry(noise));
    const auto summed_noise = decode_board_entry(
        summed("berth-claims 1\nuid 5\ninstance a\nboot b\nclaim " + noise + "\n"));
    EXPECT_TRUE(!summed_noise || summed_noise->claims.size() <= 1);
  }
}

}  // namespace
}  // namespace berth
