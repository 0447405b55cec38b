#include <filesystem>
#include <fstream>
#include <iterator>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support.hpp"

namespace berth {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using Cards = DialectOptions::Cards;

constexpr std::string_view kScripts = "/home/user/project/scripts";

DialectOptions with_mode(Cards cards) {
  DialectOptions options;
  options.dialect = Dialect::commands;
  options.cards = cards;
  return options;
}

std::vector<std::string> commands_of(const JobSpec& job) {
  std::vector<std::string> out;
  for (const Command& command : job.payload.commands) {
    EXPECT_TRUE(command.shell);
    out.push_back(command.argv.at(0));
  }
  return out;
}

std::string read_golden(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// --- the examples of the documents
// ----------------------------------------------------------------

/// Each folder of tests/golden/commands has one command file, perhaps a configuration, and what
/// `berth check --json` makes of them. BERTH_BLESS=1 writes the latter anew.
TEST(Commands, ExamplesBecomeTheseJobs) {
  std::size_t count = 0;
  for (const auto& folder : std::filesystem::directory_iterator(BERTH_COMMANDS_DIR)) {
    Files others;
    std::string name;
    for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
      const auto file = entry.path().filename().native();
      if (entry.path().extension() == ".txt") {
        name = file;
      } else if (file != "expected.json") {
        others[fmt::format("{}/{}", kScripts, file)] = read_golden(entry.path());
      }
    }
    ASSERT_FALSE(name.empty()) << folder.path();
    const auto parsed = parse_text(read_golden(folder.path() / name), name, {}, others);
    ASSERT_TRUE(parsed) << folder.path() << "\n" << mistakes(parsed);
    const auto expected = folder.path() / "expected.json";
    if (std::getenv("BERTH_BLESS") != nullptr) {
      std::ofstream(expected, std::ios::binary) << as_json(*parsed);
    }
    EXPECT_EQ(as_json(*parsed), read_golden(expected)) << folder.path();
    ++count;
  }
  EXPECT_GE(count, 5U);
}

TEST(Commands, StandardBlocksHaveQueueAndMemoryAtTheirEnd) {
  const auto parsed = parse_text(
      "# one\nmake data\npython a.py # not ours\n3,20\n\nrun\n4 , 1.5 #x", "command.txt");
  ASSERT_TRUE(parsed) << mistakes(parsed);
  ASSERT_EQ(parsed->jobs.size(), 2U);
  const JobSpec& first = parsed->jobs[0];
  EXPECT_EQ(commands_of(first), (std::vector<std::string>{"make data", "python a.py # not ours"}));
  EXPECT_THAT(first.queue, MatchesRegex("command-[0-9a-f]{4}/3"));
  EXPECT_EQ(first.name, "q3-1");
  EXPECT_EQ(first.request.gpu_memory, 20 * kGiB);
  EXPECT_EQ(first.request.gpus, (GpuCount{1, 1}));
  EXPECT_EQ(first.retries, 100U);
  EXPECT_TRUE(first.payload.linger);
  EXPECT_EQ(first.payload.cwd, "/home/user/project");
  EXPECT_EQ(first.payload.work_dir, "/home/user/project");
  EXPECT_EQ(first.payload.log, "");
  EXPECT_EQ(parsed->jobs[1].request.gpu_memory, 3 * kGiB / 2);
  ASSERT_EQ(parsed->queues.size(), 2U);
  EXPECT_THAT(parsed->queues[0].name, MatchesRegex("command-[0-9a-f]{4}/3"));
  EXPECT_EQ(parsed->queues[0].limit, 1U);
}

TEST(Commands, FilesOfOneNameShareNoQueues) {
  const auto here = parse_text("a\n1,1\n", "command.txt");
  const auto there = parse_text("a\n1,1\n", "command.txt", {}, {}, "/other/project");
  const auto again = parse_text("b\n1,1\n", "command.txt");
  ASSERT_TRUE(here && there && again);
  EXPECT_NE(here->jobs[0].queue, there->jobs[0].queue);
  EXPECT_EQ(here->jobs[0].queue, again->jobs[0].queue);
  EXPECT_EQ(here->name, there->name);
}

TEST(Commands, QueuesAreCountedAndDeclaredOnce) {
  const auto parsed = parse_text("1\na\n2\n\n007 #seven\nb\n2\n\n1\nc\n2\n", "command_x.txt");
  ASSERT_TRUE(parsed) << mistakes(parsed);
  EXPECT_EQ(parsed->jobs[2].name, "q1-2");
  EXPECT_THAT(parsed->jobs[1].queue, MatchesRegex("command_x-[0-9a-f]{4}/7"));
  EXPECT_EQ(parsed->queues.size(), 2U);
}

TEST(Commands, SeveralGpusByNameOrMode) {
  const std::string text = "1\ntorchrun x.py\n2 #GPUs\n20\n";
  for (const auto& parsed : {parse_text(text, "command_gpus_2.txt"),
                             parse_text(text, "mine", with_mode(Cards::multi))}) {
    ASSERT_TRUE(parsed) << mistakes(parsed);
    EXPECT_EQ(parsed->jobs[0].request.gpus, (GpuCount{2, 2}));
    EXPECT_EQ(parsed->rules.at("order"), "largest_first");
    EXPECT_EQ(parsed->traits.mode, "multi");
    EXPECT_EQ(parsed->traits.log, "compete_gpus.log");
  }
  const auto single = parse_text("1\na\n20\n", "command_gpu_2.txt");
  EXPECT_EQ(single->rules.at("order"), "random");
  EXPECT_EQ(single->traits,
            (BatchTraits{"commands", "/home/user/project/scripts/logs", "compete_gpu.log", "single",
                         "/home/user/project/scripts/command_gpu_2.txt", 2, 0}));
}

TEST(Commands, LineEndsMarksAndScriptsOfAnyLanguage) {
  const auto parsed = parse_text(
      "\xEF\xBB\xBF# 任务1：队列1\r\n1 #队列ID\r\n\tpython 训练.py \r\n20 "
      "#剩余显存\r\n \t\r\n# nothing\r\n\r\n2\r\nb\r\n5",
      "command.txt");
  ASSERT_TRUE(parsed) << mistakes(parsed);
  ASSERT_EQ(parsed->jobs.size(), 2U);
  EXPECT_EQ(commands_of(parsed->jobs[0]), std::vector<std::string>{"python 训练.py"});
  EXPECT_EQ(commands_of(parsed->jobs[1]), std::vector<std::string>{"b"});
}

TEST(Commands, ANumberMayBeFollowedByItsUnitOrByWhatItIs) {
  for (const auto* text :
       {"1\na\n20 GB\n", "1\na\n20GB\n", "1\na\n20 剩余显存\n", "1 队列ID\na\n20\n",
        "1 队列ID #note\na\n20g 显存\n", "1 queue\na\n20 GiB free\n", "a\n1,20 GB\n",
        "a\n1 , 20GiB #x\n", "a\n1,20 显存\n", "1\n\ta\n20.0 gib\n"}) {
    const auto parsed = parse_text(text, "command.txt");
    ASSERT_TRUE(parsed) << text << mistakes(parsed);
    EXPECT_THAT(parsed->jobs.at(0).queue, MatchesRegex("command-[0-9a-f]{4}/1")) << text;
    EXPECT_EQ(parsed->jobs[0].request.gpu_memory, 20 * kGiB) << text;
    EXPECT_EQ(commands_of(parsed->jobs[0]), std::vector<std::string>{"a"}) << text;
  }
  const auto multi = parse_text("1 队列\na\n3 GPUs\n20 GB\n", "command_gpus.txt");
  ASSERT_TRUE(multi) << mistakes(multi);
  EXPECT_EQ(multi->jobs[0].request.gpus, (GpuCount{3, 3}));
  // Programs whose names begin with a digit are programs.
  const auto program = parse_text("1\n7z x a.7z\n2to3 b\n20\n", "command.txt");
  ASSERT_TRUE(program) << mistakes(program);
  EXPECT_EQ(commands_of(program->jobs[0]), (std::vector<std::string>{"7z x a.7z", "2to3 b"}));
}

TEST(Commands, AnotherEncodingAndSlipsInBracesAreWarnings) {
  const auto warned = [](const std::string& text) {
    const auto file = parse_text(text, "command.txt");
    return file ? ::testing::PrintToString(file->warnings) : mistakes(file);
  };
  EXPECT_THAT(warned("# x\n# \xb6\xd3\xc1\xd0\npython a.py\n1,2\n"),
              HasSubstr("command.txt:2:1: this line is not UTF-8"));
  EXPECT_THAT(warned("python a.py --id {uniid} --id {uniid}\n1,2\n"),
              HasSubstr("command.txt:1:1: '{uniid}' stands for nothing and stays as it is; did you "
                        "mean '{uni_id}'?"));
  for (const char* text : {"awk '{print}' x {uni_id}\n1,2\n", "echo ${uniid} {a,b}\n1,2\n"}) {
    EXPECT_EQ(warned(text), "{}") << text;
  }
}

TEST(Commands, ACopyOfAFileForSeveralGpusIsOneToo) {
  const auto file = parse_text("1\na\n2\n20\n", "command_gpus.txt.backup");
  ASSERT_TRUE(file) << mistakes(file);
  EXPECT_EQ(file->jobs[0].request.gpus.min, 2U);
}

TEST(Commands, EveryTaskLastsAsLongAsWhatItLeavesRunning) {
  for (const auto* text : {"bash run.sh --uni_id {uni_id}\n1,1\n", "nohup python a.py &\n1,1\n",
                           "1\nbash run.sh\n1\n"}) {
    const auto parsed = parse_text(text, "command.txt");
    ASSERT_TRUE(parsed) << mistakes(parsed);
    EXPECT_TRUE(parsed->jobs[0].payload.linger) << text;
  }
}

// --- quotes
// ---------------------------------------------------------------------------------------

TEST(Commands, AQuotedCommandLosesItsOuterQuotes) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {R"("rm -rf {work_dir}/x")", "rm -rf {work_dir}/x"},
      {R"('echo "a b"')", R"(echo "a b")"},
      {R"("echo 'a b'")", "echo 'a b'"},
      {R"("echo \"a\"")", R"(echo \"a\")"},
      {R"("echo "a b"")", R"(echo "a b")"},
      {R"("echo "a" b")", R"(echo "a" b)"},
      {R"("my program" "an argument")", R"("my program" "an argument")"},
      {R"("./a b" x)", R"("./a b" x)"},
      {R"(echo "a b")", R"(echo "a b")"},
      {R"('it' 'is')", R"('it' 'is')"},
      {R"(""echo x"")", R"("echo x")"},
      {R"("  a ")", "  a "},
  };
  for (const auto& [line, command] : cases) {
    const auto parsed = parse_text("1\n" + line + "\n1\n", "command.txt");
    ASSERT_TRUE(parsed) << line << "\n" << mistakes(parsed);
    EXPECT_EQ(commands_of(parsed->jobs[0]), std::vector<std::string>{command}) << line;
  }
}

