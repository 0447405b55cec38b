#include "daemon/settings.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace berth {
namespace {

using Values = std::vector<std::pair<std::string, std::string>>;

std::string edited(const std::string& text, const Values& values) {
  const auto result = edit_settings(text, values);
  return result ? *result : "error: " + result.error().message;
}

TEST(SettingsTest, ReadsDottedAndNestedKeys) {
  const Settings settings = parse_settings(
      "# rules\nmax_concurrent: 4\nresources:\n  licence: 2\nqueue:\n  car: {limit: 1}\n"
      "queue.bus.limit: \"3\"\nkeep_finished: 2 days\n");
  EXPECT_EQ(settings.problems, std::vector<std::string>());
  EXPECT_EQ(settings.values, (Values{{"max_concurrent", "4"},
                                     {"resources.licence", "2"},
                                     {"queue.car.limit", "1"},
                                     {"queue.bus.limit", "3"},
                                     {"keep_finished", "2 days"}}));
  EXPECT_TRUE(parse_settings("").values.empty());
  EXPECT_TRUE(parse_settings("# nothing\n").problems.empty());
}

TEST(SettingsTest, TheDirectoryOfCommandFilesIsNoRule) {
  const Settings settings = parse_settings("command_dir: /data/command\nkeep_jobs: 7\n");
  EXPECT_EQ(settings.command_dir, "/data/command");
  EXPECT_EQ(settings.values, (Values{{"keep_jobs", "7"}}));
  EXPECT_TRUE(settings.problems.empty());
  const Settings wrong = parse_settings("command_dir: data\n");
  EXPECT_EQ(wrong.command_dir, "");
  ASSERT_EQ(wrong.problems.size(), 1U);
  EXPECT_TRUE(
      wrong.problems[0].starts_with("berth.yaml:1: command_dir: expected an absolute path"));
  EXPECT_EQ(edited("command_dir: /data\n", {{"keep_jobs", "8"}}),
            "command_dir: /data\nkeep_jobs: 8\n");
}

TEST(SettingsTest, IgnoresWhatIsWrongAndSaysWhere) {
  const Settings settings =
      parse_settings("max_concurent: 4\nlog_limit: [1]\nkeep_jobs: -1\nmemory_margin: 1GiB\n");
  EXPECT_EQ(settings.values, (Values{{"memory_margin", "1GiB"}}));
  ASSERT_EQ(settings.problems.size(), 3U);
  EXPECT_EQ(settings.problems[0],
            "berth.yaml:1: there is no rule 'max_concurent'; did you mean 'max_concurrent'?; "
            "ignored");
  EXPECT_TRUE(settings.problems[1].starts_with("berth.yaml:2: log_limit: expected one value"));
  EXPECT_TRUE(settings.problems[2].starts_with("berth.yaml:3: keep_jobs: expected"));
  for (const char* text : {"just words\n", "- a\n- b\n", "a: [\n"}) {
    EXPECT_FALSE(parse_settings(text).problems.empty()) << text;
  }
}

TEST(SettingsTest, EditsOneLineAndKeepsTheRest) {
  const std::string text =
      "# ours\nmax_concurrent: 4   # at night\n\nqueue: {car: {limit: 1}, x.limit: 2}\n"
      "keep_finished: \"30d\" # age\n";
  EXPECT_EQ(edited(text, {{"max_concurrent", "8"}}),
            "# ours\nmax_concurrent: 8   # at night\n\nqueue: {car: {limit: 1}, x.limit: 2}\n"
            "keep_finished: \"30d\" # age\n");
  EXPECT_EQ(edited(text, {{"queue.car.limit", "5"}, {"keep_finished", "2 days"}}),
            "# ours\nmax_concurrent: 4   # at night\n\nqueue: {car: {limit: 5}, x.limit: 2}\n"
            "keep_finished: '2 days' # age\n");
  EXPECT_EQ(edited("", {{"resources.a-b", "1"}, {"log_limit", "0"}}),
            "resources.a-b: 1\nlog_limit: 0\n");
  EXPECT_EQ(edited("keep_jobs: 7", {{"keep_jobs", "8"}}), "keep_jobs: 8\n");
  EXPECT_EQ(edited("no_such: 1 # a note\n", {{"keep_jobs", "8"}}),
            "no_such: 1 # a note\nkeep_jobs: 8\n")
      << "what nobody knows stays";
}

std::string without(const std::string& text, const std::vector<std::string>& unset) {
  const auto result = edit_settings(text, {}, unset);
  return result ? *result : "error: " + result.error().message;
}

TEST(SettingsTest, TakesKeysAway) {
  const std::string text =
      "# ours\nmax_concurrent: 4   # at night\nforeign:\n  policy: wait\n  young: 5s\n"
      "queue:\n  car:\n    limit: 1\nkeep_jobs: 7\n";
  EXPECT_EQ(without(text, {"max_concurrent", "order"}),
            "# ours\nforeign:\n  policy: wait\n  young: 5s\nqueue:\n  car:\n    limit: 1\n"
            "keep_jobs: 7\n");
  EXPECT_EQ(without(text, {"queue.car.limit", "foreign.young"}),
            "# ours\nmax_concurrent: 4   # at night\nforeign:\n  policy: wait\nkeep_jobs: 7\n")
      << "maps that hold nothing go, too";
  EXPECT_EQ(without("keep_jobs: 7\n", {"keep_jobs"}), "");
  EXPECT_TRUE(without("foreign: {policy: wait}\n", {"foreign.policy"})
                  .starts_with("error: berth.yaml:1: 'foreign.policy' does not stand on a line"));
}

TEST(SettingsTest, RefusesWhatItCannotEdit) {
  EXPECT_TRUE(edited("a: [\n", {{"keep_jobs", "8"}}).starts_with("error: berth.yaml:"));
  EXPECT_TRUE(edited("keep_jobs:\n  7\n", {{"keep_jobs", "8"}})
                  .starts_with("error: berth.yaml:1: the value of 'keep_jobs' stands on a line"));
}

TEST(SettingsTest, SavesTheWholeFileOrNothing) {
  char name[] = "/tmp/berth-settings-XXXXXX";
  ASSERT_NE(::mkdtemp(name), nullptr);
  const std::filesystem::path dir(name);
  const std::string path = (dir / "berth.yaml").string();
  EXPECT_TRUE(read_settings(path).values.empty());
  ASSERT_TRUE(save_settings(path, {{"keep_jobs", "8"}}).has_value());
  EXPECT_EQ(read_settings(path).values, (Values{{"keep_jobs", "8"}}));
  std::ofstream(path) << "broken: [\n";
  EXPECT_FALSE(save_settings(path, {{"keep_jobs", "9"}}).has_value());
  EXPECT_FALSE(read_settings(path).problems.empty()) << "it is still the broken one";
  EXPECT_FALSE(save_settings((dir / "no" / "berth.yaml").string(), {{"keep_jobs", "9"}}));
  std::filesystem::remove_all(dir);
}

TEST(SettingsTest, SavesBehindALink) {
  char name[] = "/tmp/berth-settings-XXXXXX";
  ASSERT_NE(::mkdtemp(name), nullptr);
  const std::filesystem::path dir(name);
  std::ofstream(dir / "kept.yaml") << "# mine\n";
  std::filesystem::create_symlink("kept.yaml", dir / "berth.yaml");
  ASSERT_TRUE(save_settings((dir / "berth.yaml").string(), {{"keep_jobs", "8"}}).has_value());
  EXPECT_TRUE(std::filesystem::is_symlink(dir / "berth.yaml"));
  EXPECT_EQ(read_settings((dir / "kept.yaml").string()).values, (Values{{"keep_jobs", "8"}}));
  std::filesystem::remove_all(dir);
}

}  // namespace
}  // namespace berth
