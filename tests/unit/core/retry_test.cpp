// What becomes of a failed job, as a table: which failure, which rules, how many tries so far.

#include <gtest/gtest.h>

#include <fmt/format.h>

#include "core/retry.hpp"
#include "core/rule_table.hpp"

namespace berth {
namespace {

using enum FailureClass;

struct PolicyCase {
  const char* name;
  FailureClass failure;
  Blame blame;
  std::vector<std::pair<const char*, const char*>> rules;
  std::uint32_t retries;
  std::uint32_t used;
  std::uint32_t excused;
  /// "no", or who pays, the wait in seconds and "elsewhere".
  const char* expected;
};

void PrintTo(const PolicyCase& c, std::ostream* out) {
  *out << c.name;
}

std::string shown(const Retry& retry) {
  if (!retry.again) {
    return "no";
  }
  const char* charge = retry.charge == Charge::nobody    ? "free"
                       : retry.charge == Charge::retries ? "retry"
                                                         : "excused";
  return fmt::format("{}{}{}", charge,
                     retry.wait > Millis{0} ? fmt::format(" {}", retry.wait.count() / 1000) : "",
                     retry.elsewhere ? " elsewhere" : "");
}

class Policy : public ::testing::TestWithParam<PolicyCase> {};

TEST_P(Policy, IsAsConfigured) {
  const PolicyCase& c = GetParam();
  Rules rules;
  for (const auto& [key, text] : c.rules) {
    ASSERT_TRUE(set_rule(rules, fmt::format("retry_config.{}", key), text)) << key;
  }
  RetryCase job;
  job.request.gpus = {0, 0};
  job.retries = c.retries;
  job.retries_used = c.used;
  job.excused = c.excused;
  EXPECT_EQ(shown(plan_retry({c.failure, c.blame, "what"}, job, rules.retry)), c.expected);
}

constexpr Blame kOwn = Blame::own;
constexpr Blame kBug = Blame::code_bug;
constexpr Blame kOther = Blame::neighbour;
constexpr Blame kBroken = Blame::hardware;

INSTANTIATE_TEST_SUITE_P(
    Native, Policy,
    ::testing::Values(
        PolicyCase{"ExitIsFinal", FailureClass::exit, kOwn, {}, 0, 0, 0, "no"},
        PolicyCase{"ABugIsFinal", FailureClass::exit, kBug, {}, 0, 0, 0, "no"},
        PolicyCase{"HostOomIsFinal", host_oom, kOwn, {}, 0, 0, 0, "no"},
        PolicyCase{"TimeoutIsFinal", timeout, kOwn, {}, 0, 0, 0, "no"},
        PolicyCase{"CannotStartIsFinal", cannot_start, kBug, {}, 0, 0, 0, "no"},
        PolicyCase{"OwnOomWithoutCardIsFinal", gpu_oom, kOwn, {}, 0, 0, 0, "no"},
        PolicyCase{"ExitAsAsked", FailureClass::exit, kOwn, {}, 2, 0, 0, "retry"},
        PolicyCase{"ExitAsAskedAgain", FailureClass::exit, kOwn, {}, 2, 1, 0, "retry"},
        PolicyCase{"ExitNoMoreThanAsked", FailureClass::exit, kOwn, {}, 2, 2, 0, "no"},
        PolicyCase{"ABugAsAsked", FailureClass::exit, kBug, {}, 1, 0, 0, "retry"},
        PolicyCase{"CannotStartAsAsked", cannot_start, kBug, {}, 1, 0, 0, "retry"},
        PolicyCase{"TimeoutAsAsked", timeout, kOwn, {}, 1, 0, 0, "retry"},
        PolicyCase{"GpuLostFirst", gpu_lost, kBroken, {}, 0, 0, 0, "excused elsewhere"},
        PolicyCase{"GpuLostThird", gpu_lost, kBroken, {}, 0, 0, 2, "excused elsewhere"},
        PolicyCase{"GpuLostFourth", gpu_lost, kBroken, {}, 0, 0, 3, "no"},
        PolicyCase{"NodeLostFirst", node_lost, kBroken, {}, 0, 0, 0, "excused"},
        PolicyCase{"NodeLostFourth", node_lost, kBroken, {}, 0, 0, 3, "no"},
        PolicyCase{"NeighboursOomFirst", gpu_oom, kOther, {}, 0, 0, 0, "excused elsewhere"},
        PolicyCase{"NeighboursOomFourth", gpu_oom, kOther, {}, 0, 0, 3, "no"},
        PolicyCase{"PreemptedAlways", preempted, kOther, {}, 0, 0, 99, "free"},
        PolicyCase{"ExcusesAreCountedApart", gpu_lost, kBroken, {}, 2, 2, 0, "excused elsewhere"},
        PolicyCase{"OwnRetriesAreCountedApart", FailureClass::exit, kOwn, {}, 1, 0, 2, "retry"},
        PolicyCase{"AfterExcusesOnesOwn", gpu_lost, kBroken, {}, 1, 0, 3, "retry 600 elsewhere"},
        PolicyCase{"AfterBothNothing", gpu_lost, kBroken, {}, 1, 1, 3, "no"}),
    [](const auto& tested) { return tested.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Steps, Policy,
    ::testing::Values(
        PolicyCase{"FirstAtOnce", FailureClass::exit, kOwn, {}, 20, 0, 0, "retry"},
        PolicyCase{"SecondAtOnce", FailureClass::exit, kOwn, {}, 20, 1, 0, "retry"},
        PolicyCase{"ThirdAtOnce", FailureClass::exit, kOwn, {}, 20, 2, 0, "retry"},
        PolicyCase{"FourthWaits", FailureClass::exit, kOwn, {}, 20, 3, 0, "retry 600"},
        PolicyCase{"FifthAtOnce", FailureClass::exit, kOwn, {}, 20, 4, 0, "retry"},
        PolicyCase{"SixthAtOnce", FailureClass::exit, kOwn, {}, 20, 5, 0, "retry"},
        PolicyCase{"SeventhWaits", FailureClass::exit, kOwn, {}, 20, 6, 0, "retry 600"},
        PolicyCase{"TenthWaits", FailureClass::exit, kOwn, {}, 20, 9, 0, "retry 600"},
        PolicyCase{"AllKindsCount", FailureClass::exit, kOwn, {}, 20, 1, 2, "retry 600"},
        PolicyCase{"AfterEveryOne",
                   FailureClass::exit,
                   kOwn,
                   {{"max_retry_before_backoff", "1"}, {"backoff_duration", "5s"}},
                   20,
                   1,
                   0,
                   "retry 5"},
        PolicyCase{"TheFirstNever",
                   FailureClass::exit,
                   kOwn,
                   {{"max_retry_before_backoff", "1"}, {"backoff_duration", "5s"}},
                   20,
                   0,
                   0,
                   "retry"},
        PolicyCase{"Never",
                   FailureClass::exit,
                   kOwn,
                   {{"max_retry_before_backoff", "0"}},
                   20,
                   3,
                   0,
                   "retry"},
        PolicyCase{"AnotherLength",
                   FailureClass::exit,
                   kOwn,
                   {{"backoff_duration", "1h"}},
                   20,
                   3,
                   0,
                   "retry 3600"},
        PolicyCase{"TheLastIsFinal", FailureClass::exit, kOwn, {}, 3, 3, 0, "no"}),
    [](const auto& tested) { return tested.param.name; });

const std::vector<std::pair<const char*, const char*>> kExponential = {{"backoff", "exponential"},
                                                                       {"jitter", "0"}};
const std::vector<std::pair<const char*, const char*>> kTriple = {{"backoff", "exponential"},
                                                                  {"jitter", "0"},
                                                                  {"backoff_first", "2s"},
                                                                  {"backoff_factor", "3"},
                                                                  {"backoff_max", "50s"}};

INSTANTIATE_TEST_SUITE_P(
    Exponential, Policy,
    ::testing::Values(
        PolicyCase{"First", FailureClass::exit, kOwn, kExponential, 20, 0, 0, "retry 10"},
        PolicyCase{"Second", FailureClass::exit, kOwn, kExponential, 20, 1, 0, "retry 20"},
        PolicyCase{"Fifth", FailureClass::exit, kOwn, kExponential, 20, 4, 0, "retry 160"},
        PolicyCase{"Capped", FailureClass::exit, kOwn, kExponential, 20, 19, 0, "retry 3600"},
        PolicyCase{"CappedFarOut", FailureClass::exit, kOwn, kExponential, 1'000'000, 999'999, 0,
                   "retry 3600"},
        PolicyCase{"TripleFirst", FailureClass::exit, kOwn, kTriple, 9, 0, 0, "retry 2"},
        PolicyCase{"TripleThird", FailureClass::exit, kOwn, kTriple, 9, 2, 0, "retry 18"},
        PolicyCase{"TripleCapped", FailureClass::exit, kOwn, kTriple, 9, 3, 0, "retry 50"},
        PolicyCase{"ForExcusesToo", gpu_lost, kBroken, kTriple, 0, 0, 1, "excused 6 elsewhere"},
        PolicyCase{"NotForWhoGaveWay", preempted, kOther, kTriple, 0, 0, 1, "free"}),
    [](const auto& tested) { return tested.param.name; });

INSTANTIATE_TEST_SUITE_P(
    ByClass, Policy,
    ::testing::Values(
        PolicyCase{"ExitGiven", FailureClass::exit, kOwn, {{"exit", "1"}}, 0, 0, 0, "retry"},
        PolicyCase{"ExitGivenUsed", FailureClass::exit, kOwn, {{"exit", "1"}}, 0, 1, 0, "no"},
        PolicyCase{"ExitForbidden", FailureClass::exit, kOwn, {{"exit", "0"}}, 5, 0, 0, "no"},
        PolicyCase{
            "ExitDefault", FailureClass::exit, kOwn, {{"exit", "default"}}, 1, 0, 0, "retry"},
        PolicyCase{"OthersUntouched", host_oom, kOwn, {{"exit", "9"}}, 0, 0, 0, "no"},
        PolicyCase{"HostOomGiven", host_oom, kOwn, {{"host_oom", "2"}}, 0, 1, 0, "retry"},
        PolicyCase{"TimeoutGiven", timeout, kOwn, {{"timeout", "2"}}, 0, 0, 0, "retry"},
        PolicyCase{
            "CannotStartGiven", cannot_start, kBug, {{"cannot_start", "1"}}, 0, 0, 0, "retry"},
        PolicyCase{
            "CannotStartForbidden", cannot_start, kBug, {{"cannot_start", "0"}}, 9, 0, 0, "no"},
        PolicyCase{"GpuLostForbidden", gpu_lost, kBroken, {{"gpu_lost", "0"}}, 9, 0, 0, "no"},
        PolicyCase{"GpuLostOften",
                   gpu_lost,
                   kBroken,
                   {{"gpu_lost", "9"}, {"max_retry_before_backoff", "0"}},
                   0,
                   0,
                   8,
                   "excused elsewhere"},
        PolicyCase{"NodeLostForbidden", node_lost, kBroken, {{"node_lost", "0"}}, 0, 0, 0, "no"},
        PolicyCase{"NodeLostOnce", node_lost, kBroken, {{"node_lost", "1"}}, 0, 0, 1, "no"},
        PolicyCase{"PreemptedLimited", preempted, kOther, {{"preempted", "1"}}, 0, 0, 0, "excused"},
        PolicyCase{"PreemptedNoMore", preempted, kOther, {{"preempted", "1"}}, 0, 0, 1, "no"},
        PolicyCase{"NeighboursOomForbidden", gpu_oom, kOther, {{"gpu_oom", "0"}}, 9, 0, 0, "no"},
        PolicyCase{"NoExcuses", gpu_lost, kBroken, {{"not_its_fault", "0"}}, 0, 0, 0, "no"},
        PolicyCase{"NoExcusesButRetries",
                   gpu_lost,
                   kBroken,
                   {{"not_its_fault", "0"}},
                   1,
                   0,
                   0,
                   "retry elsewhere"},
        PolicyCase{"MoreExcuses", node_lost, kBroken, {{"not_its_fault", "5"}}, 0, 0, 4, "excused"},
        PolicyCase{
            "RequeueAtTheLimit", timeout, kOwn, {{"requeue_on_timeout", "true"}}, 0, 0, 0, "free"},
        PolicyCase{
            "RequeueForEver", timeout, kOwn, {{"requeue_on_timeout", "true"}}, 0, 99, 0, "free"},
        PolicyCase{"RequeueLimited",
                   timeout,
                   kOwn,
                   {{"requeue_on_timeout", "true"}, {"timeout", "2"}},
                   0,
                   2,
                   0,
                   "no"},
        PolicyCase{"RequeueIsForTimeouts",
                   FailureClass::exit,
                   kOwn,
                   {{"requeue_on_timeout", "true"}},
                   0,
                   0,
                   0,
                   "no"}),
    [](const auto& tested) { return tested.param.name; });

TEST(Backoff, JitterStaysWithinItsBounds) {
  RetryRules rules;
  rules.backoff = Backoff::exponential;
  rules.jitter = 20;
  bool shorter = false;
  bool longer = false;
  for (std::uint64_t lot = 0; lot < 10'000; ++lot) {
    const Millis wait = backoff(rules, 1, lot * 7919);
    EXPECT_GE(wait, Millis{8'000});
    EXPECT_LE(wait, Millis{12'000});
    shorter = shorter || wait < Millis{9'000};
    longer = longer || wait > Millis{11'000};
    EXPECT_EQ(wait, backoff(rules, 1, lot * 7919));
    EXPECT_LE(backoff(rules, 30, lot * 7919), rules.backoff_max);
  }
  EXPECT_TRUE(shorter && longer);
}

struct RaiseCase {
  const char* name;
  std::optional<Bytes> asked;
  MemoryFigures figures;
  std::optional<Bytes> peak;
  Bytes card;
  Bytes largest;
  const char* expected;
};

void PrintTo(const RaiseCase& c, std::ostream* out) {
  *out << c.name;
}

class Raise : public ::testing::TestWithParam<RaiseCase> {};

TEST_P(Raise, GoesUpToTheLargestCard) {
  const RaiseCase& c = GetParam();
  Finding finding{gpu_oom, Blame::own, "what"};
  finding.figures = c.figures;
  RetryCase job;
  job.request.gpus = {1, 1};
  job.request.gpu_memory = c.asked;
  job.peak = c.peak;
  job.card = c.card;
  job.largest = c.largest;
  const Retry retry = plan_retry(finding, job, RetryRules{});
  EXPECT_EQ(retry.next, c.expected);
  EXPECT_EQ(retry.again, retry.request.has_value());
  if (retry.request && c.asked) {
    EXPECT_TRUE(!retry.request->gpu_memory || *retry.request->gpu_memory > *c.asked);
  }
}

const MemoryFigures kNoFigures;
const MemoryFigures kTwelve{2 * kGiB, 24 * kGiB, 0, 8 * kGiB, 14 * kGiB};

INSTANTIATE_TEST_SUITE_P(
    Memory, Raise,
    ::testing::Values(RaiseCase{"ByHalfWithoutNumbers",
                                8 * kGiB,
                                kNoFigures,
                                {},
                                24 * kGiB,
                                24 * kGiB,
                                "trying again with 12 GiB"},
                      RaiseCase{"ByHalfOfWhatWasSeen", 4 * kGiB, kNoFigures, 8 * kGiB, 24 * kGiB,
                                24 * kGiB, "trying again with 12 GiB"},
                      RaiseCase{"ByTheMessagesNumbers",
                                9 * kGiB,
                                kTwelve,
                                {},
                                24 * kGiB,
                                24 * kGiB,
                                "trying again with 12 GiB"},
                      RaiseCase{"ByHalfWhenTheNumbersSayLess",
                                16 * kGiB,
                                kTwelve,
                                {},
                                48 * kGiB,
                                48 * kGiB,
                                "trying again with 24 GiB"},
                      RaiseCase{"ToAWholeCard",
                                20 * kGiB,
                                kNoFigures,
                                {},
                                24 * kGiB,
                                24 * kGiB,
                                "trying again with a whole card"},
                      RaiseCase{"ToALargerOne",
                                20 * kGiB,
                                kNoFigures,
                                {},
                                24 * kGiB,
                                80 * kGiB,
                                "trying again with 30 GiB"},
                      RaiseCase{"FromAWholeCardToALargerOne",
                                {},
                                kNoFigures,
                                {},
                                24 * kGiB,
                                80 * kGiB,
                                "trying again with a card of more than 24 GiB"},
                      RaiseCase{"NoFurther",
                                {},
                                kNoFigures,
                                {},
                                24 * kGiB,
                                24 * kGiB,
                                "gave up: it had a whole card of 24 GiB, the largest there is"}),
    [](const auto& tested) { return tested.param.name; });

TEST(Raising, FollowsWhenTheExcusesForLosingMemoryToOthersAreUsedUp) {
  Finding finding{gpu_oom, Blame::neighbour, "what"};
  RetryCase job;
  job.request.gpu_memory = 16 * kGiB;
  job.card = 24 * kGiB;
  job.largest = 24 * kGiB;
  job.excused = 2;
  EXPECT_EQ(plan_retry(finding, job, RetryRules{}).next,
            "trying again elsewhere (not its fault, 3 of 3)");
  job.excused = 3;
  Retry retry = plan_retry(finding, job, RetryRules{});
  EXPECT_EQ(shown(retry), "free elsewhere");
  EXPECT_EQ(retry.next, "trying again with a whole card");
  ASSERT_TRUE(retry.request);
  job.request = *retry.request;
  EXPECT_EQ(plan_retry(finding, job, RetryRules{}).next,
            "gave up after 3 retries that were not its fault; it had a whole card of 24 GiB, the "
            "largest there is");
}

TEST(Raising, DoesNotFollowWhereTheClassHasALimitOrNothingIsExcused) {
  const Finding finding{gpu_oom, Blame::neighbour, "what"};
  RetryCase job;
  job.request.gpu_memory = kGiB;
  job.largest = 24 * kGiB;
  RetryRules rules;
  rules.not_its_fault = 0;
  EXPECT_EQ(shown(plan_retry(finding, job, rules)), "no");
  job.excused = 1;
  rules.gpu_oom = 1;
  EXPECT_EQ(shown(plan_retry(finding, job, rules)), "no");
}

TEST(Raising, IsNotDoneWhereItIsNotWanted) {
  Finding finding{gpu_oom, Blame::own, "what"};
  RetryCase job;
  job.request.gpu_memory = kGiB;
  job.largest = 24 * kGiB;
  RetryRules rules;
  rules.raise_memory = false;
  EXPECT_EQ(shown(plan_retry(finding, job, rules)), "no");
  job.retries = 1;
  const Retry retry = plan_retry(finding, job, rules);
  EXPECT_EQ(shown(retry), "retry");
  EXPECT_FALSE(retry.request);
}

TEST(Raising, AsksForASizeThatPeopleCanRead) {
  const Finding finding{gpu_oom, Blame::own, "what"};
  RetryCase job;
  job.request.gpu_memory = 20 * kGiB;
  job.card = job.largest = 24564 * kMiB;
  const auto whole = plan_retry(finding, job, RetryRules{});
  ASSERT_TRUE(whole.request);
  EXPECT_EQ(whole.request->rules.at("min_free_memory"), "23296MiB");
  job.request = *whole.request;
  job.largest = 80 * kGiB;
  const auto larger = plan_retry(finding, job, RetryRules{});
  ASSERT_TRUE(larger.request);
  EXPECT_EQ(larger.request->rules.at("min_free_memory"), "24GiB");
}

TEST(Raising, CountsWhereTheClassHasALimit) {
  const Finding finding{gpu_oom, Blame::own, "what"};
  RetryCase job;
  job.request.gpu_memory = kGiB;
  job.largest = 24 * kGiB;
  RetryRules rules;
  rules.gpu_oom = 1;
  EXPECT_EQ(shown(plan_retry(finding, job, rules)), "retry");
  job.retries_used = 1;
  EXPECT_EQ(shown(plan_retry(finding, job, rules)), "no");
}

TEST(RetryRules, AreShownAsTheyAreSet) {
  Rules rules;
  for (const RuleDef& rule : rule_definitions()) {
    if (!rule.key.starts_with("retry_config.")) {
      continue;
    }
    const std::string text = rule.get(rules);
    EXPECT_TRUE(rule.set(rules, text)) << rule.key;
    EXPECT_EQ(rule.get(rules), text) << rule.key;
    EXPECT_EQ(rule.scope, RuleScope::any) << rule.key;
  }
  EXPECT_TRUE(set_rule(rules, "retry.backoff_duration", "2s"));
  EXPECT_EQ(rules.retry.backoff_duration, Millis{2'000});
  EXPECT_FALSE(set_rule(rules, "retry_config.exit", "often"));
  EXPECT_FALSE(set_rule(rules, "retry_config.backoff_factor", "0"));
  EXPECT_FALSE(set_rule(rules, "retry_config.backoff_factor", "1.5"));
  EXPECT_TRUE(set_rule(rules, "retry_config.backoff_factor", "1"));
}

}  // namespace
}  // namespace berth
