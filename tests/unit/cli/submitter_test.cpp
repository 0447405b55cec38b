#include "cli/submitter.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

namespace berth::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Words = std::vector<std::string>;

TEST(SplitAddWordsTest, TheFirstWordThatIsNoOptionBeginsTheCommand) {
  struct Case {
    Words in;
    Words options;
    Words command;
  };
  const Case cases[] = {
      {{"python", "train.py", "--gpus", "3"}, {}, {"python", "train.py", "--gpus", "3"}},
      {{"--gpus", "2", "python", "--json"}, {"--gpus", "2"}, {"python", "--json"}},
      {{"--gpus=2", "python"}, {"--gpus=2"}, {"python"}},
      {{"--json", "--linger", "x"}, {"--json", "--linger"}, {"x"}},
      {{"--name", "a b", "--", "-x", "--"}, {"--name", "a b"}, {"-x", "--"}},
      {{"--env", "A=-b", "--", "--weird"}, {"--env", "A=-b"}, {"--weird"}},
      {{"--priority", "-3", "x"}, {"--priority", "-3"}, {"x"}},
      {{"--name", "--", "x"}, {"--name"}, {"x"}},
      {{"--name"}, {"--name"}, {}},
      {{"-h"}, {"-h"}, {}},
      {{"-", "x"}, {}, {"-", "x"}},
      {{}, {}, {}},
  };
  for (const Case& c : cases) {
    const AddWords words = split_add_words(c.in);
    EXPECT_EQ(words.options, c.options);
    EXPECT_EQ(words.command, c.command);
  }
}

TEST(MakeCommandTest, OnlyOneWordWithShellSyntaxGoesToBash) {
  EXPECT_FALSE(make_command({"python", "a b.py", "$HOME"})->shell);
  EXPECT_FALSE(make_command({"true"})->shell);
  EXPECT_FALSE(make_command({"./run-1_a.sh"})->shell);
  EXPECT_FALSE(make_command({"caf\xE9"})->shell);
  for (const auto* text : {"echo hi", "a|b", "a;b", "echo\t1", "$X", "x>y", "a&&b", "~/x", "`x`"}) {
    const auto command = make_command({text});
    ASSERT_TRUE(command.has_value());
    EXPECT_TRUE(command->shell) << text;
    EXPECT_THAT(command->argv, ElementsAre(text));
  }
}

