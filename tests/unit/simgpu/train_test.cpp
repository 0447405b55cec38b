#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simgpu/commands.hpp"
#include "unit/simgpu/child.hpp"

namespace berth::simgpu {
namespace {

using test::Child;
using test::SimGpus;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

Child train(std::optional<std::string> visible, std::vector<std::string> options) {
  options.insert(options.begin(), {BERTH_SIMGPU, "train"});
  return Child(options, {.environment = {{"CUDA_VISIBLE_DEVICES", std::move(visible)}}, .uid = {}});
}

std::vector<unsigned> visible(const SimGpus& gpus, const char* variable) {
  std::vector<unsigned> indices;
  for (const Card& card : visible_cards(*gpus.directory.cards(), variable)) {
    indices.push_back(card.index);
  }
  return indices;
}

TEST(SimTrain, SeesTheCardsThatCudaWouldSee) {
  const SimGpus gpus("4x24GiB");
  const std::string uuid = gpus.directory.card(2)->uuid;
  EXPECT_EQ(visible(gpus, nullptr), (std::vector<unsigned>{0, 1, 2, 3}));
  EXPECT_EQ(visible(gpus, ""), std::vector<unsigned>{});
  EXPECT_EQ(visible(gpus, "3,1"), (std::vector<unsigned>{3, 1}));
  EXPECT_EQ(visible(gpus, (uuid + ",0").c_str()), (std::vector<unsigned>{2, 0}));
  EXPECT_EQ(visible(gpus, uuid.substr(0, 12).c_str()), (std::vector<unsigned>{2}));
  EXPECT_EQ(visible(gpus, "1,9,2"), (std::vector<unsigned>{1}));
  EXPECT_EQ(visible(gpus, "1,1,2"), (std::vector<unsigned>{1}));
  EXPECT_EQ(visible(gpus, "-1"), std::vector<unsigned>{});
  EXPECT_EQ(visible(gpus, "GPU-"), std::vector<unsigned>{});
}

TEST(SimTrain, PrintsStepsAndFreesItsMemory) {
  const SimGpus gpus("1x24GiB");
  Child child = train("0", {"--memory", "4GiB", "--time", "20ms", "--steps", "3"});
  const std::string output = child.read_output();
  EXPECT_EQ(child.wait(), 0);
  EXPECT_THAT(output, ContainsRegex("step 1/3 loss=[0-9.]+ acc=[0-9.]+\nstep 2/3 .*\nstep 3/3 "));
  EXPECT_TRUE(std::filesystem::is_empty(gpus.directory.path() + "/procs"));
}

TEST(SimTrain, UsesEveryVisibleCardAndNoOther) {
  const SimGpus gpus("3x24GiB");
  const std::string uuid = gpus.directory.card(2)->uuid;
  const Child child = train(
      uuid + ",0", {"--memory", "4GiB", "--time", "300s", "--steps", "30000", "--util", "80"});
  ASSERT_NE(child.read_line(), "");
  EXPECT_EQ(total_bytes(gpus.directory.users(0)), 4ULL << 30U);
  EXPECT_TRUE(gpus.directory.users(1).empty());
  EXPECT_EQ(gpus.directory.users(2).at(0).pid, child.pid());
  EXPECT_EQ(total_util(gpus.directory.users(2)), 80U);
}

TEST(SimTrain, DiesOfOutOfMemoryAsPyTorchDoes) {
  const SimGpus gpus("2x24GiB");
  const Child stranger = gpus.hold(1, "18GiB");
  Child child = train("1", {"--memory", "8GiB", "--ramp", "200ms", "--time", "1h"});
  const std::string errors = child.read_errors();
  EXPECT_EQ(child.wait(), 1);
  EXPECT_THAT(errors, HasSubstr("Traceback (most recent call last):\n"));
  EXPECT_THAT(
      errors,
      HasSubstr(
          "\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a "
          "total capacity of 24.00 GiB of which 0 bytes is free. Process " +
          std::to_string(stranger.pid()) +
          " has 18.00 GiB memory in use. Including non-PyTorch memory, this process has 6.00 "
          "GiB memory in use. "));
  EXPECT_EQ(gpus.directory.users(1).size(), 1U);
}

TEST(SimTrain, NamesNoNeighbourWhenItIsTooLargeAlone) {
  const SimGpus gpus("1x24GiB");
  Child child = train("0", {"--memory", "30GiB"});
  const std::string errors = child.read_errors();
  EXPECT_EQ(child.wait(), 1);
  EXPECT_THAT(errors, HasSubstr("of which 24.00 GiB is free. Including non-PyTorch memory"));
  EXPECT_THAT(errors, Not(HasSubstr("Process ")));
}

TEST(SimTrain, SavesACheckpointAtASignal) {
  const SimGpus gpus("1x24GiB");
  Child child =
      train("0", {"--time", "300s", "--steps", "300000", "--on-signal", "TERM:checkpoint-exit"});
  ASSERT_NE(child.read_line(), "");
  ASSERT_EQ(::kill(static_cast<pid_t>(child.pid()), SIGTERM), 0);
  EXPECT_THAT(child.read_output(), ::testing::EndsWith("checkpoint\n"));
  EXPECT_EQ(child.wait(), 0);

  const Child going = train("0", {"--time", "300s", "--steps", "1", "--on-signal",
                                  "USR1:checkpoint", "--memory", "2GiB"});
  while (gpus.directory.users(0).empty()) {  // by then the signal is waited for
    ASSERT_EQ(::kill(static_cast<pid_t>(going.pid()), 0), 0);
  }
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(::kill(static_cast<pid_t>(going.pid()), SIGUSR1), 0);
    EXPECT_EQ(going.read_line(), "checkpoint\n");
  }
  EXPECT_EQ(train("0", {"--on-signal", "KILL:checkpoint"}).wait(), 2);
  EXPECT_EQ(train("0", {"--on-signal", "USR1"}).wait(), 2);
}

TEST(SimTrain, NeedsACard) {
  const SimGpus gpus("1x24GiB");
  Child child = train("", {});
  EXPECT_THAT(child.read_errors(), HasSubstr("no CUDA-capable device is detected"));
  EXPECT_EQ(child.wait(), 1);
  EXPECT_EQ(train("", {"--memory", "0", "--time", "0"}).wait(), 0);
}

TEST(SimTrain, EndsAsToldTo) {
  const SimGpus gpus("1x24GiB");
  EXPECT_EQ(train("0", {"--time", "0", "--exit-code", "7"}).wait(), 7);
  Child child = train("0", {"--time", "0", "--fail-at", "3"});
  EXPECT_THAT(child.read_errors(), HasSubstr("RuntimeError: simulated failure at step 3"));
  EXPECT_THAT(child.read_output(), HasSubstr("step 2/10"));
  EXPECT_EQ(child.wait(), 1);
  Child told = train("0", {"--time", "0", "--fail", "RuntimeError: CUDA error: unspecified"});
  EXPECT_THAT(told.read_errors(), HasSubstr("\nRuntimeError: CUDA error: unspecified\n"));
  EXPECT_EQ(told.wait(), 1);
  EXPECT_EQ(train("0", {"--speed", "3"}).wait(), 2);
  EXPECT_EQ(train("0", {"--steps", "three"}).wait(), 2);
}

TEST(SimTrain, NoticesThatItsCardIsLost) {
  const SimGpus gpus("1x24GiB");
  Child child = train("0", {"--time", "300s", "--steps", "30000"});
  ASSERT_NE(child.read_line(), "");
  gpus.set(0, "lost", "yes");
  EXPECT_THAT(child.read_errors(), HasSubstr("GPU is lost"));
  EXPECT_EQ(child.wait(), 1);
}

TEST(SimProgram, ShowsAndSetsCards) {
  const SimGpus gpus("2x24GiB");
  const Child stranger = gpus.hold(0, "18GiB", {"--util", "90"});
  EXPECT_EQ(Child({BERTH_SIMGPU, "set", "all", "temperature", "41"}).wait(), 0);
  EXPECT_EQ(gpus.directory.card(1)->temperature.value, 41U);
  EXPECT_EQ(Child({BERTH_SIMGPU, "set", "5", "util", "1"}).wait(), 1);
  EXPECT_EQ(Child({BERTH_SIMGPU, "set", "0", "util"}).wait(), 2);
  Child show({BERTH_SIMGPU, "show", gpus.directory.path()});
  const std::string table = show.read_output();
  EXPECT_EQ(show.wait(), 0);
  EXPECT_THAT(table, HasSubstr("18432 / 24576 MiB"));
  EXPECT_THAT(table, HasSubstr("pid " + std::to_string(stranger.pid())));
  Child help({BERTH_SIMGPU, "--help"});
  EXPECT_THAT(help.read_output(), HasSubstr("berth-simgpu init /tmp/gpus 8x24GiB"));
  EXPECT_EQ(help.wait(), 0);
}

}  // namespace
}  // namespace berth::simgpu
