#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/top_keys.hpp"
#include "cli/top_log.hpp"
#include "cli/top_model.hpp"
#include "top_world.hpp"

namespace berth::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Code = TopKey::Code;
using What = TopCommand::What;

constexpr TopSize kSize{80, 24};

std::vector<std::string> keys_of(const std::vector<TopRow>& rows) {
  std::vector<std::string> out;
  for (const TopRow& row : rows) {
    if (row.can_be_chosen()) {
      out.push_back(row.key);
    }
  }
  return out;
}

/// Somebody at the keys.
class TopKeys : public testing::Test {
 protected:
  TopKeys() { settle_now(); }

  void settle_now() { settle(state, top_rows(data, state), 10); }
  std::optional<TopCommand> press_key(const TopKey& key) {
    auto command = press(key, state, data, subject, kSize);
    settle_now();
    return command;
  }
  std::optional<TopCommand> type(const std::string& text) {
    std::optional<TopCommand> last;
    for (const char c : text) {
      last = press_key({Code::text, std::string(1, c)});
    }
    return last;
  }
  [[nodiscard]] std::string chosen() const { return state.cursor().key; }

  TopData data = top_world();
  TopState state;
  TopSubject subject;
};

TEST(TopModel, JobsComeByWhatTheyDo) {
  const TopData data = top_world();
  EXPECT_THAT(keys_of(top_rows(data, {})),
              ElementsAre("job 12", "job 13", "job 14", "job 15", "job 11", "job 10"));
}

TEST(TopModel, TellsHowManyAreNotShown) {
  const TopData data = top_world();
  const auto rows = top_rows(data, {});
  EXPECT_TRUE(std::ranges::any_of(
      rows, [](const TopRow& row) { return row.text.find("338 more") != std::string::npos; }));
}

TEST(TopModel, FiltersByNameQueueAndState) {
  const TopData data = top_world();
  TopState state;
  state.filter = "NIGHT";
  EXPECT_THAT(keys_of(top_rows(data, state)), ElementsAre("job 14"));
  state.filter = "训练";
  EXPECT_THAT(keys_of(top_rows(data, state)), ElementsAre("job 13"));
  state.filter = "failed";
  EXPECT_THAT(keys_of(top_rows(data, state)), ElementsAre("job 11"));
}

TEST(TopModel, TheChosenJobStaysChosenWhenOthersComeAndGo) {
  TopData data = top_world();
  TopState state;
  state.cursor().key = "job 14";
  settle(state, top_rows(data, state), 10);
  data.running.erase(data.running.begin());
  settle(state, top_rows(data, state), 10);
  EXPECT_EQ(state.cursor().key, "job 14");
  data.queued.clear();
  settle(state, top_rows(data, state), 10);
  EXPECT_EQ(chosen_row(top_rows(data, state), state)->key, state.cursor().key);
  EXPECT_NE(state.cursor().key, "job 14");
}

TEST(TopModel, MemoryIsDividedBetweenJobsOthersAndClaims) {
  const TopData data = top_world();
  const auto whole = memory_of(data.status.gpus[0]);
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->jobs, 18 * kGiB);
  EXPECT_EQ(whole->others, 0);
  EXPECT_EQ(whole->claimed, 6 * kGiB);
  const auto shared = memory_of(data.status.gpus[1]);
  ASSERT_TRUE(shared);
  EXPECT_EQ(shared->jobs, 4 * kGiB);
  EXPECT_EQ(shared->others, 6 * kGiB);
  EXPECT_EQ(shared->claimed, 4 * kGiB);
  EXPECT_FALSE(memory_of(data.status.gpus[3]));
}

TEST(TopModel, MemoryOfAJobIsUnknownWhereItsCardDoesNotTell) {
  TopData data = top_world();
  EXPECT_EQ(gpu_memory_of(data, 13), 4 * kGiB);
  EXPECT_EQ(gpu_memory_of(data, 14), std::nullopt);
  data.status.gpus[1].processes.reset();
  EXPECT_EQ(gpu_memory_of(data, 13), std::nullopt);
}

