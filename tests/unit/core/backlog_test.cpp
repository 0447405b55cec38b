// What holds up everything that waits, and what has to end so that a job fits.

#include <gtest/gtest.h>

#include "core/backlog.hpp"
#include "core/preview.hpp"
#include "unit/core/policy_table.hpp"

namespace berth::testing {
namespace {

std::string foretold(const World& w, std::uint64_t job) {
  const auto outlook = foretell(w.state, *w.state.job(JobId{job}), w.now);
  return outlook ? describe(*outlook) : std::string();
}

TEST(Foretell, NamesOnlyTheJobsThatHaveToEnd) {
  World w;
  w.see_idle(1);
  w.submit(copies(2, a_job().memory(10 * kGiB)));
  w.submit({a_job().memory(10 * kGiB)});
  EXPECT_EQ(w.decide(), "1:0 2:0");
  EXPECT_EQ(foretold(w, 3), "GPU 0 would fit when job 1 ends");
}

TEST(Foretell, NamesAllOfThemWhereAllHaveToEnd) {
  World w;
  w.see_idle(1);
  w.submit(copies(2, a_job().memory(10 * kGiB)));
  w.submit({a_job()});
  EXPECT_EQ(w.decide(), "1:0 2:0");
  EXPECT_EQ(foretold(w, 3), "GPU 0 would fit when jobs 1, 2 end");
}

TEST(Foretell, KnowsWhenFromTimeLimits) {
  World w;
  w.see_idle(2);
  w.submit({a_job().time(kHour), a_job().time(2 * kHour), a_job()});
  EXPECT_EQ(w.decide(), "1:0 2:1");
  EXPECT_EQ(foretold(w, 3), "GPU 0 would fit when job 1 ends, within 1h 00m");
}

TEST(Foretell, SaysNothingWhereStrangersAreInTheWay) {
  World w;
  w.see({a_gpu(0).utilization(90).with(a_stranger().memory(20 * kGiB).utilization(90))});
  w.submit({a_job()});
  w.decide();
  EXPECT_EQ(foretold(w, 1), "");
}

TEST(BacklogOf, CountsThoseThatAreHeld) {
  World w;
  w.submit(copies(3, a_cpu_job()));
  ASSERT_TRUE(w.apply(event::Pause{{JobId{1}, JobId{3}}}));
  EXPECT_EQ(w.decide(), "2:-");
  const Backlog found = backlog(w.state, w.now);
  EXPECT_EQ(found.waiting, 2U);
  ASSERT_EQ(found.holdups.size(), 1U);
  EXPECT_EQ(found.holdups[0].reason.kind, Reason::Kind::held);
  EXPECT_EQ(found.holdups[0].jobs, 2U);
  EXPECT_EQ(found.holdups[0].first, JobId{1});
}

TEST(BacklogOf, CountsAllThatAreHeldHoweverMany) {
  World w;
  constexpr std::size_t kJobs = 1'000;
  w.submit(copies(kJobs, a_cpu_job()));
  std::vector<JobId> all;
  for (std::uint64_t id = 1; id <= kJobs; ++id) {
    all.push_back(JobId{id});
  }
  ASSERT_TRUE(w.apply(event::Pause{all}));
  const Backlog found = backlog(w.state, w.now);
  EXPECT_EQ(found.waiting, kJobs);
  ASSERT_EQ(found.holdups.size(), 1U);
  EXPECT_EQ(found.holdups[0].jobs, kJobs);
}

TEST(PreviewOf, SaysHowManyWaitAsTheFirstDoes) {
  World w;
  w.see_idle(4);
  w.set_queue("night", 1);
  w.submit(copies(3, a_job().queue("night")));
  EXPECT_EQ(w.decide(), "1:0");
  w.submit(copies(150, a_job()));
  EXPECT_EQ(w.decide(), "4:1 5:2 6:3");
  const auto preview =
      preview_rules(w.state, event::SetRules{{{"max_concurrent", "1"}}}, w.now, 100);
  ASSERT_TRUE(preview);
  ASSERT_EQ(preview->waits.size(), 2U);
  EXPECT_EQ(preview->waits[0].id, JobId{2});
  EXPECT_EQ(preview->waits[0].jobs, 2U) << "the queue is busy: both wait for the one that runs";
  EXPECT_EQ(preview->waits[1].id, JobId{7});
  EXPECT_EQ(preview->waits[1].jobs, 147U);
  EXPECT_FALSE(preview->more);
}

TEST(PreviewOf, CountsOnlyTheFirstOfASerialQueueThatIsIdle) {
  World w;
  w.see_idle(1);
  w.submit({a_job()});
  EXPECT_EQ(w.decide(), "1:0");
  w.set_queue("night", 1);
  w.submit(copies(3, a_job().queue("night")));
  EXPECT_EQ(w.decide(), "");
  const auto preview = preview_rules(w.state, event::SetRules{{{"gpus", "7"}}}, w.now, 100);
  ASSERT_TRUE(preview);
  ASSERT_EQ(preview->waits.size(), 1U);
  EXPECT_EQ(preview->waits[0].id, JobId{2});
  EXPECT_EQ(preview->waits[0].jobs, 1U) << "the others wait for it, as before";
}

TEST(BacklogOf, CountsAllThatFollowOneJobHoweverMany) {
  World w;
  constexpr std::size_t kFollowers = 500;
  w.see_idle(1);
  w.submit({a_job().gpus(4)});
  w.submit(copies(kFollowers, a_cpu_job().after(1)));
  w.submit(copies(3, a_cpu_job().after(2)));
  w.decide();
  const Backlog found = backlog(w.state, w.now);
  EXPECT_EQ(found.waiting, kFollowers + 4);
  ASSERT_EQ(found.holdups.size(), 3U);
  EXPECT_EQ(found.holdups[0].jobs, kFollowers);
  EXPECT_EQ(found.holdups[0].first, JobId{2});
  EXPECT_EQ(found.holdups[0].reason.text, "waits for job 1 to succeed");
  EXPECT_EQ(found.holdups[1].jobs, 3U);
}

TEST(Behind, AJobThatIsToBeTriedAgainOthersWaitInASerialQueue) {
  World w;
  w.rule("retry_config.max_retry_before_backoff", "1");
  w.rule("retry_config.backoff_duration", "20s");
  w.set_queue("car", 1);
  w.submit(copies(3, a_cpu_job().queue("car").retries(5)));
  for (int attempt = 1; attempt <= 2; ++attempt) {
    EXPECT_EQ(w.decide(), "1:-");
    w.fail(1);
  }
  EXPECT_EQ(w.decide(), "");
  w.wait(Millis{3'000});
  EXPECT_EQ(w.said(1), "is tried again in 17 s");
  const auto reasons = explain(w.state, *w.state.job(JobId{3}), w.now);
  ASSERT_EQ(reasons.size(), 1U);
  EXPECT_EQ(reasons[0].text,
            "job 1 of the serial queue 'car' goes first and is tried again in 17 s");
  EXPECT_EQ(reasons[0].jobs, std::vector{JobId{1}});
  EXPECT_EQ(reasons[0].facts.numbers.at("in_ms"), 17'000U);
  for (std::uint64_t job = 1; job <= 3; ++job) {
    EXPECT_EQ(jobs_ahead(w.state, *w.state.job(JobId{job}), 100), job - 1);
  }
  EXPECT_EQ(jobs_ahead(w.state, *w.state.job(JobId{3}), 1), 1U);
}

TEST(Behind, AJobThatIsToBeTriedAgainNobodyWaitsInAWideQueue) {
  World w;
  w.rule("retry_config.max_retry_before_backoff", "1");
  w.rule("max_concurrent", "1");
  w.submit({a_cpu_job().retries(5)});
  for (int attempt = 1; attempt <= 2; ++attempt) {
    EXPECT_EQ(w.decide(), "1:-");
    w.fail(1);
  }
  w.submit({a_cpu_job()});
  EXPECT_EQ(jobs_ahead(w.state, *w.state.job(JobId{1}), 100), std::nullopt);
  EXPECT_EQ(jobs_ahead(w.state, *w.state.job(JobId{2}), 100), 0U);
}

TEST(BacklogOf, CountsAHeldFollowerOnce) {
  World w;
  w.submit({a_cpu_job(), a_cpu_job().after_index(0)});
  ASSERT_TRUE(w.apply(event::Pause{{JobId{2}}}));
  EXPECT_EQ(w.decide(), "1:-");
  EXPECT_EQ(backlog(w.state, w.now).waiting, 1U);
}

TEST(Reasons, HaveWhatTheirSentencesAreMadeOf) {
  World w;
  w.see_idle(1);
  w.set_queue("night", 1);
  w.submit(copies(2, a_job().queue("night")));
  w.submit({a_job().memory(30 * kGiB), a_cpu_job().after(1)});
  EXPECT_EQ(w.decide(), "1:0");
  const auto first = [&](std::uint64_t job) {
    return explain(w.state, *w.state.job(JobId{job}), w.now).front();
  };
  using Numbers = std::map<std::string, std::uint64_t>;
  using Names = std::map<std::string, std::string>;
  EXPECT_EQ(first(2).facts.numbers, (Numbers{{"limit", 1}}));
  EXPECT_EQ(first(2).facts.names, (Names{{"queue", "night"}}));
  EXPECT_EQ(first(3).facts.numbers,
            (Numbers{{"asked", 1}, {"fitting", 0}, {"possible", 0}, {"total", 1}}));
  ASSERT_EQ(first(3).gpus.size(), 1U);
  EXPECT_EQ(describe(first(3).gpus[0]), "GPU 0: " + describe_alone(first(3).gpus[0]));
  EXPECT_EQ(first(4).facts.names, (Names{{"outcome", "ok"}}));
  EXPECT_EQ(first(4).jobs, std::vector{JobId{1}});
  // The same in the list of what holds up everything.
  for (const Holdup& holdup : backlog(w.state, w.now).holdups) {
    EXPECT_EQ(holdup.reason.facts.numbers, first(holdup.first.value).facts.numbers);
    EXPECT_EQ(holdup.reason.text, first(holdup.first.value).text);
  }
}

}  // namespace
}  // namespace berth::testing
