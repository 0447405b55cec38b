#include "dialects/command_config.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dialects/command_place.hpp"
#include "support.hpp"

namespace berth {
namespace {

using ::testing::HasSubstr;
using Cards = DialectOptions::Cards;

constexpr const char* kTask = "1\na {work_dir}\n20\n";

/// A command file with this configuration beside it.
Parsed with_config(const std::string& config, const std::string& name = "command.txt") {
  return parse_text(kTask, name, {}, {{"/home/user/project/scripts/config.yaml", config}});
}

std::string rule(const std::string& config, const std::string& key) {
  const auto parsed = with_config(config);
  if (!parsed) {
    return mistakes(parsed);
  }
  const auto it = parsed->rules.find(key);
  return it == parsed->rules.end() ? "none" : it->second;
}

TEST(CommandConfig, WithoutOneTheDocumentedDefaultsHold) {
  const auto parsed = parse_text(kTask, "command.txt");
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->rules, (Overrides{{"maximize_resource_utilization", "false"},
                                      {"order", "random"},
                                      {"retry_config.backoff_duration", "10m"},
                                      {"retry_config.max_retry_before_backoff", "3"},
                                      {"sample_age_max", "5s"},
                                      {"strategy", "memory_spend"}}));
  EXPECT_TRUE(parsed->warnings.empty());
  EXPECT_EQ(with_config("")->rules, parsed->rules);
  EXPECT_EQ(with_config("gpu_left: null\ncheck_time:\n")->rules, parsed->rules);
}

TEST(CommandConfig, EveryKeyBecomesARule) {
  EXPECT_EQ(rule("check_time: 10", "sample_age_max"), "10s");
  EXPECT_EQ(rule("check_time: 0.5", "sample_age_max"), "500ms");
  EXPECT_EQ(rule("maximize_resource_utilization: True", "maximize_resource_utilization"), "true");
  EXPECT_EQ(rule("memory_save_mode: true", "strategy"), "memory_save");
  EXPECT_EQ(rule("gpu_left: 2", "gpu_left"), "2");
  EXPECT_EQ(rule("gpu_left: 2", "gpu_left_mode"), "last");
  EXPECT_EQ(rule("gpu_left: 2\nmin_gpu: 1", "gpu_left_mode"), "any");
  EXPECT_EQ(rule("min_gpu: 1", "min_gpu"), "1");
  EXPECT_EQ(rule("max_gpu: 4", "max_gpu"), "4");
  EXPECT_EQ(
      rule("retry_config: {max_retry_before_backoff: 5}", "retry_config.max_retry_before_backoff"),
      "5");
  EXPECT_EQ(rule("retry_config: {backoff_duration: 1200}", "retry_config.backoff_duration"), "20m");
}

TEST(CommandConfig, CardsAreListedUnlessAllAreUsed) {
  EXPECT_EQ(rule("compete_gpus: [0, 2]\nuse_all_gpus: false", "gpus"), "0,2");
  EXPECT_EQ(rule("compete_gpus: [0, 2]\nuse_all_gpus: true", "gpus"), "none");
  EXPECT_EQ(rule("compete_gpus: [0, 2]", "gpus"), "0,2");
  EXPECT_EQ(rule("use_all_gpus: true", "gpus"), "none");
  EXPECT_THAT(rule("use_all_gpus: false", "gpus"), HasSubstr("config.yaml:1:15: "));
  EXPECT_THAT(rule("use_all_gpus: false\ncompete_gpus: []", "gpus"), HasSubstr("lists no card"));
}

TEST(CommandConfig, MistakesAreSaidWithTheirPlaceInIt) {
  const std::vector<std::tuple<std::string, std::string, std::string>> cases = {
      {"check_time: 5\ngpu_lft: 1", "2:1", "unknown key 'gpu_lft'; did you mean 'gpu_left'?"},
      {"retry_config:\n  backoff: 5", "2:3", "did you mean 'backoff_duration'?"},
      {"check_time: soon", "1:13", "a number of seconds"},
      {"check_time: 0", "1:13", "greater than 0"},
      {"check_time: [1]", "1:13", "needs a single value"},
      {"check_time: 1.2.3", "1:13", "a number of seconds"},
      {"gpu_left: -1", "1:11", "whole number"},
      {"gpu_left: 1.5", "1:11", "whole number"},
      {"max_gpu: 0", "1:10", "from 1"},
      {"use_all_gpus: 2", "1:15", "must be true or false"},
      {"compete_gpus: 1", "1:15", "must be a list"},
      {"compete_gpus: [a]", "1:16", "whole number"},
      {"retry_config: 3", "1:15", "must be a map"},
      {"check_time: 5\ncheck_time: 6", "2:1", ""},
      {"check_time: [", "", ""},
      {"work_dir: ~/x", "1:11", "the whole path"},
      {"work_dir: [x]", "1:11", "single value"},
  };
  for (const auto& [config, at, said] : cases) {
    const auto parsed = with_config(config);
    ASSERT_FALSE(parsed) << config;
    EXPECT_THAT(mistakes(parsed), HasSubstr("/home/user/project/scripts/config.yaml:" + at))
        << config;
    EXPECT_THAT(mistakes(parsed), HasSubstr(said)) << config;
  }
}

TEST(CommandConfig, WorkDirIsResolvedAsDocumented) {
  const auto work_dir = [](const std::string& value) {
    const auto parsed = with_config("check_time: 5\nwork_dir: " + value);
    EXPECT_TRUE(parsed) << mistakes(parsed);
    EXPECT_EQ(parsed->jobs[0].payload.cwd, parsed->jobs[0].payload.work_dir);
    return parsed->jobs[0].payload.work_dir;
  };
  EXPECT_EQ(work_dir("null"), "/home/user/project");
  EXPECT_EQ(work_dir("\"../\""), "/home/user/project");
  EXPECT_EQ(work_dir("\"../../\""), "/home/user");
  EXPECT_EQ(work_dir("\"work\""), "/home/user/project/scripts/work");
  EXPECT_EQ(work_dir("relative/path"), "/home/user/project/scripts/relative/path");
  EXPECT_EQ(work_dir("\"/home/user/custom_workspace\""), "/home/user/custom_workspace");
  EXPECT_EQ(work_dir("/tmp/workspace/"), "/tmp/workspace");
  EXPECT_EQ(work_dir("/"), "/");
  EXPECT_EQ(work_dir("."), "/home/user/project/scripts");
  EXPECT_EQ(work_dir("../../../../../../.."), "/");
}

TEST(CommandConfig, IsFoundWhereTheLayoutsHaveIt) {
  struct Place {
    std::string base;
    std::string config;
    std::string state_dir;
    std::string work_dir;
  };
  const std::vector<Place> places = {
      {"/p/s", "/p/s/config.yaml", "/p/s/logs", "/p"},
      {"/p/s", "/p/s/gpu_manage.yaml", "/p/s/logs", "/p"},
      {"/p/s/command", "/p/s/config/gpu_manage.yaml", "/p/s/logs", "/p"},
      {"/p/s/mine", "/p/s/config/gpu_manage.yaml", "/p/s/logs", "/p"},
      {"/p/s", "/p/s/config/gpu_manage.yaml", "/p/s/logs", "/p"},
      {"/p/s/command", "/p/s/command/config.yaml", "/p/s/command/logs", "/p/s"},
      {"/p/s/command", "/nowhere", "/p/s/logs", "/p"},
  };
  for (const Place& place : places) {
    const auto parsed =
        parse_text(kTask, "command.txt", {}, {{place.config, "gpu_left: 3"}}, place.base);
    ASSERT_TRUE(parsed) << mistakes(parsed);
    EXPECT_EQ(parsed->rules.contains("gpu_left"), place.config != "/nowhere") << place.config;
    EXPECT_EQ(parsed->traits.state_dir, place.state_dir) << place.config;
    EXPECT_EQ(parsed->jobs[0].payload.work_dir, place.work_dir) << place.config;
  }
}

TEST(CommandConfig, ThatOfAnotherProgramIsLeftAlone) {
  const auto parsed = with_config("model: resnet\nlr: 0.1\n");
  ASSERT_TRUE(parsed) << mistakes(parsed);
  ASSERT_EQ(parsed->warnings.size(), 1U);
  EXPECT_THAT(parsed->warnings[0], HasSubstr("config.yaml:1:1: this is left alone"));
}

// Or a slip of the finger would give away the cards that were to be left to others.
TEST(CommandConfig, WithWrongIndentationIsAMistakeAndNotLeftAlone) {
  for (const char* text : {" gpu_left: 1\n  check_time: 5\n", "\tgpu_left: 1\n",
                           "retry_config:\n\tbackoff_duration: 5\n"}) {
    const auto parsed = with_config(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_THAT(mistakes(parsed), HasSubstr("not valid YAML")) << text;
  }
  EXPECT_TRUE(with_config("train:\n  work_dir: x\n")) << "of another program, and good YAML";
}

TEST(CommandConfig, IsKnownInEverySpellingOfYaml) {
  EXPECT_EQ(rule("{gpu_left: 3, check_time: 9}", "gpu_left"), "3");
  EXPECT_EQ(rule("\"gpu_left\": 3", "gpu_left"), "3");
  EXPECT_EQ(rule("gpu_left : 3", "gpu_left"), "3");
}

TEST(CommandConfig, CanBeGiven) {
  DialectOptions options;
  options.config_file = "/etc/gpu.yaml";
  const Files files = {{"/etc/gpu.yaml", "gpu_left: 1"},
                       {"/home/user/project/scripts/config.yaml", "gpu_left: 2"}};
  EXPECT_EQ(parse_text(kTask, "command.txt", options, files)->rules.at("gpu_left"), "1");
  EXPECT_THAT(mistakes(parse_text(kTask, "command.txt", options)),
              HasSubstr("there is no file '/etc/gpu.yaml'"));
  const Files wrong = {{"/etc/gpu.yaml", "model: resnet"}};
  EXPECT_THAT(mistakes(parse_text(kTask, "command.txt", options, wrong)), HasSubstr("unknown key"));
}

TEST(CommandConfig, ContradictionsAreWarnedAbout) {
  EXPECT_THAT(with_config("min_gpu: 3\nmax_gpu: 2")->warnings.at(0), HasSubstr("the smaller one"));
  const auto parsed = parse_text("# x\n1\na\n4\n20\n", "command_gpus.txt", {},
                                 {{"/home/user/project/scripts/config.yaml", "max_gpu: 2"}});
  EXPECT_EQ(parsed->warnings.at(0),
            "command_gpus.txt:2:1: this task needs 4 GPUs and will wait as long as 'max_gpu' is 2");
}

// --- a configuration in place of the command file
// -------------------------------------------------

const Files kLayout = {{"/p/command/command_gpu.txt", "1\na\n1\n"},
                       {"/p/command/command_gpu_2.txt", "2\nb\n1\n"},
                       {"/p/command/command_gpus.txt", "3\nc\n2\n1\n"}};
constexpr const char* kBoth =
    "gpu_command_file: command/command_gpu.txt\ngpus_command_file: command/command_gpus.txt\n";

Parsed of_config(const std::string& text, Cards cards, std::uint32_t index = 0) {
  DialectOptions options;
  options.cards = cards;
  options.config_index = index;
  return parse_text(text, "config/gpu_manage.yaml", options, kLayout, "/p/config");
}

TEST(CommandConfig, NamesTheCommandFile) {
  const auto single = of_config(kBoth, Cards::single);
  ASSERT_TRUE(single) << mistakes(single);
  EXPECT_THAT(single->jobs[0].queue, ::testing::MatchesRegex("command_gpu-[0-9a-f]{4}/1"));
  EXPECT_EQ(single->traits.state_dir, "/p/logs");
  EXPECT_EQ(single->traits.config_file, "/p/command/command_gpu.txt");
  EXPECT_EQ(single->jobs[0].payload.work_dir, "/");
  const auto multi = of_config(kBoth, Cards::multi);
  ASSERT_TRUE(multi) << mistakes(multi);
  EXPECT_EQ(multi->jobs[0].request.gpus.min, 2U);
  const auto second = of_config(kBoth, Cards::single, 2);
  ASSERT_TRUE(second) << mistakes(second);
  EXPECT_THAT(second->jobs[0].queue, ::testing::MatchesRegex("command_gpu_2-[0-9a-f]{4}/2"));
  EXPECT_EQ(second->traits.config_index, 2U);
  EXPECT_TRUE(of_config("gpus_command_file: command/command_gpus.txt", Cards::by_file_name));
}

TEST(CommandConfig, SaysWhichCommandFileIsMissing) {
  EXPECT_THAT(mistakes(of_config(kBoth, Cards::by_file_name)),
              HasSubstr("--mode single for 'command/command_gpu.txt' or --mode multi"));
  EXPECT_EQ(mistakes(of_config("check_time: 5\ngpu_command_file: x.txt", Cards::single)),
            "config/gpu_manage.yaml:2:19: the command file this configuration names is not there: "
            "no '/p/x.txt' and no '/p/command/x.txt'; correct the path, or pass --command-file\n");
  EXPECT_THAT(mistakes(of_config(kBoth, Cards::single, 7)),
              HasSubstr("1:19: the command file this configuration names is not there: no "
                        "'/p/command/command_gpu_7.txt'; correct"));
  DialectOptions options;
  options.dialect = Dialect::commands;
  EXPECT_THAT(mistakes(parse_text("check_time: 5", "config.yaml", options)),
              HasSubstr("this configures a scheduler and names no command file, and none of "
                        "command.txt, command_gpu.txt and command/command_gpu.txt is beside it"));
  options.cards = Cards::multi;
  EXPECT_THAT(mistakes(parse_text("check_time: 5", "config.yaml", options)),
              HasSubstr("names no 'gpus_command_file', and none of command_gpus.txt and "));
}

/// As the public file has them.
TEST(CommandConfig, ABareNameMayMeanAFileInCommand) {
  constexpr const char* kBare =
      "gpu_command_file: command_gpu.txt\ngpus_command_file: command_gpus.txt\n";
  const auto single = of_config(kBare, Cards::single, 2);
  ASSERT_TRUE(single) << mistakes(single);
  EXPECT_EQ(single->traits.config_file, "/p/command/command_gpu_2.txt");
  EXPECT_EQ(single->traits.state_dir, "/p/logs");
  const auto multi = of_config(kBare, Cards::multi);
  ASSERT_TRUE(multi) << mistakes(multi);
  EXPECT_EQ(multi->traits.config_file, "/p/command/command_gpus.txt");
  Files both = kLayout;
  both["/p/command_gpu.txt"] = "5\nx\n1\n";
  DialectOptions options;
  options.cards = Cards::single;
  const auto beside = parse_text(kBare, "config/gpu_manage.yaml", options, both, "/p/config");
  ASSERT_TRUE(beside) << mistakes(beside);
  EXPECT_EQ(beside->traits.config_file, "/p/command_gpu.txt");
}

TEST(CommandConfig, WithoutANameTheUsualFileIsMeant) {
  const auto multi = of_config("gpu_left: 1\ngpu_command_file: x.txt", Cards::multi);
  ASSERT_TRUE(multi) << mistakes(multi);
  EXPECT_EQ(multi->traits.config_file, "/p/command/command_gpus.txt");
  EXPECT_EQ(multi->rules.at("gpu_left"), "1");
  EXPECT_THAT(mistakes(of_config("gpu_left: 1", Cards::by_file_name)),
              HasSubstr("--mode single for '/p/command/command_gpu.txt' or --mode multi for"));
  // The configuration may lie elsewhere than where the scheduler is started.
  const Files files = {{"/q/command.txt", "1\na\n1\n"}};
  Source source;
  source.text = "gpu_left: 1\nwork_dir: null\n";
  source.file_name = "/p/config.yaml";
  source.base_dir = "/p";
  source.here = "/q";
  source.read = reader(files);
  DialectOptions options;
  options.dialect = Dialect::commands;
  options.cards = Cards::single;
  const auto here = parse_file(source, options);
  ASSERT_TRUE(here) << mistakes(here);
  EXPECT_EQ(here->traits.config_file, "/q/command.txt");
  EXPECT_EQ(here->traits.state_dir, "/q/logs");
  EXPECT_EQ(here->rules.at("gpu_left"), "1");
}

TEST(CommandConfig, IsRecognisedByItsKeys) {
  const Files files = {{"/p/command.txt", "1\na\n1\n"}};
  const auto file =
      parse_text("check_time: 5\ncompete_gpus: [0]\n", "config.yaml", {}, files, "/p");
  ASSERT_TRUE(file) << mistakes(file);
  EXPECT_EQ(file->traits.dialect, "commands");
  EXPECT_EQ(file->jobs.size(), 1U);
  EXPECT_EQ(recognise("{\"check_time\": 5}", "x.json"), Dialect::commands);
  for (const char* text :
       {"version: 1\njobs: [{run: x}]\nwork_dir: x\n", "jobs: []\nmin_gpu: 1\n",
        "run: x\nwork_dir: y\n", "version: 1\nmin_gpu: 2\n", "name: x\nrules: {min_gpu: 1}\n"}) {
    EXPECT_EQ(recognise(text, "x.yaml"), Dialect::native) << text;
  }
}

TEST(CommandConfig, SaysWhatCanNeverRun) {
  const auto warned = [](const char* config, const char* commands = "1\na\n1\n1\n") {
    const Files files = {{"/p/config.yaml", config}};
    const auto file = parse_text(commands, "command_gpus.txt", {}, files, "/p");
    return file ? ::testing::PrintToString(file->warnings) : mistakes(file);
  };
  constexpr const char* kNone = "'gpu_left' is 2 and 'compete_gpus' lists 2: no card is left";
  EXPECT_THAT(warned("compete_gpus: [0, 1]\ngpu_left: 2\n"),
              HasSubstr(std::string("/p/config.yaml:2:11: ") + kNone));
  EXPECT_EQ(warned("compete_gpus: [0, 1]\ngpu_left: 1\n"), "{}");
  EXPECT_EQ(warned("compete_gpus: [0, 1]\ngpu_left: 2\nmin_gpu: 1\n"), "{}");
  EXPECT_EQ(warned("compete_gpus: [0, 1]\ngpu_left: 2\nuse_all_gpus: true\n"), "{}");
  EXPECT_THAT(warned("compete_gpus: [0, 1, 1]\n", "1\na\n3\n1\n"),
              HasSubstr("this task needs 3 GPUs and will wait as long as 'compete_gpus' lists 2"));
}

TEST(CommandConfig, WarnsOfAWorkDirectoryThatIsNotThere) {
  const Files files = {{"/p/config.yaml", "check_time: 5\nwork_dir: $HOME/x\n"}};
  Source source;
  source.text = "1\na\n1\n";
  source.file_name = "command.txt";
  source.base_dir = "/p";
  source.read = reader(files);
  const auto warned = [&] {
    const auto file = parse_file(source, {});
    return file ? ::testing::PrintToString(file->warnings) : mistakes(file);
  };
  EXPECT_THAT(warned(), HasSubstr("/p/config.yaml:2:11: 'work_dir' is taken as it is written"));
  EXPECT_THAT(warned(), Not(HasSubstr("no directory")));
  source.lacks_directory = [](const std::filesystem::path& path) { return path != "/p/x"; };
  EXPECT_THAT(warned(), HasSubstr("config.yaml:2:11: work_dir '/p/$HOME/x' is no directory"));
  source.lacks_directory = [](const std::filesystem::path&) { return false; };
  EXPECT_THAT(warned(), Not(HasSubstr("no directory")));
}

TEST(CommandConfig, MistakesInTheCommandFileBearItsPath) {
  const Files files = {{"/p/command_gpu.txt", "1\na\n"}};
  EXPECT_THAT(
      mistakes(parse_text("gpu_command_file: command_gpu.txt", "config.yaml", {}, files, "/p")),
      HasSubstr("/p/command_gpu.txt:2:1: the memory is missing"));
}

// --- neither is given
// ---------------------------------------------------------------------------------

std::string usual(const Files& files, Cards cards, std::uint32_t index = 0) {
  DialectOptions options;
  options.cards = cards;
  options.config_index = index;
  const auto found = usual_command_file("/p", options, reader(files));
  return found ? found->native() : "none";
}

TEST(CommandPlace, AConfigurationThatNamesOneGoesFirst) {
  Files files = kLayout;
  files["/p/config/gpu_manage.yaml"] = kBoth;
  EXPECT_EQ(usual(files, Cards::single), "/p/config/gpu_manage.yaml");
  EXPECT_EQ(usual(files, Cards::multi), "/p/config/gpu_manage.yaml");
  files["/p/config/gpu_manage.yaml"] = "gpu_left: 1\n";
  EXPECT_EQ(usual(files, Cards::single), "/p/command/command_gpu.txt");
  EXPECT_EQ(usual(files, Cards::single, 2), "/p/command/command_gpu_2.txt");
  EXPECT_EQ(usual(files, Cards::multi), "/p/command/command_gpus.txt");
}

TEST(CommandPlace, TheUsualNamesAreFoundAndNothingElse) {
  EXPECT_EQ(usual({{"/p/command.txt", ""}, {"/p/config.yaml", "gpu_left: 1"}}, Cards::single),
            "/p/command.txt");
  EXPECT_EQ(usual({{"/p/command.txt", ""}}, Cards::multi), "none");
  EXPECT_EQ(usual({{"/p/command.txt", ""}}, Cards::by_file_name), "none");
  EXPECT_EQ(usual({{"/p/commands.txt", ""}}, Cards::single), "none");
}

}  // namespace
}  // namespace berth
