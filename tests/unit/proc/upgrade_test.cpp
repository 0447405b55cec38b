// What supervisors of released versions were told and wrote, kept as it was; see tests/fixtures.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "proc/launch_spec.hpp"
#include "proc/launch_spec_view.hpp"
#include "proc/record.hpp"

namespace berth {
namespace {

const std::filesystem::path kFixtures = BERTH_FIXTURES_DIR;

std::string content_of(const std::string& name) {
  std::ifstream file(kFixtures / name, std::ios::binary);
  EXPECT_TRUE(file.is_open()) << name;
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(ProcUpgradeTest, ALaunchSpecOf010IsUnderstoodAndWrittenTheSame) {
  const std::string bytes = content_of("0.1.0/launch.bin");
  const auto spec = decode_launch_spec(bytes);
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(spec->attempt, AttemptId{6});
  EXPECT_EQ(spec->job, JobId{6});
  EXPECT_EQ(spec->time_limit, Millis(3'600'000));
  EXPECT_EQ(spec->grace, Millis(10'000));
  EXPECT_EQ(spec->umask, 022U);
  EXPECT_EQ(spec->cwd, "/");
  EXPECT_FALSE(spec->log_named_by_user);
  EXPECT_FALSE(spec->linger);
  ASSERT_EQ(spec->commands.size(), 2U);
  EXPECT_EQ(spec->commands[1], (Command{.shell = true, .argv = {"sleep 1000"}}));
  EXPECT_TRUE(std::ranges::count(spec->environment, "A=b") == 1);
  // A supervisor of 0.1.0 reads what this daemon writes only as long as this holds. Whoever must
  // change the bytes raises kLaunchVersion and teaches the launcher to write both.
  EXPECT_EQ(encode_launch_spec(*spec).value(), bytes);
}

TEST(ProcUpgradeTest, ARecordOf010TellsHowItsAttemptEnded) {
  const Record record = parse_record(content_of("0.1.0/killed.rec"));
  EXPECT_EQ(record.damaged, 0U);
  ASSERT_TRUE(record.start && record.exit);
  EXPECT_EQ(record.start->version, 1U);
  EXPECT_GT(record.start->pid, 0);
  EXPECT_EQ(record.signals, std::vector<std::string>{"kill"});
  ASSERT_EQ(record.commands.size(), 2U);
  EXPECT_EQ(record.commands[0].code, 0);
  EXPECT_EQ(record.commands[1].signal, 15);
  const Verdict verdict = verdict_of(*record.exit);
  EXPECT_TRUE(verdict.killed);
  EXPECT_EQ(verdict.signal, 15);
  EXPECT_EQ(record.exit->time_limit, Millis(3'600'000));
  EXPECT_EQ(verdict.message, "killed on request; in command 2");
}

TEST(ProcUpgradeTest, ARecordOf010ThatIsOpenSaysWhoItsSupervisorIs) {
  const Record record = parse_record(content_of("0.1.0/attempts/4.rec"));
  EXPECT_EQ(record.damaged, 0U);
  ASSERT_TRUE(record.start);
  EXPECT_EQ(record.start->pid, 5565);
  EXPECT_EQ(record.start->start_ticks, 1247179U);
  EXPECT_FALSE(record.exit || record.revoked);
}

}  // namespace
}  // namespace berth
