#include "jobspec/job_writer.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "jobspec/json_text.hpp"

namespace berth {
namespace {

std::string write(const JobFile& file) {
  std::string out = job_file_head(file);
  for (std::size_t i = 0; i < file.jobs.size(); ++i) {
    out += i > 0 ? ", " : "";
    append_job(out, file.jobs[i], file.jobs);
  }
  return out + "]}";
}

bool same(const JobSpec& a, const JobSpec& b) {
  return a.name == b.name && a.queue == b.queue && a.priority == b.priority &&
         a.request == b.request && a.after_index == b.after_index && a.retries == b.retries &&
         a.payload.commands == b.payload.commands && a.payload.extra_env == b.payload.extra_env &&
         a.payload.cwd == b.payload.cwd && a.payload.log == b.payload.log &&
         a.payload.time_limit == b.payload.time_limit && a.payload.grace == b.payload.grace &&
         a.payload.linger == b.payload.linger && a.payload.warning == b.payload.warning;
}

TEST(JobWriter, WhatIsWrittenReadsBackTheSame) {
  std::size_t files = 0;
  for (const auto& folder : std::filesystem::directory_iterator(BERTH_GOLDEN_DIR)) {
    // Bytes that are not UTF-8 have no place in JSON.
    if (!std::filesystem::exists(folder.path() / "expected.json") ||
        folder.path().filename() == "not_utf8_command") {
      continue;
    }
    ++files;
    std::ifstream in(folder.path() / "input.yaml", std::ios::binary);
    const std::string text(std::istreambuf_iterator<char>(in), {});
    const auto file = parse_job_file(text, "input.yaml", "/base");
    ASSERT_TRUE(file) << folder.path();
    const auto written = write(*file);
    const auto again = parse_job_file(written, "again.json", "/elsewhere");
    ASSERT_TRUE(again) << written << "\n" << again.error().front().message;
    EXPECT_EQ(again->name, file->name);
    EXPECT_EQ(again->max_concurrent, file->max_concurrent);
    EXPECT_EQ(again->resources, file->resources);
    EXPECT_EQ(again->queues.size(), file->queues.size());
    ASSERT_EQ(again->jobs.size(), file->jobs.size());
    for (std::size_t i = 0; i < file->jobs.size(); ++i) {
      EXPECT_TRUE(same(file->jobs[i], again->jobs[i])) << folder.path() << " job " << i;
    }
    EXPECT_EQ(write(*again), written);
  }
  EXPECT_GE(files, 10U);
}

TEST(JobWriter, NamesTheFileOnlyWhenAsked) {
  const auto file = parse_job_file("version: 1\njobs: [{run: x, time: 250ms}]", "f", "/base");
  ASSERT_TRUE(file);
  std::string out;
  append_job(out, file->jobs[0], file->jobs, "a\"b.yaml");
  EXPECT_EQ(out, R"({"file": "a\"b.yaml", "name": "job-1", "run": "x", "gpus": 1, "cpus": 0, )"
                 R"("memory": 0, "resources": {}, "queue": "default", "priority": 5, "after": [], )"
                 R"("retries": 0, "time": 0.250, "grace": 10, "env": {}, "cwd": "/base", )"
                 R"("linger": false})");
}

TEST(JsonText, EscapesWhatJsonCannotHold) {
  EXPECT_EQ(json_string("a\"b\\c\n\t\x01\x7f\u00e9\xff!"),
            "\"a\\\"b\\\\c\\n\\t\\u0001\\u007f\u00e9\xEF\xBF\xBD!\"");
}

RC_GTEST_PROP(JobWriterProps, any_command_survives, ()) {
  // Printable ASCII, blanks and two-byte characters, in any order.
  const auto word = rc::gen::container<std::string>(rc::gen::oneOf(
      rc::gen::inRange<char>(' ', '\x7f'), rc::gen::elementOf(std::string("\n\t{}\"'\\#:-&*"))));
  JobFile file;
  file.name = "p";
  JobSpec job;
  job.name = "j";
  job.payload.cwd = "/base";
  job.payload.commands = {{false, {"x" + *word, *word, *word}}, {true, {"y" + *word}}};
  job.payload.extra_env = {"A=" + *word};
  file.jobs.push_back(job);
  const auto again = parse_job_file(write(file), "f", "/base");
  RC_ASSERT(again.has_value());
  RC_ASSERT(same(again->jobs.at(0), job));
}

}  // namespace
}  // namespace berth
