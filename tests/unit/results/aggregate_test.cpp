#include <gtest/gtest.h>

#include <cmath>

#include "a_sweep.hpp"
#include "results/aggregate.hpp"
#include "results/known_metrics.hpp"
#include "results/numbers.hpp"

namespace berth {
namespace {

using Words = std::vector<std::string>;

TEST(AggregateTest, GivesMeanAndSampleDeviationOverSeeds) {
  const Results results = aggregate(a_sweep(), {}).value();
  EXPECT_EQ(results.by, Words{"lr"});
  EXPECT_EQ(results.metrics, (Words{"acc", "loss"}));
  ASSERT_EQ(results.groups.size(), 2U);
  const Summary& acc = results.groups[0].summaries[0];
  EXPECT_EQ(results.groups[0].key, Words{"0.1"});
  EXPECT_EQ(acc.n, 3U);
  EXPECT_DOUBLE_EQ(acc.mean.value(), 0.92);
  EXPECT_NEAR(acc.deviation.value(), 0.02, 1e-12);
  EXPECT_EQ(acc.min, 0.90);
  EXPECT_EQ(acc.max, 0.94);
  EXPECT_EQ(acc.missing, 0U);
}

TEST(AggregateTest, CountsWhatFailedAndWhatIsMissing) {
  const Results results = aggregate(a_sweep(), {}).value();
  const Group& group = results.groups[1];
  EXPECT_EQ(group.runs.size(), 3U);
  EXPECT_EQ(group.failed, 1U);
  const Summary& acc = group.summaries[0];
  EXPECT_EQ(acc.n, 1U);
  EXPECT_EQ(acc.missing, 1U);
  EXPECT_EQ(acc.mean, 0.81);
  EXPECT_EQ(acc.deviation, std::nullopt) << "of one run nothing is known";
  EXPECT_EQ(group.summaries[1].n, 2U);
}

TEST(AggregateTest, CountsUnfinishedRunsOnlyIfTold) {
  ResultsRequest request;
  request.partial = true;
  EXPECT_EQ(aggregate(a_sweep(), request)->groups[1].summaries[0].n, 2U);
  Runs runs{a_run(1, {}, {{"acc", {0.5}}}, End::not_yet)};
  const Results waiting = aggregate(runs, {}).value();
  EXPECT_EQ(waiting.groups[0].summaries[0].mean, std::nullopt);
  EXPECT_EQ(waiting.groups[0].summaries[0].missing, 1U);
}

TEST(AggregateTest, TakesTheValueThatIsAskedFor) {
  ResultsRequest request;
  request.take = Take::best;
  EXPECT_NEAR(aggregate(a_sweep(), request)->groups[0].summaries[1].mean.value(), 0.29, 1e-12);
  request.take = Take::first;
  EXPECT_EQ(aggregate(a_sweep(), request)->groups[0].summaries[0].min, 0.4);
  request.take = Take::max;
  EXPECT_EQ(aggregate(a_sweep(), request)->groups[0].summaries[1].max, 1.1);
}

TEST(AggregateTest, GroupsByWhatIsAskedFor) {
  ResultsRequest request;
  request.by = Words{"seed"};
  const Results by_seed = aggregate(a_sweep(), request).value();
  ASSERT_EQ(by_seed.groups.size(), 3U);
  EXPECT_EQ(by_seed.groups[0].summaries[0].n, 2U);
  request.by = Words{};
  EXPECT_EQ(aggregate(a_sweep(), request)->groups.size(), 1U);
  request.by = Words{"name"};
  EXPECT_EQ(aggregate(a_sweep(), request)->groups.size(), 6U);
  request.by = Words{"rate"};
  EXPECT_EQ(aggregate(a_sweep(), request).error().message,
            "no run has a parameter 'rate'; there are lr, seed");
  request.by.reset();
  request.over = {"lr", "seed"};
  EXPECT_EQ(aggregate(a_sweep(), request)->groups.size(), 1U);
}

TEST(AggregateTest, RunsWithoutParametersStandForThemselves) {
  Runs runs{a_run(7, {}, {{"acc", {0.5}}}), a_run(8, {}, {{"acc", {0.6}}})};
  runs[1].name.clear();
  const Results results = aggregate(runs, {}).value();
  EXPECT_EQ(results.by, Words{"name"});
  EXPECT_EQ(results.groups[0].key, Words{"run-7"});
  EXPECT_EQ(results.groups[1].key, Words{"job 8"});
}

TEST(AggregateTest, FindsTheBest) {
  ResultsRequest request;
  request.best = parse_best("max:acc").value();
  const Results results = aggregate(a_sweep(), request).value();
  EXPECT_EQ(results.best_group, 0U);
  EXPECT_EQ(results.runs[results.best_run.value()].job, 3U);
  EXPECT_TRUE(results.groups[0].best);
  request.best = parse_best("accuracy").value();
  EXPECT_EQ(aggregate(a_sweep(), request)->best_group, 0U) << "acc by its other name";
  request.best = parse_best("max:f1").value();
  EXPECT_EQ(aggregate(a_sweep(), request).error().message,
            "no run tells of 'f1'; there are acc, loss");
}

TEST(AggregateTest, KnowsWhichWayIsBetter) {
  EXPECT_TRUE(parse_best("acc")->highest);
  EXPECT_FALSE(parse_best("val_loss")->highest);
  EXPECT_FALSE(parse_best("min:acc")->highest);
  EXPECT_TRUE(parse_best("max:loss")->highest);
  EXPECT_FALSE(parse_best("most:acc"));
  EXPECT_FALSE(parse_best("max:"));
  EXPECT_FALSE(parse_best(""));
}

TEST(AggregateTest, ShowsWhatPeopleWantToSeeFirst) {
  const Runs runs{a_run(1, {},
                        {{"train_loss", {1}},
                         {"train_acc", {1}},
                         {"val_loss", {1}},
                         {"test_acc", {1}},
                         {"samples", {1}},
                         {"acc", {1}}})};
  const Results results = aggregate(runs, {}).value();
  EXPECT_EQ(results.metrics, (Words{"test_acc", "val_loss", "acc", "train_acc"}));
  EXPECT_EQ(results.other_metrics, (Words{"train_loss", "samples"}));
  ResultsRequest request;
  request.metrics = {"samples", "nothing"};
  EXPECT_EQ(aggregate(runs, request)->metrics, (Words{"samples", "nothing"}));
}

TEST(NumbersTest, HaveAsManyDigitsAsMeanSomething) {
  EXPECT_EQ(format_value(0.931234), "0.9312");
  EXPECT_EQ(format_value(93.1234), "93.12");
  EXPECT_EQ(format_value(1234.56), "1234.6");
  EXPECT_EQ(format_value(123456), "123456");
  EXPECT_EQ(format_value(0), "0");
  EXPECT_EQ(format_value(-0.0), "0");
  EXPECT_EQ(format_value(0.000012345), "1.23e-05");
  EXPECT_EQ(format_value(1.5e9), "1.5e+09");
  const auto spread = [](double mean, std::optional<double> deviation) {
    const Spread text = format_spread(mean, deviation);
    return text.mean + "|" + text.deviation;
  };
  EXPECT_EQ(spread(0.93124, 0.00432), "0.9312|0.0043");
  EXPECT_EQ(spread(93.124, 1.234), "93.1|1.2");
  EXPECT_EQ(spread(12345.6, 321.0), "12346|321");
  EXPECT_EQ(spread(0.5, 0.0), "0.5|0");
  EXPECT_EQ(spread(0.5, std::nullopt), "0.5|");
  EXPECT_EQ(spread(1e-6, 2e-7), "1e-06|2e-07");
}

}  // namespace
}  // namespace berth