// --- mistakes
// -------------------------------------------------------------------------------------

struct Mistake {
  std::string_view text;
  Cards cards;
  std::string_view at;
  std::string_view said;
};

TEST(Commands, MistakesAreSaidWhereTheyAre) {
  const std::vector<Mistake> cases = {
      {"", Cards::single, "1:1", "no task"},
      {"# only\n\n# comments\n", Cards::single, "1:1", "no task"},
      {"1\na\nb\n", Cards::single, "3:1", "the memory is missing"},
      {"1\na\nb\n", Cards::multi, "3:1", "GPU count and memory are missing"},
      {"a\nb\n", Cards::single, "2:1", "queue and memory are missing"},
      {"a\n20\n", Cards::single, "1:1", "the queue is missing"},
      {"a\n2\n20\n", Cards::multi, "1:1", "the queue is missing"},
      {"1\n20\n", Cards::single, "1:1", "no command"},
      {"1,20\n", Cards::single, "1:1", "no command"},
      {"1\n", Cards::single, "1:1", "no command"},
      {"1\na\n20\n", Cards::multi, "3:1", "--mode single"},
      {"a\n1,20\n", Cards::multi, "2:1", "is for one GPU"},
      {"1\na\n2\n20\n", Cards::single, "3:1", "--mode multi"},
      {"1\na\n20\n2\nb\n20\n", Cards::single, "3:1", "is a blank line missing before it?"},
      {"a\n1,20\nb\n2,20\n", Cards::single, "2:1", "is a blank line missing after it?"},
      {"1\na\n1\n2\n3\n", Cards::multi, "3:1", "3 numbers end this block"},
      {"1\na\n0\n20\n", Cards::multi, "3:1", "the GPU count must be a whole number from 1"},
      {"1\na\n1.5\n20\n", Cards::multi, "3:1", "not '1.5'"},
      {"1\na\n5000\n20\n", Cards::multi, "3:1", "to 1024"},
      {"1\na\n0\n", Cards::single, "3:1", "the memory must be"},
      {"1\na\n0.0\n", Cards::single, "3:1", "the memory must be"},
      {"1\na\n99999999999999999999999\n", Cards::single, "3:1", "at most 65536 GiB"},
      {"99999999999999999999999\na\n1\n", Cards::single, "1:1", "the queue must be"},
      {"1.5\na\n1\n", Cards::single, "1:1", "the queue must be"},
      {"1\n  a\n  -20\n", Cards::single, "3:3", "without sign"},
      {"1\na\n20480MB\n", Cards::single, "3:1", "'20480MB' is not a number here"},
      {"1\na\n20 M\n", Cards::single, "3:1", "memory is in GiB"},
      {"1\na\n2e1 GB\n", Cards::single, "3:1", "is not a number here"},
      {"1\na\n20 24 GB\n", Cards::single, "3:1", "is not a number here"},
      {"1\na\n20 ，24\n", Cards::single, "3:1", "is not a number here"},
      {"20 GB\na\n1\n", Cards::single, "1:1", "the queue stands here, and '20 GB' is a memory"},
      {"1\na\n2 GB\n20\n", Cards::multi, "3:1", "the GPU count stands here"},
      {"1\na\n20 GB\nb\n20\n", Cards::single, "3:1", "stands where a command should be"},
      {"1 make all\nb\n20\n", Cards::single, "1:1",
       "both ways: as the number 1 with the note 'make all', and as the number 1 before the "
       "command"},
      {"1 python 训练\nb\n20\n", Cards::single, "1:1", "reads both ways"},
      {"1 训练.sh\nb\n20\n", Cards::single, "1:1", "reads both ways"},
      {"1 “rm x”\nb\n20\n", Cards::single, "1:1", "reads both ways"},
      {"1 队列; rm x\nb\n20\n", Cards::single, "1:1", "reads both ways"},
      {"1\nb\n20 GB > out\n", Cards::single, "3:1", "reads both ways"},
      {"1\na\n２０\n", Cards::single, "3:1", "full width"},
      {"１\na\n20\n", Cards::single, "1:1", "full width"},
      {"a\n1，20\n", Cards::single, "2:1", "full width"},
      {"a\n1,2,20\n", Cards::single, "2:1", "queue,memory as in 1,20"},
      {"1\n\"a\n1\n", Cards::single, "2:1", "is not closed"},
      {"1\n\"\"\n1\n", Cards::single, "2:1", "is empty"},
      {"1\n\"20\"\n1\n", Cards::single, "2:1", "remove the quotes"},
      {"1\n\"a b\" # note\n1\n", Cards::single, "2:1", "a line of its own"},
      {"1\n“a b”\n1\n", Cards::single, "2:1", "typographic"},
      {"1\n\"a\"b\"c\"\n1\n", Cards::single, "2:1", "reads both ways"},
      {"1\npython a.py\n--lr 1\n1\n", Cards::single, "3:1", "belong to the line before?"},
      {"1\npython a.py \\\n  --lr 1\n1\n", Cards::single, "2:1", "a command is one line"},
      {"1\na\rb\n1\n", Cards::single, "2:1", "carriage return"},
  };
  for (const auto& [text, cards, at, said] : cases) {
    const auto parsed = parse_text(text, "f.txt", with_mode(cards));
    ASSERT_FALSE(parsed) << text;
    EXPECT_THAT(mistakes(parsed), ::testing::StartsWith(fmt::format("f.txt:{}: ", at))) << text;
    EXPECT_THAT(mistakes(parsed), HasSubstr(std::string(said))) << text;
  }
}

