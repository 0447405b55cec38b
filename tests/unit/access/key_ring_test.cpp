#include "access/key_ring.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "access/secret.hpp"

namespace berth {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr Millis kNow{1'000'000};

TEST(KeyRingTest, SecretsDifferAndAreNotKept) {
  KeyRing keys;
  const TokenAnswer one = keys.add({"token", "a", "full", Millis(0)}, kNow);
  const TokenAnswer two = keys.add({"token", "b", "read", Millis(0)}, kNow);
  EXPECT_NE(one.secret, two.secret);
  EXPECT_NE(one.token.id, two.token.id);
  const std::string file = encode_access_file(keys.file());
  EXPECT_THAT(file, Not(HasSubstr(one.secret)));
  EXPECT_THAT(file, HasSubstr(secret_hash(one.secret)));
  EXPECT_THAT(encode_keys(keys.file().keys), Not(HasSubstr("hash")));
}

TEST(KeyRingTest, AFileThatWasWrittenReadsTheSame) {
  KeyRing keys;
  (void)keys.add({"token", "a", "full", Millis(5)}, kNow);
  (void)keys.add({"browser", "b", "full", Millis(0)}, kNow);
  keys.used(1, kNow + Millis(1));
  keys.set_port(29214);
  const auto again = decode_access_file(encode_access_file(keys.file()));
  ASSERT_TRUE(again.has_value()) << again.error().message;
  EXPECT_EQ(*again, keys.file());
}

TEST(KeyRingTest, AFileOfALaterVersionIsNotUnderstood) {
  EXPECT_FALSE(decode_access_file(R"({"version":2,"last_id":0,"keys":[]})").has_value());
  EXPECT_FALSE(decode_access_file("").has_value());
  EXPECT_FALSE(
      decode_access_file(R"({"version":1,"last_id":1,"keys":[{"id":1,"kind":"token","name":"a",)"
                         R"("scope":"root","created":1,"hash":"00"}]})")
          .has_value());
}

TEST(KeyRingTest, IdsAreNeverGivenTwice) {
  KeyRing keys;
  const TokenAnswer one = keys.add({"token", "a", "full", Millis(0)}, kNow);
  EXPECT_TRUE(keys.remove(one.token.id));
  EXPECT_FALSE(keys.remove(one.token.id));
  EXPECT_GT(keys.add({"token", "b", "full", Millis(0)}, kNow).token.id, one.token.id);
}

TEST(KeyRingTest, RevokedAndExpiredKeysAreNotFound) {
  KeyRing keys;
  const TokenAnswer gone = keys.add({"token", "a", "full", Millis(0)}, kNow);
  const TokenAnswer brief = keys.add({"token", "b", "read", Millis(10)}, kNow);
  ASSERT_NE(keys.find(gone.secret, "token", kNow), nullptr);
  EXPECT_EQ(keys.find(gone.secret, "browser", kNow), nullptr);
  keys.remove(gone.token.id);
  EXPECT_EQ(keys.find(gone.secret, "token", kNow), nullptr);
  EXPECT_NE(keys.find(brief.secret, "token", kNow + Millis(9)), nullptr);
  EXPECT_EQ(keys.find(brief.secret, "token", kNow + Millis(10)), nullptr);
  EXPECT_TRUE(keys.prune(kNow + Millis(10)));
  EXPECT_FALSE(keys.prune(kNow + Millis(10)));
  EXPECT_TRUE(keys.file().keys.empty());
}

TEST(KeyRingTest, UseIsNotedOnceAMinute) {
  KeyRing keys;
  const std::uint64_t id = keys.add({"token", "a", "full", Millis(0)}, kNow).token.id;
  EXPECT_TRUE(keys.used(id, kNow));
  EXPECT_FALSE(keys.used(id, kNow + Millis(59'999)));
  EXPECT_TRUE(keys.used(id, kNow + Millis(60'000)));
  EXPECT_FALSE(keys.used(id + 1, kNow));
}

TEST(SecretTest, ComparesAllOfIt) {
  EXPECT_TRUE(same_secret("abc", "abc"));
  EXPECT_FALSE(same_secret("abc", "abd"));
  EXPECT_FALSE(same_secret("abc", "ab"));
  EXPECT_FALSE(same_secret("", "a"));
  EXPECT_TRUE(same_secret("", ""));
}

TEST(SecretTest, HashesAreThoseThatEverybodyKnows) {
  EXPECT_EQ(secret_hash("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(new_secret().size(), 64U);
  EXPECT_NE(csrf_of("a"), csrf_of("b"));
}

}  // namespace
}  // namespace berth
