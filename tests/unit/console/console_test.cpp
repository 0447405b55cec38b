#include "console/console.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

namespace berth {
namespace {

using ::testing::HasSubstr;

constexpr std::array kFiles{
    ConsoleFile{"index.html", "<!doctype html>page", "", "t1"},
    ConsoleFile{"assets/index-1a.js", "let x = 1;", "compressed", "t2"},
    ConsoleFile{"favicon.ico", "icon", "", "t3"},
};

HttpResponse get(const std::string& path, const std::string& accept = "",
                 std::span<const ConsoleFile> files = kFiles) {
  HttpRequest request;
  request.method = "GET";
  request.path = path;
  if (!accept.empty()) {
    request.headers["accept-encoding"] = accept;
  }
  return console_answer(request, files);
}

std::string header(const HttpResponse& response, const std::string& name) {
  for (const auto& [key, value] : response.headers) {
    if (key == name) {
      return value;
    }
  }
  return {};
}

TEST(ConsoleTest, TheRootLeadsToTheFirstPage) {
  const HttpResponse response = get("/");
  EXPECT_EQ(response.status, 303);
  EXPECT_EQ(header(response, "Location"), "/ui/gpu");
}

TEST(ConsoleTest, EveryPageIsTheOnePage) {
  for (const char* path : {"/ui", "/ui/", "/ui/gpu", "/ui/state/42"}) {
    const HttpResponse response = get(path);
    EXPECT_EQ(response.status, 200) << path;
    EXPECT_EQ(response.body, "<!doctype html>page") << path;
    EXPECT_EQ(response.content_type, "text/html; charset=utf-8") << path;
    EXPECT_EQ(header(response, "Cache-Control"), "no-cache") << path;
    EXPECT_THAT(header(response, "Content-Security-Policy"), HasSubstr("script-src 'self'"));
  }
}

TEST(ConsoleTest, FilesWithHashedNamesAreKeptForEver) {
  const HttpResponse response = get("/ui/assets/index-1a.js");
  EXPECT_EQ(response.body, "let x = 1;");
  EXPECT_EQ(response.content_type, "text/javascript; charset=utf-8");
  EXPECT_THAT(header(response, "Cache-Control"), HasSubstr("immutable"));
  EXPECT_EQ(header(response, "ETag"), "W/\"t2\"");
  EXPECT_EQ(header(response, "Content-Encoding"), "");
}

TEST(ConsoleTest, WhoeverTakesItGetsItCompressed) {
  const HttpResponse response = get("/ui/assets/index-1a.js", "br, gzip");
  EXPECT_EQ(response.body, "compressed");
  EXPECT_EQ(header(response, "Content-Encoding"), "gzip");
  EXPECT_EQ(get("/ui/gpu", "gzip").body, "<!doctype html>page") << "where there is such a form";
  EXPECT_EQ(get("/ui/assets/index-1a.js", "gzip;q=0").body, "let x = 1;");
}

TEST(ConsoleTest, NothingElseIsServed) {
  for (const char* path :
       {"/ui/assets/../../etc/hosts.txt", "/ui/assets/other.js", "/ui//etc/hosts.txt",
        "/ui/index.html/x.js", "/ui/..", "/ui/../etc/passwd", "/ui//etc/passwd", "/ui/..\\..\\"}) {
    EXPECT_EQ(get(path).status, 404) << path;
    EXPECT_THAT(get(path).body, HasSubstr("\"not_found\"")) << path;
  }
}

TEST(ConsoleTest, NothingCanBeSentThere) {
  HttpRequest request;
  request.method = "POST";
  request.path = "/ui/gpu";
  EXPECT_EQ(console_answer(request, kFiles).status, 405);
  EXPECT_EQ(header(console_answer(request, kFiles), "Allow"), "GET, HEAD");
  request.method = "HEAD";
  EXPECT_EQ(console_answer(request, kFiles).status, 200);
}

TEST(ConsoleTest, AProgramWithoutPagesSaysSo) {
  const HttpResponse response = get("/ui/gpu", "", {});
  EXPECT_EQ(response.status, 404);
  EXPECT_THAT(response.body, HasSubstr("built without its console"));
}

}  // namespace
}  // namespace berth