TEST(Commands, AllMistakesComeAtOnce) {
  const auto parsed = parse_text("1\na\n\nb\n\n2\nc\n0\n", "command.txt");
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().size(), 3U) << mistakes(parsed);
}

TEST(Commands, TwoNumbersInAFileOfAnyNameReadBothWays) {
  const std::string text = "1\na\nb\n2\n20\n";
  DialectOptions unknown;
  unknown.dialect = Dialect::commands;
  const auto said = mistakes(parse_text(text, "tasks.list", unknown));
  EXPECT_THAT(said, HasSubstr("tasks.list:4:1: this block reads both ways"));
  EXPECT_THAT(said, HasSubstr("--mode multi as queue 1, 2 commands, 2 GPUs with 20 GiB each"));
  EXPECT_THAT(said, HasSubstr("--mode single as queue 1, 2 commands, one GPU with 20 GiB and '2' "
                              "too many"));
  EXPECT_TRUE(parse_text("1\na\nb\n20\n", "tasks.list", unknown)) << "only one way";
}

TEST(Commands, StandardAndOptimisedAtOnceReadsBothWays) {
  const auto said = mistakes(parse_text("1\na\n2,20\n", "command.txt"));
  EXPECT_THAT(said, HasSubstr("command.txt:3:1: this block reads both ways: as queue 1"));
  EXPECT_THAT(said, HasSubstr("as queue 2 with 20 GiB"));
  EXPECT_THAT(said, HasSubstr("remove line 1, or write the memory alone in line 3"));
}

