// The screens of `berth top` against tests/golden/top. After a wanted change: BERTH_BLESS=1
// build/tests/cli_test --gtest_filter='*Golden*', then read the difference.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>  // NOLINT: setenv
#include <time.h>    // NOLINT: tzset

#include <filesystem>
#include <fstream>
#include <sstream>

#include "cli/top_draw.hpp"
#include "top_world.hpp"

namespace berth::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string text_of(const TopFrame& frame) {
  std::string out;
  for (const TopLine& line : frame) {
    std::string text;
    for (const TopSpan& span : line.spans) {
      text += span.text;
    }
    text.erase(text.find_last_not_of(' ') + 1);
    out += text + "\n";
  }
  return out;
}

std::string screen(const TopData& data, TopState state, const TopSize& size,
                   const TopTheme& theme = {}, const TopSubject& subject = {}) {
  ::setenv("TZ", "UTC", 1);
  ::tzset();
  const TopLayout layout = top_layout(data, state, size);
  settle(state, top_rows(data, state), layout.body);
  if (state.mode != TopMode::list) {
    settle_text(state, top_text(state, subject, size, kTopNow).size(), layout.body);
  }
  const TopFrame frame = draw_top(data, state, subject, size, theme, kTopNow);
  EXPECT_EQ(frame.size(), size.height);
  for (const TopLine& line : frame) {
    std::size_t width = 0;
    for (const TopSpan& span : line.spans) {
      width += display_width(span.text);
    }
    EXPECT_LE(width, size.width);
  }
  return text_of(frame);
}

TopSubject a_subject(std::uint64_t id) {
  TopSubject subject;
  subject.job = id;
  subject.detail.emplace();
  subject.detail->job = top_job(id, JobState::queued, "eval", "nightly");
  subject.detail->commands = {Command{.shell = false, .argv = {"python", "eval.py"}}};
  subject.why.emplace();
  subject.why->job = subject.detail->job;
  subject.why->reasons = {{"queue_paused", "queue 'nightly' is paused"}};
  return subject;
}

struct Case {
  std::string name;
  TopSize size;
  TopTheme theme = {};
  TopPane pane = TopPane::jobs;
  TopMode mode = TopMode::list;
};

class TopGolden : public testing::TestWithParam<Case> {};

TEST_P(TopGolden, LooksAsBefore) {
  const Case& tested = GetParam();
  TopState state;
  state.pane = tested.pane;
  state.mode = tested.mode;
  state.subject = tested.mode == TopMode::job ? 14 : 0;
  const std::string now =
      screen(top_world(), state, tested.size, tested.theme, a_subject(state.subject));
  const auto path = std::filesystem::path(BERTH_GOLDEN_TOP) / (tested.name + ".txt");
  if (std::getenv("BERTH_BLESS") != nullptr) {
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << now;
  }
  std::ifstream file(path);
  std::stringstream before;
  before << file.rdbuf();
  EXPECT_EQ(now, before.str());
}

INSTANTIATE_TEST_SUITE_P(Screens, TopGolden,
                         testing::Values(Case{"80x24", {80, 24}}, Case{"60x15", {60, 15}},
                                         Case{"140x40", {140, 40}}, Case{"40x10", {40, 10}},
                                         Case{"ascii", {80, 24}, {false, false}},
                                         Case{"queues", {80, 24}, {}, TopPane::queues},
                                         Case{"finished", {80, 24}, {}, TopPane::finished},
                                         Case{"gpus", {80, 24}, {}, TopPane::gpus},
                                         Case{"job", {80, 24}, {}, TopPane::jobs, TopMode::job},
                                         Case{"help", {80, 24}, {}, TopPane::jobs, TopMode::help}),
                         [](const auto& tested) { return "is" + tested.param.name; });

TEST(TopScreen, NoSizeBreaksIt) {
  const TopData data = top_world();
  for (std::size_t width = 0; width < 90; width += 7) {
    for (std::size_t height = 0; height < 30; height += height < 6 ? 1 : 5) {
      for (const TopPane pane :
           {TopPane::jobs, TopPane::queues, TopPane::finished, TopPane::gpus}) {
        TopState state;
        state.pane = pane;
        static_cast<void>(screen(data, state, {width, height}));
        state.mode = TopMode::help;
        static_cast<void>(screen(data, state, {width, height}));
      }
    }
  }
}