TEST_F(TopKeys, MoveOverTitlesAndStopAtTheEnds) {
  EXPECT_EQ(chosen(), "job 12");
  type("k");
  EXPECT_EQ(chosen(), "job 12");
  type("jj");
  EXPECT_EQ(chosen(), "job 14");
  press_key({Code::up, ""});
  EXPECT_EQ(chosen(), "job 13");
  type("G");
  EXPECT_EQ(chosen(), "job 10");
  press_key({Code::down, ""});
  EXPECT_EQ(chosen(), "job 10");
  type("g");
  EXPECT_EQ(chosen(), "job 12");
  EXPECT_EQ(state.cursor().first, 0);
}

TEST_F(TopKeys, KillAsksFirst) {
  EXPECT_EQ(type("K"), std::nullopt);
  ASSERT_TRUE(state.question);
  EXPECT_THAT(state.question->text, HasSubstr("kill job 12 train-resnet?"));
  EXPECT_EQ(type("n"), std::nullopt);
  EXPECT_FALSE(state.question);
  type("K");
  EXPECT_EQ(type("x"), std::nullopt);
  EXPECT_TRUE(state.question);
  EXPECT_EQ(type("y"), (TopCommand{What::kill, 12}));
}

TEST_F(TopKeys, TheQuestionIsAboutTheJobItNamesWhateverMovesMeanwhile) {
  type("K");
  data.running.erase(data.running.begin());
  settle_now();
  EXPECT_EQ(type("y"), (TopCommand{What::kill, 12}));
}

TEST_F(TopKeys, EndedJobsAreNotKilled) {
  type("GK");
  EXPECT_FALSE(state.question);
  EXPECT_THAT(state.message, HasSubstr("has ended already"));
}

TEST_F(TopKeys, PauseStartAndPriority) {
  EXPECT_EQ(type("p"), (TopCommand{What::pause, 12}));
  data.running[0].state = JobState::paused;
  EXPECT_EQ(type("p"), (TopCommand{What::resume, 12}));
  type("jjj");
  EXPECT_EQ(type("s"), (TopCommand{What::start, 15}));
  EXPECT_EQ(type("+"), (TopCommand{What::priority, 15, "", 2}));
  EXPECT_EQ(type("-"), (TopCommand{What::priority, 15, "", 4}));
}

TEST_F(TopKeys, TabGoesThroughThePanesAndQueuesCanBePaused) {
  press_key({Code::tab, ""});
  EXPECT_EQ(state.pane, TopPane::queues);
  EXPECT_EQ(type("p"), (TopCommand{What::pause_queue, 0, "default"}));
  EXPECT_EQ(type("jp"), (TopCommand{What::resume_queue, 0, "nightly"}));
  EXPECT_EQ(type("K"), std::nullopt);
  EXPECT_FALSE(state.question);
  press_key({Code::enter, ""});
  EXPECT_EQ(state.pane, TopPane::jobs);
  EXPECT_THAT(keys_of(top_rows(data, state)), ElementsAre("job 14"));
  press_key({Code::escape, ""});
  EXPECT_EQ(state.filter, "");
  press_key({Code::back_tab, ""});
  EXPECT_EQ(state.pane, TopPane::gpus);
  press_key({Code::enter, ""});
  EXPECT_EQ(state.mode, TopMode::job);
  EXPECT_EQ(state.subject, 12);
}

TEST_F(TopKeys, FilterIsTypedAndGivenUp) {
  type("/nigq");
  EXPECT_TRUE(state.typing);
  EXPECT_EQ(state.filter, "nigq");
  press_key({Code::backspace, ""});
  press_key({Code::text, "练"});
  press_key({Code::backspace, ""});
  EXPECT_EQ(state.filter, "nig");
  press_key({Code::enter, ""});
  EXPECT_EQ(chosen(), "job 14");
  press_key({Code::escape, ""});
  EXPECT_EQ(keys_of(top_rows(data, state)).size(), 6);
}

TEST_F(TopKeys, LogAndBack) {
  type("l");
  EXPECT_EQ(state.mode, TopMode::log);
  EXPECT_EQ(state.subject, 12);
  EXPECT_TRUE(state.at_end);
  std::vector<std::string> lines(100, "line");
  subject.job = 12;
  subject.log = true;
  subject.lines = std::make_shared<const std::vector<std::string>>(lines);
  settle_text(state, 100, 20);
  EXPECT_EQ(state.scroll, 80);
  type("k");
  EXPECT_EQ(state.scroll, 79);
  EXPECT_FALSE(state.at_end);
  type("G");
  EXPECT_TRUE(state.at_end);
  EXPECT_EQ(type("q"), std::nullopt);
  EXPECT_EQ(state.mode, TopMode::list);
  EXPECT_EQ(type("q"), (TopCommand{What::quit}));
}

