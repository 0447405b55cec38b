#include "jobspec/job_yaml.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "jobspec/job_writer.hpp"

namespace berth {
namespace {

/// Everything, written the one way that is known to keep it.
std::string everything(const JobFile& file) {
  std::string out = job_file_head(file);
  for (const auto& job : file.jobs) {
    append_job(out, job, file.jobs);
  }
  return out;
}

void expect_same(const JobFile& file, const std::string& written) {
  const auto again = parse_job_file(written, "again.yaml", "/elsewhere");
  ASSERT_TRUE(again) << written << "\n" << again.error().front().message;
  EXPECT_EQ(everything(*again), everything(file)) << written;
  EXPECT_EQ(to_yaml(*again), written);
}

TEST(JobYaml, WhatIsWrittenReadsBackTheSame) {
  std::size_t files = 0;
  for (const auto& folder : std::filesystem::directory_iterator(BERTH_GOLDEN_DIR)) {
    if (!std::filesystem::exists(folder.path() / "expected.json") ||
        folder.path().filename() == "not_utf8_command") {
      continue;
    }
    ++files;
    std::ifstream in(folder.path() / "input.yaml", std::ios::binary);
    const std::string text(std::istreambuf_iterator<char>(in), {});
    const auto file = parse_job_file(text, "input.yaml", "/base");
    ASSERT_TRUE(file) << folder.path();
    expect_same(*file, to_yaml(*file));
  }
  EXPECT_GE(files, 10U);
}

TEST(JobYaml, IsWhatAPersonWouldWrite) {
  const auto file = parse_job_file(
      "{version: 1, name: n, defaults: {gpus: 2, env: {A: b}}, jobs: [{name: a, run: 'x: y', time: "
      "90}, {name: b, run: [\"one\\ntwo\\n\", [ls, 'a b']], after: a}]}",
      "f", "/base");
  ASSERT_TRUE(file) << file.error().front().message;
  EXPECT_EQ(to_yaml(*file),
            "version: 1\n"
            "name: n\n"
            "defaults:\n"
            "  gpus: 2\n"
            "  env:\n"
            "    A: b\n"
            "  cwd: /base\n"
            "jobs:\n"
            "  - name: a\n"
            "    run: \"x: y\"\n"
            "    time: 90\n"
            "  - name: b\n"
            "    run:\n"
            "      - |\n"
            "        one\n"
            "        two\n"
            "      - [ls, \"a b\"]\n"
            "    after: [a]\n");
}

TEST(JobYaml, KeepsWhatOtherFormatsHave) {
  JobFile file;
  file.name = "n";
  file.skip_done = true;
  file.traits = {"commands", "/w/logs", "compete_gpu.log", "multi", "config.yaml", 2, 0};
  file.derived = {{"/w/a b.yaml", "x: 1\ny: \"2\"\n"}};
  JobSpec job;
  job.name = "j";
  job.payload.commands = {{true, {"run"}}};
  job.payload.cwd = "/w";
  job.payload.work_dir = "/w/d";
  job.payload.params = {{"lr", "0.1"}, {"empty", ""}};
  job.payload.fingerprint = 0xabcU;
  job.payload.environment = std::make_shared<const Environment>(Environment{"KEPT"});
  job.after = {JobId{3}, JobId{7}};
  job.after_kind = After::any;
  file.jobs = {job};
  const auto written = to_yaml(file);
  expect_same(file, written);
  const auto again = parse_job_file(written, "again.yaml", "/elsewhere");
  ASSERT_TRUE(again);
  EXPECT_TRUE(again->traits == file.traits && again->derived == file.derived && again->skip_done);
  EXPECT_EQ(again->jobs[0].payload, job.payload);
  EXPECT_TRUE(again->jobs[0].after == job.after && again->jobs[0].after_kind == After::any);
}

RC_GTEST_PROP(JobYamlProps, any_text_survives, ()) {
  const auto word = rc::gen::container<std::string>(
      rc::gen::oneOf(rc::gen::inRange<char>(' ', '\x7f'),
                     rc::gen::elementOf(std::string("\n\n\n\t  {}\"'\\#:-&*|>\r"))));
  JobFile file;
  file.name = "p";
  JobSpec job;
  job.name = "j";
  job.payload.cwd = "/base";
  job.payload.commands = {{false, {"x" + *word, *word, *word}}, {true, {"y" + *word}}};
  job.payload.extra_env = {"A=" + *word};
  job.payload.params = {{"p" + *word, *word}};
  file.jobs = {job, job};
  file.jobs[1].name = "k";
  const auto again = parse_job_file(to_yaml(file), "f", "/base");
  RC_ASSERT(again.has_value());
  RC_ASSERT(again->jobs.at(0).payload == job.payload);
  RC_ASSERT(again->jobs.at(1).payload == job.payload);
}

}  // namespace
}  // namespace berth
