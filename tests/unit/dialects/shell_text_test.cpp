#include "dialects/shell_text.hpp"

#include <gtest/gtest.h>

namespace berth {
namespace {

std::optional<std::vector<std::string>> lookup(std::string_view word) {
  if (word == "x") {
    return {{"it's $5"}};
  }
  if (word == "many") {
    return {{"a", "b c"}};
  }
  if (word == "none") {
    return std::vector<std::string>{};
  }
  return std::nullopt;
}

TEST(ShellTextTest, WordsAreQuotedOnlyWhereBashWouldReadSomethingElse) {
  EXPECT_EQ(quote_word("configs/a-1_b.yaml"), "configs/a-1_b.yaml");
  EXPECT_EQ(quote_word(""), "''");
  EXPECT_EQ(quote_word("a b"), "'a b'");
  EXPECT_EQ(quote_word("it's"), R"('it'\''s')");
  EXPECT_EQ(quote_word("~/x;rm"), "'~/x;rm'");
  EXPECT_EQ(quote_word("{gpu_list}"), "{gpu_list}");
  EXPECT_EQ(quote_word("--gpus={gpu_list}"), "--gpus={gpu_list}");
  EXPECT_EQ(quote_word("{a,b}"), "'{a,b}'");
  EXPECT_EQ(quote_word("{"), "'{'");
}

TEST(ShellTextTest, PlaceholdersAreQuotedAsTheirPlaceNeeds) {
  EXPECT_EQ(fill_in("run {x}", lookup), R"(run 'it'\''s $5')");
  EXPECT_EQ(fill_in(R"(run "{x}")", lookup), R"(run "it's \$5")");
  EXPECT_EQ(fill_in("run '{x}'", lookup), R"(run 'it'\''s $5')");
  EXPECT_EQ(fill_in(R"(run \"{many})", lookup), R"(run \"a 'b c')");
}

TEST(ShellTextTest, NothingIsLeftOfAPlaceholderWithoutWords) {
  EXPECT_EQ(fill_in("run {none}", lookup), "run");
  EXPECT_EQ(fill_in("run {none} now", lookup), "run now");
}

TEST(ShellTextTest, OtherBracesStay) {
  for (const char* text :
       {"run {gpu_list}", "run {{x}}", "run ${x}", "awk '{print $1}'", "a{b,c}", "{", "{}", "{x"}) {
    EXPECT_EQ(fill_in(text, lookup), text);
  }
}

}  // namespace
}  // namespace berth
