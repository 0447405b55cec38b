#include "store/encode.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <random>

namespace berth {
namespace {

Request full_request() {
  Request request;
  request.gpus = {2, 4};
  request.gpu_memory = std::numeric_limits<Bytes>::max();
  request.cpus = 300;
  request.memory = 12 * kGiB;
  request.resources = {{"licence", 3}, {"", 0}, {"bytes \xff\x00", 1}};
  request.min_free_memory = 0;
  request.max_utilization = 100;
  return request;
}

Payload full_payload() {
  Payload payload;
  payload.environment = std::make_shared<const Environment>();
  payload.commands = {{false, {"python", std::string("a\0b\xff", 4), ""}}, {true, {"echo $HOME"}}};
  payload.extra_env = {"A=1", "B="};
  payload.cwd = "/work dir";
  payload.umask = 0777;
  payload.nice = -20;
  payload.time_limit = Millis(123'456'789);
  payload.grace = Millis(-1);
  payload.linger = true;
  return payload;
}

template <class Value, class Encode>
std::string encoded(const Value& value, Encode encode) {
  std::string bytes;
  encode(value, bytes);
  return bytes;
}

TEST(EncodeTest, RequestsComeBackAsTheyWere) {
  for (const Request& request : {Request{}, full_request()}) {
    const auto decoded = decode_request(encoded(request, encode_request));
    ASSERT_TRUE(decoded) << decoded.error().message;
    EXPECT_EQ(*decoded, request);
  }
}

TEST(EncodeTest, PayloadsComeBackAsTheyWere) {
  Payload empty;
  empty.environment = std::make_shared<const Environment>();
  for (const Payload& payload : {empty, full_payload()}) {
    const auto decoded = decode_payload(encoded(payload, encode_payload));
    ASSERT_TRUE(decoded) << decoded.error().message;
    EXPECT_EQ(*decoded, payload);
  }
}

TEST(EncodeTest, EnvironmentsAndGpusComeBackAsTheyWere) {
  const Environment environment = {"A=1", "", std::string(200'000, 'x')};
  EXPECT_EQ(decode_environment(encoded(environment, encode_environment)).value(), environment);
  std::string bytes;
  encode_gpus({"GPU-1", "GPU-2"}, {7, 4'000'000'000}, bytes);
  EXPECT_EQ(decode_gpus(bytes).value(), (GpuSet{{"GPU-1", "GPU-2"}, {7, 4'000'000'000}}));
}

TEST(EncodeTest, ASmallRequestIsSmall) {
  EXPECT_LE(encoded(Request{}, encode_request).size(), 8U);
}

TEST(EncodeTest, EveryCutAndEveryTrailingByteIsAnError) {
  const std::string request = encoded(full_request(), encode_request);
  const std::string payload = encoded(full_payload(), encode_payload);
  for (std::size_t size = 0; size < request.size(); ++size) {
    EXPECT_FALSE(decode_request(request.substr(0, size))) << size;
  }
  for (std::size_t size = 0; size < payload.size(); ++size) {
    EXPECT_FALSE(decode_payload(payload.substr(0, size))) << size;
  }
  const auto trailing = decode_request(request + '\0');
  ASSERT_FALSE(trailing);
  EXPECT_EQ(trailing.error().code, ErrorCode::corrupt);
  EXPECT_EQ(trailing.error().message, "stored request is damaged: trailing bytes");
}

TEST(EncodeTest, AnotherVersionIsAnError) {
  std::string bytes = encoded(Request{}, encode_request);
  bytes[0] = 2;
  EXPECT_EQ(decode_request(bytes).error().message, "stored request is damaged: unknown version");
}

TEST(EncodeTest, OverlongAndOverlargeNumbersAreErrors) {
  using namespace std::string_literals;
  EXPECT_FALSE(decode_environment("\x01\x80\x00"s));
  EXPECT_FALSE(decode_environment("\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"s));
  EXPECT_FALSE(decode_environment("\x01\xff\xff\xff\xff\x0f"s));
}

TEST(EncodeTest, WhateverDecodesEncodesToTheSameBytes) {
  std::mt19937_64 random(7);
  const std::string request = encoded(full_request(), encode_request);
  const std::string payload = encoded(full_payload(), encode_payload);
  int decoded = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes = i % 2 == 0 ? request : payload;
    for (std::uint64_t n = 1 + random() % 3; n > 0; --n) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    if (i % 2 == 0) {
      if (const auto value = decode_request(bytes)) {
        EXPECT_EQ(encoded(*value, encode_request), bytes);
        ++decoded;
      }
    } else if (const auto value = decode_payload(bytes)) {
      EXPECT_EQ(encoded(*value, encode_payload), bytes);
      ++decoded;
    }
  }
  EXPECT_GT(decoded, 100);
}

}  // namespace
}  // namespace berth
