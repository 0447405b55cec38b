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

GpuView a_card(std::uint32_t index, const std::string& state) {
  GpuView gpu;
  gpu.index = index;
  gpu.name = "NVIDIA GeForce RTX 4090";
  gpu.memory_total = 24 * kGiB;
  gpu.memory_used = 0;
  gpu.memory_free = gpu.memory_left = 24 * kGiB;
  gpu.utilization = 0;
  gpu.processes.emplace();
  gpu.state = state;
  return gpu;
}

std::vector<GpuView> cards_of_all_kinds() {
  std::vector<GpuView> gpus{a_card(0, "claimed"), a_card(1, "foreign"), a_card(2, "reserved"),
                            a_card(3, "drained"), a_card(4, "trouble"), a_card(5, "free")};
  gpus[0].claims = {{7, 1, 8 * kGiB}};
  gpus[0].memory_left = 16 * kGiB;
  GpuProcessView& process = gpus[1].processes->emplace_back();
  process.pid = 23150;
  process.name = "berth-simgpu";
  gpus[2].reserved = "held by the berth of user alice";
  gpus[3].trouble = "out of use: the fan is being replaced until Friday";
  gpus[3].drained_why = "the fan is being replaced until Friday";
  gpus[4].trouble = "GPU is lost";
  gpus[4].lost = true;
  return gpus;
}

TEST(DescribeTest, NothingOfMomentIsCutOnANarrowScreen) {
  const std::string table = gpu_table(cards_of_all_kinds(), wide(80));
  for (const char* told :
       {"GPU 2: held by the berth of user alice\n",
        "GPU 3: out of use: the fan is being replaced until Friday\n", "GPU 4: GPU is lost\n",
        "23150 berth-simgpu\n", " 16 GiB ", "reserved", "drained", "lost"}) {
    EXPECT_NE(table.find(told), std::string::npos) << told << "\n" << table;
  }
}

TEST(DescribeTest, StatusTellsOfCardsQueuesAndTheWayIn) {
  StatusView status;
  status.gpus = cards_of_all_kinds();
  status.probe.age = Millis(100);
  status.queues = {{"default", 0, 2, false, 3}, {"car", 1, 0, true, 0}};
  ListenView listen;
  listen.listening = true;
  listen.url = "http://127.0.0.1:29215/ui/";
  listen.moved = true;
  const std::string text = status_text(status, {}, listen);
  for (const char* told :
       {"GPUs: 1 of 6 free, 1 reserved, 1 drained, 1 lost\n",
        "GPU 3 is out of use: the fan is being replaced until Friday; berth resume --gpu 3 ",
        "GPU 4 cannot be used: GPU is lost\n",
        "queues: default (2 running, 3 waiting), car (paused, limit 1)\n",
        "listening: http://127.0.0.1:29215/ui/ (the usual port is taken)\n"}) {
    EXPECT_NE(text.find(told), std::string::npos) << told << "\n" << text;
  }
}

}  // namespace
}  // namespace berth::cli
