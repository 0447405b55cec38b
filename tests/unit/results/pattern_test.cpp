#include <gtest/gtest.h>

#include <string>

#include "results/pattern.hpp"

namespace berth {
namespace {

std::string caught(std::string_view pattern, std::string_view text) {
  const auto compiled = Pattern::compile(pattern);
  if (!compiled) {
    return "error: " + compiled.error().message;
  }
  const auto match = compiled->find(text);
  return match ? std::string(match->caught) : "no match";
}

TEST(PatternTest, FindsWhatTheUsualSyntaxSays) {
  struct Case {
    std::string_view pattern, text, wanted;
  };
  constexpr Case kCases[] = {
      {"Acc(?:uracy)?[:= ]+([0-9.]+)", "Test Accuracy: 93.1%", "93.1"},
      {"Acc(?:uracy)?[:= ]+([0-9.]+)", "Acc=0.5", "0.5"},
      {"(?i)LOSS=(\\S+)", "train loss=1.5e-3 x", "1.5e-3"},
      {"a|ab", "ab", "a"},
      {"(a|ab)(c|bcd)", "abcd", "a"},
      {"x*", "", ""},
      {"a.c", "abc", "abc"},
      {"^b", "ab", "no match"},
      {"b$", "ab", "b"},
      {"\\bfoo\\b", "a foo b", "foo"},
      {"\\bfoo\\b", "afoo", "no match"},
      {"a{2,3}", "aaaa", "aaa"},
      {"a{2,3}?", "aaaa", "aa"},
      {"a{2}", "aaa", "aa"},
      {"a+?b", "aaab", "aaab"},
      {"<(.*?)>", "<a><b>", "a"},
      {"<(.*)>", "<a><b>", "a><b"},
      {"[^0-9]+", "12ab3", "ab"},
      {"[]x]+", "a]x", "]x"},
      {"[\\d-]+", "a1-2", "1-2"},
      {"(?P<v>\\d+)", "v 12", "12"},
      {"a{b", "a{b", "a{b"},
      {"准确率[:：]\\s*([0-9.]+)", "准确率： 0.91", "0.91"},
      {"准确率[:：]\\s*([0-9.]+)", "准确率:0.91", "0.91"},
      {"准确率\\D*([0-9.]+)", "准确率: 0.91", "0.91"},
      {"(x)?y", "y", ""},
      {"(?:é)+", "aéé", "éé"},
  };
  for (const Case& one : kCases) {
    EXPECT_EQ(caught(one.pattern, one.text), one.wanted) << one.pattern << " in " << one.text;
  }
}

TEST(PatternTest, SaysWhereAPatternIsWrong) {
  struct Case {
    std::string_view pattern, wanted;
  };
  constexpr Case kCases[] = {
      {"a(b", "at character 4 of 'a(b': the ) is missing"},
      {"a)b", "at character 2 of 'a)b': there is a ) without its ("},
      {"[a-", "the ] is missing"},
      {"*a", "at character 1 of '*a': there is nothing to repeat"},
      {"a\\", "a \\ at the end"},
      {"(a)\\1", "\\1 is not known here"},
      {"(?=a)", "of (?"},
      {"[z-a]", "a range goes from the smaller"},
      {"[^ä]", "in [^ ] only ASCII"},
      {"a{3,2}", "the greater number comes second"},
      {"a{9999}", "more than 1000 times"},
      {"(?:(?:a{1000}){1000})", "too large"},
  };
  for (const Case& one : kCases) {
    const auto compiled = Pattern::compile(one.pattern);
    ASSERT_FALSE(compiled) << one.pattern;
    EXPECT_NE(compiled.error().message.find(one.wanted), std::string::npos)
        << compiled.error().message;
  }
  EXPECT_FALSE(Pattern::compile(std::string(1000, '(')));
}

TEST(PatternTest, TakesLinearTimeWhereOthersTakeForever) {
  // Backtracking would need 2^40 steps for the first, and as many for the second.
  EXPECT_EQ(caught("(?:a+)+b", std::string(20'000, 'a')), "no match");
  std::string many;
  for (int i = 0; i < 40; ++i) {
    many += "a?";
  }
  EXPECT_EQ(caught("^" + many + std::string(40, 'a') + "$", std::string(40, 'a')),
            std::string(40, 'a'));
}

TEST(PatternTest, FindsFurtherMatches) {
  const auto pattern = Pattern::compile("v=(\\d+)").value();
  const std::string text = "v=1 v=22";
  const auto first = pattern.find(text);
  ASSERT_TRUE(first);
  const auto second = pattern.find(text, first->end);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->caught, "22");
  EXPECT_FALSE(pattern.find(text, second->end));
}

}  // namespace
}  // namespace berth