TEST_F(TopKeys, AJobThatIsLookedAtCanBeActedOn) {
  press_key({Code::enter, ""});
  EXPECT_EQ(state.mode, TopMode::job);
  type("K");
  EXPECT_EQ(type("y"), (TopCommand{What::kill, 12}));
}

TEST_F(TopKeys, SpaceStopsUpdatesAndGoesOn) {
  EXPECT_EQ(type(" "), std::nullopt);
  EXPECT_TRUE(state.frozen);
  EXPECT_EQ(type(" "), (TopCommand{What::refresh}));
  EXPECT_FALSE(state.frozen);
}

TEST_F(TopKeys, NothingChosenIsSaid) {
  data = TopData();
  state = TopState();
  settle_now();
  EXPECT_EQ(type("K"), std::nullopt);
  EXPECT_FALSE(state.question);
  EXPECT_THAT(state.message, HasSubstr("no job is chosen"));
}

TEST(TopKeyReader, ReadsSequencesInAnyPieces) {
  TopKeyReader reader;
  EXPECT_THAT(reader.feed("\x1b[A\x1bOB\x1b[5~q"),
              ElementsAre(TopKey{Code::up, ""}, TopKey{Code::down, ""}, TopKey{Code::page_up, ""},
                          TopKey{Code::text, "q"}));
  EXPECT_THAT(reader.feed("\x1b"), IsEmpty());
  EXPECT_TRUE(reader.waits());
  EXPECT_THAT(reader.feed("[6"), IsEmpty());
  EXPECT_THAT(reader.feed("~"), ElementsAre(TopKey{Code::page_down, ""}));
  EXPECT_FALSE(reader.waits());
  EXPECT_THAT(reader.feed("\xe8\xae"), IsEmpty());
  EXPECT_THAT(reader.feed("\xad"), ElementsAre(TopKey{Code::text, "训"}));
}

TEST(TopKeyReader, AnEscapeAloneIsAKey) {
  TopKeyReader reader;
  EXPECT_THAT(reader.feed("\x1b"), IsEmpty());
  EXPECT_THAT(reader.pause(), ElementsAre(TopKey{Code::escape, ""}));
  EXPECT_THAT(reader.feed("\x1bq"), ElementsAre(TopKey{Code::escape, ""}, TopKey{Code::text, "q"}));
}

TEST(TopKeyReader, WhatItDoesNotKnowIsNoKey) {
  TopKeyReader reader;
  EXPECT_THAT(reader.feed("\x1b[1;5C\x01\xff\xfez"), ElementsAre(TopKey{Code::text, "z"}));
}

TEST(TopLog, KeepsTheLastLinesAndWhatAProgressBarShows) {
  TopLog log(3);
  log.feed("one\ntwo\nth");
  log.feed("ree\nfour\n 10%\r 20%");
  EXPECT_THAT(log.lines(), ElementsAre("two", "three", "four", " 20%"));
  log.feed("\r 30%\r\ndone\n");
  EXPECT_THAT(log.lines(), ElementsAre("four", " 30%", "done"));
}

TEST(TopLog, LeavesOutWhatIsForTerminals) {
  TopLog log(10);
  log.feed("\x1b[31mred\x1b[0m\x1b]0;title\x07!\ta\x01\n");
  EXPECT_THAT(log.lines(), ElementsAre("red!    a\\x01"));
}

TEST(TopLog, AnEndlessLineTakesNoEndlessMemory) {
  TopLog log(4);
  for (int i = 0; i < 1000; ++i) {
    log.feed(std::string(1000, 'x'));
    log.feed("\r");
  }
  std::size_t size = 0;
  for (const std::string& line : log.lines()) {
    size += line.size();
  }
  EXPECT_LT(size, 100'000);
}

}  // namespace
}  // namespace berth::cli
