#include "daemon/attempt_env.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace berth {
namespace {

using ::testing::Contains;
using ::testing::Not;

Payload payload_with(Environment environment, Environment extra = {}) {
  Payload payload;
  payload.environment = std::make_shared<const Environment>(std::move(environment));
  payload.extra_env = std::move(extra);
  payload.cwd = "/data/run";
  return payload;
}

InstanceFacts facts() {
  InstanceFacts result;
  result.id = "0123456789abcdef";
  result.dir = "/state";
  result.bin_dir = "/bin";
  result.logs = "/state/logs";
  return result;
}

effect::Start start_on(std::vector<std::string> gpus, std::vector<std::uint32_t> indices) {
  return {AttemptId{9}, JobId{4}, 2, std::move(gpus), std::move(indices)};
}

TEST(AttemptEnvironment, DevicesAreNamedByUuidWhateverTheSubmitterHad) {
  const auto env = attempt_environment(payload_with({"CUDA_VISIBLE_DEVICES=7", "A=1"}),
                                       start_on({"GPU-a", "GPU-b"}, {0, 3}), facts());
  EXPECT_THAT(env, Contains("CUDA_VISIBLE_DEVICES=GPU-a,GPU-b"));
  EXPECT_THAT(env, Not(Contains("CUDA_VISIBLE_DEVICES=7")));
  EXPECT_THAT(env, Contains("NVIDIA_VISIBLE_DEVICES=GPU-a,GPU-b"));
  EXPECT_THAT(env, Contains("BERTH_GPU_INDICES=0,3"));
  EXPECT_THAT(env, Contains("BERTH_GPU_COUNT=2"));
  EXPECT_THAT(env, Contains("A=1"));
}

TEST(AttemptEnvironment, AJobWithoutGpusSeesNone) {
  const auto env = attempt_environment(payload_with({}), start_on({}, {}), facts());
  EXPECT_THAT(env, Contains("CUDA_VISIBLE_DEVICES="));
  EXPECT_THAT(env, Contains("NVIDIA_VISIBLE_DEVICES=none"));
}

TEST(AttemptEnvironment, TheJobsOwnVariablesWinOverTheSubmitters) {
  const auto env = attempt_environment(payload_with({"LR=1", "KEEP=x=y"}, {"LR=0.1", "NEW="}),
                                       start_on({}, {}), facts());
  EXPECT_THAT(env, Contains("LR=0.1"));
  EXPECT_THAT(env, Not(Contains("LR=1")));
  EXPECT_THAT(env, Contains("KEEP=x=y"));
  EXPECT_THAT(env, Contains("NEW="));
}

TEST(AttemptEnvironment, NobodyCanPoseAsAnotherAttempt) {
  const auto env = attempt_environment(
      payload_with({"BERTH_ATTEMPT=0123456789abcdef.1"}, {"BERTH_ATTEMPT=0123456789abcdef.2"}),
      start_on({}, {}), facts());
  EXPECT_THAT(env, Contains("BERTH_ATTEMPT=0123456789abcdef.9"));
  EXPECT_EQ(
      std::ranges::count_if(env, [](const auto& e) { return e.starts_with("BERTH_ATTEMPT="); }), 1);
}

TEST(AttemptEnvironment, SimulatedGpusGoInFrontOfTheLibraryPath) {
  InstanceFacts simulated = facts();
  simulated.prepend = {{"LD_LIBRARY_PATH", "/sim"}};
  simulated.replace = {{"BERTH_SIM_DIR", "/state/simgpu"}};
  EXPECT_THAT(
      attempt_environment(payload_with({"LD_LIBRARY_PATH=/opt/lib"}), start_on({}, {}), simulated),
      Contains("LD_LIBRARY_PATH=/sim:/opt/lib"));
  EXPECT_THAT(attempt_environment(payload_with({}), start_on({}, {}), simulated),
              Contains("LD_LIBRARY_PATH=/sim"));
}

TEST(OwnLogPath, AThousandJobsShareADirectory) {
  EXPECT_EQ(own_log_path("/l", JobId{999}, 1), "/l/0/999.1.log");
  EXPECT_EQ(own_log_path("/l", JobId{1000}, 3), "/l/1/1000.3.log");
}

}  // namespace
}  // namespace berth
