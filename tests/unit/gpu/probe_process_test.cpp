#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>

#include "gpu/probe_wire.hpp"
#include "unit/simgpu/child.hpp"

namespace berth {
namespace {

using test::Child;
using test::SimGpus;
using ::testing::HasSubstr;

Child start_probe(const std::string& library = BERTH_SIM_LIBRARY) {
  return Child({BERTH_PROBE_CHILD, "--probe", "--nvml-library", library});
}

Result<ProbeAnswer> next_answer(const Child& probe) {
  std::string line = probe.read_line();
  EXPECT_TRUE(line.ends_with('\n')) << "no answer";
  if (!line.empty()) {
    line.pop_back();
  }
  return decode_probe_answer(line);
}

TEST(ProbeProcess, AnswersEachRequestAndEndsWithItsInput) {
  const SimGpus gpus("4x24GiB");
  const Child user = gpus.hold(3, "10GiB");
  Child probe = start_probe();
  probe.write("sample 1\nsample 2\nsam");
  for (const std::uint64_t id : {1U, 2U}) {
    const auto answer = next_answer(probe);
    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_EQ(answer->id, id);
    ASSERT_TRUE(answer->reply) << answer->reply.error().message;
    EXPECT_EQ(answer->reply->sample.gpus.at(3).memory_free, 14 * kGiB);
    EXPECT_EQ(answer->reply->ancestors.at(user.pid()).front(), static_cast<unsigned>(::getpid()));
  }
  probe.write("ple 3\n");
  EXPECT_EQ(next_answer(probe)->id, 3U);
  probe.close_input();
  EXPECT_EQ(probe.wait(), 0);
}

TEST(ProbeProcess, ReportsErrorsAndGoesOn) {
  const SimGpus gpus("1x24GiB");
  gpus.set_driver("error", "9");
  const Child probe = start_probe();
  probe.write("hello\n");
  EXPECT_EQ(next_answer(probe)->reply.error().code, ErrorCode::invalid);
  probe.write("sample 5\n");
  const auto failed = next_answer(probe);
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->id, 5U);
  EXPECT_EQ(failed->reply.error().code, ErrorCode::unavailable);
  gpus.set_driver("error", "0");
  probe.write("sample 6\n");
  EXPECT_TRUE(next_answer(probe)->reply) << "a driver that is loaded later is found";
}

TEST(ProbeProcess, WorksWithoutADriver) {
  const Child probe = start_probe("/nowhere/libnvidia-ml.so.1");
  probe.write("sample 1\n");
  const auto answer = next_answer(probe);
  ASSERT_TRUE(answer);
  EXPECT_THAT(answer->reply.error().message, HasSubstr("no NVIDIA driver"));
}

TEST(ProbeProcess, AHungDriverHoldsOnlyTheProbeWhichCanBeKilled) {
  const SimGpus gpus("1x24GiB");
  Child stuck = start_probe();
  stuck.write("sample 1\n");
  ASSERT_TRUE(next_answer(stuck)->reply);
  gpus.set(0, "hang_ms", "3600000");
  stuck.write("sample 2\n");
  EXPECT_EQ(stuck.read_line(std::chrono::milliseconds(300)), "") << "it hangs with its driver";
  stuck.kill();
  EXPECT_EQ(stuck.wait(), -SIGKILL);

  gpus.set(0, "hang_ms", "0");
  const Child fresh = start_probe();
  fresh.write("sample 3\n");
  const auto answer = next_answer(fresh);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->id, 3U);
  EXPECT_TRUE(answer->reply);
}

TEST(ProbeProcess, SurvivesWhatProcessesCallThemselves) {
  const SimGpus gpus("1x24GiB");
  ASSERT_TRUE(
      gpus.directory.allocate(0, {.pid = 0, .start_time = 0, .bytes = kGiB, .util = 0})->granted);
  char old_name[17] = {};
  ::prctl(PR_GET_NAME, &old_name[0]);
  ::prctl(PR_SET_NAME, "\xff\"\n)}\x01");
  const Child probe = start_probe();
  probe.write("sample 1\n");
  const auto answer = next_answer(probe);
  ::prctl(PR_SET_NAME, &old_name[0]);
  ASSERT_TRUE(answer) << answer.error().message;
  ASSERT_TRUE(answer->reply);
  EXPECT_EQ(answer->reply->sample.gpus.at(0).processes->at(0).name, "?\"\n)}\x01");
}

TEST(ProbeProcess, RefusesUnknownArgumentsAndEndlessRequests) {
  Child wrong({BERTH_PROBE_CHILD, "--colour"});
  EXPECT_THAT(wrong.read_errors(), HasSubstr("--nvml-library PATH"));
  EXPECT_EQ(wrong.wait(), 2);
  Child endless = start_probe();
  endless.write(std::string(2000, 'x'));
  EXPECT_EQ(endless.wait(), 1);
}

}  // namespace
}  // namespace berth
