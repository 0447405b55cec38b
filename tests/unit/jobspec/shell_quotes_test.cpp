#include "jobspec/shell_quotes.hpp"

#include <cstdio>
#include <memory>

#include <gtest/gtest.h>

#include "jobspec/matrix.hpp"

namespace berth {
namespace {

std::string filled(std::string_view text, std::string_view value) {
  return substitute_in_shell(text, {{"v", value}});
}

/// What bash makes of a text, byte for byte.
std::string run(const std::string& text) {
  const std::string line = "exec bash -c " + ("'" + quote_value(text, ShellPlace::single) + "'");
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(line.c_str(), "r"), ::pclose);
  std::string out;
  for (int c = 0; pipe != nullptr && (c = std::fgetc(pipe.get())) != EOF;) {
    out += static_cast<char>(c);
  }
  return out;
}

TEST(ShellQuotes, PlainValuesStayAsTheyAre) {
  for (const char* value : {"7", "0.1", "1e-3", "-2.5e+10", "resnet_50", "data/set-1.txt", "~/data",
                            "a=b,c:d", "user@host", "50%", "学习率", "{gpu_list}", ""}) {
    EXPECT_EQ(filled("t --x={v} {v}", value), std::string("t --x=") + value + " " + value);
  }
}

TEST(ShellQuotes, OthersAreQuotedAsTheirPlaceNeeds) {
  EXPECT_EQ(filled("echo {v}", "a b"), "echo 'a b'");
  EXPECT_EQ(filled("echo {v} 1", "it's"), R"(echo 'it'\''s' 1)");
  EXPECT_EQ(filled("t --name '{v}'", "it's $5"), R"(t --name 'it'\''s $5')");
  EXPECT_EQ(filled("t --name \"{v}\"", "say \"$HOME\""), R"(t --name "say \"\$HOME\"")");
  EXPECT_EQ(filled("echo {v}", "{a,b}"), "echo '{a,b}'");
  EXPECT_EQ(filled("echo {v}", "{1..3}"), "echo '{1..3}'");
  EXPECT_EQ(filled("echo {v} # not {v}", "a;b"), "echo 'a;b' # not a;b");
}

TEST(ShellQuotes, BashReadsEachValueAsItIs) {
  const std::vector<std::string> places = {
      "printf %s {v}",
      "printf %s x{v}y",
      "printf %s '{v}'",
      "printf %s \"{v}\"",
      "printf %s $'{v}'",
      R"(printf %s \"{v}\')",
      R"(printf %s "\"{v}")",
      "printf %s \"$(printf %s {v})\"",
      "printf %s \"$(printf %s \"{v}\")-{v}\"",
      "printf %s `printf 1`{v}",
      "(printf %s {v}) # it's a comment",
      "# it's a comment\nprintf %s {v}",
      "printf %s a#'b'{v}",
      "cat <<END\n{v}\nEND\n",
      "cat <<'END'\nit's {v}\nEND\n",
      "cat <<-\"END\" && printf %s {v}\n\tit's {v}\n\tEND\n",
      "cat <<END\nit's\nEND\nprintf %s {v}",
      "printf %s $((1<<2)){v}",
      "cat <<< {v}",
      "printf %s ${HOME:+'{v}'}",
  };
  const std::string plain = "VALUE";
  for (const std::string value : {"a b", "it's", "$HOME", "`date`", "$(date)", "\"", "\\", "a\\n",
                                  "*", "#x", "a;b|c&d", "<x>", "!", "[a]", "$'x'", "two\nlines"}) {
    for (const std::string& place : places) {
      std::string expected = run(filled(place, plain));
      for (std::size_t at = 0; (at = expected.find(plain, at)) != std::string::npos;
           at += value.size()) {
        expected.replace(at, plain.size(), value);
      }
      EXPECT_EQ(run(filled(place, value)), expected) << filled(place, value);
    }
  }
}

}  // namespace
}  // namespace berth
