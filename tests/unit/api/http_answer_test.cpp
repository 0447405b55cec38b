#include "api/http_answer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

namespace berth {
namespace {

using ::testing::StartsWith;

HttpRequest asking(const std::string& method, std::map<std::string, std::string> headers = {}) {
  HttpRequest request;
  request.method = method;
  request.headers = std::move(headers);
  return request;
}

HttpResponse saying(std::string body, std::string type = "application/json") {
  HttpResponse response;
  response.body = std::move(body);
  response.content_type = std::move(type);
  return response;
}

std::string header(const HttpResponse& response, const std::string& name) {
  for (const auto& [key, value] : response.headers) {
    if (key == name) {
      return value;
    }
  }
  return {};
}

HttpResponse packed(HttpResponse response, const HttpRequest& request) {
  pack(response, wishes_of(request));
  return response;
}

std::string gunzip(const std::string& packed_text) {
  z_stream stream{};
  EXPECT_EQ(inflateInit2(&stream, 15 + 16), Z_OK);
  std::string in = packed_text;
  std::string out(1 << 20, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(in.data());
  stream.avail_in = static_cast<uInt>(in.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  inflateEnd(&stream);
  return out;
}

TEST(HttpAnswerTest, TheSameAnswerHasTheSameTag) {
  const std::string tag = header(packed(saying("{\"a\":1}"), asking("GET")), "ETag");
  EXPECT_THAT(tag, StartsWith("W/\""));
  EXPECT_EQ(header(packed(saying("{\"a\":1}"), asking("GET")), "ETag"), tag);
  EXPECT_NE(header(packed(saying("{\"a\":2}"), asking("GET")), "ETag"), tag);
}

TEST(HttpAnswerTest, WhoHasItIsToldSoAndNothingMore) {
  const std::string tag = header(packed(saying("{\"a\":1}"), asking("GET")), "ETag");
  for (const std::string& known : {tag, tag.substr(2), "\"other\", " + tag, std::string("*")}) {
    const HttpResponse response =
        packed(saying("{\"a\":1}"), asking("GET", {{"if-none-match", known}}));
    EXPECT_EQ(response.status, 304) << known;
    EXPECT_EQ(response.body, "") << known;
    EXPECT_EQ(header(response, "ETag"), tag) << known;
  }
  EXPECT_EQ(packed(saying("{\"a\":2}"), asking("GET", {{"if-none-match", tag}})).status, 200);
}

TEST(HttpAnswerTest, OnlyAGoodAnswerToAGetIsTagged) {
  EXPECT_EQ(header(packed(saying("{}"), asking("POST")), "ETag"), "");
  HttpResponse error = saying("{}");
  error.status = 404;
  EXPECT_EQ(header(packed(error, asking("GET", {{"if-none-match", "*"}})), "ETag"), "");
}

TEST(HttpAnswerTest, AnAnswerKeepsATagOfItsOwn) {
  HttpResponse response = saying("text", "text/plain");
  response.headers.emplace_back("ETag", "\"mine\"");
  EXPECT_EQ(packed(response, asking("GET", {{"if-none-match", "\"mine\""}})).status, 304);
  EXPECT_EQ(header(packed(response, asking("GET")), "ETag"), "\"mine\"");
}

TEST(HttpAnswerTest, LargeTextsAreCompressedForWhoTakesIt) {
  const std::string text(10'000, 'x');
  const HttpResponse response =
      packed(saying(text), asking("GET", {{"accept-encoding", "deflate, gzip, br"}}));
  EXPECT_EQ(header(response, "Content-Encoding"), "gzip");
  EXPECT_EQ(header(response, "Vary"), "Accept-Encoding");
  EXPECT_LT(response.body.size(), 1'000U);
  EXPECT_EQ(gunzip(response.body), text);
  EXPECT_EQ(header(response, "ETag"), header(packed(saying(text), asking("GET")), "ETag"));
}

// Parts of the plain text would have been put behind the beginning of the compressed one.
TEST(HttpAnswerTest, AStrongTagIsAnotherOneOnceCompressed) {
  HttpResponse response = saying(std::string(10'000, 'x'), "text/plain");
  response.headers.emplace_back("ETag", "\"mine\"");
  response.headers.emplace_back("Accept-Ranges", "bytes");
  const HttpResponse plain = packed(response, asking("GET"));
  EXPECT_EQ(header(plain, "ETag"), "\"mine\"");
  EXPECT_EQ(header(plain, "Accept-Ranges"), "bytes");
  const HttpResponse small = packed(response, asking("GET", {{"accept-encoding", "gzip"}}));
  EXPECT_EQ(header(small, "ETag"), "\"mine-gzip\"");
  EXPECT_EQ(header(small, "Accept-Ranges"), "");
  const HttpResponse again = packed(
      response, asking("GET", {{"accept-encoding", "gzip"}, {"if-none-match", "W/\"mine-gzip\""}}));
  EXPECT_EQ(again.status, 304);
  EXPECT_EQ(header(again, "ETag"), "\"mine-gzip\"");
}

TEST(HttpAnswerTest, TheRestIsLeftAsItIs) {
  const std::string text(10'000, 'x');
  const HttpRequest taking = asking("GET", {{"accept-encoding", "gzip"}});
  EXPECT_EQ(packed(saying(text), asking("GET")).body, text);
  EXPECT_EQ(packed(saying("short"), taking).body, "short");
  EXPECT_EQ(packed(saying(text, "image/png"), taking).body, text);
  EXPECT_EQ(packed(saying(text), asking("GET", {{"accept-encoding", "gzip;q=0"}})).body, text);
  EXPECT_EQ(packed(saying(text), asking("GET", {{"accept-encoding", "xgzip, identity"}})).body,
            text);
  HttpResponse already = saying(text);
  already.headers.emplace_back("Content-Encoding", "br");
  EXPECT_EQ(packed(already, taking).body, text);
  HttpResponse part = saying(text, "text/plain");
  part.status = 206;
  EXPECT_EQ(packed(part, taking).body, text);
}

TEST(HttpAnswerTest, WhatTakesLongIsKnownBeforehand) {
  const HttpRequest taking = asking("GET", {{"accept-encoding", "gzip"}});
  EXPECT_TRUE(is_heavy(saying(std::string(100'000, 'x')), wishes_of(taking)));
  EXPECT_FALSE(is_heavy(saying(std::string(100'000, 'x')), wishes_of(asking("GET"))));
  EXPECT_TRUE(is_heavy(saying(std::string(1'000'000, 'x')), wishes_of(asking("GET"))));
  EXPECT_FALSE(is_heavy(saying("{}"), wishes_of(taking)));
}

}  // namespace
}  // namespace berth
