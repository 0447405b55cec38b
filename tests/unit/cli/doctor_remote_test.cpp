#include "cli/doctor_remote.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::cli {
namespace {

using testing::HasSubstr;

RemoteFacts well() {
  RemoteFacts facts;
  facts.host = "gpu1";
  facts.port = 29214;
  facts.tls = true;
  facts.version = "1.0";
  facts.scope = "full";
  facts.status.emplace().version = "1.0";
  facts.health = "ok";
  facts.clock_ahead = Millis(0);
  return facts;
}

const Finding& named(const std::vector<Finding>& findings, std::string_view check) {
  static const Finding kNone;
  for (const Finding& finding : findings) {
    if (finding.check == check) {
      return finding;
    }
  }
  ADD_FAILURE() << check;
  return kNone;
}

TEST(RemoteDoctorTest, NothingIsWrong) {
  const auto findings = diagnose(well());
  EXPECT_EQ(findings.size(), 8U);
  for (const Finding& finding : findings) {
    EXPECT_EQ(finding.health, Health::ok) << finding.text;
  }
  EXPECT_THAT(findings.back().text, HasSubstr("ssh gpu1 berth doctor"));
}

TEST(RemoteDoctorTest, WithoutAConnectionNothingElseIsJudged) {
  RemoteFacts facts = well();
  facts.connect_error = "nobody answers";
  auto findings = diagnose(facts);
  EXPECT_EQ(findings.size(), 2U);
  EXPECT_EQ(findings[0].health, Health::fail);
  EXPECT_THAT(findings[0].advice, HasSubstr("listen"));
  facts.distrusted = true;
  EXPECT_THAT(diagnose(facts)[0].advice, HasSubstr("--ca-file"));
}

TEST(RemoteDoctorTest, TellsOfTokensVersionsClocksAndCards) {
  RemoteFacts facts = well();
  facts.scope = "read";
  facts.version = "1.1";
  facts.clock_ahead = Millis(-120'000);
  facts.health = "degraded";
  facts.reasons = {{"space", "the disk is nearly full"}};
  facts.status->gpus.emplace_back().trouble = "fell off the bus";
  auto findings = diagnose(facts);
  for (const char* check : {"token", "daemon", "clock", "health", "GPUs"}) {
    EXPECT_EQ(named(findings, check).health, Health::warn) << check;
  }
  EXPECT_THAT(named(findings, "clock").text, HasSubstr("behind"));
  facts.refusal = "this token is not known";
  findings = diagnose(facts);
  EXPECT_EQ(named(findings, "token").health, Health::fail);
  EXPECT_EQ(findings.size(), 5U) << "what needs a token is not judged";
}

TEST(RemoteDoctorTest, ReadsTheDateOfAnAnswer) {
  EXPECT_EQ(parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT"), Millis(784'111'777'000));
  EXPECT_EQ(parse_http_date("yesterday"), std::nullopt);
  EXPECT_EQ(parse_http_date("Sun, 06 Foo 1994 08:49:37 GMT"), std::nullopt);
}

}  // namespace
}  // namespace berth::cli
