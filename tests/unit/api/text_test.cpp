#include "api/text.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <boost/json.hpp>

#include "api/target.hpp"
#include "api/views.hpp"

namespace berth {
namespace {

TEST(TextTest, KnowsUtf8) {
  for (const auto* good : {"", "plain", "\u00e9\u20ac\U0001F600", "\xF4\x8F\xBF\xBF"}) {
    EXPECT_TRUE(is_utf8(good)) << good;
    EXPECT_EQ(to_utf8(good), good);
  }
  for (const auto* bad : {"\xFF", "\xC3", "\xC0\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80",
                          "\xE2\x82", "\x80", "a\xF5\x80\x80\x80"}) {
    EXPECT_FALSE(is_utf8(bad));
    EXPECT_TRUE(is_utf8(to_utf8(bad)));
  }
  EXPECT_EQ(to_utf8("a\xFFz"), "a\uFFFDz");
}

TEST(TextTest, KnowsBase64) {
  EXPECT_EQ(base64_encode(""), "");
  EXPECT_EQ(base64_encode("f"), "Zg==");
  EXPECT_EQ(base64_encode("fo"), "Zm8=");
  EXPECT_EQ(base64_encode("foobar"), "Zm9vYmFy");
  for (const auto* bad : {"Zg=", "Zg", "Z===", "====", "Zh==", "Zm9=", "Zm 9", "Zg==Zg=="}) {
    EXPECT_FALSE(base64_decode(bad).has_value()) << bad;
  }
}

RC_GTEST_PROP(TextProps, base64_keeps_all_bytes, (const std::string& bytes)) {
  RC_ASSERT(base64_decode(base64_encode(bytes)) == bytes);
}

RC_GTEST_PROP(TextProps, targets_keep_all_bytes,
              (const std::string& name, const std::string& value)) {
  RC_PRE(!name.empty());
  const auto target = parse_target("/p?" + percent_encode(name) + "=" + percent_encode(value));
  RC_ASSERT(target.has_value());
  RC_ASSERT(target->path == "/p");
  RC_ASSERT(target->query.at(name) == value);
}

TEST(TextTest, StringsOfJsonEscapeWhatCannotStandInThem) {
  std::string all;
  for (char c = 0; c < 0x7F; ++c) {
    all += c;
  }
  all += "\x7F\u00e9\U0001F600";
  for (const std::string& text : {std::string(), std::string("plain"), all, all + all}) {
    std::string out = "before ";
    append_json_string(out, text);
    EXPECT_EQ(out, "before " + boost::json::serialize(boost::json::value(text)));
  }
}

TEST(TextTest, RefusesBrokenTargets) {
  for (const auto* bad : {"", "x", "http://h/", "/%", "/%1", "/%0g", "/?a=%", "/%00", "/?q=%00",
                          "/?q=a%00b", "/?%00=1"}) {
    EXPECT_FALSE(parse_target(bad).has_value()) << bad;
  }
  using std::string_view_literals::operator""sv;
  EXPECT_FALSE(parse_target("/a\0b"sv).has_value());
  EXPECT_FALSE(parse_target("/?a=\0"sv).has_value());
  const auto twice = parse_target("/?limit=1&limit=2");
  ASSERT_FALSE(twice.has_value()) << "which of the two?";
  EXPECT_TRUE(twice.error().message.starts_with("limit: comes twice")) << twice.error().message;
  EXPECT_EQ(parse_target("/?a&b=&&c=1=2")->query.size(), 3U);
  EXPECT_EQ(parse_target("/?c=1=2")->query.at("c"), "1=2");
}

TEST(TextTest, ShowsCommandsAsOneWouldTypeThem) {
  const std::vector<Command> commands{{false, {"python", "a b.py", "", "it's"}},
                                      {true, {"echo $HOME | wc"}}};
  EXPECT_EQ(display_commands(commands), R"(python 'a b.py' '' 'it'\''s'; echo $HOME | wc)");
  const std::string cut = display_commands({{true, {std::string(99, 'x') + "\u00e9\u00e9"}}}, 100);
  EXPECT_EQ(cut, std::string(99, 'x') + "…");
  EXPECT_TRUE(is_utf8(display_commands({{false, {"\xFF"}}})));
}

}  // namespace
}  // namespace berth
