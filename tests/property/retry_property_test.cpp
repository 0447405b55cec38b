// Retries and their waits are exactly as configured.

#include <algorithm>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <rapidcheck/gtest.h>  // needs the one above

#include "core/retry.hpp"
#include "unit/core/world.hpp"

namespace berth::testing {
namespace {

constexpr Millis kSecond{1'000};

RC_GTEST_PROP(RetryProps, steps_wait_after_every_so_many_retries_and_never_else, ()) {
  const auto retries = *rc::gen::inRange(0U, 20U);
  const auto every = *rc::gen::inRange(0U, 6U);
  const auto wait = *rc::gen::inRange(1U, 1'000U);
  World w;
  w.set_queue("serial", 1);
  w.submit({a_cpu_job()
                .queue("serial")
                .retries(retries)
                .rule("retry_config.max_retry_before_backoff", fmt::format("{}", every))
                .rule("retry_config.backoff_duration", fmt::format("{}s", wait)),
            a_cpu_job().queue("serial")});
  RC_ASSERT(w.decide() == "1:-");
  for (std::uint32_t retry = 1; retry <= retries; ++retry) {
    const AttemptId before = w.attempt_of(1);
    w.fail(1);
    if (every > 0 && retry > 1 && (retry - 1) % every == 0) {
      // It keeps its place: nobody of its queue runs meanwhile.
      RC_ASSERT(w.decide().empty());
      w.pass(wait * kSecond - Millis{1});
      RC_ASSERT(w.decide().empty());
      w.pass(Millis{1});
    }
    RC_ASSERT(w.decide() == "1:-");
    RC_ASSERT(w.attempt_of(1) > before);
  }
  w.fail(1);
  RC_ASSERT(w.state.job(JobId{1}) == nullptr);
  RC_ASSERT(w.decide() == "2:-");  // the queue goes on
}

RC_GTEST_PROP(RetryProps, growing_waits_double_up_to_their_limit, ()) {
  const auto retries = *rc::gen::inRange(1U, 15U);
  const auto first = *rc::gen::inRange<std::int64_t>(1, 100);
  const auto most = *rc::gen::inRange<std::int64_t>(1, 10'000);
  World w;
  w.submit({a_cpu_job()
                .retries(retries)
                .rule("retry_config.backoff", "exponential")
                .rule("retry_config.jitter", "0")
                .rule("retry_config.backoff_first", fmt::format("{}s", first))
                .rule("retry_config.backoff_max", fmt::format("{}s", most))});
  RC_ASSERT(w.decide() == "1:-");
  for (std::uint32_t retry = 1; retry <= retries; ++retry) {
    w.fail(1);
    const Millis wait = std::min(first << (retry - 1), most) * kSecond;
    RC_ASSERT(w.decide().empty());
    w.pass(wait - Millis{1});
    RC_ASSERT(w.decide().empty());
    w.pass(Millis{1});
    RC_ASSERT(w.decide() == "1:-");
  }
}

RC_GTEST_PROP(RetryProps, waits_differ_by_the_jitter_at_most_and_are_never_beyond_their_limit, ()) {
  RetryRules rules;
  rules.backoff = Backoff::exponential;
  rules.backoff_first = *rc::gen::inRange<std::int64_t>(1, 1'000) * kSecond;
  rules.backoff_max = *rc::gen::inRange<std::int64_t>(1, 100'000) * kSecond;
  rules.backoff_factor = *rc::gen::inRange(1U, 5U);
  rules.jitter = *rc::gen::inRange(0U, 101U);
  const auto count = *rc::gen::inRange(1U, 40U);
  double plain = static_cast<double>(rules.backoff_first.count());
  for (std::uint32_t i = 1; i < count; ++i) {
    plain *= rules.backoff_factor;
  }
  const double most = static_cast<double>(rules.backoff_max.count());
  plain = std::min(plain, most);
  const double more_or_less = plain * rules.jitter / 100.0;
  const auto wait =
      static_cast<double>(backoff(rules, count, *rc::gen::arbitrary<std::uint64_t>()).count());
  RC_ASSERT(wait >= plain - more_or_less - 1);  // whole milliseconds
  RC_ASSERT(wait <= std::min(plain + more_or_less, most));
}

/// How many attempts a job makes that never gets on.
std::uint32_t attempts_of(const JobBuilder& job, FailureClass failure) {
  constexpr std::uint32_t kEnough = 100;
  World w;
  w.submit({job});
  std::uint32_t attempts = 0;
  while (attempts < kEnough && w.decide() == "1:-") {
    ++attempts;
    w.fail(1, failure);
  }
  return attempts;
}

JobBuilder a_stubborn_job(std::uint32_t retries) {
  return a_cpu_job().retries(retries).rule("retry_config.max_retry_before_backoff", "0");
}

RC_GTEST_PROP(RetryProps, a_class_with_a_rule_is_tried_again_as_often_as_it_says, ()) {
  const auto failure =
      *rc::gen::element(FailureClass::exit, FailureClass::gpu_oom, FailureClass::host_oom,
                        FailureClass::timeout, FailureClass::cannot_start, FailureClass::gpu_lost,
                        FailureClass::node_lost, FailureClass::preempted);
  const auto times = *rc::gen::inRange(0U, 12U);
  const auto job =
      a_stubborn_job(*rc::gen::inRange(0U, 12U))
          .rule(fmt::format("retry_config.{}", to_string(failure)), fmt::format("{}", times));
  RC_ASSERT(attempts_of(job, failure) == times + 1);
}

RC_GTEST_PROP(RetryProps, without_a_rule_own_failures_cost_retries_and_others_are_on_top, ()) {
  const auto retries = *rc::gen::inRange(0U, 12U);
  const auto excused = *rc::gen::inRange(0U, 12U);
  const auto job =
      a_stubborn_job(retries).rule("retry_config.not_its_fault", fmt::format("{}", excused));
  const auto own = *rc::gen::element(FailureClass::exit, FailureClass::host_oom,
                                     FailureClass::timeout, FailureClass::cannot_start);
  const auto other = *rc::gen::element(FailureClass::gpu_lost, FailureClass::node_lost);
  RC_ASSERT(attempts_of(job, own) == retries + 1);
  RC_ASSERT(attempts_of(job, other) == retries + excused + 1);
}

}  // namespace
}  // namespace berth::testing
