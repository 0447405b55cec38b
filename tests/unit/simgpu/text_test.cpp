#include "simgpu/text.hpp"

#include <gtest/gtest.h>

namespace berth::simgpu {
namespace {

constexpr std::uint64_t kGib = 1ULL << 30U;

TEST(SimText, SizesHaveUnits) {
  EXPECT_EQ(parse_size("24GiB"), 24 * kGib);
  EXPECT_EQ(parse_size("1.5G"), 3 * kGib / 2);
  EXPECT_EQ(parse_size("512 MiB"), kGib / 2);
  EXPECT_EQ(parse_size("1024"), 1024U);
  for (const char* wrong : {"", "GiB", "-1GiB", "24 parrots", "1e999", "99999999999TiB"}) {
    EXPECT_FALSE(parse_size(wrong)) << wrong;
  }
}

TEST(SimText, TimesAreInSecondsUnlessTheySayOtherwise) {
  EXPECT_EQ(parse_milliseconds("0.5s"), 500U);
  EXPECT_EQ(parse_milliseconds("250ms"), 250U);
  EXPECT_EQ(parse_milliseconds("2"), 2000U);
  EXPECT_EQ(parse_milliseconds("1.5m"), 90'000U);
  EXPECT_FALSE(parse_milliseconds("soon"));
}

TEST(SimText, SpecListsTheCards) {
  EXPECT_EQ(parse_spec("8x24GiB")->size(), 8U);
  EXPECT_EQ(*parse_spec("2x24GiB,1x80GiB"),
            (std::vector<std::uint64_t>{24 * kGib, 24 * kGib, 80 * kGib}));
  for (const char* wrong : {"", "8", "x24GiB", "0x24GiB", "65x1GiB", "64x1GiB,1x1GiB", "1x0",
                            "1x24GiB,", ",1x24GiB", "99999999999x1GiB", "2x24GiBx"}) {
    EXPECT_FALSE(parse_spec(wrong)) << wrong;
  }
}

TEST(SimText, EqualCardsHaveOneSpelling) {
  for (const char* spelling : {"2x24GiB,1x80GiB", "1x24GiB,1x24GiB,1x80G", "2x24576MiB,1x80GiB"}) {
    EXPECT_EQ(format_spec(*parse_spec(spelling)), "2x24GiB,1x80GiB") << spelling;
  }
  EXPECT_EQ(format_spec({1500}), "1x1500");
}

TEST(SimText, SizesLookAsInPyTorch) {
  EXPECT_EQ(format_torch_size(20ULL << 20U), "20.00 MiB");
  EXPECT_EQ(format_torch_size(24 * kGib), "24.00 GiB");
  EXPECT_EQ(format_torch_size(0), "0 bytes");
  EXPECT_EQ(format_torch_size(1536), "1.50 KiB");
}

}  // namespace
}  // namespace berth::simgpu
