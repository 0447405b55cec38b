// What is written about batches in the way of other schedulers: the texts, and the directory.

#include <sys/stat.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "daemon/batch_report.hpp"
#include "daemon/directory_writer.hpp"
#include "daemon/state_directory.hpp"
#include "daemon/uni_id_file.hpp"

namespace berth {
namespace {

namespace json = boost::json;
using ::testing::HasSubstr;

// --- uni_id.json

TEST(UniIdFile, AnEntryHasTheDocumentedShape) {
  const auto text = merge_entries("", {{"ab.1", 77, ReportedState::running, 2, ""}});
  EXPECT_EQ(json::parse(text.value()),
            json::parse(R"({"ab.1": {"pid": 77, "state": "running", "retry_count": 2,
                                     "error_type": null}})"));
}

TEST(UniIdFile, WhatOthersWroteStays) {
  const auto text = merge_entries(
      R"({"x": {"pid": 1}, "ab.1": {"pid": 5, "state": "abnormal_exit", "error_type": "nan", "k": 1}})",
      {{"ab.1", 77, ReportedState::running, 0, ""}});
  EXPECT_EQ(json::parse(text.value()), json::parse(R"({"x": {"pid": 1},
              "ab.1": {"pid": 5, "state": "abnormal_exit", "error_type": "nan", "k": 1,
                       "retry_count": 0}})"));
}

TEST(UniIdFile, TheVerdictHasTheLastWordOnTheState) {
  const auto failed = merge_entries(R"({"ab.1": {"pid": 5, "state": "normal_exit"}})",
                                    {{"ab.1", {}, ReportedState::abnormal_exit, 0, "exit"}});
  EXPECT_EQ(json::parse(failed.value()).at("ab.1").at("state"), "abnormal_exit");
  EXPECT_EQ(json::parse(failed.value()).at("ab.1").at("error_type"), "exit");
  const auto well = merge_entries(R"({"ab.1": {"pid": 5, "state": "running"}})",
                                  {{"ab.1", {}, ReportedState::normal_exit, 0, ""}});
  EXPECT_EQ(json::parse(well.value()).at("ab.1").at("state"), "normal_exit");
}

TEST(UniIdFile, BrokenTextsAreNeitherReadNorLost) {
  for (const char* text : {"{", "[]", "{\"a\": }", "\xff", "{} trailing"}) {
    EXPECT_FALSE(merge_entries(text, {})) << text;
    EXPECT_EQ(entry_of(text, "a"), SelfReport{}) << text;
  }
  EXPECT_EQ(entry_of(R"({"a": 5})", "a"), SelfReport{});
  EXPECT_EQ(entry_of(R"({"a": {"state": "abnormal_exit", "error_type": "oom"}})", "a"),
            (SelfReport{ReportedState::abnormal_exit, "oom"}));
  // What stands where an object should gives way to one.
  EXPECT_TRUE(
      json::parse(merge_entries(R"({"a": 5})", {{"a", 1, {}, 0, ""}}).value()).at("a").is_object());
}

// --- a batch in others' words

BatchJob job_of(std::uint64_t id, std::string queue, JobState state,
                std::vector<std::uint32_t> gpus = {}) {
  BatchJob job;
  job.row.id = JobId{id};
  job.row.queue = std::move(queue);
  job.row.state = state;
  job.row.request.gpu_memory = 20UL << 30U;
  job.row.gpu_indices = std::move(gpus);
  job.row.last_attempt = AttemptId{state == JobState::queued ? 0 : id};
  job.row.attempts = state == JobState::queued ? 0 : 2;
  job.commands = {{true, {"bash run.sh car --uni_id {uni_id}"}}};
  return job;
}

BatchReport some_batch() {
  BatchReport batch;
  batch.id = BatchId{4};
  batch.traits.pid = 99;
  batch.traits.mode = "single";
  batch.traits.config_file = "/w/command_gpu.txt";
  batch.jobs = {job_of(1, "command_gpu/1", JobState::succeeded, {0}),
                job_of(2, "command_gpu/1", JobState::running, {3}),
                job_of(3, "command_gpu/2", JobState::failed, {1}),
                job_of(4, "command_gpu/2", JobState::queued)};
  batch.jobs[2].row.failure = FailureClass::exit;
  batch.jobs[2].row.message = "exit code 1";
  return batch;
}

TEST(BatchReport, StateHasEveryDocumentedField) {
  const json::value state = json::parse(state_json(some_batch(), Millis(1'000)));
  EXPECT_EQ(state.at("pid"), 99);
  EXPECT_EQ(state.at("mode"), "single");
  EXPECT_EQ(state.at("config_index"), 0);
  EXPECT_EQ(state.at("config_file"), "/w/command_gpu.txt");
  EXPECT_EQ(state.at("state"), "running");
  EXPECT_EQ(state.at("pending_tasks"), 1);
  EXPECT_EQ(state.at("running_tasks"), 1);
  EXPECT_EQ(state.at("completed_tasks"), 1);
  EXPECT_EQ(state.at("failed_tasks"), 1);
  EXPECT_EQ(state.at("total_tasks"), 4);
  EXPECT_EQ(state.at("gpus_used"), json::parse("[3]"));
  EXPECT_EQ(state.at("gpu_assignments"), json::parse(R"({"3": "1"})"));
  const json::value& busy = state.at("queues").at("1");
  EXPECT_EQ(busy.at("current_task"), "bash run.sh car --uni_id {uni_id}");
  EXPECT_EQ(busy.at("current_gpu"), json::parse("[3]"));
  EXPECT_TRUE(busy.at("last_error").is_null());
  const json::value& idle = state.at("queues").at("2");
  EXPECT_TRUE(idle.at("current_task").is_null());
  EXPECT_EQ(idle.at("last_error"), "exit code 1");
  const json::value& process = idle.at("processes").at(0);
  EXPECT_EQ(process.at("index"), 0);
  EXPECT_EQ(process.at("commands"), json::parse(R"(["bash run.sh car --uni_id {uni_id}"])"));
  EXPECT_EQ(json::serialize(process.at("memory_gb")), "20");
  EXPECT_EQ(process.at("gpu_count"), 1);
  EXPECT_EQ(process.at("status"), "failed");
  EXPECT_EQ(process.at("gpus"), json::parse("[1]"));
  EXPECT_EQ(process.at("retry_count"), 1);
  EXPECT_TRUE(process.at("started_at").is_null());
  EXPECT_TRUE(process.at("finished_at").is_null());
}

TEST(BatchReport, ItHasEndedWhenAllHave) {
  BatchReport batch = some_batch();
  EXPECT_FALSE(has_ended(batch));
  batch.jobs[1].row.state = batch.jobs[3].row.state = JobState::succeeded;
  EXPECT_TRUE(has_ended(batch));
  EXPECT_EQ(json::parse(state_json(batch, Millis(0))).at("state"), "failed");
  batch.jobs[2].row.state = JobState::succeeded;
  EXPECT_EQ(json::parse(state_json(batch, Millis(0))).at("state"), "completed");
}

TEST(BatchReport, LinesTellOfOneEventEach) {
  const BatchReport batch = some_batch();
  HistoryRow row{1, "started", JobId{2}, AttemptId{2}, BatchId{4}, "", Millis(1'234)};
  EXPECT_THAT(log_line(batch, row), HasSubstr(",234 - INFO - queue 1: job 2 started on GPU 3"));
  row = {2,        "retried", JobId{3}, AttemptId{3}, BatchId{4}, "exit code 1; again\nin 10 min",
         Millis(0)};
  const std::string line = log_line(batch, row);
  EXPECT_THAT(line, HasSubstr("WARNING - queue 2: job 3 retried: exit code 1; again in 10 min"));
  EXPECT_EQ(std::ranges::count(line, '\n'), 1);
  EXPECT_THAT(status_line(batch, Millis(0)),
              HasSubstr("status: pending 1, running 1, completed 1, failed 1; busy queues: 1; idle "
                        "queues: 2"));
  row = {3, "kill_requested", JobId{2}, AttemptId{2}, BatchId{4}, "", Millis(1'234)};
  EXPECT_THAT(log_line(batch, row), HasSubstr("INFO - queue 1: job 2 told to end\n"));
}

// --- the directory

class StateDirectoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "berth-state-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    dir_ = std::filesystem::path(pattern) / "logs";
    options_.dir = dir_.string();
    options_.instance = "ab";
    options_.note = [this](const std::string& what) { notes_.push_back(what); };
  }
  void TearDown() override { std::filesystem::remove_all(dir_.parent_path()); }

  [[nodiscard]] std::string read(const std::string& name) const {
    std::ifstream in(dir_ / name);
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
  }

  static BatchFiles files() {
    BatchFiles files;
    files.pid = 99;
    files.state = R"({"state": "running", "batch": 4})";
    files.log = "compete_gpu.log";
    files.lines = {{5, "five\n"}, {6, "six\n"}};
    files.entries["ab.1"] = {"ab.1", 7, ReportedState::running, 0, ""};
    return files;
  }

  std::filesystem::path dir_;
  StateDirectoryOptions options_;
  std::vector<std::string> notes_;
};

TEST_F(StateDirectoryTest, WritesAllThreeAndLeavesNothingBehind) {
  ASSERT_TRUE(write_state_directory(options_, {{BatchId{4}, files()}}));
  EXPECT_EQ(json::parse(read("uni_id.json")).at("ab.1").at("pid"), 7);
  EXPECT_THAT(read("state/99.json"), HasSubstr("running"));
  EXPECT_EQ(read("compete_gpu.log"), "five\nsix\n");
  for (const auto& entry : std::filesystem::recursive_directory_iterator(dir_)) {
    EXPECT_NE(entry.path().extension(), ".tmp") << entry.path();
  }
}

TEST_F(StateDirectoryTest, NoLineIsWrittenTwiceByOneInstance) {
  ASSERT_TRUE(write_state_directory(options_, {{BatchId{4}, files()}}));
  BatchFiles again = files();
  again.lines.push_back({7, "seven\n"});
  ASSERT_TRUE(write_state_directory(options_, {{BatchId{4}, again}}));
  EXPECT_EQ(read("compete_gpu.log"), "five\nsix\nseven\n");
  options_.instance = "another";
  ASSERT_TRUE(write_state_directory(options_, {{BatchId{4}, files()}}));
  EXPECT_EQ(read("compete_gpu.log"), "five\nsix\nseven\nfive\nsix\n");
}

/// A daemon that was killed between a line and the note that it has been written.
TEST_F(StateDirectoryTest, AnAppendThatNobodyHasSeenTheEndOfIsSettled) {
  BatchFiles more = files();
  more.lines = {{5, "five\n"}, {6, "six\n"}, {7, "seven\n"}};
  struct Case {
    std::string log;  ///< as it was left
    bool rotated;
    std::string expected;
  };
  for (const Case& one :
       {Case{"five\n", false, "five\nsix\nseven\n"}, Case{"five\nsi", false, "five\nsix\nseven\n"},
        Case{"five\nsix\n", false, "five\nsix\nseven\n"}, Case{"five\nsix\n", true, "seven\n"}}) {
    std::filesystem::create_directories(dir_);
    const auto log = dir_ / "compete_gpu.log";
    std::ofstream(log) << one.log;
    struct stat status{};
    ASSERT_EQ(::stat(log.c_str(), &status), 0);
    std::ofstream(dir_ / "uni_id.json.lock") << "9@other 3\n4@ab 5 6 " << status.st_ino << " 5 4\n";
    if (one.rotated) {
      std::filesystem::rename(log, dir_ / "compete_gpu.log.1");
    }
    ASSERT_TRUE(write_state_directory(options_, {{BatchId{4}, more}}));
    EXPECT_EQ(read("compete_gpu.log"), one.expected) << one.log;
    EXPECT_EQ(read("uni_id.json.lock"), "4@ab 7\n9@other 3\n");
    std::filesystem::remove_all(dir_);
  }
}

TEST_F(StateDirectoryTest, TheLogRotates) {
  options_.log_size = 10;
  options_.log_keep = 2;
  for (std::uint64_t seq = 10; seq < 15; ++seq) {
    BatchFiles one = files();
    one.lines = {{seq, "line " + std::to_string(seq) + "\n"}};
    ASSERT_TRUE(write_state_directory(options_, {{BatchId{4}, one}}));
  }
  EXPECT_EQ(read("compete_gpu.log"), "line 14\n");
  EXPECT_EQ(read("compete_gpu.log.1"), "line 13\n");
  EXPECT_EQ(read("compete_gpu.log.2"), "line 12\n");
  EXPECT_FALSE(std::filesystem::exists(dir_ / "compete_gpu.log.3"));
}

TEST_F(StateDirectoryTest, ABrokenFileIsKeptAsideAndOursIsWritten) {
  std::filesystem::create_directories(dir_);
  std::ofstream(dir_ / "uni_id.json") << "{\"mine\": ";
  ASSERT_TRUE(write_state_directory(options_, {{BatchId{4}, files()}}));
  EXPECT_EQ(json::parse(read("uni_id.json")).at("ab.1").at("pid"), 7);
  ASSERT_EQ(notes_.size(), 1U);
  std::string aside;
  for (const auto& entry : std::filesystem::directory_iterator(dir_)) {
    if (entry.path().filename().string().starts_with("uni_id.json.broken-")) {
      aside = read(entry.path().filename());
    }
  }
  EXPECT_EQ(aside, "{\"mine\": ");
}

TEST_F(StateDirectoryTest, WhatIsInTheWayIsAnErrorAndNotACrash) {
  std::filesystem::create_directories(dir_ / "uni_id.json");
  EXPECT_FALSE(write_state_directory(options_, {{BatchId{4}, files()}}));
  std::filesystem::remove_all(dir_);
  std::filesystem::create_directories(dir_);
  ASSERT_EQ(::mkfifo((dir_ / "uni_id.json").c_str(), 0600), 0);
  EXPECT_FALSE(write_state_directory(options_, {{BatchId{4}, files()}}));
  std::filesystem::remove_all(dir_.parent_path());
  EXPECT_FALSE(write_state_directory(options_, {{BatchId{4}, files()}}));
  EXPECT_FALSE(std::filesystem::exists(dir_.parent_path()));
}

TEST_F(StateDirectoryTest, LinesOfBatchesThatShareALogStandInTheirOrder) {
  BatchFiles one = files();
  one.lines = {{5, "five\n"}, {7, "seven\n"}, {7, "status\n"}, {9, "nine\n"}};
  BatchFiles other = files();
  other.lines = {{6, "six\n"}, {8, "eight\n"}};
  const std::map<BatchId, BatchFiles> both = {{BatchId{4}, one}, {BatchId{5}, other}};
  ASSERT_TRUE(write_state_directory(options_, both));
  ASSERT_TRUE(write_state_directory(options_, both)) << "and none twice";
  EXPECT_EQ(read("compete_gpu.log"), "five\nsix\nseven\nstatus\neight\nnine\n");
}

TEST_F(StateDirectoryTest, ALogAloneLeavesNothingBesideIt) {
  BatchFiles log = files();
  log.pid = 0;
  log.state.clear();
  log.entries.clear();
  std::filesystem::create_directories(dir_);
  options_.lock = dir_.native() + ".lock";
  ASSERT_TRUE(write_state_directory(options_, {{BatchId{4}, log}}));
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(dir_)) {
    found.push_back(entry.path().filename());
  }
  EXPECT_EQ(found, std::vector<std::string>{"compete_gpu.log"});
}

TEST_F(StateDirectoryTest, TwoBatchesOfOneProcessHaveAFileEach) {
  BatchFiles other = files();
  other.state = R"({"state": "running", "batch": 5})";
  ASSERT_TRUE(write_state_directory(options_, {{BatchId{4}, files()}}));
  ASSERT_TRUE(write_state_directory(options_, {{BatchId{5}, other}}));
  EXPECT_EQ(json::parse(read("state/99.json")).at("batch"), 4);
  EXPECT_EQ(json::parse(read("state/99-5.json")).at("batch"), 5);
}

TEST_F(StateDirectoryTest, AWriterSaysItsTroubleOnceAndGoesOn) {
  std::filesystem::create_directories(dir_ / "uni_id.json");
  std::vector<std::string> troubles;
  std::atomic<int> done = 0;
  {
    DirectoryWriter writer(options_,
                           {[&](const std::string&, const std::string& error) {
                              troubles.push_back(error);
                              if (troubles.size() == 1) {
                                std::filesystem::remove_all(dir_ / "uni_id.json");
                              }
                            },
                            [&] {
                              done = 1;
                              done.notify_all();
                            }},
                           3, Millis(1));
    EXPECT_EQ(writer.behind(), std::nullopt);
    writer.post({{BatchId{4}, files()}}, 6);
    done.wait(0);
    writer.finish(Millis(60'000));
    EXPECT_EQ(writer.behind(), std::nullopt);
  }
  ASSERT_EQ(troubles.size(), 2U);
  EXPECT_THAT(troubles.front(), HasSubstr("uni_id.json"));
  EXPECT_EQ(troubles.back(), "");
  EXPECT_EQ(read("compete_gpu.log"), "five\nsix\n");
}

}  // namespace
}  // namespace berth
