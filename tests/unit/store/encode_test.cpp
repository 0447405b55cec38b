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
  request.rules = {{"max_utilization", "100"}, {"min_free_memory", "0"}, {"x", ""}};
  request.time = Millis(3'600'000);
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
  payload.warning = {10, Millis(120'000)};
  payload.params = {{"lr", "0.1"}, {"seed", ""}};
  payload.fingerprint = std::numeric_limits<std::uint64_t>::max();
  payload.work_dir = "/runs/\xff";
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

TEST(EncodeTest, RequestsOfVersion1ComeBackWithTheirRules) {
  using namespace std::string_view_literals;
  const auto plain = decode_request("\x01\x00\x01\x01\x00\x00\x00"sv);
  ASSERT_TRUE(plain) << plain.error().message;
  EXPECT_EQ(*plain, Request{});
  // 2 GiB must be free, 40 % are too busy, one licence.
  const auto full = decode_request(
      "\x01\x07\x01\x02\x80\x08\x04\x00\x80\x80\x80\x80\x08\x28\x01\x07licence\x01"sv);
  ASSERT_TRUE(full) << full.error().message;
  EXPECT_EQ(full->gpu_memory, 1024U);
  EXPECT_EQ(full->rules, (Overrides{{"max_utilization", "40"}, {"min_free_memory", "2GiB"}}));
  EXPECT_EQ(full->resources.at("licence"), 1U);
}

TEST(EncodeTest, RulesComeBackAsTheyWere) {
  const Overrides rules = {{"gpu_left", "1"}, {"strategy", "pack"}};
  EXPECT_EQ(decode_rules(encoded(rules, encode_rules)).value(), rules);
  EXPECT_EQ(decode_rules("").value(), Overrides{});
  EXPECT_FALSE(decode_rules(encoded(Overrides{}, encode_rules))) << "two ways to say nothing";
  std::string swapped = encoded(Overrides{{"a", "1"}, {"b", "2"}}, encode_rules);
  std::swap(swapped[3], swapped[7]);
  EXPECT_FALSE(decode_rules(swapped));
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

TEST(EncodeTest, PayloadsOfOlderStoresComeBackWithoutWhatIsNew) {
  using namespace std::string_view_literals;
  // One command, no variables, in /w, umask 022, a grace of 10 s, lingering, USR1 a minute before.
  const auto old = decode_payload(
      "\x01\x01\x00\x01\x04true\x00\x02/w\x12\x00\x00\xa0\x9c\x01\x03\x14\xc0\xa9\x07"sv);
  ASSERT_TRUE(old) << old.error().message;
  EXPECT_EQ(old->commands, (std::vector<Command>{{false, {"true"}}}));
  EXPECT_EQ(old->grace, Millis(10'000));
  EXPECT_TRUE(old->linger);
  EXPECT_EQ(old->warning, (WarningSignal{10, Millis(60'000)}));
  EXPECT_TRUE(old->params.empty() && old->work_dir.empty());
  EXPECT_EQ(old->fingerprint, 0U);
}

TEST(EncodeTest, TraitsComeBackAsTheyWere) {
  const BatchTraits traits{"compete", "/w", "compete_gpu.log", "multi", "/c/\xff.yaml", 7, ~0ULL};
  EXPECT_EQ(decode_traits(encoded(traits, encode_traits)).value(), traits);
  EXPECT_EQ(decode_traits("").value(), BatchTraits{});
  std::string cut = encoded(traits, encode_traits);
  cut.pop_back();
  EXPECT_FALSE(decode_traits(cut));
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
  bytes[0] = 3;
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
      if (const auto value = decode_request(bytes); value && bytes[0] == request[0]) {
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
