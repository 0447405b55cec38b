#include "compete/command_tree.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace berth::compete {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(CommandTreeTest, QueuesHoldTheirProcessesInTheOrderOfTheFile) {
  const CommandTree tree = read_tree(
      "# tasks\n2\npython a.py\n20\n\n1\n\"echo x\"\nbash b.sh\n24.5\n\n2\npython c.py\n8 #GiB\n",
      "command_gpu.txt", Cards::single);
  EXPECT_TRUE(tree.mistakes.empty());
  ASSERT_EQ(tree.queues.size(), 2U);
  EXPECT_EQ(tree.size(), 3U);
  EXPECT_EQ(tree.queues[0].id, 1U);
  EXPECT_THAT(tree.queues[0].processes,
              ElementsAre(CommandProcess{{"echo x", "bash b.sh"}, 1, 24.5, 6}));
  EXPECT_THAT(tree.queues[1].processes, ElementsAre(CommandProcess{{"python a.py"}, 1, 20, 2},
                                                    CommandProcess{{"python c.py"}, 1, 8, 11}));
}

TEST(CommandTreeTest, WhatCannotBeReadIsNamedAndTheRestIsThere) {
  const CommandTree tree =
      read_tree("1\npython a.py\n2\n20\n\n1\ntrue\n5\n", "command_gpu.txt", Cards::single);
  ASSERT_EQ(tree.mistakes.size(), 1U);
  EXPECT_EQ(tree.mistakes[0].file, "command_gpu.txt");
  EXPECT_EQ(tree.mistakes[0].at.line, 3U);
  EXPECT_EQ(tree.size(), 1U);
  EXPECT_EQ(read_tree("1\npython a.py\n2\n20\n", "f", Cards::multi).queues[0].processes[0].gpus,
            2U);
}

TEST(CommandTreeTest, CommentsAtTheTopSurviveANewText) {
  const std::string old = "# ours\n\n# more\n\n1\ntrue\n1\n# inside\n";
  EXPECT_EQ(*write_tree({{3, {{{"a", "b"}, 2, 1.5, 0}}}}, Cards::multi, old),
            "# ours\n\n# more\n\n3\na\nb\n2\n1.5\n");
  EXPECT_EQ(*write_tree({}, Cards::single, old), "# ours\n\n# more\n");
  EXPECT_EQ(*write_tree({{1, {{{"a"}, 1, 1, 0}}}}, Cards::single, ""), "1\na\n1\n");
  EXPECT_TRUE(read_tree(empty_config(Cards::multi), "f", Cards::multi).mistakes.empty());
  EXPECT_EQ(read_tree(empty_config(Cards::single), "f", Cards::single).size(), 0U);
}

TEST(CommandTreeTest, QuotesThatBelongToACommandStay) {
  const std::string text = *write_tree({{1, {{{"\"my program\""}, 1, 1, 0}}}}, Cards::single, "");
  const CommandTree tree = read_tree(text, "f", Cards::single);
  ASSERT_EQ(tree.size(), 1U) << text;
  EXPECT_THAT(tree.queues[0].processes[0].commands, ElementsAre("\"my program\""));
}

TEST(CommandTreeTest, ACommandThatNoFileCanHoldIsRefused) {
  for (const std::string command : {"", "20", "a\n\nb", "# note", "  ", "1,20", "a\nb"}) {
    const auto text =
        write_tree({{4, {{{"true"}, 1, 1, 0}, {{command}, 1, 1, 0}}}}, Cards::single, "");
    if (text) {  // in quotes it may do
      const CommandTree tree = read_tree(*text, "f", Cards::single);
      ASSERT_EQ(tree.size(), 2U) << command;
      EXPECT_EQ(tree.queues[0].processes[1].commands[0], command);
    } else {
      EXPECT_THAT(text.error().message, HasSubstr("queue 4, process 1"));
    }
  }
  EXPECT_FALSE(write_tree({{4, {{{"a\n\nb"}, 1, 1, 0}}}}, Cards::single, ""));
  EXPECT_FALSE(
      write_tree({{4, {{{"20"}, 1, 1, 0}}}}, Cards::multi, "") &&
      read_tree(*write_tree({{4, {{{"20"}, 1, 1, 0}}}}, Cards::multi, ""), "f", Cards::multi)
              .size() != 1);
}

RC_GTEST_PROP(CommandTreeProps, what_is_written_reads_back, ()) {
  const auto words = *rc::gen::container<std::vector<std::string>>(
      rc::gen::container<std::string>(rc::gen::elementOf(std::string("ab1,20\"'# {}\\"))));
  const auto mode = *rc::gen::element(Cards::single, Cards::multi);
  CommandProcess process{words, mode == Cards::multi ? *rc::gen::inRange(1U, 9U) : 1,
                         *rc::gen::inRange(1, 4000) / 4.0, 0};
  const auto text = write_tree({{*rc::gen::inRange(0U, 99U), {process}}}, mode, "# head\n");
  if (text) {
    const CommandTree tree = read_tree(*text, "f", mode);
    RC_ASSERT(tree.mistakes.empty());
    RC_ASSERT(tree.size() == 1U);
    RC_ASSERT(tree.queues[0].processes[0].commands == words);
    RC_ASSERT(tree.queues[0].processes[0].memory_gib == process.memory_gib);
  }
}

}  // namespace
}  // namespace berth::compete
