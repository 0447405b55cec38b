#include "cli/table.hpp"

#include <gtest/gtest.h>

#include <sstream>

#include "cli/describe.hpp"

namespace berth::cli {
namespace {

Screen wide(std::size_t width) {
  Screen screen;
  screen.width = width;
  return screen;
}

TEST(TableTest, AlignsColumnsAndDropsEmptyOnes) {
  Table table({{"ID", Align::right}, {"NAME"}, {"EMPTY"}, {"X", Align::right}});
  table.add({{"1"}, {"long name"}, {""}, {"5"}});
  table.add({{"100"}, {"n"}, {""}, {""}});
  EXPECT_EQ(table.render({}),
            " ID  NAME       X\n"
            "  1  long name  5\n"
            "100  n\n");
}

TEST(TableTest, TheWidestColumnGivesWay) {
  Table table({{"A"}, {"B"}});
  table.add({{"short"}, {std::string(100, 'x')}});
  EXPECT_EQ(table.render(wide(17)), "A      B\nshort  xxxxxxxxx…\n");
}

TEST(TableTest, NoLineIsWiderThanTheScreenWhereThatIsPossible) {
  Table table({{"ONE"}, {"TWO", Align::right}, {"THREE"}});
  table.add({{"日本語の名前がとても長い"}, {"1234567890"}, {"caf\u00e9 caf\u00e9 caf\u00e9"}});
  for (std::size_t width = 13; width < 80; ++width) {
    std::istringstream lines(table.render(wide(width)));
    for (std::string line; std::getline(lines, line);) {
      EXPECT_LE(display_width(line), width) << line;
    }
  }
  EXPECT_NE(table.render(wide(1)), "");  // too narrow for anything, but no endless loop
}

TEST(TableTest, WhatMattersLeastIsLeftOutFirst) {
  Table table({{"ID", Align::right, 99},
               {"NAME", Align::left, 6},
               {"WHEN", Align::left, 99, 2},
               {"WHERE", Align::left, 99, 1},
               {"STATE", Align::left, 99}});
  table.add({{"1"}, {"a-long-name"}, {"3m ago"}, {"here"}, {"succeeded"}});
  EXPECT_EQ(table.render(wide(45)),
            "ID  NAME         WHEN    WHERE  STATE\n"
            " 1  a-long-name  3m ago  here   succeeded\n");
  EXPECT_EQ(table.render(wide(38)),
            "ID  NAME      WHEN    WHERE  STATE\n"
            " 1  a-long-…  3m ago  here   succeeded\n");
  EXPECT_EQ(table.render(wide(30)),
            "ID  NAME      WHERE  STATE\n"
            " 1  a-long-…  here   succeeded\n");
  EXPECT_EQ(table.render(wide(21)),
            "ID  NAME    STATE\n"
            " 1  a-lon…  succeeded\n");
}

TEST(TableTest, ColoursOnlyWhereTheScreenHasThem) {
  Table table({{"A"}});
  table.add({{"x", Style::bad}});
  EXPECT_EQ(table.render({}), "A\nx\n");
  Screen screen;
  screen.color = true;
  EXPECT_EQ(table.render(screen), "\x1b[2mA\x1b[0m\n\x1b[31mx\x1b[0m\n");
}

TEST(TerminalTest, StyledLinesAreCutByWhatIsSeen) {
  const std::string red = "\x1b[31mfailed\x1b[0m ok";
  EXPECT_EQ(shorten_styled(red, 9), red);
  EXPECT_EQ(shorten_styled(red, 8), "\x1b[31mfailed\x1b[0m …");
  EXPECT_EQ(shorten_styled(red, 4), "\x1b[31mfai…\x1b[0m");
  EXPECT_EQ(shorten_styled("plain", 5), "plain");
}

TEST(TerminalTest, NothingAJobNamedReachesTheTerminalAsACommand) {
  EXPECT_EQ(printable("a\x1b[31mb\nc\td\x7f"), "a\\x1b[31mb\\nc\\td\\x7f");
  EXPECT_EQ(printable("\xC2\x9B"), "\\x9b");
  EXPECT_EQ(printable("caf\u00e9 \xFF"), "caf\u00e9 \uFFFD");
}

TEST(TerminalTest, MeasuresAndCutsByColumns) {
  EXPECT_EQ(display_width("abc"), 3U);
  EXPECT_EQ(display_width("caf\u00e9"), 4U);
  EXPECT_EQ(display_width("cafe\u0301"), 4U);
  EXPECT_EQ(display_width("日本"), 4U);
  EXPECT_EQ(shorten("abcdef", 6), "abcdef");
  EXPECT_EQ(shorten("abcdef", 4), "abc…");
  EXPECT_EQ(shorten("日本語", 4), "日…");
  EXPECT_EQ(shorten("abc", 0), "");
}

TEST(TerminalTest, TellsTimesAsPeopleDo) {
  const Millis now(1'700'000'000'000);
  const auto ago = [&](std::chrono::seconds time) { return relative_time(now - time, now); };
  using namespace std::chrono_literals;
  EXPECT_EQ(ago(1s), "just now");
  EXPECT_EQ(ago(59s), "59s ago");
  EXPECT_EQ(ago(3min + 59s), "3m ago");
  EXPECT_EQ(ago(25h), "25h ago");
  EXPECT_EQ(ago(72h), "3d ago");
  EXPECT_EQ(ago(-1min), "in the future");
}

TEST(DescribeTest, JobsSayHowTheyEnded) {
  JobView job;
  job.state = JobState::failed;
  job.exit_code = 3;
  job.failure_class = FailureClass::exit;
  EXPECT_EQ(failure_text(job), "exit 3");
  job.failure_class = FailureClass::timeout;
  job.exit_code = {};
  EXPECT_EQ(failure_text(job), "timeout");
  job.state = JobState::queued;
  job.reason = "all GPUs are busy";
  EXPECT_EQ(remark(job), "all GPUs are busy");
  job.gpus = {1, 4};
  job.gpu_memory = 8 * kGiB;
  EXPECT_EQ(gpu_request(job), "1..4 × 8 GiB");
  job.state = JobState::running;
  job.started_at = Millis(10'000);
  EXPECT_EQ(run_time(job, Millis(5'000)), format_duration(Millis(0)));  // the clock went back
}

TEST(DescribeTest, UnknownGpuFactsAreShownAsUnknown) {
  GpuView gpu;
  gpu.name = "A100";
  gpu.state = "unknown";
  const std::string table = gpu_table({gpu}, {});
  EXPECT_NE(table.find("? / ?"), std::string::npos) << table;
  EXPECT_EQ(table.find("0 B"), std::string::npos) << table;
}

TEST(DescribeTest, CardsTellOfJobsThatTheyWereNotGivenTo) {
  GpuView gpu;
  gpu.claims = {{3, 5, {}}};
  gpu.processes.emplace();
  for (const std::uint64_t job : {3U, 7U, 7U, 0U}) {
    GpuProcessView& process = gpu.processes->emplace_back();
    process.pid = 81;
    process.name = "python";
    process.job = job;
  }
  const std::string table = gpu_table({gpu}, {});
  EXPECT_NE(table.find("3     job 7 (strays), 81 python\n"), std::string::npos) << table;
}

TEST(DescribeTest, CardsThatWereNotLookedAtAreNotCalledTaken) {
  StatusView status;
  EXPECT_NE(status_text(status, {}).find("GPUs: not looked at yet"), std::string::npos);
  status.gpus.resize(2);
  status.gpus[0].state = "free";
  status.gpus[1].state = "claimed";
  status.probe.age = Millis(100);
  EXPECT_NE(status_text(status, {}).find("GPUs: 1 of 2 free\n"), std::string::npos);
  status.gpus[0].state = status.gpus[1].state = "unknown";
  status.probe.age = Millis(100'000);
  const std::string text = status_text(status, {});
  EXPECT_NE(text.find("GPUs: 2 of 2 cannot be judged, last seen 1m"), std::string::npos) << text;
  EXPECT_EQ(text.find("free"), std::string::npos) << text;
}

}  // namespace
}  // namespace berth::cli