TEST(Commands, OptionsOfOtherDialectsAreRefused) {
  DialectOptions options;
  options.command_template = "x";
  EXPECT_THAT(mistakes(parse_text("a\n1,1\n", "command.txt", options)), HasSubstr("--template"));
  options = {};
  options.arguments = {"x"};
  EXPECT_THAT(mistakes(parse_text("a\n1,1\n", "command.txt", options)),
              HasSubstr("only for files of the dialect 'script'"));
}

// --- names and recognition
// ------------------------------------------------------------------------

TEST(Commands, AQueueIsNamedByWhatAQueueMayBeCalled) {
  const auto parsed = parse_text("a\n1,1\n", "command my=own, 训练.txt");
  ASSERT_TRUE(parsed);
  EXPECT_THAT(parsed->jobs[0].queue, MatchesRegex("command-my-own--训练-[0-9a-f]{4}/1"));
  const auto lengthy =
      parse_text("a\n1,1\n", "command" + std::string(60, 'x') + "训练训练训练.txt");
  ASSERT_TRUE(lengthy);
  EXPECT_LE(lengthy->jobs[0].queue.size(), 90U);
  const auto input = parse_text("a\n1,1\n", std::string(kStandardInput));
  ASSERT_TRUE(input) << mistakes(input);
  EXPECT_THAT(input->jobs[0].queue, MatchesRegex("commands-[0-9a-f]{4}/1"));
  EXPECT_EQ(input->traits.config_file, "");
}

