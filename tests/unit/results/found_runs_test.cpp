#include "results/found_runs.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace berth {
namespace {

Series series(std::initializer_list<double> values) {
  Series out;
  double x = 0;
  for (const double value : values) {
    out.add(value, x++);
  }
  return out;
}

TEST(FoundRunsTest, EveryNumberArrivesAsItWas) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  FoundRuns found;
  found.runs.push_back({7, {{"acc", series({0.57, 0.1 + 0.2, 0.93})}, {"loss", series({1e-310})}}});
  found.runs.push_back({9, {{"acc", series({kNan, 1.0 / 3, INFINITY})}}});
  found.next = 9;
  found.warnings = {"job 7: \"odd\""};
  const auto again = decode_found_runs(encode(found, Curves::told));
  ASSERT_TRUE(again) << again.error().message;
  ASSERT_EQ(again->runs.size(), 2U);
  EXPECT_EQ(again->runs[1].job, 9U);
  EXPECT_EQ(again->next, 9U);
  EXPECT_EQ(again->warnings, found.warnings);
  for (std::size_t i = 0; i < 2; ++i) {
    for (const auto& [name, before] : found.runs[i].metrics) {
      const Series& after = again->runs[i].metrics.at(name);
      for (const Take take :
           {Take::last, Take::best, Take::max, Take::min, Take::first, Take::mean}) {
        EXPECT_EQ(after.taken(take, false), before.taken(take, false)) << name;
      }
      EXPECT_EQ(after.count(), before.count());
      EXPECT_EQ(after.points(), before.points());
    }
  }
  const auto plain = decode_found_runs(encode(found, Curves::left_out));
  ASSERT_TRUE(plain);
  EXPECT_TRUE(plain->runs[0].metrics.at("acc").points().empty());
  EXPECT_EQ(plain->runs[0].metrics.at("acc").taken(Take::last, false), 0.93);
}

TEST(FoundRunsTest, WhatIsNoneIsRefused) {
  for (
      const char* text :
      {"", "[]", "{}", R"({"runs":[{"job":1}],"next":null,"warnings":[]})",
       R"({"runs":[{"job":-1,"metrics":{}}],"next":null,"warnings":[]})",
       R"({"runs":[{"job":1,"metrics":{"a":{"count":1,"finite":1,"first":"x"}}}],"next":null,"warnings":[]})"}) {
    EXPECT_FALSE(decode_found_runs(text)) << text;
  }
}

}  // namespace
}  // namespace berth
