#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "a_file.hpp"
#include "dialects/json_comments.hpp"
#include "dialects/manager_task.hpp"

namespace berth {
namespace {

using test::AFile;
using test::command_of;
using ::testing::HasSubstr;

AFile a_config(std::string text) {
  return {std::move(text), "gpu_manager_config.json", {}, {}};
}

/// Keys besides a program; `line` stands in line 2.
AFile with(const std::string& line) {
  return a_config("{\"program_template\": {\"command\": \"run\"},\n" + line + "\n}\n");
}

std::string warnings_of(const AFile& file) {
  return fmt::format("{}", fmt::join(file.read().warnings, "\n"));
}

constexpr const char* kOfTheGuide = R"({
  "monitor_interval": 5,           // 监控间隔（秒）
  "max_gpus_per_task": 4,         // 每个任务最大 GPU 数
  "auto_scale": true,             // 是否启用自动扩展
  "program_template": {            /* what
                                      runs */
    "command": "python train.py",
    "args": ["--gpus", "{gpu_list}", "--data", "/path/to//data", "two words",],
    "env_vars": {
      "CUDA_VISIBLE_DEVICES": "{gpu_list}",
      "PYTHONPATH": "/src"
    }
  },
  "scaling": {
    "enabled": true,
    "min_gpus": 1,
    "max_gpus": 4,
    "scale_up_threshold": 0.8,
    "scale_down_threshold": 0.3
  }
}
)";

TEST(GpuManagerTest, TheConfigurationOfTheGuideBecomesOneJob) {
  const AFile config = a_config(kOfTheGuide);
  EXPECT_EQ(recognise(config.text, config.name), Dialect::gpu_manager);
  EXPECT_EQ(recognise("{}", "gpu_manager_config.json"), Dialect::gpu_manager) << "by its name";
  EXPECT_EQ(recognise("{}", "other.json"), Dialect::native);
  EXPECT_EQ(recognise("// a part\n{\n  \"scaling\": {\"min_gpus\": 1 // 最少\n}}", "c2.json"),
            Dialect::gpu_manager)
      << "by any of its keys";
  EXPECT_EQ(recognise("{\"a\": {\"scaling\": 1}}", "x.json"), Dialect::native);
  EXPECT_EQ(recognise("{\"version\": 1, \"jobs\": [{\"run\": \"x\"}], \"logging\": 1}", "x.json"),
            Dialect::native);
  const JobFile file = config.read();
  ASSERT_EQ(file.jobs.size(), 1U);
  const JobSpec& job = file.jobs[0];
  EXPECT_EQ(job.name, "gpu_manager_config");
  EXPECT_EQ(command_of(job), "python train.py --gpus {gpu_list} --data /path/to//data 'two words'");
  EXPECT_EQ(job.request.gpus, (GpuCount{1, 4}));
  EXPECT_EQ(job.payload.extra_env,
            (Environment{"CUDA_VISIBLE_DEVICES={gpu_list}", "PYTHONPATH=/src"}));
  EXPECT_EQ(job.payload.cwd, "/base");
  EXPECT_EQ(job.retries, 0U);
  EXPECT_EQ(file.rules.at("sample_age_max"), "5000ms");
  EXPECT_EQ(file.traits.dialect, "gpu_manager");
  EXPECT_EQ(file.traits.state_dir, "/base");
  EXPECT_EQ(file.traits.log, "gpu_manager.log");
  // That it does not grow while it runs is said, at each of the keys that ask for it.
  ASSERT_EQ(file.warnings.size(), 3U);
  for (const char* key : {"4:17: auto_scale", "18:27: scaling.scale_up_threshold",
                          "19:29: scaling.scale_down_threshold"}) {
    EXPECT_NE(warnings_of(config).find(key), std::string::npos) << warnings_of(config);
  }
}

TEST(GpuManagerTest, TheSmallestBoundIsTakenAndContradictionsAreTold) {
  const auto gpus = [](const std::string& line) {
    return with(line).read().jobs.at(0).request.gpus;
  };
  EXPECT_EQ(gpus("\"job_prefix\": \"\""), (GpuCount{1, 1}));
  EXPECT_EQ(gpus("\"max_gpus_per_task\": 4"), (GpuCount{1, 4}));
  EXPECT_EQ(gpus("\"max_gpus_per_task\": 4, \"scaling\": {\"min_gpus\": 2, \"max_gpus\": 8}"),
            (GpuCount{2, 4}));
  EXPECT_EQ(gpus("\"max_gpus_per_task\": 4, \"max_total_gpus\": 2"), (GpuCount{1, 2}));
  EXPECT_EQ(gpus("\"max_gpus_per_task\": 8, \"max_manual_gpus\": 6"), (GpuCount{1, 6}));
  EXPECT_EQ(gpus("\"max_gpus_per_task\": 2, \"scaling\": {\"min_gpus\": 3}"), (GpuCount{2, 2}));
  EXPECT_EQ(gpus("\"auto_scale\": false, \"max_gpus_per_task\": 4"), (GpuCount{1, 1}));
  EXPECT_EQ(gpus("\"scaling\": {\"enabled\": false, \"min_gpus\": 2, \"max_gpus\": 4}"),
            (GpuCount{2, 2}));
  EXPECT_NE(warnings_of(with("\"max_gpus_per_task\": 4, \"scaling\": {\"max_gpus\": 8}"))
                .find("gpu_manager_config.json:2:49: scaling.max_gpus is 8, and max_gpus_per_task "
                      "is 4: the smaller is taken, 4"),
            std::string::npos);
  EXPECT_EQ(with("\"max_gpus_per_task\": 4, \"max_total_gpus\": 8").read().warnings.size(), 1U);
}