TEST(Commands, AreRecognisedByContent) {
  EXPECT_TRUE(looks_like_commands("# 队列ID\n1\npython script.py\n# GB\n20\n"));
  EXPECT_TRUE(looks_like_commands("python a.py\n1,20\n"));
  EXPECT_TRUE(looks_like_commands("1\na\n2\n20"));
  EXPECT_TRUE(looks_like_commands("oops\n\n1\na\n20"));
  EXPECT_TRUE(looks_like_commands("check_time: 5\ngpu_command_file: command_gpu.txt\n"));
  for (const std::string_view other :
       {"", "jobs:\n  - run: x\n", "version: 1\njobs:\n- run: |\n    1,2\n    3\n    1,20\n",
        "{\"jobs\": []}", "\"jobs\":\n- run: |\n    x\n    1,20\n", "#!/bin/sh\n1\na\n20\n",
        "- 1\n- 2\n", "echo hi\n", "1\n2\n3\n", "jobs:\n- run: x\ngpu_command_file: x\n",
        "name: x\n\njobs:\n- run: >\n    y\n\n    1,20\n", "%YAML 1.2\n---\n1\na\n20\n"}) {
    EXPECT_FALSE(looks_like_commands(other)) << other;
  }
  EXPECT_EQ(recognise("1\na\n20\n", "tasks"), Dialect::commands);
  EXPECT_EQ(recognise("jobs:\n- run: x\n", "jobs.yaml"), Dialect::native);
}

}  // namespace
}  // namespace berth
