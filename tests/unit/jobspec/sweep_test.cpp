#include "jobspec/sweep.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace berth {
namespace {

JobSpec train(std::vector<std::string> words) {
  JobSpec job;
  job.name = "train";
  job.payload.commands = {{false, std::move(words)}};
  return job;
}

Matrix two_axes() {
  Matrix matrix;
  EXPECT_TRUE(matrix.add_axis({"lr", {"0.1", "0.2"}}));
  EXPECT_TRUE(matrix.add_axis({"seed", {"1", "2"}}));
  return matrix;
}

TEST(Sweep, MakesOneJobForEachCombination) {
  JobSpec job = train({"python", "t.py", "--lr={lr}", "{seed}", "{{seed}}", "{{other}}", "{port}"});
  job.payload.log = "/logs/{lr}.{seed}.log";
  job.payload.extra_env = {"SEED={seed}"};
  const auto file = make_sweep(two_axes(), job);
  ASSERT_TRUE(file) << file.error().message;
  ASSERT_EQ(file->jobs.size(), 4U);
  EXPECT_TRUE(file->warnings.empty());
  EXPECT_EQ(file->name, "train");
  const JobSpec& one = file->jobs[1];
  EXPECT_EQ(one.name, "train-0.1-2");
  EXPECT_EQ(
      one.payload.commands[0].argv,
      (std::vector<std::string>{"python", "t.py", "--lr=0.1", "2", "{seed}", "{other}", "{port}"}));
  EXPECT_EQ(one.payload.log, "/logs/0.1.2.log");
  EXPECT_EQ(one.payload.extra_env, Environment{"SEED=2"});
  EXPECT_EQ(one.payload.params, (std::map<std::string, std::string>{{"lr", "0.1"}, {"seed", "2"}}));
}

TEST(Sweep, APlaceThatNothingFillsIsAnError) {
  const auto file = make_sweep(two_axes(), train({"t", "{lr}", "{sed}"}));
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().message, "nothing fills '{sed}'; did you mean '{seed}'?");
  const auto stranger = make_sweep(two_axes(), train({"awk", "{print}", "{lr}", "{seed}"}));
  ASSERT_FALSE(stranger);
  EXPECT_EQ(stranger.error().message,
            "nothing fills '{print}'; '{{print}}' gives the braces themselves");
  JobSpec named = train({"t", "{lr}", "{seed}"});
  named.name = "t-{sed}";
  EXPECT_EQ(make_sweep(two_axes(), named).error().message,
            "nothing fills '{sed}'; did you mean '{seed}'?");
  named.name = "t-{job_id}";
  EXPECT_FALSE(make_sweep(two_axes(), named)) << "a name is there before the job";
  named.name = "t-{lr}-{seed}";
  EXPECT_TRUE(make_sweep(two_axes(), named));
}

TEST(Sweep, AnAxisThatStandsNowhereIsAWarning) {
  const auto file = make_sweep(two_axes(), train({"t", "{lr}"}));
  ASSERT_TRUE(file);
  ASSERT_EQ(file->warnings.size(), 1U);
  EXPECT_NE(file->warnings[0].find("axis 'seed' stands nowhere"), std::string::npos);
}

TEST(Sweep, AnAxisThatHidesAWordIsAWarning) {
  Matrix matrix;
  ASSERT_TRUE(matrix.add_axis({"port", {"1", "2"}}));
  const auto file = make_sweep(matrix, train({"t", "{port}"}));
  ASSERT_TRUE(file);
  EXPECT_EQ(file->warnings,
            std::vector<std::string>{"the axis 'port' hides what '{port}' stands for "
                                     "when a job starts; give it another name"});
}

TEST(Sweep, EveryCombinationFillsEveryPlace) {
  Matrix matrix;
  ASSERT_TRUE(matrix.add_combination({{"a", "1"}, {"b", "2"}}));
  ASSERT_TRUE(matrix.add_combination({{"a", "3"}}));
  const auto file = make_sweep(matrix, train({"t", "{a}", "{b}"}));
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().message, "the combination 'a=3' has no value for '{b}'");
}

TEST(Sweep, TheSameCombinationTwiceIsAnError) {
  Matrix matrix;
  ASSERT_TRUE(matrix.add_combination({{"a", "1"}}));
  ASSERT_TRUE(matrix.add_combination({{"a", "1"}}));
  EXPECT_FALSE(make_sweep(matrix, train({"t", "{a}"})));
}

}  // namespace
}  // namespace berth