TEST(MakeCommandTest, RefusesWhatCannotRun) {
  EXPECT_THAT(make_command({}).error().message, HasSubstr("no command"));
  EXPECT_THAT(make_command({""}).error().message, HasSubstr("empty"));
  EXPECT_THAT(make_command({" \n"}).error().message, HasSubstr("empty"));
  EXPECT_THAT(make_command({"x", std::string("a\0b", 3)}).error().message, HasSubstr("word 2"));
  EXPECT_TRUE(make_command({"x", std::string(131'071, 'y')}).has_value());
  const auto error = make_command({"x", "y", std::string(131'072, 'z')}).error();
  EXPECT_THAT(error.message, HasSubstr("word 3"));
  EXPECT_THAT(error.message, HasSubstr("131072 bytes"));
}

TEST(MakeCommandTest, NoticesCommandsThatChooseTheirOwnGpus) {
  EXPECT_TRUE(sets_visible_devices({true, {"CUDA_VISIBLE_DEVICES=1 python x"}}));
  EXPECT_FALSE(sets_visible_devices({true, {"CUDA_VISIBLE_DEVICES={gpu_list} python x"}}));
  EXPECT_FALSE(sets_visible_devices({true, {"CUDA_VISIBLE_DEVICES=\"{gpu_uuids}\" python x"}}));
  EXPECT_TRUE(sets_visible_devices({true, {"export A=1;CUDA_VISIBLE_DEVICES=1; x"}}));
  EXPECT_TRUE(sets_visible_devices({false, {"env", "CUDA_VISIBLE_DEVICES=", "python"}}));
  EXPECT_FALSE(sets_visible_devices({true, {"echo $CUDA_VISIBLE_DEVICES"}}));
  EXPECT_FALSE(sets_visible_devices({true, {"MY_CUDA_VISIBLE_DEVICES=1 x"}}));
}

TEST(EnvironmentTest, LeavesOutWhatBelongsToOneTerminalOrAttempt) {
  const char* const variables[] = {"PATH=/bin",      "BERTH_ATTEMPT=3",
                                   "BERTH_JOB=1",    "SHLVL=2",
                                   "SSH_TTY=/dev/x", "TMUX=1",
                                   "TMUX_PANE=2",    "STY=1",
                                   "WINDOWID=4",     "OLDPWD=/",
                                   "_=/bin/x",       "CUDA_VISIBLE_DEVICES=1",
                                   "SHLVLX=1",       "EMPTY=",
                                   "BYTES=\xFF\xFE", "BERTH_DIR=../rel",
                                   "nonsense",       "=x",
                                   "A=b=c",          nullptr};
  EXPECT_THAT(capture_environment(variables, "/abs/rel"),
              ElementsAre("PATH=/bin", "CUDA_VISIBLE_DEVICES=1", "SHLVLX=1",
                          "EMPTY=", "BYTES=\xFF\xFE", "BERTH_DIR=/abs/rel", "A=b=c"));
}

TEST(EnvironmentTest, InsideAJobWhatBashReadsIsTheUsersAgain) {
  const char* const with[] = {"BASH_ENV=/state/bash_env", "BERTH_USER_BASH_ENV=/own", nullptr};
  EXPECT_THAT(capture_environment(with, "/state"), ElementsAre("BASH_ENV=/own"));
  const char* const without[] = {"BASH_ENV=/state/bash_env", "A=1", nullptr};
  EXPECT_THAT(capture_environment(without, "/state"), ElementsAre("A=1"));
  const char* const other[] = {"BASH_ENV=/own", nullptr};
  EXPECT_THAT(capture_environment(other, "/state"), ElementsAre("BASH_ENV=/own"));
}

TEST(EnvironmentTest, TheCurrentDirectoryKeepsTheNameTheUserKnows) {
  namespace fs = std::filesystem;
  std::string name = (fs::temp_directory_path() / "berth-cwd-XXXXXX").native();
  const fs::path dir = ::mkdtemp(name.data());
  fs::create_directory(dir / "real");
  fs::create_directory_symlink(dir / "real", dir / "link");
  const fs::path before = fs::current_path();
  const char* old = std::getenv("PWD");
  const std::string pwd = old == nullptr ? "" : old;
  fs::current_path(dir / "link");
  ::setenv("PWD", (dir / "link").c_str(), 1);
  EXPECT_EQ(*current_directory(), dir / "link");
  ::setenv("PWD", "/", 1);
  EXPECT_EQ(*current_directory(), fs::canonical(dir / "real"));
  ::unsetenv("PWD");
  EXPECT_EQ(*current_directory(), fs::canonical(dir / "real"));
  fs::current_path(before);
  if (old != nullptr) ::setenv("PWD", pwd.c_str(), 1);
  fs::remove_all(dir);
  EXPECT_EQ(make_absolute("a/../b", "/x"), "/x/b");
  EXPECT_EQ(make_absolute("/a/../b", "/x"), "/a/../b");
}

TEST(EnvironmentTest, EverySubmissionHasItsOwnKeyAndOneEnvironment) {
  event::Submit first;
  first.jobs.resize(2);
  event::Submit second = first;
  const mode_t before = ::umask(027);
  ASSERT_TRUE(complete_submission(first, "/d").has_value());
  ::umask(before);
  ASSERT_TRUE(complete_submission(second, "/d").has_value());
  EXPECT_EQ(first.client_key.size(), 32U);
  EXPECT_NE(first.client_key, second.client_key);
  EXPECT_EQ(first.jobs[0].payload.environment, first.jobs[1].payload.environment);
  EXPECT_EQ(first.jobs[1].payload.umask, 027U);
}

TEST(OptionValuesTest, ReadsCountsAndResources) {
  EXPECT_EQ(*parse_gpu_count("0"), (GpuCount{0, 0}));
  EXPECT_EQ(*parse_gpu_count("2"), (GpuCount{2, 2}));
  EXPECT_EQ(*parse_gpu_count("1..4"), (GpuCount{1, 4}));
  for (const auto* bad : {"", "x", "-1", "4..1", "1..", "..2", "1-4", "2000", "1.5"}) {
    ASSERT_FALSE(parse_gpu_count(bad).has_value()) << bad;
    EXPECT_THAT(parse_gpu_count(bad).error().message, HasSubstr("1..4"));
  }
  EXPECT_EQ(*parse_resource("licence=2"), (std::pair<std::string, std::uint64_t>("licence", 2)));
  for (const auto* bad : {"", "licence", "=1", "a=", "a=x", "a=-1"}) {
    EXPECT_FALSE(parse_resource(bad).has_value()) << bad;
  }
}

}  // namespace
}  // namespace berth::cli
