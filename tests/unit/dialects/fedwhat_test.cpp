#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "a_file.hpp"
#include "dialects/config_seed.hpp"

namespace berth {
namespace {

using test::AFile;
using test::command_of;

AFile a_file(std::string text) {
  return {std::move(text),
          "jobs_x.yaml",
          {{"/base/configs/x.yaml", "dataset: cifar # ten classes\nseed: 1  # of all\n"},
           {"/base/configs/y.json", "{\"rounds\": 3}\n"}}};
}

AFile one_job(const std::string& more, const std::string& top = "") {
  return a_file(top + "jobs:\n  - name: A\n    config: configs/x.yaml\n    algorithm: FedAvg\n" +
                more);
}

constexpr const char* kTwo =
    "jobs:\n"
    "  - name: \"B\"\n"
    "    config: \"configs/x.yaml\"\n"
    "    algorithm: \"FedAvg\"\n"
    "    log_path: \"logs/multi/b.log\"\n"
    "    extra_args: {seed: 42, lr: 1e-3}\n"
    "  - name: A\n"
    "    config: configs/x.yaml\n"
    "    algorithm: FedProx\n";

TEST(FedWhatTest, BecomesCommandsInTheOrderOfTheFile) {
  const JobFile file = a_file(kTwo).read();
  ASSERT_EQ(file.jobs.size(), 2U);
  EXPECT_EQ(command_of(file.jobs[0]),
            "python test.py --cfp configs/x.yaml --algo FedAvg --seed 42 --lr 1e-3");
  EXPECT_EQ(command_of(file.jobs[1]), "python test.py --cfp configs/x.yaml --algo FedProx");
  EXPECT_EQ(file.jobs[0].name, "B");
  EXPECT_EQ(file.jobs[0].payload.cwd, "/base");
  EXPECT_EQ(file.jobs[0].payload.log, "/base/logs/multi/b.log");
  EXPECT_EQ(file.jobs[1].payload.log, "");
  EXPECT_EQ(file.jobs[0].request.gpus, GpuCount{});
  EXPECT_EQ(file.jobs[0].retries, 0U);
  const std::map<std::string, std::string> params = {
      {"config", "configs/x.yaml"}, {"algorithm", "FedAvg"}, {"seed", "42"}, {"lr", "1e-3"}};
  EXPECT_EQ(file.jobs[0].payload.params, params);
  EXPECT_TRUE(file.derived.empty());
  test::expect_round_trip(file);
}

TEST(FedWhatTest, HasTheThresholdsOfTheDocument) {
  const JobFile file = a_file(kTwo).read();
  EXPECT_EQ(file.name, "jobs_x");
  EXPECT_EQ(file.max_concurrent, 4U);
  EXPECT_EQ(file.rules.at("min_free_memory"), "8000MiB");
  EXPECT_EQ(file.rules.at("max_utilization"), "30");
  EXPECT_EQ(file.rules.at("max_wait"), "1h");
  EXPECT_EQ(file.rules.at("strategy"), "most_free");
  EXPECT_EQ(file.rules.at("order"), "fifo");
  EXPECT_EQ(file.rules.at("foreign.policy"), "share");
  EXPECT_TRUE(file.skip_done);
  EXPECT_EQ(file.traits.dialect, "fedwhat");
  EXPECT_EQ(file.traits.state_dir, "/base/logs");
  EXPECT_EQ(file.traits.log, "scheduler_jobs_x.log");
}

TEST(FedWhatTest, TheCommandLineGoesBeforeThem) {
  AFile file = a_file(kTwo);
  file.options.min_memory = 12000 * kMiB;
  file.options.max_util = 20;
  file.options.max_concurrent = 2;
  file.options.max_wait = Millis(7'200'000);
  file.options.name = "night";
  const JobFile read = file.read();
  EXPECT_EQ(read.name, "night");
  EXPECT_EQ(read.max_concurrent, 2U);
  EXPECT_EQ(read.rules.at("min_free_memory"), std::to_string(12000 * kMiB));
  EXPECT_EQ(read.rules.at("max_utilization"), "20");
  EXPECT_EQ(read.rules.at("max_wait"), "7200000ms");
}

TEST(FedWhatTest, IsRecognisedByItsKeys) {
  EXPECT_EQ(recognise(kTwo, "a.yaml"), Dialect::fedwhat);
  EXPECT_EQ(recognise("\xEF\xBB\xBFjobs:\r\n- config: x\r\n  algorithm: y\r\n", "a.yaml"),
            Dialect::fedwhat);
  EXPECT_EQ(recognise("jobs: [{name: A, config: x, algorithm: B}]", "a.yaml"), Dialect::fedwhat);
  EXPECT_EQ(recognise(R"({"jobs": [{"name": "A", "log_path": "x", "extra_args": {}}]})", "a"),
            Dialect::fedwhat);
  EXPECT_EQ(
      recognise("version: 1\njobs:\n- matrix: {config: [a], algorithm: [b]}\n  run: x\n", "a"),
      Dialect::native);
  EXPECT_EQ(recognise("{\n  \"version\": 1,\n \"jobs\": [{\"matrix\": {\"config\": [1], "
                      "\"algorithm\": [2]}, \"run\": \"x\"}]}",
                      "a"),
            Dialect::native);
  EXPECT_EQ(recognise("jobs:\n- run: true\n", "a.yaml"), Dialect::native);
  EXPECT_EQ(recognise("jobs:\n- name: A\n  algorithm: B\n", "a.yaml"), Dialect::fedwhat)
      << "an experiment that lacks the rest";
  EXPECT_EQ(recognise("jobs:\n- run: x\n  matrix: {algorithm: [b]}\n", "a.yaml"), Dialect::native);
}

TEST(FedWhatTest, ArgumentsOfEveryKindBecomeOptions) {
  const auto command = [](const std::string& extra) {
    const std::string line =
        command_of(one_job("    extra_args: " + extra + "\n").read().jobs.at(0));
    return line.substr(std::min(line.size(), line.find("FedAvg") + 7));
  };
  EXPECT_EQ(command("{gamma: 0, lambda_max: 1e-5}"), "--gamma 0 --lambda_max 1e-5");
  EXPECT_EQ(command("{verbose: true, amp: , quiet: false, z: 1}"), "--verbose --amp --z 1");
  EXPECT_EQ(command("{flag: \"true\", nothing: ''}"), "--flag true --nothing ''");
  EXPECT_EQ(command("{layers: [64, 32]}"), "--layers 64 32");
  EXPECT_EQ(command("{note: 'it''s $HOME; rm -rf'}"), R"(--note 'it'\''s $HOME; rm -rf')");
  EXPECT_EQ(command("{config: other, name: n}"), "--config other --name n");
  EXPECT_EQ(command("~"), "");
}

TEST(FedWhatTest, TheCommandCanBeAnother) {
  const std::string command =
      "command: accelerate launch main.py -c {config} seed={seed} {extra_args} "
      "; echo {algorithm} of {name} on {gpu_list}\n";
  EXPECT_EQ(command_of(one_job("    extra_args: {seed: 3, lr: 0.1}\n", command).read().jobs.at(0)),
            "accelerate launch main.py -c configs/x.yaml seed=3 --lr 0.1 ; echo FedAvg of A on "
            "{gpu_list}");
  AFile file = one_job("", "command: echo {config}\n");
  file.options.command_template = "run {algorithm} '{config}'";
  EXPECT_EQ(command_of(file.read().jobs.at(0)), "run FedAvg 'configs/x.yaml'");
}

TEST(FedWhatTest, ACommandThatWouldLoseSomethingIsRefused) {
  EXPECT_EQ(one_job("    extra_args: {lr: 1}\n", "command: run {config}\n").mistakes(),
            "3:5: the command does not mention {extra_args}, and the job 'A' has some\n");
  EXPECT_EQ(one_job("", "command: run {config} {seed}\n").mistakes(),
            "3:5: the command mentions {seed}, and the job 'A' has none in 'extra_args'\n");
  EXPECT_EQ(one_job("", "command: run {confg}\n").mistakes(),
            "1:10: {confg} in the command stands for nothing; did you mean {config}?\n");
}

TEST(FedWhatTest, ASeedCanGoIntoACopyOfTheConfig) {
  const std::string extra = "    extra_args: {seed: 42, lr: 1}\n";
  for (const bool by_option : {true, false}) {
    AFile file = one_job(extra, by_option ? "" : "seed_in: config\n");
    file.options.seed_in_config = by_option;
    const JobFile read = file.read();
    ASSERT_EQ(read.derived.size(), 1U);
    const std::string path = read.derived[0].path;
    EXPECT_THAT(path, ::testing::MatchesRegex("/base/configs/temp/x_seed42_[0-9a-f]{12}\\.yaml"));
    EXPECT_EQ(command_of(read.jobs.at(0)),
              "python test.py --cfp " + path.substr(6) + " --algo FedAvg --lr 1");
    EXPECT_THAT(read.jobs[0].payload.extra_env,
                ::testing::ElementsAre(::testing::EndsWith(" " + path)));
    EXPECT_EQ(read.derived[0].content, "dataset: cifar # ten classes\nseed: 42  # of all\n");
    EXPECT_EQ(read.jobs[0].payload.params.at("seed"), "42");
    EXPECT_EQ(read.jobs[0].payload.params.at("config"), "configs/x.yaml");
  }
  EXPECT_TRUE(one_job("", "seed_in: config\n").read().derived.empty());
  EXPECT_EQ(one_job("    extra_args: {seed: a/b}\n", "seed_in: config\n").mistakes(),
            "6:18: 'seed' goes into a config and its name, so it must be a number, not 'a/b'\n");
  EXPECT_EQ(one_job(extra, "seed_in: file\n").mistakes(),
            "1:10: 'seed_in' is 'command' or 'config', not 'file'\n");
}

TEST(FedWhatTest, CopiesOfOtherContentHaveOtherNames) {
  AFile file = one_job("    extra_args: {seed: 42}\n", "seed_in: config\n");
  const std::string path = file.read().derived.at(0).path;
  EXPECT_EQ(file.read().derived.at(0).path, path);
  file.others["/base/configs/x.yaml"] += "rounds: 9\n";
  EXPECT_NE(file.read().derived.at(0).path, path) << "those that wait have the copy of before";
}

TEST(FedWhatTest, TwoConfigsThatDifferInTheirEndingAloneHaveACopyEach) {
  AFile file = a_file(
      "seed_in: config\njobs:\n"
      "  - {name: A, config: configs/x.yaml, algorithm: F, extra_args: {seed: 1}}\n"
      "  - {name: B, config: configs/x.json, algorithm: F, extra_args: {seed: 1}}\n");
  file.others["/base/configs/x.json"] = "{\"dataset\": \"mnist\"}";
  EXPECT_EQ(file.read().derived.size(), 2U);
}

TEST(FedWhatTest, AnExperimentKnowsTheContentItWasSubmittedWith) {
  AFile file = one_job("");
  const auto env = [&] { return file.read().jobs.at(0).payload.extra_env; };
  const Environment before = env();
  EXPECT_THAT(before, ::testing::ElementsAre(::testing::MatchesRegex(
                          "BERTH_UNCHANGED=[0-9a-f]{16} /base/configs/x\\.yaml")));
  file.others["/base/configs/x.yaml"] += "rounds: 9\n";
  EXPECT_NE(env(), before);
}

TEST(FedWhatTest, TheSeedIsSetOrAddedWhereverTheConfigCanHoldIt) {
  const auto set = [](std::string_view text) { return with_seed(text, "7").value_or("(no)"); };
  EXPECT_EQ(set("seed: 1"), "seed: 7");
  EXPECT_EQ(set("seed:\na: 1\n"), "seed: 7\na: 1\n");
  EXPECT_EQ(set("seed: # none\n"), "seed: 7 # none\n");
  EXPECT_EQ(set("seed: ~\na: 1\n"), "seed: 7\na: 1\n");
  EXPECT_EQ(set("{\"seed\": null, \"a\": 1}"), "{\"seed\": 7, \"a\": 1}");
  EXPECT_EQ(set("seed:\nnull_rate: 1\n"), "seed: 7\nnull_rate: 1\n");
  EXPECT_EQ(set("\xef\xbb\xbf\xef\xbb\xbf"
                "a: 1\n"),
            "a: 1\nseed: 7\n");
  EXPECT_EQ(set("seed: '12'  # x\n"), "seed: 7  # x\n");
  EXPECT_EQ(set("a: 1"), "a: 1\nseed: 7\n");
  EXPECT_EQ(set(""), "seed: 7\n");
  EXPECT_EQ(set("# only this\n"), "# only this\nseed: 7\n");
  EXPECT_EQ(set("train:\n  seed: 1\n"), "train:\n  seed: 1\nseed: 7\n");
  EXPECT_EQ(set("{\"a\": 1}\n"), "{\"seed\": 7, \"a\": 1}\n");
  EXPECT_EQ(set("{}"), "{\"seed\": 7}");
  EXPECT_EQ(set("{\"seed\": 1, \"a\": 2}"), "{\"seed\": 7, \"a\": 2}");
  EXPECT_EQ(set("seed: [1, 2]\n"), "(no)");
  EXPECT_EQ(set("- a\n"), "(no)");
  EXPECT_EQ(set("a: [1\n"), "(no)");
  EXPECT_EQ(set("a: 1\n...\n"), "(no)");
}

TEST(FedWhatTest, TheSameExperimentIsKnownByNameCommandAndConfig) {
  const auto print = [](const AFile& file) { return file.read().jobs.at(0).payload.fingerprint; };
  const AFile file = one_job("    log_path: a.log\n");
  AFile other = file;
  EXPECT_EQ(print(file), print(one_job("    log_path: b.log\n")));
  EXPECT_NE(print(file), print(one_job("    extra_args: {lr: 1}\n")));
  other.others["/base/configs/x.yaml"] += "rounds: 9\n";
  EXPECT_NE(print(file), print(other));
}

TEST(FedWhatTest, MistakesAreToldAtTheirPlaceAllAtOnce) {
  EXPECT_EQ(a_file("jobs:\n"
                   "  - name: A\n"
                   "    config: configs/x.yaml\n"
                   "  - nam: B\n"
                   "    config: configs/gone.yaml\n"
                   "    algorithm: [x]\n"
                   "  - name: A\n"
                   "    config: configs/gone.yaml\n"
                   "    algorithm: x\n"
                   "    extra_args: [1]\n"
                   "    logpath: y\n"
                   "  - just text\n"
                   "job: 1\n")
                .mistakes(),
            "2:5: this job has no 'algorithm'\n"
            "4:5: unknown key 'nam'; did you mean 'name'?\n"
            "6:16: 'algorithm' needs a single value, this is a list\n"
            "7:11: the name 'A' is taken, by the job in line 2\n"
            "8:13: the config 'configs/gone.yaml' cannot be read; it was looked for at "
            "'/base/configs/gone.yaml'\n"
            "10:17: 'extra_args' is a map such as {seed: 42}, this is a list\n"
            "11:5: unknown key 'logpath'; did you mean 'log_path'?\n"
            "12:5: a job is a map with 'name', 'config' and 'algorithm'; this is a single value\n"
            "13:1: unknown key 'job'; did you mean 'jobs'?\n");
  EXPECT_EQ(one_job("    extra_args: {--lr: 1, x: {y: 1}}\n").mistakes(),
            "5:18: '--lr' cannot be an option; write its name without dashes and blanks\n"
            "5:30: 'x' needs a single value, this is a map\n");
  EXPECT_EQ(one_job("    log_path: logs/\n").mistakes(),
            "5:15: 'log_path' names a file, and 'logs/' is none\n");
}

TEST(FedWhatTest, AFileWithoutJobsIsRefused) {
  AFile file = a_file("jobs: []\n");
  file.options.dialect = Dialect::fedwhat;
  EXPECT_EQ(file.mistakes().substr(0, 30), "1:7: 'jobs' must be a list of ");
  file.text = "";
  EXPECT_NE(file.mistakes(), "");
}

TEST(FedWhatTest, OptionsOfOtherDialectsAreRefused) {
  AFile file = a_file(kTwo);
  file.options.config_file = "config.yaml";
  EXPECT_EQ(file.mistakes(),
            "1:1: --config-file: only for files of the dialect 'commands', and this is 'fedwhat'; "
            "--dialect says otherwise\n");
  AFile native{"version: 1\njobs: [{run: x}]\n", "a.yaml", {}, {}};
  EXPECT_EQ(native.mistakes(), "");
  native.options.seed_in_config = true;
  EXPECT_EQ(native.mistakes().substr(0, 24), "1:1: --seed-in-config: o");
}

TEST(FedWhatTest, OneLogForTwoJobsIsAWarning) {
  const JobFile file = one_job(
                           "    log_path: a.log\n"
                           "  - {name: B, config: configs/x.yaml, algorithm: x, log_path: a.log}\n")
                           .read();
  ASSERT_EQ(file.warnings.size(), 1U);
  EXPECT_EQ(file.warnings[0], "jobs_x.yaml:6:63: more than one job writes to the log 'a.log'");
}

/// The files of the examples are the document's: 24, 6 and 6 jobs.
TEST(FedWhatTest, TheExamplesHaveTheJobsOfTheDocument) {
  const std::filesystem::path folder = std::filesystem::path(BERTH_EXAMPLES_DIR) / "fedwhat";
  const auto load = [&](const std::filesystem::path& path) -> Result<std::string> {
    std::ifstream in(path);
    if (!in) {
      return fail(ErrorCode::not_found, path.string());
    }
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  const auto read = [&](const std::string& name) {
    const auto text = load(folder / name);
    EXPECT_TRUE(text) << name;
    Source source;
    source.text = *text;
    source.file_name = name;
    source.base_dir = folder;
    source.read = load;
    const Parsed file = parse_file(source, {});
    EXPECT_TRUE(file) << name;
    return file ? *file : JobFile{};
  };
  const auto values = [](const JobFile& file, const std::string& key) {
    std::set<std::string> out;
    for (const JobSpec& job : file.jobs) {
      out.insert(job.payload.params.at(key));
    }
    return out;
  };
  const JobFile seeds = read("jobs_multi_seed.yaml");
  EXPECT_EQ(seeds.jobs.size(), 24U);
  EXPECT_EQ(values(seeds, "config").size(), 2U);
  EXPECT_EQ(values(seeds, "algorithm").size(), 4U);
  EXPECT_EQ(values(seeds, "seed").size(), 3U);
  const JobFile gamma = read("jobs_gamma_sensitivity.yaml");
  EXPECT_EQ(gamma.jobs.size(), 6U);
  EXPECT_EQ(values(gamma, "gamma"),
            (std::set<std::string>{"0", "1e-5", "1e-4", "1e-3", "1e-2", "1e-1"}));
  EXPECT_EQ(values(gamma, "lambda_max"), std::set<std::string>{"50"});
  const JobFile lambda = read("jobs_lambda_max_sensitivity.yaml");
  EXPECT_EQ(lambda.jobs.size(), 6U);
  EXPECT_EQ(values(lambda, "lambda_max"),
            (std::set<std::string>{"20", "30", "50", "75", "100", "150"}));
  EXPECT_EQ(values(lambda, "gamma"), std::set<std::string>{"0.001"});
}

}  // namespace
}  // namespace berth
