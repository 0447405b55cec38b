#include "cli/resume.hpp"

#include "submit/submission.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace berth::cli {
namespace {

JobFile a_file(std::size_t jobs) {
  JobFile file;
  for (std::size_t i = 0; i < jobs; ++i) {
    file.jobs.emplace_back().name = std::string(1, static_cast<char>('a' + i));
  }
  return file;
}

std::string names(const JobFile& file) {
  std::string out;
  for (const JobSpec& job : file.jobs) {
    out += job.name;
  }
  return out;
}

DoneView succeeded(std::uint64_t id, std::string log = "log") {
  return {id, std::move(log), 0};
}
DoneView alive(std::uint64_t id) {
  return {0, "", id};
}

bool is_there(const std::string& path) {
  return path != "gone";
}

TEST(ResumeTest, OnlyWhatHasNotSucceededIsLeft) {
  JobFile file = a_file(4);
  const LeftOut out = leave_out(file, {succeeded(1), {}, succeeded(3, "gone"), alive(4)}, is_there);
  EXPECT_EQ(out, (LeftOut{1, 1, {{0, 1, true}, {3, 4, false}}}));
  EXPECT_EQ(names(file), "bc");
}

TEST(ResumeTest, AJobThatRunsAgainIsNotAddedOnceMore) {
  JobFile file = a_file(1);
  EXPECT_EQ(leave_out(file, {{7, "log", 9}}, is_there), (LeftOut{0, 1, {{0, 9, false}}}));
  EXPECT_EQ(names(file), "");
}

TEST(ResumeTest, DependenciesFollow) {
  JobFile file = a_file(5);
  file.jobs[3].after_index = {0, 1, 2};
  file.jobs[4].after_index = {3};
  const LeftOut out = leave_out(file, {succeeded(1), alive(22), {}, {}, {}}, is_there);
  EXPECT_EQ(out, (LeftOut{1, 1, {{0, 1, true}, {1, 22, false}}}));
  EXPECT_EQ(names(file), "cde");
  EXPECT_TRUE(file.jobs[0].after_index.empty());
  EXPECT_EQ(file.jobs[1].after_index, std::vector<std::uint32_t>{0});
  EXPECT_EQ(file.jobs[1].after, std::vector<JobId>{JobId{22}});
  EXPECT_EQ(file.jobs[2].after_index, std::vector<std::uint32_t>{1});
}

TEST(ResumeTest, WhatAnotherWaitsToSeeFailingRunsAgain) {
  JobFile file = a_file(2);
  file.jobs[1].after_index = {0};
  file.jobs[1].after_kind = After::failed;
  EXPECT_EQ(leave_out(file, {succeeded(1), {}}, is_there), LeftOut{});
  EXPECT_EQ(names(file), "ab");
}

TEST(ResumeTest, DerivedFilesAreWrittenWithTheirFolders) {
  std::string name = (std::filesystem::temp_directory_path() / "berth-resume-XXXXXX").string();
  ASSERT_NE(::mkdtemp(name.data()), nullptr);
  const std::filesystem::path path = std::filesystem::path(name) / "temp" / "x_seed1.yaml";
  JobFile file = a_file(1);
  for (const char* content : {"seed: 1\n", "", "seed: 1\nlonger: 2\n"}) {
    file.derived = {{path.string(), content}};
    EXPECT_TRUE(write_derived(file.derived));
    std::ifstream in(path);
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}), content);
  }
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(path.parent_path()), {}), 1);
  file.derived = {{(path / "below").string(), "x"}};
  const Status failed = write_derived(file.derived);
  ASSERT_FALSE(failed);
  EXPECT_NE(failed.error().message.find("below"), std::string::npos);
  std::filesystem::remove_all(name);
}

}  // namespace
}  // namespace berth::cli
