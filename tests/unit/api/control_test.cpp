#include "api/control.hpp"

#include <gtest/gtest.h>

#include "api/wire.hpp"

namespace berth {
namespace {

IdSet ids(const char* text) {
  return IdSet::parse(text).value();
}

TEST(ControlWireTest, RequestsComeBackAsTheyWere) {
  const ControlRequest some{{false, ids("3,5-9")}, ""};
  EXPECT_EQ(encode(some), R"({"ids":"3,5-9"})");
  EXPECT_EQ(*decode_control_request(encode(some)), some);
  const ControlRequest all{{true, {}}, ""};
  EXPECT_EQ(*decode_control_request(encode(all)), all);
  const ControlRequest queue{{}, "car"};
  EXPECT_EQ(*decode_control_request(encode(queue)), queue);
  for (const char* other : {R"({"instance":true})", R"({"gpu":"1","why":"fan"})"}) {
    EXPECT_EQ(encode(decode_control_request(other).value()), other);
  }
  using To = event::Move::To;
  for (const MoveRequest& move : {MoveRequest{{false, ids("1")}, To::first, 0, "", 5},
                                  MoveRequest{{false, ids("1-3")}, To::before, 9, "", 5},
                                  MoveRequest{{true, {}}, To::queue, 0, "car", 5},
                                  MoveRequest{{true, {}}, To::priority, 0, "", -2}}) {
    EXPECT_EQ(*decode_move_request(encode(move)), move);
  }
  SetJobsRequest set{{false, ids("1")}, {}};
  EXPECT_EQ(*decode_set_jobs_request(encode(set)), set);
  set.patch = {"name", "queue", 3, GpuCount{1, 2}, std::optional<Bytes>(kGiB),
               4,      kMiB,    5, Millis(6),      Millis(7),
               {},     {}};
  EXPECT_EQ(*decode_set_jobs_request(encode(set)), set);
  set.patch.gpu_memory = std::optional<Bytes>();
  EXPECT_EQ(*decode_set_jobs_request(encode(set)), set) << "whole cards are not the same as unsaid";
  set.patch.rules = {{"gpu_left", "1"}};
  set.patch.unset = {"strategy"};
  EXPECT_EQ(*decode_set_jobs_request(encode(set)), set);
  for (const SetRulesRequest& other : {SetRulesRequest{{}, true, {"order"}},
                                       SetRulesRequest{{{"gpu_left", "1"}}, false, {}, "car"},
                                       SetRulesRequest{{{"order", "random"}}, false, {}, "", 7}}) {
    EXPECT_EQ(*decode_set_rules_request(encode(other)), other);
  }
  const SetRulesRequest rules{{{"max_concurrent", "4"}, {"log_limit", "1GiB"}}, true};
  EXPECT_EQ(*decode_set_rules_request(encode(rules)), rules);
}

TEST(ControlWireTest, RetriesComeBackAsTheyWere) {
  RetryRequest failed;
  failed.batch = 3;
  EXPECT_EQ(encode(failed), R"({"failed":true,"batch":3})");
  EXPECT_EQ(decode_retry_request(encode(failed)).value(), failed);
  RetryRequest some;
  some.ids.add(3, 5);
  some.succeeded = true;
  EXPECT_EQ(decode_retry_request(encode(some)).value(), some);
  for (const char* body : {"{}", R"({"ids":"3","failed":true})", R"({"ids":"x"})"}) {
    EXPECT_FALSE(decode_retry_request(body)) << body;
  }
}

TEST(ControlWireTest, WhatMakesNoSenseIsRefused) {
  for (const auto* bad :
       {"{}", R"({"all":true,"ids":"3"})", R"({"ids":"x"})", R"({"ids":[3]})",
        R"({"queue":"a","all":true})", R"({"queue":"a","instance":true})",
        R"({"gpu":"0","ids":"1"})", R"({"ids":"1","what":2})", R"({"ids":"1-1000001"})"}) {
    EXPECT_FALSE(decode_control_request(bad).has_value()) << bad;
  }
  for (const auto* bad : {R"({"ids":"1"})", R"({"ids":"1","to":"heaven"})",
                          R"({"ids":"1","to":"before"})", R"({"ids":"1","to":"queue"})",
                          R"({"ids":"1","to":"priority"})", R"({"all":true,"to":"first"})"}) {
    EXPECT_FALSE(decode_move_request(bad).has_value()) << bad;
  }
  for (const auto* bad : {R"({"ids":"1","gpus":{"min":2,"max":1}})", R"({"ids":"1","queue":""})",
                          R"({"ids":"1","time_ms":-1})", R"({"name":"x"})"}) {
    EXPECT_FALSE(decode_set_jobs_request(bad).has_value()) << bad;
  }
  for (const auto* bad :
       {"{}", R"({"set":[]})", R"({"set":[{"key":"a"}]})",
        R"({"unset":["a"],"queue":"q","batch":1})", R"({"unset":["a"],"queue":"q","save":true})"}) {
    EXPECT_FALSE(decode_set_rules_request(bad).has_value()) << bad;
  }
}

TEST(ControlWireTest, AnswersComeBackAsTheyWere) {
  ControlAnswer answer;
  Controlled part;
  part.jobs[Controlled::What::held] = {JobId{1}, JobId{2}};
  part.refused["runs already"] = {JobId{3}};
  answer.add(part);
  part = {};
  part.jobs[Controlled::What::paused] = {JobId{4}};
  part.refused["runs already"] = {JobId{5}};
  part.absent = {JobId{6}};
  answer.add(part);
  answer.unknown = {99};
  answer.queue = "car";
  EXPECT_EQ(answer.held, (std::vector<std::uint64_t>{1, 2}));
  ASSERT_EQ(answer.refused.size(), 1U);
  EXPECT_EQ(answer.refused[0].ids, (std::vector<std::uint64_t>{3, 5}));
  EXPECT_EQ(answer.finished, std::vector<std::uint64_t>{6});
  EXPECT_EQ(*decode<ControlAnswer>(encode(answer)), answer);
  const RulesView rules{{{"log_limit", "1GiB", "1GiB", "default", "SIZE", "help"}}, {"problem"}};
  EXPECT_EQ(*decode<RulesView>(encode(rules)), rules);
}

}  // namespace
}  // namespace berth
