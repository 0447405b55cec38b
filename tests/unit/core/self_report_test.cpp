#include "core/self_report.hpp"

#include <gtest/gtest.h>

#include "core/classify.hpp"

namespace berth {
namespace {

Verdict ended(std::optional<std::int32_t> code) {
  Verdict verdict;
  verdict.exit_code = code;
  if (code != 0) {
    verdict.failure = FailureClass::exit;
    verdict.message = "exit code " + std::to_string(code.value_or(0));
  }
  return verdict;
}

TEST(SelfReport, AReportedFailureBeatsExitCode0) {
  const Verdict verdict = heed(ended(0), {ReportedState::abnormal_exit, "data"});
  EXPECT_EQ(verdict.failure, FailureClass::exit);
  EXPECT_EQ(verdict.exit_code, 0);
  EXPECT_EQ(verdict.message, "it reported abnormal_exit: data");
}

TEST(SelfReport, AnExitCodeBeatsAReportedSuccess) {
  EXPECT_EQ(heed(ended(1), {ReportedState::normal_exit, ""}), ended(1));
  EXPECT_EQ(heed(ended(0), {ReportedState::normal_exit, ""}), ended(0));
  EXPECT_EQ(heed(ended(0), {ReportedState::running, ""}), ended(0));
}

TEST(SelfReport, LackOfMemoryHasItsClass) {
  for (const char* word : {"oom", "OOM", "gpu_oom", "CUDA OOM", "OutOfMemoryError"}) {
    EXPECT_EQ(heed(ended(0), {ReportedState::abnormal_exit, word}).failure, FailureClass::gpu_oom)
        << word;
    EXPECT_EQ(heed(ended(1), {ReportedState::abnormal_exit, word}).failure, FailureClass::gpu_oom)
        << word;
  }
  EXPECT_EQ(heed(ended(0), {ReportedState::abnormal_exit, "room"}).failure, FailureClass::exit);
  EXPECT_EQ(heed(ended(0), {ReportedState::abnormal_exit, "host_oom"}).failure,
            FailureClass::host_oom);
}

TEST(SelfReport, WhoWasKilledHasNothingToAdd) {
  Verdict killed = ended(0);
  killed.killed = true;
  EXPECT_EQ(heed(killed, {ReportedState::abnormal_exit, "oom"}), killed);
  Verdict late = ended(1);
  late.failure = FailureClass::timeout;
  EXPECT_EQ(heed(late, {ReportedState::abnormal_exit, "oom"}), late);
}

TEST(SelfReport, TheWorseWordCounts) {
  const SelfReport bad{ReportedState::abnormal_exit, "oom"};
  EXPECT_EQ(worse_of({ReportedState::normal_exit, ""}, bad), bad);
  EXPECT_EQ(worse_of(bad, {}), bad);
  EXPECT_EQ(worse_of({ReportedState::abnormal_exit, ""}, bad), bad);
}

TEST(SelfReport, TheLogAddsItsNumbersToAReportedLackOfMemory) {
  const Verdict verdict = heed(ended(0), {ReportedState::abnormal_exit, "oom"});
  const Finding told = classify(verdict, {});
  EXPECT_EQ(told.failure, FailureClass::gpu_oom);
  EXPECT_EQ(told.what, "it reported abnormal_exit: oom");
  Evidence evidence;
  evidence.log_end =
      "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a "
      "total capacity of 24.00 GiB of which 1.00 GiB is free.";
  const Finding found = classify(verdict, evidence);
  EXPECT_EQ(found.failure, FailureClass::gpu_oom);
  EXPECT_TRUE(found.figures);
}

}  // namespace
}  // namespace berth
