#include "jobspec/launch_words.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "jobspec/matrix.hpp"

namespace berth {
namespace {

TEST(LaunchWords, TheFirstIdIsCountedBackFromEachJob) {
  std::vector<JobSpec> jobs(3);
  for (JobSpec& job : jobs) {
    job.payload.commands = {{true, {"echo {first_id} ${first_id} {job_id}"}}};
  }
  fill_first_id(jobs);
  EXPECT_EQ(jobs[0].payload.commands[0].argv[0], "echo {job_id} ${first_id} {job_id}");
  EXPECT_EQ(jobs[2].payload.commands[0].argv[0], "echo {job_id~2} ${first_id} {job_id}");
  EXPECT_EQ(protect_launch_words("{first_id} {job_id~2} {job_id~x}"),
            "{{first_id}} {{job_id~2}} {job_id~x}");
}

TEST(LaunchWords, AreDoubledSoThatALaunchGivesThemBack) {
  EXPECT_EQ(protect_launch_words("a {port} b"), "a {{port}} b");
  EXPECT_EQ(protect_launch_words("{{port}}"), "{{{port}}}");
  EXPECT_EQ(protect_launch_words("${port} {other} { port } {port"),
            "${port} {other} { port } {port");
  EXPECT_EQ(protect_launch_words("awk '{print $1}' {1..3}"), "awk '{print $1}' {1..3}");
}

/// A launch fills its words by the rule that a matrix fills its axes.
RC_GTEST_PROP(LaunchWordsProps, a_launch_changes_nothing, ()) {
  const auto pieces = *rc::gen::container<std::vector<std::string>>(
      rc::gen::elementOf(std::vector<std::string>{"{", "}", "$", "port", "job_id", " ", "x"}));
  std::string text;
  for (const auto& piece : pieces) {
    text += piece;
  }
  const Combination filled = {{"port", "<1>"}, {"job_id", "<2>"}};
  RC_ASSERT(substitute(protect_launch_words(text), filled) == text);
}

}  // namespace
}  // namespace berth
