#include "daemon/listen_settings.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/settings.hpp"

namespace berth {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(ListenSettingsTest, NothingIsAskedForUnlessSomebodyDoes) {
  const Settings settings = parse_settings("max_concurrent: 4\n");
  EXPECT_FALSE(settings.listen.on.has_value());
  EXPECT_EQ(settings.listen.address, "127.0.0.1");
}

TEST(ListenSettingsTest, OneWordSaysWhere) {
  struct Case {
    const char* text;
    bool on;
    const char* address;
    std::uint16_t port;
  };
  for (const Case& c :
       {Case{"on", true, "127.0.0.1", 0}, Case{"off", false, "127.0.0.1", 0},
        Case{"8080", true, "127.0.0.1", 8080}, Case{"127.0.0.1:29300", true, "127.0.0.1", 29300},
        Case{"'::1'", true, "::1", 0}, Case{"'[::1]:29300'", true, "::1", 29300}}) {
    const Settings settings = parse_settings(std::string("listen: ") + c.text + "\n");
    EXPECT_THAT(settings.problems, IsEmpty()) << c.text;
    EXPECT_EQ(settings.listen.on, c.on) << c.text;
    EXPECT_EQ(settings.listen.address, c.address) << c.text;
    EXPECT_EQ(settings.listen.port, c.port) << c.text;
    EXPECT_THAT(settings.values, IsEmpty()) << "it is not a rule";
  }
}

TEST(ListenSettingsTest, AMapSaysMore) {
  const Settings settings = parse_settings(
      "listen:\n"
      "  address: 0.0.0.0\n"
      "  port: 443\n"
      "  certificate: /etc/berth/cert.pem\n"
      "  key: /etc/berth/key.pem\n"
      "  hosts: GPU1.example.org, 10.0.0.7\n");
  EXPECT_THAT(settings.problems, IsEmpty());
  EXPECT_EQ(settings.listen.on, true);
  EXPECT_EQ(settings.listen.address, "0.0.0.0");
  EXPECT_EQ(settings.listen.port, 443);
  EXPECT_EQ(settings.listen.certificate, "/etc/berth/cert.pem");
  EXPECT_THAT(settings.listen.hosts, ElementsAre("gpu1.example.org", "10.0.0.7"));
}

TEST(ListenSettingsTest, BeyondThisMachineOnlyWithACertificate) {
  for (const char* text : {"listen: 0.0.0.0:29214\n", "listen: '::'\n", "listen: 10.0.0.7\n",
                           "listen:\n  address: 0.0.0.0\n  key: /k.pem\n"}) {
    const Settings settings = parse_settings(text);
    ASSERT_EQ(settings.problems.size(), 1U) << text;
    EXPECT_THAT(settings.problems[0], HasSubstr("certificate")) << text;
    EXPECT_FALSE(settings.listen.on.has_value()) << text;
  }
}

TEST(ListenSettingsTest, MistakesAreNamedWithTheirLine) {
  for (const char* text : {"x", "70000", "gpu1:29214", "127.0.0.1:0", "127.0.0.1:x"}) {
    const Settings settings = parse_settings(std::string("\nlisten: ") + text + "\n");
    ASSERT_EQ(settings.problems.size(), 1U) << text;
    EXPECT_THAT(settings.problems[0], HasSubstr("berth.yaml:2: listen: ")) << text;
  }
  EXPECT_EQ(parse_settings("listen.colour: red\n").problems.size(), 1U);
  EXPECT_EQ(parse_settings("listen.key: key.pem\n").problems.size(), 1U);
  EXPECT_EQ(parse_settings("listens: on\n").problems.size(), 1U) << "that is no rule";
}

}  // namespace
}  // namespace berth
