#include "cli/server.hpp"
#include "base/assert.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "cli/remote_log.hpp"

namespace berth::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

TEST(ServerTest, AddressesAreTakenApart) {
  struct Case {
    const char* url;
    bool tls;
    const char* host;
    std::uint16_t port;
  };
  for (const Case& c : {Case{"https://gpu1.example.org:443", true, "gpu1.example.org", 443},
                        Case{"https://gpu1/", true, "gpu1", 29214},
                        Case{"http://127.0.0.1:8080", false, "127.0.0.1", 8080},
                        Case{"http://localhost", false, "localhost", 29214},
                        Case{"http://[::1]:8080/", false, "::1", 8080}}) {
    const auto remote = parse_server(c.url);
    ASSERT_TRUE(remote.has_value()) << c.url << ": " << remote.error().message;
    EXPECT_EQ(remote->tls, c.tls) << c.url;
    EXPECT_EQ(remote->host, c.host) << c.url;
    EXPECT_EQ(remote->port, c.port) << c.url;
  }
}

TEST(ServerTest, WhatIsNoAddressIsToldSo) {
  for (const char* url : {"", "gpu1", "ftp://gpu1", "https://", "https://gpu1:0",
                          "https://gpu1:99999", "https://gpu1:x", "https://gpu1/path",
                          "https://me@gpu1", "https://[::1", "http://[::1]x"}) {
    EXPECT_FALSE(parse_server(url).has_value()) << url;
  }
}

TEST(ServerTest, ATokenDoesNotTravelInTheOpen) {
  const auto remote = parse_server("http://gpu1.example.org:29214");
  ASSERT_FALSE(remote.has_value());
  EXPECT_THAT(remote.error().message, HasSubstr("in the open"));
}

class TokenFile {
 public:
  TokenFile(const std::string& content, mode_t mode) {
    std::string name = (std::filesystem::temp_directory_path() / "berth-token-XXXXXX").native();
    const int fd = ::mkstemp(name.data());
    BERTH_ASSERT(fd >= 0);
    ::fchmod(fd, mode);
    ::close(fd);
    path_ = name;
    std::ofstream(path_) << content;
  }
  ~TokenFile() { std::filesystem::remove(path_); }
  TokenFile(const TokenFile&) = delete;
  TokenFile& operator=(const TokenFile&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

TEST(ServerTest, ATokenIsWhatTheFileHolds) {
  EXPECT_EQ(read_token(TokenFile("  berth_0a\n", 0600).path()).value(), "berth_0a");
  EXPECT_FALSE(read_token(TokenFile("\n", 0600).path()).has_value());
  EXPECT_FALSE(read_token(TokenFile("two words", 0600).path()).has_value());
  EXPECT_FALSE(read_token("/nonexistent/token").has_value());
  const auto shared = read_token(TokenFile("berth_0a", 0640).path());
  ASSERT_FALSE(shared.has_value());
  EXPECT_THAT(shared.error().message, HasSubstr("chmod 600"));
}

TEST(ServerTest, AServerNeedsATokenAndATokenAServer) {
  EXPECT_FALSE(choose_server({"http://localhost", "", ""}).has_value());
  EXPECT_FALSE(choose_server({"", "/some/file", ""}).has_value());
  EXPECT_TRUE(choose_server({}).has_value());
}

TEST(RemoteLogTest, EventsAreTakenOutOfTheirLines) {
  std::vector<std::pair<std::string, std::string>> got;
  EventLines events(
      [&](std::string_view name, std::string_view data) { got.emplace_back(name, data); });
  events.feed(": a comment\r\n\r\nevent: lo");
  events.feed("g\ndata: {\"a\":1}\n\nid: 7\ndata:x\ndata: y\n\n");
  events.feed("event: end\ndata: {}\n");
  EXPECT_THAT(got, ElementsAre(Pair("log", "{\"a\":1}"), Pair("", "x\ny")));
  events.feed("\n");
  EXPECT_EQ(got.size(), 3U);
}

}  // namespace
}  // namespace berth::cli
