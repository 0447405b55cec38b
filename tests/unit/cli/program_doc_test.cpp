#include "cli/program_doc.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>

namespace berth::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// A small program with one of everything.
ProgramDoc a_program() {
  CLI::App app("does things", "berth");
  std::string text;
  std::vector<std::string> words;
  app.add_option("--color", text, "colours")->type_name("auto|always|never");
  CLI::App* hidden = app.add_subcommand("__hidden", "for programs");
  hidden->group("");
  CLI::App* ls = app.add_subcommand("ls", "list jobs; it's [all] of them: yes");
  ls->group("Look");
  ls->footer("Examples:\n  berth ls 3\n.not a request");
  ls->add_option("--state", words, "states")
      ->type_name("STATES")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  ls->add_option("--queue", text, "the queue")->type_name("NAME");
  ls->add_option("--cwd", text, "where")->type_name("DIR");
  bool flag = false;
  ls->add_flag("-f,--follow", flag, "go on…");
  ls->add_option("IDS", words, "which")->type_name("");
  CLI::App* run = app.add_subcommand("run", "run files");
  run->group("Submit");
  run->add_option("FILE", words, "which")->type_name("")->required();
  CLI::App* show = app.add_subcommand("show", "one job");
  show->group("Look");
  show->add_option("ID", text, "which")->type_name("");
  return describe_program(app);
}

const OptionDoc& option_of(const CommandDoc& command, const std::string& name) {
  for (const OptionDoc& option : command.options) {
    if (option.names.back() == name) {
      return option;
    }
  }
  ADD_FAILURE() << name;
  return command.options.front();
}

TEST(ProgramDocTest, IsWhatTheParserKnows) {
  const ProgramDoc program = a_program();
  ASSERT_EQ(program.commands.size(), 3U);  // without the hidden one, groups together
  EXPECT_EQ(program.commands[0].name, "ls");
  EXPECT_EQ(program.commands[1].name, "show");
  EXPECT_EQ(program.commands[2].name, "run");
  const CommandDoc& ls = program.commands[0];
  EXPECT_EQ(ls.examples, "  berth ls 3\n.not a request");
  EXPECT_EQ(option_of(ls, "--state").completes, Completes::words);
  EXPECT_EQ(option_of(ls, "--state").words.size(), 7U);
  EXPECT_EQ(option_of(ls, "--queue").completes, Completes::queues);
  EXPECT_EQ(option_of(ls, "--cwd").completes, Completes::directories);
  const OptionDoc& follow = option_of(ls, "--follow");
  EXPECT_EQ(follow.names, (std::vector<std::string>{"-f", "--follow"}));
  EXPECT_TRUE(follow.flag);
  EXPECT_EQ(ls.positionals.at(0).completes, Completes::jobs);
  EXPECT_TRUE(ls.positionals.at(0).repeatable);
  EXPECT_EQ(program.commands[2].positionals.at(0).completes, Completes::files);
  EXPECT_TRUE(program.commands[2].positionals.at(0).required);
  EXPECT_EQ(option_of(program.main, "--color").words,
            (std::vector<std::string>{"auto", "always", "never"}));
}

TEST(ProgramDocTest, EveryShellGetsEverything) {
  const ProgramDoc program = a_program();
  for (const std::string& script :
       {bash_completion(program), zsh_completion(program), fish_completion(program)}) {
    for (const char* word : {"ls", "run", "show", "state", "queue", "follow", "succeeded", "never",
                             "berth __complete", "jobs", "queues"}) {
      EXPECT_THAT(script, HasSubstr(word));
    }
    EXPECT_THAT(script, Not(HasSubstr("__hidden")));
  }
  EXPECT_THAT(zsh_completion(program), HasSubstr(R"('ls:list jobs; it'\''s)"));
  EXPECT_THAT(fish_completion(program), HasSubstr(R"(-d 'list jobs; it\'s)"));
}

TEST(ProgramDocTest, PagesAreRoffWhateverTheTextsSay) {
  const ProgramDoc program = a_program();
  const std::string page = man_page(program, program.commands[0]);
  EXPECT_THAT(page, HasSubstr(".TH BERTH\\-LS 1"));
  EXPECT_THAT(page, HasSubstr("berth\\-ls \\- list jobs; it\\(aqs [all] of them: yes\n"));
  EXPECT_THAT(page, HasSubstr("\\fBberth ls\\fR [\\fIOPTIONS\\fR] [\\fIIDS\\fR...]\n"));
  EXPECT_THAT(page, HasSubstr("\\fB\\-f\\fR, \\fB\\-\\-follow\\fR\ngo on\\[u2026]\n"));
  EXPECT_THAT(page, HasSubstr("\n\\&.not a request\n"));
  EXPECT_THAT(page, HasSubstr("\\fBberth\\-show\\fR(1)"));
  const std::string main = man_page(program);
  EXPECT_THAT(main, HasSubstr(".SS Look\n.TP\n\\fBberth\\-ls\\fR(1)\n"));
  EXPECT_THAT(main, HasSubstr("auto|always|never"));
  EXPECT_THAT(main, Not(HasSubstr("hidden")));
}

}  // namespace
}  // namespace berth::cli
