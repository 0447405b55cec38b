#include "api/ndjson.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace berth {
namespace {

using Lines = std::vector<std::string>;

/// What the pieces come to; the message of an error is the last element.
Lines split(const std::vector<std::string_view>& pieces, std::size_t line_max = 100) {
  Lines out;
  LineSplitter splitter(line_max);
  const auto take = [&](std::string_view line) -> Status {
    out.emplace_back(line);
    return {};
  };
  for (const std::string_view piece : pieces) {
    if (const auto fed = splitter.feed(piece, take); !fed) {
      out.push_back(fed.error().message);
      return out;
    }
  }
  EXPECT_TRUE(splitter.finish(take));
  EXPECT_EQ(splitter.lines(), out.size());
  return out;
}

TEST(NdjsonTest, LinesEndWithLfOrCrLfAndTheLastMayLackIt) {
  EXPECT_EQ(split({"a\nbb\r\nccc"}), (Lines{"a", "bb", "ccc"}));
  EXPECT_EQ(split({"a\n"}), Lines{"a"});
  EXPECT_EQ(split({"a\rb\n"}), Lines{"a\rb"});
  EXPECT_EQ(split({"a\r"}), Lines{"a"});
}

TEST(NdjsonTest, EmptyLinesAreLeftOut) {
  EXPECT_EQ(split({}), Lines{});
  EXPECT_EQ(split({"\n\r\n\n"}), Lines{});
  EXPECT_EQ(split({"\na\n\nb\n\n"}), (Lines{"a", "b"}));
}

TEST(NdjsonTest, WhereAPieceEndsMakesNoDifference) {
  const std::string_view text = "{\"a\":1}\r\n\n{}\r\r\n\"\xff\"\n12345678\n1234567890\nlast";
  const Lines whole = split({text}, 8);
  ASSERT_EQ(whole.size(), 5U);
  EXPECT_EQ(whole.back(), "line 5 is longer than 8 B");
  for (const std::size_t line_max : {8U, 9U, 10U, 100U}) {
    const Lines expected = split({text}, line_max);
    for (std::size_t i = 0; i <= text.size(); ++i) {
      for (std::size_t j = i; j <= text.size(); ++j) {
        ASSERT_EQ(split({text.substr(0, i), text.substr(i, j - i), text.substr(j)}, line_max),
                  expected)
            << i << " " << j;
      }
    }
  }
}

TEST(NdjsonTest, ALineIsTooLongHoweverItArrives) {
  EXPECT_EQ(split({"x\n12345\n"}, 4), (Lines{"x", "line 2 is longer than 4 B"}));
  EXPECT_EQ(split({"x\n12", "34", "5"}, 4), (Lines{"x", "line 2 is longer than 4 B"}));
  EXPECT_EQ(split({"x\n12", "34", "\n"}, 4), (Lines{"x", "1234"}));
}

TEST(NdjsonTest, AnErrorOfTheTakerEndsAll) {
  LineSplitter splitter(100);
  int calls = 0;
  const auto take = [&](std::string_view) -> Status {
    ++calls;
    return fail(ErrorCode::invalid, "no");
  };
  const auto fed = splitter.feed("a\nb\nc\n", take);
  ASSERT_FALSE(fed);
  EXPECT_EQ(fed.error().message, "no");
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace berth