TEST(GpuManagerTest, TheJobIsNamedAfterTheOptionOrTheFile) {
  AFile config = with("\"job_prefix\": \"NDFS_\"");
  EXPECT_EQ(config.read().jobs.at(0).name, "NDFS_gpu_manager_config");
  config.options.name = "exp_train";
  EXPECT_EQ(config.read().jobs.at(0).name, "NDFS_exp_train");
  config.options.name = "NDFS_x";
  EXPECT_EQ(config.read().jobs.at(0).name, "NDFS_x");
}

TEST(GpuManagerTest, ATaskThatIsStartedByHandHasTheLimitsOfTheGuide) {
  const auto task = [](const std::string& line, std::optional<std::uint32_t> gpus,
                       std::uint32_t held) {
    const AFile config = with(line);
    Source source;
    source.text = config.text;
    source.file_name = config.name;
    source.base_dir = "/base";
    return parse_manager_task(source, {"exp_train", gpus, held});
  };
  const auto mistake = [](const Parsed& file) {
    return file || file.error().size() != 1 ? "" : file.error()[0].message;
  };
  const std::string seven = "\"max_gpus_per_task\": 7";
  const Parsed plain = task(seven, {}, 0);
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->jobs.at(0).name, "NDFS_exp_train");
  EXPECT_EQ(plain->jobs.at(0).request.gpus, (GpuCount{1, 7}));
  EXPECT_NE(plain->jobs.at(0).payload.fingerprint, 0U);
  EXPECT_EQ(plain->traits.dialect, "gpu_manager");
  EXPECT_EQ(task(seven, {}, 5)->jobs.at(0).request.gpus, (GpuCount{1, 3}));
  EXPECT_EQ(task(seven, 4, 4)->jobs.at(0).request.gpus, (GpuCount{4, 4}));
  EXPECT_EQ(
      mistake(task(seven, 7, 0)),
      "'exp_train' wants 7 GPUs, and max_manual_gpus is 6 where the file says nothing; ask for "
      "fewer or give the key");
  EXPECT_EQ(mistake(task(seven, 4, 5)),
            "'exp_train' wants 4 of the 8 GPUs that max_total_gpus allows, and other tasks have 5; "
            "release one of them");
  const std::string three = "\"max_total_gpus\": 3, \"job_prefix\": \"X_\"";
  EXPECT_EQ(task(three, 3, 0)->jobs.at(0).name, "X_exp_train");
  EXPECT_TRUE(task(three, 3, 0)->warnings.empty()) << "it holds for all tasks together";
  EXPECT_EQ(mistake(task(three, 4, 0)),
            "'exp_train' wants 4 GPUs, and max_total_gpus is 3; ask for fewer or change the key");
}

TEST(GpuManagerTest, WhatIsNotThereIsRefusedByName) {
  const auto refused = [](const std::string& line, const std::string& words) {
    const std::string mistakes = with(line).mistakes();
    EXPECT_EQ(mistakes.substr(0, 2), "2:") << line;
    EXPECT_NE(mistakes.find(words), std::string::npos) << mistakes;
  };
  refused("\"auto_manage\": true", "comes with leases, which this version does not have");
  refused("\"aggressive_mode\": true", "comes with leases");
  refused("\"min_reserved_gpus\": 1", "remove the key or set it to 0");
  refused("\"max_reserved_gpus\": 2", "max_reserved_gpus: keeping GPUs in reserve");
  refused("\"notification\": {\"enabled\": true, \"email\": \"a@example.org\"}", "sends no mail");
  refused("\"manual_allocation_enabled\": false", "by hand");
  refused("\"queue_waiting\": false", "--max-wait");
}

