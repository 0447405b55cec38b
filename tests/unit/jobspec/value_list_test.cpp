#include "jobspec/value_list.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace berth {
namespace {

std::string expanded(std::string_view text) {
  const auto values = expand_values(text);
  return values ? fmt::format("{}", fmt::join(*values, " ")) : "! " + values.error().message;
}

TEST(ValueList, RangesHaveBothEnds) {
  EXPECT_EQ(expanded("1..3"), "1 2 3");
  EXPECT_EQ(expanded("0..10..2"), "0 2 4 6 8 10");
  EXPECT_EQ(expanded("01..03"), "01 02 03");
  EXPECT_EQ(expanded("008..10"), "008 009 010");
  EXPECT_EQ(expanded("9..11"), "9 10 11");
  EXPECT_EQ(expanded("0..10..4"), "0 4 8");
  EXPECT_EQ(expanded("3..1"), "3 2 1");
  EXPECT_EQ(expanded("3..-3..-2"), "3 1 -1 -3");
  EXPECT_EQ(expanded("0..1..0.25"), "0 0.25 0.5 0.75 1");
  EXPECT_EQ(expanded("0..0.3..0.1"), "0 0.1 0.2 0.3");
  EXPECT_EQ(expanded("-9223372036854775808..-9223372036854775806"),
            "-9223372036854775808 -9223372036854775807 -9223372036854775806");
}

TEST(ValueList, ScalesGoEvenlyFromEndToEnd) {
  EXPECT_EQ(expanded("linear(0, 1, 5)"), "0 0.25 0.5 0.75 1");
  EXPECT_EQ(expanded("linear(0,1,11)"), "0 0.1 0.2 0.3 0.4 0.5 0.6 0.7 0.8 0.9 1");
  EXPECT_EQ(expanded("log(1e-5, 1e-1, 5)"), "1e-05 0.0001 0.001 0.01 0.1");
  EXPECT_EQ(expanded("log(8, 1, 4)"), "8 4 2 1");
}

TEST(ValueList, OtherTextsAreThemselves) {
  EXPECT_EQ(expanded("1e-3,1e-4"), "1e-3 1e-4");
  EXPECT_EQ(expanded("0.10"), "0.10");
  EXPECT_EQ(expanded("1..3, 7,../data"), "1 2 3 7 ../data");
  EXPECT_EQ(expanded("f(1,2),x"), "f(1,2) x");
  EXPECT_FALSE(is_value_list("0.1"));
  EXPECT_FALSE(is_value_list("../data"));
  EXPECT_TRUE(is_value_list("a,b"));
  EXPECT_TRUE(is_value_list("1..x"));
}

TEST(ValueList, WhatIsWrongIsNamed) {
  EXPECT_EQ(expanded("1..x"),
            "! '1..x' is not a range; write 1..3, or 0..10..2 for every second number");
  EXPECT_EQ(expanded("0.1..0.5"),
            "! '0.1..0.5' has a step of 1, which is more than the whole range; write for example "
            "0..1..0.25, or linear(0, 1, 5)");
  EXPECT_TRUE(expanded("1..5..10").starts_with("! '1..5..10' has a step of 10"));
  EXPECT_EQ(expanded("2..2"), "2");
  EXPECT_EQ(expanded("0..0.3..0.3"), "0 0.3");
  EXPECT_EQ(expanded("1..3..0"), "! '1..3..0' has a step of 0, which leads nowhere");
  EXPECT_EQ(expanded("1..3..-1"), "! '1..3..-1' has a step that leads away from its end");
  EXPECT_EQ(expanded("1..1e9"), "! '1..1e9' has more than 2000000 values");
  EXPECT_EQ(expanded("-9e18..9e18..1e-300"),
            "! '-9e18..9e18..1e-300' has more than 2000000 values");
  EXPECT_EQ(expanded("log(0, 1, 3)"), "! 'log(0, 1, 3)' needs two numbers above 0");
  EXPECT_EQ(expanded("linear(0, 1, 1)"),
            "! 'linear(0, 1, 1)' needs at least 2 values, its two ends");
  EXPECT_EQ(
      expanded("linear(0, 1"),
      "! 'linear(0, 1' is not a scale; write linear(FROM, TO, HOW MANY), as in linear(0, 1, 5)");
  EXPECT_EQ(expanded("1,,2"), "! there is an empty value; write for example 1,2,3");
}

}  // namespace
}  // namespace berth
