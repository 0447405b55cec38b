#include "cli/gpulimit.hpp"

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <filesystem>
#include <set>

namespace berth::cli::gpulimit {
namespace {

constexpr Bytes kHost = 64 * kGiB;

const ParameterDef& parameter(std::string_view name) {
  return **find_parameter(name);
}

/// The rules that a queue has after a parameter was set.
RulesView rules_after(const Setting& setting) {
  RulesView view;
  for (const auto& [key, value] : setting.rules) {
    view.rules.push_back({key, value, "", "queue gpulimit", "", ""});
  }
  if (setting.limit) {
    view.rules.push_back(
        {"queue.gpulimit.limit", std::to_string(*setting.limit), "", "the store", "", ""});
  }
  return view;
}

std::string read_back(std::string_view name, std::string_view value) {
  const auto setting = setting_of(parameter(name), value, kHost);
  return setting ? value_of(parameter(name), rules_after(*setting), kHost)
                 : "error: " + setting.error().message;
}

JobView job_in(JobState state, std::optional<FailureClass> failure = {}) {
  JobView job;
  job.id = 3;
  job.state = state;
  job.failure_class = failure;
  job.queue = "gpulimit";
  job.command = "python3 main.py";
  job.cwd = "/home/me";
  return job;
}

TEST(GpulimitStatus, EveryStateHasTheWordThatGpulimitUses) {
  EXPECT_EQ(to_string(status_of(job_in(JobState::queued))), "waiting");
  EXPECT_EQ(to_string(status_of(job_in(JobState::running))), "running");
  EXPECT_EQ(to_string(status_of(job_in(JobState::paused))), "paused");
  EXPECT_EQ(to_string(status_of(job_in(JobState::succeeded))), "complete");
  EXPECT_EQ(to_string(status_of(job_in(JobState::killed))), "killed");
  EXPECT_EQ(to_string(status_of(job_in(JobState::cancelled))), "killed");
  EXPECT_EQ(to_string(status_of(job_in(JobState::failed, FailureClass::cannot_start))),
            "CMD_ERROR");
  EXPECT_EQ(to_string(status_of(job_in(JobState::failed, FailureClass::exit))), "runtime_error");
  EXPECT_EQ(to_string(status_of(job_in(JobState::failed, FailureClass::gpu_oom))), "runtime_error");
}

TEST(GpulimitStatus, IsReadInAnyCase) {
  EXPECT_EQ(status_from("cmd_error"), TaskStatus::cmd_error);
  EXPECT_EQ(status_from("Complete"), TaskStatus::complete);
  EXPECT_EQ(status_from("kill"), TaskStatus::killed);
  const auto unknown = status_from("done");
  ASSERT_FALSE(unknown);
  EXPECT_NE(unknown.error().message.find("runtime_error"), std::string::npos);
}

TEST(GpulimitParameters, AreReadBackAsTheyWereSet) {
  EXPECT_EQ(read_back("TIMER_POLLING_TIME", "10"), "10");
  EXPECT_EQ(read_back("TIMER_POLLING_TIME", "0.5"), "0.5");
  EXPECT_EQ(read_back("MAX_ERR_TIMES", "3"), "3");
  EXPECT_EQ(read_back("MAX_RUNNING_TASKS", "-1"), "-1");
  EXPECT_EQ(read_back("MAX_RUNNING_TASKS", "4"), "4");
  EXPECT_EQ(read_back("SAFETY_KEEP_MEMORY", "0.2"), "0.2");
  EXPECT_EQ(read_back("SAFETY_KEEP_MEMORY", "0"), "0");
  EXPECT_EQ(read_back("SAFETY_KEEP_GPU_MEMORY", "0.5"), "0.5");
  EXPECT_EQ(read_back("SAFETY_KEEP_GPU_MEMORY", "0.33"), "0.33");
  EXPECT_EQ(read_back("SAFETY_KEEP_GPU_MEMORY", "0"), "0");
}

TEST(GpulimitParameters, HaveDefaultsThatAreValid) {
  for (const ParameterDef& one : parameters()) {
    EXPECT_EQ(read_back(one.name, one.usual), one.usual) << one.name;
  }
}

TEST(GpulimitParameters, BecomeRulesOfTheQueue) {
  using Rules = std::vector<std::pair<std::string, std::string>>;
  EXPECT_EQ(setting_of(parameter("SAFETY_KEEP_GPU_MEMORY"), "0.3", kHost)->rules,
            (Rules{{"keep_gpu_memory", "70"}}));
  EXPECT_EQ(setting_of(parameter("SAFETY_KEEP_MEMORY"), "0.25", kHost)->rules,
            (Rules{{"keep_host_memory", "16GiB"}}));
  EXPECT_EQ(setting_of(parameter("MAX_ERR_TIMES"), "3", kHost)->rules,
            (Rules{{"retry_config.exit", "2"}, {"retry_config.host_oom", "2"}}));
  EXPECT_EQ(setting_of(parameter("MAX_RUNNING_TASKS"), "-1", kHost)->limit, 0U);
  EXPECT_EQ(setting_of(parameter("TIMER_POLLING_TIME"), "20", kHost)->rules,
            (Rules{{"shrink_claims", "20s"}, {"sample_age_max", "20s"}}));
  EXPECT_EQ(setting_of(parameter("TIMER_POLLING_TIME"), "1", kHost)->rules[1].second, "1s");
}

TEST(GpulimitParameters, RefuseWhatMakesNoSense) {
  for (const auto& [name, value] :
       std::vector<std::pair<std::string, std::string>>{{"TIMER_POLLING_TIME", "0"},
                                                        {"TIMER_POLLING_TIME", "soon"},
                                                        {"TIMER_POLLING_TIME", "nan"},
                                                        {"MAX_ERR_TIMES", "0"},
                                                        {"MAX_ERR_TIMES", "1.5"},
                                                        {"MAX_RUNNING_TASKS", "0"},
                                                        {"MAX_RUNNING_TASKS", "-2"},
                                                        {"SAFETY_KEEP_MEMORY", "1"},
                                                        {"SAFETY_KEEP_MEMORY", "-0.1"},
                                                        {"SAFETY_KEEP_MEMORY", "nan"},
                                                        {"SAFETY_KEEP_GPU_MEMORY", "20%"},
                                                        {"SAFETY_KEEP_GPU_MEMORY", ""}}) {
    const auto setting = setting_of(parameter(name), value, kHost);
    ASSERT_FALSE(setting) << name << " " << value;
    EXPECT_TRUE(setting.error().message.starts_with(name + ": expected"))
        << setting.error().message;
  }
}

TEST(GpulimitParameters, AreFoundInAnyCaseAndGuessed) {
  EXPECT_EQ(parameter("max_err_times").which, Parameter::max_err_times);
  const auto wrong = find_parameter("MAX_ERR_TIME");
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.error().message.find("did you mean 'MAX_ERR_TIMES'"), std::string::npos);
}

TEST(GpulimitClaim, LetsTwoTasksStandSideBySideWhereHalfIsKept) {
  const Bytes card = 24 * kGiB;
  const Bytes claim = claim_of(0.5, card);
  const Bytes driver = card / 50;
  // Before the second starts no more than half is in use, and what it claims is free.
  EXPECT_LE(driver + claim, card / 2);
  EXPECT_LE(claim, card - driver - claim);
  // A third would start on a card above the limit.
  EXPECT_GT(driver + 2 * claim, card / 2);
}

TEST(GpulimitClaim, IsNeverNothing) {
  EXPECT_EQ(claim_of(0.0, 20 * kGiB), 2 * kGiB);
  EXPECT_GE(claim_of(0.0, 1), kMiB);
}

TEST(GpulimitAdd, TakesOptionsBeforeTheCommandAlone) {
  const auto request =
      parse_add({"--priority=1", "--logpath", "out/", "python3", "main.py", "--priority=9"});
  ASSERT_TRUE(request);
  EXPECT_EQ(request->priority, 1);
  EXPECT_EQ(request->logpath, "out/");
  EXPECT_EQ(request->command, (Words{"python3", "main.py", "--priority=9"}));
  EXPECT_EQ(parse_add({"--priority", "-3", "--", "--odd"})->priority, -3);
  EXPECT_EQ(parse_add({"--", "--odd"})->command, Words{"--odd"});
  EXPECT_TRUE(parse_add({"--help"})->help);
  EXPECT_FALSE(parse_add({"python3", "--help"})->help);
}

TEST(GpulimitAdd, SaysWhatIsWrongWithAnOption) {
  const auto message = [](const Words& words) {
    const auto request = parse_add(words);
    return request ? std::string() : request.error().message;
  };
  EXPECT_NE(message({"--prioritty=1", "true"}).find("did you mean '--priority'"),
            std::string::npos);
  EXPECT_NE(message({"--priority=high", "true"}).find("'high' is not a whole number"),
            std::string::npos);
  EXPECT_NE(message({"--priority"}).find("needs a value"), std::string::npos);
  EXPECT_NE(message({"--logpath=", "true"}).find("needs a file or a directory"), std::string::npos);
}

TEST(GpulimitAdd, GivesEveryTaskAFileInADirectory) {
  const std::string there = std::filesystem::temp_directory_path().string();
  EXPECT_EQ(log_in(there), there + "/{job_id}.log");
  EXPECT_EQ(log_in("/no/such/folder/"), "/no/such/folder/{job_id}.log");
  EXPECT_EQ(log_in("/no/such/file"), "/no/such/file");
}

TEST(GpulimitIds, AreNumbersRangesOrAll) {
  EXPECT_EQ((*parse_tasks({"3", "5-7,9"}))->to_string(), "3,5-7,9");
  EXPECT_FALSE(parse_tasks({"all"})->has_value());
  EXPECT_FALSE(parse_tasks({}));
  EXPECT_FALSE(parse_tasks({"three"}));
  EXPECT_EQ(parse_task("12"), 12U);
  EXPECT_FALSE(parse_task("0"));
  EXPECT_FALSE(parse_task("1-2"));
}

TEST(GpulimitHelp, DescribesEveryCommand) {
  const std::string all = help_text();
  std::set<std::string_view> names;
  for (const CommandDef& command : commands()) {
    EXPECT_TRUE(names.insert(command.name).second) << command.name;
    EXPECT_NE(all.find(std::string("  ") + std::string(command.name)), std::string::npos);
    const std::string help = help_text(command);
    EXPECT_NE(help.find("Usage: gpulimit " + std::string(command.name)), std::string::npos) << help;
    EXPECT_EQ(find_command(command.name), &command);
  }
  EXPECT_EQ(find_command("move"), find_command("mv"));
  EXPECT_EQ(find_command("lst"), nullptr);
  EXPECT_NE(nearest_command("statuss").find("'status'"), std::string::npos);
}

TEST(GpulimitHelp, FitsATerminalOf80Columns) {
  std::string all = help_text();
  for (const CommandDef& command : commands()) {
    all += help_text(command);
  }
  for (std::size_t at = 0; at < all.size();) {
    const std::size_t end = std::min(all.find('\n', at), all.size());
    const std::string line = all.substr(at, end - at);
    EXPECT_LE(display_width(line), 80U) << line;
    at = end + 1;
  }
}

TEST(GpulimitList, NamesTheCardWhereATaskRuns) {
  JobView running = job_in(JobState::running);
  running.gpu_indices = {1};
  running.attempts = 2;
  const std::string text = list_text({running, job_in(JobState::queued)}, false, {}, Millis(0));
  EXPECT_NE(text.find("running(GPU:1)"), std::string::npos) << text;
  EXPECT_NE(text.find("waiting"), std::string::npos) << text;
}

TEST(GpulimitList, CutsCommandsUnlessAllOfThemAreWanted) {
  JobView job = job_in(JobState::queued);
  job.command = std::string(200, 'x');
  Screen narrow;
  narrow.width = 80;
  EXPECT_EQ(list_text({job}, false, narrow, Millis(0)).find(job.command), std::string::npos);
  EXPECT_NE(list_text({job}, true, narrow, Millis(0)).find(job.command), std::string::npos);
}

TEST(GpulimitDebug, TellsWhatCouldNotBeStarted) {
  JobDetail task;
  task.job = job_in(JobState::failed, FailureClass::cannot_start);
  task.commands = {{false, {"train.py", "--lr=1"}}};
  task.environment = Environment{"PATH=/opt/bin:/bin"};
  AttemptView attempt;
  attempt.message = "cannot start: train.py: command not found in the job's PATH";
  task.attempts = {attempt};
  const std::string text = debug_text(task, "");
  EXPECT_NE(text.find("task 3: CMD_ERROR"), std::string::npos) << text;
  EXPECT_NE(text.find("command not found"), std::string::npos) << text;
  EXPECT_NE(text.find("PATH: /opt/bin:/bin"), std::string::npos) << text;
  EXPECT_NE(text.find("python3 train.py"), std::string::npos) << text;
}

TEST(GpulimitDebug, ShowsTheEndOfWhatAFailedTaskWrote) {
  JobDetail task;
  task.job = job_in(JobState::failed, FailureClass::exit);
  const std::string text = debug_text(task, "Traceback\nValueError: no\n");
  EXPECT_NE(text.find("ValueError: no\n"), std::string::npos) << text;
}

TEST(GpulimitJson, HasTheWordsOfGpulimit) {
  JobView job = job_in(JobState::succeeded);
  job.attempts = 1;
  const auto list = boost::json::parse(list_json({job})).as_array();
  EXPECT_EQ(list.at(0).at("status"), "complete");
  EXPECT_EQ(list.at(0).at("run_times"), 1);
  EXPECT_TRUE(list.at(0).at("logpath").is_null());
  const auto set =
      boost::json::parse(parameters_json({{&parameter("SAFETY_KEEP_GPU_MEMORY"), "0.5"}}));
  EXPECT_EQ(set.at("SAFETY_KEEP_GPU_MEMORY"), 0.5);
}

TEST(GpulimitProgram, SaysWhatIsNoCommand) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(run({"statsu"}), 2);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(said.starts_with("gpulimit: there is no command 'statsu'; did you mean 'status'?"))
      << said;
}

TEST(GpulimitTest, WhatCannotBeReadToItsEndIsNoReasonToStop) {
  EXPECT_EQ(read_text("/proc/self/mem"), "");  // can be opened; reading its beginning fails
  EXPECT_EQ(read_text("/no/such/file"), "");
  EXPECT_NE(read_text("/proc/self/stat"), "");
}

}  // namespace
}  // namespace berth::cli::gpulimit
