#include "api/report.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace berth {
namespace {

TEST(Report, ALineReadsBackAsItWasWritten) {
  ReportLine line;
  line.state = ReportedState::abnormal_exit;
  line.error_type = "o\"o\nm";
  line.pid = 12;
  line.metrics = {{"acc", 0.93}, {"loss", std::nullopt}};
  line.step = 3;
  line.wall = Millis(1'700'000'000'000);
  const std::string text = encode_report(line);
  EXPECT_EQ(std::ranges::count(text, '\n'), 1);
  EXPECT_EQ(decode_reports(text), std::vector{line});
}

TEST(Report, TheLastStateCounts) {
  const auto lines = decode_reports(
      "{\"state\": \"running\"}\n"
      "{\"state\": \"abnormal_exit\", \"error_type\": \"oom\"}\r\n"
      "{\"metrics\": {\"acc\": 1}, \"step\": 1}\n");
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(last_state(lines), (SelfReport{ReportedState::abnormal_exit, "oom"}));
  EXPECT_EQ(lines[2].metrics.at("acc"), 1.0);
}

TEST(Report, WhatIsNoReportIsLeftOut) {
  EXPECT_TRUE(decode_reports("").empty());
  const auto lines = decode_reports(
      "garbage\n\xff\xfe\n[1]\n{\"state\": 5, \"pid\": -1, \"step\": 1e99, \"metrics\": 4}\n{\"st");
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(lines[0], ReportLine{});
}

}  // namespace
}  // namespace berth