TEST(GpuManagerTest, ThatIsNoMistakeWhileItIsOff) {
  for (const char* line :
       {"\"auto_manage\": false", "\"aggressive_mode\": false", "\"min_reserved_gpus\": 0",
        "\"notification\": {\"enabled\": false, \"email\": \"a@example.org\"}",
        "\"manual_allocation_enabled\": true", "\"queue_waiting\": true"}) {
    EXPECT_EQ(warnings_of(with(line)), "") << line;
  }
  for (const char* key : {"managed_job_prefixes", "quick_allocation_timeout",
                          "parallel_submissions", "max_total_gpus"}) {
    const std::string told = warnings_of(with(fmt::format("\"{}\": 3", key)));
    EXPECT_NE(told.find(key), std::string::npos) << told;
  }
  EXPECT_NE(warnings_of(with("\"logging\": {\"level\": \"INFO\", \"file\": \"logs/m.log\"}"))
                .find("logging.level is not heeded"),
            std::string::npos);
  EXPECT_EQ(with("\"logging\": {\"file\": \"logs/m.log\"}").read().traits.state_dir, "/base/logs");
}

TEST(GpuManagerTest, MistakesAreToldAtTheirPlace) {
  EXPECT_EQ(with("\"monitor_intervall\": 5").mistakes(),
            "2:1: unknown key 'monitor_intervall'; did you mean 'monitor_interval'?\n");
  EXPECT_EQ(with("\"monitor_interval\": \"often\"").mistakes(),
            "2:21: 'monitor_interval' is a number of seconds, more than 0 and at most 3600, not "
            "'often'\n");
  EXPECT_EQ(with("\"max_gpus_per_task\": 0").mistakes(),
            "2:22: 'max_gpus_per_task' must be a whole number from 1 to 1024, not '0'\n");
  EXPECT_EQ(with("\"auto_scale\": \"yes\"").mistakes(),
            "2:15: 'auto_scale' must be true or false\n");
  EXPECT_EQ(with("\"scaling\": {\"max\": 1, \"scale_up_threshold\": 80}").mistakes(),
            "2:13: unknown key 'scaling.max'; did you mean 'max_gpus'?\n"
            "2:45: 'scaling.scale_up_threshold' must be a number from 0 to 1\n");
  EXPECT_EQ(a_config("{\"monitor_interval\": 5}").mistakes(),
            "1:1: 'program_template' must be an object with 'command': there is nothing to run "
            "without it\n");
  EXPECT_EQ(a_config("{\"program_template\": {\"command\": 3}}").mistakes(),
            "1:34: 'program_template.command' is a text in quotes, not 3\n");
  EXPECT_EQ(a_config("{\n\"notification\": {\"enabled\": true, \"email\": \"a@b\"}}").mistakes(),
            "2:29: notification.enabled: this version sends no mail; set it to false or remove "
            "'notification'\n")
      << "a part of the guide gets the answer that it is about";
  EXPECT_EQ(a_config("{\"program_template\": {\"args\": []}}").mistakes(),
            "1:22: 'program_template.command' is missing or empty\n");
  EXPECT_NE(
      a_config("{\"program_template\": {\"command\": \"x\"}\n").mistakes().find("not valid JSON"),
      std::string::npos);
  EXPECT_EQ(a_config("{\"program_template\": {\"command\": \"x\"}}\n /* open").mistakes(),
            "2:2: this comment has no end\n");
}

TEST(GpuManagerTest, ABracketThatIsMissingIsToldAtTheEnd) {
  const auto told = [](const char* text) { return a_config(text).mistakes(); };
  EXPECT_EQ(told("{\n\"max_gpus_per_task\": 4"),
            "2:22: not valid JSON: a '}' is missing at the end, for the "
            "'{' of line 1\n");
  EXPECT_THAT(told("{\"program_template\": {\"args\": [\"a\""), HasSubstr("a ']' is missing"));
  EXPECT_THAT(told("{\"a\": }}"), ::testing::Not(HasSubstr("braces")));
}

TEST(GpuManagerTest, FixedDevicesAreNotHeeded) {
  const JobFile file = a_config(
                           "{\"program_template\": {\"command\": \"x\", \"env_vars\": "
                           "{\"CUDA_VISIBLE_DEVICES\": \"0,1\", \"A\": \"\"}}}")
                           .read();
  EXPECT_EQ(file.jobs.at(0).payload.extra_env, Environment{"A="});
  ASSERT_EQ(file.warnings.size(), 1U);
  EXPECT_NE(file.warnings[0].find("CUDA_VISIBLE_DEVICES"), std::string::npos);
}

TEST(GpuManagerTest, CommentsBecomeBlanksAndNothingMoves) {
  const auto blank = [](std::string_view text) {
    Diagnostics diagnostics("x");
    return blank_comments(text, diagnostics);
  };
  EXPECT_EQ(blank("[1, // x\n2,\t]"), "[1,     \n2  ]");
  EXPECT_EQ(blank("[\"//\\\"/*\", /* , */ ]"), "[\"//\\\"/*\"          ]");
  EXPECT_EQ(blank("{\"a\": 1, \n /* \n */ }"), "{\"a\": 1  \n    \n    }");
  EXPECT_EQ(blank("[1,,]"), "[1, ]");
}

}  // namespace
}  // namespace berth