TEST(TopScreen, ManyCardsTakeColumnsAndLeaveRoomForJobs) {
  TopData data = top_world();
  data.status.gpus.clear();
  for (std::uint32_t i = 0; i < 16; ++i) {
    data.status.gpus.push_back(top_gpu(i, "free"));
  }
  std::string shown = screen(data, {}, {80, 24});
  EXPECT_THAT(shown, HasSubstr("  15 "));
  EXPECT_THAT(shown, HasSubstr("train-resnet"));
  for (std::uint32_t i = 16; i < 64; ++i) {
    data.status.gpus.push_back(top_gpu(i, "free"));
  }
  shown = screen(data, {}, {80, 24});
  EXPECT_THAT(shown, HasSubstr("more GPUs: Tab"));
  EXPECT_THAT(shown, HasSubstr("train-resnet"));
}

TEST(TopScreen, APausedInstanceAndCardsOfOthersAreTold) {
  TopData data = top_world();
  data.status.paused = true;
  data.status.space.low = true;
  GpuView& other = data.status.gpus[2];
  other.state = "reserved";
  other.reserved = "held by the berth of user alice";
  std::string shown = screen(data, {}, {140, 24});
  EXPECT_THAT(shown, HasSubstr("berth is paused: berth resume --instance; disk space is low"));
  EXPECT_THAT(shown, HasSubstr("held by the berth of user"));
  EXPECT_THAT(shown, HasSubstr("GPUs: 0/4 free"));
  other = top_gpu(2, "foreign");
  other.processes->push_back(top_process(102, "python", kGiB, 13, 2));
  EXPECT_THAT(screen(data, {}, {140, 24}), HasSubstr("job 13 strays"));
}

TEST(TopScreen, SaysThatTheDaemonIsGoneAndShowsWhatItKnew) {
  TopData data = top_world();
  data.trouble = "nobody listens";
  for (const TopSize size : {TopSize{80, 24}, TopSize{60, 10}}) {
    const std::string shown = screen(data, {}, size);
    EXPECT_THAT(shown.substr(0, shown.find('\n')), HasSubstr("no answer since"));
    EXPECT_THAT(shown, HasSubstr("train-resnet"));
  }
  EXPECT_THAT(screen(data, {}, {80, 24}), HasSubstr("nobody listens"));
}

TEST(TopScreen, NamesCannotReachTheTerminal) {
  TopData data = top_world();
  data.running[0].name = "evil\x1b[2Jname";
  EXPECT_THAT(screen(data, {}, {80, 24}), Not(HasSubstr("\x1b")));
}

TEST(TopScreen, AsciiHasNothingElse) {
  const std::string shown = screen(top_world(), {}, {80, 24}, {false, false});
  for (const char c : shown) {
    EXPECT_LT(static_cast<unsigned char>(c), 0x80);
  }
}

TEST(TopScreen, OnlyWhatDiffersIsSent) {
  TopData data = top_world();
  const TopSize size{80, 24};
  const TopTheme theme;
  const TopFrame before = draw_top(data, {}, {}, size, theme, kTopNow);
  EXPECT_EQ(paint(before, before, size, theme), "");
  data.status.counts[JobState::queued] = 341;
  const std::string sent = paint(before, draw_top(data, {}, {}, size, theme, kTopNow), size, theme);
  EXPECT_THAT(sent, HasSubstr("341 queued"));
  EXPECT_THAT(sent, Not(HasSubstr("train-resnet")));
  EXPECT_THAT(paint({}, before, size, theme), HasSubstr("\x1b[2J"));
}

TEST(TopScreen, WithoutColourTheChosenLineStillStandsOut) {
  TopState state;
  const TopData data = top_world();
  settle(state, top_rows(data, state), 10);
  const TopSize size{80, 24};
  const std::string sent =
      paint({}, draw_top(data, state, {}, size, {false, true}, kTopNow), size, {false, true});
  EXPECT_THAT(sent, HasSubstr("\x1b[7m>"));
  EXPECT_THAT(sent, Not(HasSubstr("\x1b[36m")));
  EXPECT_THAT(sent, Not(HasSubstr("\x1b[31m")));
}

TEST(TopScreen, LongLinesOfALogAreBrokenNotCut) {
  TopState state;
  state.mode = TopMode::log;
  state.subject = 12;
  TopSubject subject;
  subject.job = 12;
  subject.log = true;
  subject.lines = std::make_shared<const std::vector<std::string>>(
      std::vector<std::string>{std::string(100, 'a') + "end", "", "训练训练训练"});
  EXPECT_THAT(
      top_text(state, subject, {80, 24}, kTopNow),
      testing::ElementsAre(std::string(80, 'a'), std::string(20, 'a') + "end", "", "训练训练训练"));
  EXPECT_THAT(top_text(state, subject, {6, 24}, kTopNow), testing::Contains("训练训").Times(1));
}

}  // namespace
}  // namespace berth::cli
