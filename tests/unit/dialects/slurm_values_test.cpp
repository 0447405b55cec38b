#include "dialects/slurm_values.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace berth {
namespace {

std::int64_t seconds(std::string_view text) {
  const auto time = parse_slurm_time(text);
  return time ? time->count() / 1000 : -1;
}

TEST(SlurmTime, AllForms) {
  EXPECT_EQ(seconds("90"), 90 * 60);
  EXPECT_EQ(seconds("90:30"), 90 * 60 + 30);
  EXPECT_EQ(seconds("2:30:10"), 2 * 3600 + 30 * 60 + 10);
  EXPECT_EQ(seconds("1-12"), 36 * 3600);
  EXPECT_EQ(seconds("1-12:30"), 36 * 3600 + 30 * 60);
  EXPECT_EQ(seconds("1-12:30:05"), 36 * 3600 + 30 * 60 + 5);
  EXPECT_EQ(seconds("UNLIMITED"), 0);
  EXPECT_EQ(seconds("infinite"), 0);
  for (const auto* wrong : {"", "x", "1:2:3:4", "1-", "-5", "1-1:1:1:1", "2h", "1:", ":1"}) {
    EXPECT_EQ(seconds(wrong), -1) << wrong;
  }
}

TEST(SlurmMemory, PlainNumbersAreMebibytes) {
  EXPECT_EQ(parse_slurm_memory("500").value_or(1), 500 * kMiB);
  EXPECT_EQ(parse_slurm_memory("16G").value_or(1), 16 * kGiB);
  EXPECT_EQ(parse_slurm_memory("16gb").value_or(1), 16 * kGiB);
  EXPECT_EQ(parse_slurm_memory("0").value_or(1), 0U);
  for (const auto* wrong : {"", "G", "1X", "-1", "4294967295T", "1.5G"}) {
    EXPECT_FALSE(parse_slurm_memory(wrong)) << wrong;
  }
}

std::string tasks(std::string_view text) {
  const auto array = parse_array(text);
  return array ? fmt::format("{} step {} limit {}", fmt::join(array->indices, ","), array->step,
                             array->limit)
               : "! " + array.error().message;
}

TEST(SlurmArray, ListsRangesStepsAndLimits) {
  EXPECT_EQ(tasks("0-3"), "0,1,2,3 step 1 limit 0");
  EXPECT_EQ(tasks("7"), "7 step 1 limit 0");
  EXPECT_EQ(tasks("0-15:4"), "0,4,8,12 step 4 limit 0");
  EXPECT_EQ(tasks("5,1,3-4,4%2"), "1,3,4,5 step 1 limit 2");
  EXPECT_EQ(tasks("4294967295"), "4294967295 step 1 limit 0");
  for (const auto* wrong : {"", "a", "3-1", "1-3:0", "1-", "1,,2", "1%0", "1%x", "-1"}) {
    EXPECT_TRUE(tasks(wrong).starts_with("! ")) << wrong;
  }
  EXPECT_NE(tasks("0-4000000000").find("more than 2000000 tasks"), std::string::npos);
}

TEST(SlurmPath, SignsBecomeWhatTheyMean) {
  const PathWords words{"{job_id}", "{first_id}", "7", "my job", "ann", "node1"};
  const auto fill = [&](std::string_view pattern) { return fill_path(pattern, words).path; };
  EXPECT_EQ(fill("slurm-%j.out"), "slurm-{job_id}.out");
  EXPECT_EQ(fill("%x/%A_%a-%u@%N"), "my job/{first_id}_7-ann@node1");
  EXPECT_EQ(fill("%4a %8j 100%% %n"), "0007 {job_id} 100% 0");
  EXPECT_EQ(fill("a\\%j"), "a%j") << "a backslash switches the signs off";
  EXPECT_EQ(fill("end%"), "end%");
  EXPECT_EQ(fill("{job_id}-{x}"), "{{job_id}}-{x}") << "braces of a path are its own";
  EXPECT_EQ(fill("%b"), "7");
  EXPECT_EQ(fill("a-%q.txt"), "a-%q.txt");
  EXPECT_EQ(fill_path("%j%q%r", words).unknown, "%q");
}

TEST(SlurmBeginTest, WaysToSayWhen) {
  const auto begin = [](std::string_view text) {
    const auto parsed = parse_slurm_begin(text);
    return parsed ? parsed->key + " " + parsed->value : "! " + parsed.error().message;
  };
  EXPECT_EQ(begin("now"), "in 0s");
  EXPECT_EQ(begin("now+60"), "in 60s");
  EXPECT_EQ(begin("now+1hour"), "in 3600s");
  EXPECT_EQ(begin("now+2days"), "in 172800s");
  EXPECT_EQ(begin("16:00"), "at 16:00");
  EXPECT_EQ(begin("4:30PM"), "at 16:30");
  EXPECT_EQ(begin("12:05:07AM"), "at 0:05:07");
  EXPECT_EQ(begin("noon"), "at 12:00");
  EXPECT_EQ(begin("tomorrow"), "at tomorrow");
  EXPECT_EQ(begin("2026-05-01T12:30:00"), "at 2026-05-01T12:30:00");
  for (const auto* wrong : {"", "now+", "now+2years", "now+x", "25:00", "13:00PM", "soon"}) {
    EXPECT_TRUE(begin(wrong).starts_with("! ")) << wrong;
  }
}

}  // namespace
}  // namespace berth
