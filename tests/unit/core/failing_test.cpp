// What a failure does to a job, its queue and its cards.

#include <gtest/gtest.h>

#include "unit/core/world.hpp"

namespace berth::testing {
namespace {

constexpr const char* kTooBig =
    "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 24.00 GiB of "
    "which 1.00 GiB is free. Including non-PyTorch memory, this process has 9.00 GiB memory in "
    "use.\n";
constexpr const char* kCrowded =
    "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 24.00 GiB of "
    "which 0.50 GiB is free. Process 99 has 20.00 GiB memory in use. Including non-PyTorch memory, "
    "this process has 3.50 GiB memory in use.\n";

constexpr Millis kMoment{100};

void fail_with(World& w, std::uint64_t job, const std::string& log_end) {
  event::AttemptExited exited;
  exited.attempt = w.attempt_of(job);
  exited.verdict.failure = FailureClass::exit;
  exited.verdict.exit_code = 1;
  exited.verdict.message = "exited with code 1";
  exited.log_end = log_end;
  EXPECT_TRUE(w.apply(std::move(exited)));
}

void set(World& w, const std::string& key, const std::string& value) {
  EXPECT_TRUE(w.apply(event::SetRules{{{key, value}}}));
}

std::string message_of(const World& w, std::uint64_t job) {
  return w.ledger.job(JobId{job}).message;
}

const Request& request_of(const World& w, std::uint64_t job) {
  return w.state.request(*w.state.job(JobId{job}));
}

TEST(OutOfGpuMemory, BecauseOfANeighbourTheJobGoesElsewhereWithoutBlame) {
  World w;
  w.see_idle(2);
  w.submit({a_job().memory(8 * kGiB)});
  EXPECT_EQ(w.decide(), "1:0");
  fail_with(w, 1, kCrowded);
  w.see_again();
  EXPECT_EQ(w.decide(), "1:1");
  EXPECT_EQ(w.state.job(JobId{1})->retries_used, 0U);
  EXPECT_EQ(w.state.job(JobId{1})->excused, 1U);
  EXPECT_EQ(request_of(w, 1).gpu_memory, 8 * kGiB);
}

/// Job 1 has lost memory to a stranger on card 0, and job 2 has card 1. The stranger stays.
void lose_memory_to_a_stranger(World& w) {
  w.see_idle(2);
  w.submit({a_job()});
  w.submit({a_job()});
  EXPECT_EQ(w.decide(), "1:0 2:1");
  w.wait(Millis{1'000});
  w.see({a_gpu(0).with(a_process_of(1).memory(3 * kGiB)).with(a_stranger().memory(14 * kGiB)),
         a_gpu(1).with(a_process_of(2).memory(kGiB))});
  fail_with(w, 1, "CUDA error: out of memory\n");
  EXPECT_EQ(w.state.job(JobId{1})->excused, 1U);
  w.wait(Millis{1'000});
  w.see(
      {a_gpu(0).with(a_stranger().memory(14 * kGiB)), a_gpu(1).with(a_process_of(2).memory(kGiB))});
}

TEST(OutOfGpuMemory, TheCardIsAvoidedWhileTheNeighbourHoldsWhatItHeld) {
  World w;
  lose_memory_to_a_stranger(w);
  EXPECT_EQ(w.decide(), "");
  EXPECT_EQ(w.waits(), "1:gpu(avoided,claimed)");
  EXPECT_NE(w.said(1).find("it ran out of memory there, and others still hold 14 GiB"),
            std::string::npos)
      << w.said(1);
}

TEST(OutOfGpuMemory, TheCardIsTakenInTheSameDecisionOnceTheNeighbourHasLeft) {
  World w;
  lose_memory_to_a_stranger(w);
  EXPECT_EQ(w.decide(), "");
  w.wait(Millis{1'000});
  w.see({a_gpu(0), a_gpu(1).with(a_process_of(2).memory(kGiB))});
  EXPECT_EQ(w.decide(), "1:0");
}

TEST(OutOfGpuMemory, AStartByHandGoesBackToTheCard) {
  World w;
  lose_memory_to_a_stranger(w);
  EXPECT_EQ(w.decide(), "");
  w.force(1);
  EXPECT_EQ(w.decide(), "1:0");
}

TEST(OutOfGpuMemory, AnotherFreeCardIsPreferredThoughTheNeighbourHasLeft) {
  World w;
  lose_memory_to_a_stranger(w);
  w.succeed(2);
  w.wait(Millis{1'000});
  w.see_idle(2);
  EXPECT_EQ(w.decide(), "1:1");
}

TEST(OutOfGpuMemory, SeveralCardsAreTakenWithTheOneThatFailedRatherThanNone) {
  World w;
  w.see_idle(3);
  w.submit({a_job().gpus(2)});
  w.submit({a_job()});
  EXPECT_EQ(w.decide(), "1:0+1 2:2");
  fail_with(w, 1, kCrowded);
  w.wait(Millis{1'000});
  w.see({a_gpu(0), a_gpu(1), a_gpu(2).with(a_process_of(2).memory(kGiB))});
  EXPECT_EQ(w.decide(), "1:0+1");
}

TEST(OutOfGpuMemory, AloneOnItsCardNobodyElseIsToBlame) {
  constexpr const char* kAlone =
      "CUDA out of memory. Tried to allocate 1.00 GiB (GPU 0; 23.69 GiB total capacity; 21.50 GiB "
      "already allocated; 0.19 GiB free; 22.00 GiB reserved in total by PyTorch)\n";
  constexpr const char* kOtherNumber =
      "CUDA out of memory. Tried to allocate 1.00 GiB. GPU 0 has a total capacity of 24.00 GiB of "
      "which 0.50 GiB is free. Process 32777 has 23.00 GiB memory in use.\n";
  for (const char* message : {kAlone, kOtherNumber}) {
    World w;
    w.see_idle(2);
    w.submit({a_job()});
    EXPECT_EQ(w.decide(), "1:0");
    w.wait(Millis{1'000});
    w.see({a_gpu(0).with(a_process_of(1).memory(22 * kGiB)), a_gpu(1)});
    fail_with(w, 1, message);
    EXPECT_EQ(w.stored(1), "failed");
    EXPECT_NE(message_of(w, 1).find("it had a whole card of 24 GiB, the largest there is"),
              std::string::npos)
        << message_of(w, 1);
    EXPECT_EQ(message_of(w, 1).find("others"), std::string::npos) << message_of(w, 1);
  }
}

TEST(OutOfGpuMemory, BecauseOfItsSizeTheJobGetsMoreThenAWholeCardThenNothing) {
  World w;
  w.see_idle(1);
  w.submit({a_job().memory(10 * kGiB)});
  EXPECT_EQ(w.decide(), "1:0");
  fail_with(w, 1, kTooBig);
  EXPECT_EQ(message_of(w, 1),
            "out of GPU memory: asked for 2 GiB more with 9 GiB of 24 GiB in use by itself; trying "
            "again with 13.2 GiB");
  w.see_again();
  EXPECT_EQ(w.decide(), "1:0");
  EXPECT_EQ(request_of(w, 1).gpu_memory, 13 * kGiB + 256 * kMiB);
  fail_with(w, 1, "CUDA error: out of memory\n");
  w.see_again();
  EXPECT_EQ(w.decide(), "1:0");
  EXPECT_EQ(request_of(w, 1).gpu_memory, 19 * kGiB + 896 * kMiB);
  fail_with(w, 1, "CUDA error: out of memory\n");
  EXPECT_EQ(message_of(w, 1), "out of GPU memory; trying again with a whole card");
  // Whole it is only as far as nobody else holds much of it.
  w.see({a_gpu(0).with(a_stranger().memory(10 * kGiB))});
  EXPECT_EQ(w.decide(), "");
  w.see_idle(1);
  EXPECT_EQ(w.decide(), "1:0");
  fail_with(w, 1, "CUDA error: out of memory\n");
  EXPECT_EQ(w.stored(1), "failed");
  EXPECT_EQ(message_of(w, 1),
            "out of GPU memory; gave up: it had a whole card of 24 GiB, the largest there is");
}

TEST(OutOfGpuMemory, OnASmallCardTheJobGoesToALargerOne) {
  World w;
  w.see({a_gpu(0).total(12 * kGiB), a_gpu(1)});
  w.submit({a_job(), a_job()});
  EXPECT_EQ(w.decide(), "1:1 2:0");
  fail_with(w, 2, "CUDA error: out of memory\n");
  w.see_again();
  EXPECT_EQ(w.decide(), "") << "the small card is not tried again";
  w.succeed(1);
  w.see_again();
  EXPECT_EQ(w.decide(), "2:1");
}

TEST(OutOfGpuMemory, OfAStrangerIsSeenWhereTheMessageDoesNotTell) {
  World w;
  w.see_idle(2);
  w.submit({a_job().memory(8 * kGiB)});
  EXPECT_EQ(w.decide(), "1:0");
  w.see({a_gpu(0).with(a_stranger().memory(23 * kGiB)), a_gpu(1)});
  fail_with(w, 1, "CUDA error: out of memory\n");
  w.see_again();
  EXPECT_EQ(w.decide(), "1:1");
  EXPECT_EQ(w.state.job(JobId{1})->excused, 1U);
}

TEST(OutOfGpuMemory, OfANeighbourThatTookMoreThanItWasPromised) {
  World w;
  w.see_idle(1);
  w.submit({a_job().memory(8 * kGiB), a_job().memory(8 * kGiB)});
  EXPECT_EQ(w.decide(), "1:0 2:0");
  w.see({a_gpu(0).with(a_process_of(1).memory(20 * kGiB)).with(a_process_of(2).memory(3 * kGiB))});
  fail_with(w, 2, "CUDA error: out of memory\n");
  EXPECT_EQ(w.state.job(JobId{2})->excused, 1U);
}

constexpr const char* kJax =
    "jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate "
    "3000000000 bytes.\n";

TEST(OutOfGpuMemory, NextToAJobWithinItsClaimIsTheJobsOwn) {
  World w;
  w.see_idle(1);
  w.submit({a_job().memory(8 * kGiB), a_job().memory(8 * kGiB)});
  EXPECT_EQ(w.decide(), "1:0 2:0");
  w.wait(Millis{1'000});
  w.see({a_gpu(0).with(a_process_of(1).memory(7 * kGiB)).with(a_process_of(2).memory(7 * kGiB))});
  fail_with(w, 2, kJax);
  EXPECT_EQ(w.state.job(JobId{2})->excused, 0U);
  EXPECT_EQ(request_of(w, 2).gpu_memory, 12 * kGiB);
  EXPECT_EQ(message_of(w, 2), "out of GPU memory: asked for 2.8 GiB; trying again with 12 GiB");
}

TEST(OutOfGpuMemory, NextToASmallStrangerIsTheJobsOwn) {
  World w;
  w.see_idle(1);
  w.submit({a_job().memory(8 * kGiB)});
  EXPECT_EQ(w.decide(), "1:0");
  w.wait(Millis{1'000});
  w.see({a_gpu(0).with(a_process_of(1).memory(7 * kGiB)).with(a_stranger().memory(100 * kMiB))});
  fail_with(w, 1, kJax);
  EXPECT_EQ(w.state.job(JobId{1})->excused, 0U);
  EXPECT_EQ(request_of(w, 1).gpu_memory, 12 * kGiB);
}

TEST(OutOfGpuMemory, IsDecidedOnByALookThatBeganLater) {
  for (const char* message : {kCrowded, kTooBig}) {
    World w;
    w.see_idle(2);
    w.submit({a_job().memory(10 * kGiB), a_job().memory(2 * kGiB)});
    EXPECT_EQ(w.decide(), "1:0 2:1");
    w.wait(Millis{500});
    const Millis before = w.now.mono;
    w.wait(Millis{500});
    fail_with(w, 1, message);
    EXPECT_EQ(w.decide(), " ?");
    EXPECT_EQ(w.said(1), "waiting for a fresh look at the GPUs");
    // One that was under way already does not tell, though others may start on it.
    ASSERT_TRUE(w.apply(event::Sampled{{before, {a_gpu(0), a_gpu(1)}, "test driver", {}}}));
    w.submit({a_job().memory(2 * kGiB)});
    EXPECT_EQ(w.decide(), "3:1 ?");
    w.see_again();
    EXPECT_NE(w.decide(), "");
    EXPECT_TRUE(w.state.bereft.empty());
  }
}

TEST(Hardware, IsDecidedOnByALookThatBeganLater) {
  World w;
  w.see_idle(2);
  w.submit({a_job()});
  EXPECT_EQ(w.decide(), "1:0");
  w.wait(kMoment);
  fail_with(w, 1, "CUDA error: no CUDA-capable device is detected\n");
  EXPECT_EQ(w.decide(), " ?");
  w.see_again();
  EXPECT_EQ(w.decide(), "1:1");
}

TEST(Hardware, DrainsTheCardAndGoesElsewhere) {
  World w;
  w.see_idle(2);
  w.submit({a_job()});
  EXPECT_EQ(w.decide(), "1:0");
  fail_with(w, 1, "CUDA error: uncorrectable ECC error encountered\n");
  EXPECT_EQ(w.state.drains.size(), 1U);
  EXPECT_TRUE(w.state.drains.contains("GPU-0"));
  w.see_again();
  EXPECT_EQ(w.decide(), "1:1");
}

TEST(Hardware, ACardThatWasGivenBackIsAvoidedNoLonger) {
  World w;
  w.see_idle(2);
  w.submit({a_job(), a_job()});
  EXPECT_EQ(w.decide(), "1:0 2:1");
  fail_with(w, 1, "CUDA error: uncorrectable ECC error encountered\n");
  w.see_again();
  EXPECT_EQ(w.decide(), "");
  ASSERT_TRUE(w.apply(event::DrainGpu{"0", false, ""}));
  EXPECT_EQ(w.decide(), "1:0");
}

TEST(Hardware, AMessageDoesNotDrainSeveralCards) {
  World w;
  w.see_idle(4);
  w.submit({a_job().gpus(2)});
  EXPECT_EQ(w.decide(), "1:0+1");
  fail_with(w, 1, "GPU has fallen off the bus\n");
  EXPECT_TRUE(w.state.drains.empty());
  w.see_again();
  EXPECT_EQ(w.decide(), "1:2+3");
}

TEST(Hardware, AnErrorOfTheDriverExplainsTheFailure) {
  World w;
  w.see_idle(2);
  w.submit({a_job()});
  EXPECT_EQ(w.decide(), "1:0");
  GpuFacts sick = a_gpu(0);
  sick.xids = {79};
  w.see({sick, a_gpu(1)});
  fail_with(w, 1, "CUDA error: unspecified launch failure\n");
  EXPECT_EQ(w.ledger.job(JobId{1}).failure, FailureClass::gpu_lost);
  w.see({a_gpu(0), a_gpu(1)});
  EXPECT_EQ(w.decide(), "1:1");
}

TEST(Backoff, KeepsTheJobsPlaceInASerialQueue) {
  World w;
  w.set_queue("serial", 1);
  w.submit(copies(2, a_cpu_job().queue("serial").retries(9)));
  for (int attempt = 1; attempt <= 4; ++attempt) {
    EXPECT_EQ(w.decide(), "1:-") << "attempt " << attempt;
    w.fail(1);
  }
  EXPECT_EQ(w.decide(), "") << "the second waits, too";
  w.wait(Millis{599'999});
  EXPECT_TRUE(w.apply(event::Tick{}));
  EXPECT_EQ(w.decide(), "");
  w.wait(Millis{1});
  EXPECT_TRUE(w.apply(event::Tick{}));
  EXPECT_EQ(w.decide(), "1:-");
  for (int attempt = 5; attempt <= 7; ++attempt) {
    w.fail(1);
    EXPECT_EQ(w.decide(), attempt < 7 ? "1:-" : "") << "attempt " << attempt;
  }
  w.wait(Millis{600'000});
  EXPECT_TRUE(w.apply(event::Tick{}));
  EXPECT_EQ(w.decide(), "1:-");
}

TEST(Backoff, AfterTheFinalFailureTheQueueGoesOn) {
  World w;
  w.set_queue("serial", 1);
  w.submit(copies(2, a_cpu_job().queue("serial").retries(1)));
  EXPECT_EQ(w.decide(), "1:-");
  const AttemptId first = w.attempt_of(1);
  w.fail(1);
  EXPECT_EQ(w.decide(), "1:-");
  EXPECT_NE(w.attempt_of(1), first);
  w.fail(1);
  EXPECT_EQ(message_of(w, 1), "exit code 1; no retry left after 1");
  EXPECT_EQ(w.decide(), "2:-");
}

TEST(Backoff, LetsOthersOfAWideQueuePass) {
  World w;
  set(w, "retry_config.max_retry_before_backoff", "1");
  w.submit({a_cpu_job().retries(5)});
  w.decide();
  w.fail(1);
  w.decide();
  w.fail(1);
  w.submit({a_cpu_job()});
  EXPECT_EQ(w.decide(), "2:-");
}

TEST(Backoff, OutlivesARestart) {
  World w;
  set(w, "retry_config.max_retry_before_backoff", "1");
  w.submit({a_cpu_job().retries(5)});
  w.decide();
  w.fail(1);
  w.decide();
  w.fail(1);
  ASSERT_EQ(w.state.delays.size(), 1U);
  const State restored = restore(w.ledger.snapshot(), Rules{}, w.state.host, w.now);
  ASSERT_EQ(restored.delays.size(), 1U);
  EXPECT_EQ(restored.delays.at(JobId{1}).due, w.state.delays.at(JobId{1}).due);
  EXPECT_TRUE(restored.delays.at(JobId{1}).backing_off);
}

TEST(GivingWay, CostsNothing) {
  World w;
  w.see_idle(1);
  JobSpec job = a_job().priority(9);
  job.request.rules["preemptible"] = "true";
  w.submit({job});
  EXPECT_EQ(w.decide(), "1:0");
  w.submit({a_job().priority(1)});
  EXPECT_EQ(w.decide(), "");
  ASSERT_TRUE(w.state.attempts.at(w.attempt_of(1)).gives_way);
  Verdict verdict;
  verdict.failure = FailureClass::exit;
  verdict.killed = true;
  verdict.message = "killed on request";
  w.end(1, verdict);
  EXPECT_EQ(w.ledger.job(JobId{1}).failure, FailureClass::preempted);
  EXPECT_EQ(message_of(w, 1), "gave way to a job of higher priority; waiting again");
  EXPECT_EQ(w.state.job(JobId{1})->excused, 0U);
  EXPECT_EQ(w.state.job(JobId{1})->retries_used, 0U);
  w.see_again();
  EXPECT_EQ(w.decide(), "2:0");
}

TEST(GivingWay, WhoEndsWellAfterBeingToldHasSavedItsWorkAndWaitsAgain) {
  World w;
  w.see_idle(1);
  JobSpec job = a_job().priority(9);
  job.request.rules["preemptible"] = "true";
  w.submit({job});
  w.decide();
  w.submit({a_job().priority(1)});
  w.decide();
  w.succeed(1);
  EXPECT_EQ(w.state.job(JobId{1})->state, JobState::queued);
  EXPECT_EQ(w.ledger.job(JobId{1}).failure, FailureClass::preempted);
}

TEST(GivingWay, AKillOnRequestEndsTheJob) {
  World w;
  w.see_idle(1);
  JobSpec job = a_job().priority(9);
  job.request.rules["preemptible"] = "true";
  w.submit({job});
  w.decide();
  w.submit({a_job().priority(1)});
  w.decide();
  w.kill({1});
  Verdict verdict;
  verdict.failure = FailureClass::exit;
  verdict.killed = true;
  w.end(1, verdict);
  EXPECT_EQ(w.stored(1), "killed");
}

TEST(Retries, ForWhatIsNotItsFaultOutliveARestart) {
  World w;
  w.submit({a_cpu_job()});
  w.decide();
  w.fail(1, FailureClass::node_lost);
  EXPECT_EQ(w.state.job(JobId{1})->excused, 1U);
  const State restored = restore(w.ledger.snapshot(), Rules{}, w.state.host, w.now);
  EXPECT_EQ(restored.job(JobId{1})->excused, 1U);
}

TEST(Retries, AtTheTimeLimitAsAsked) {
  World w;
  JobSpec job = a_cpu_job();
  job.request.rules["retry_config.requeue_on_timeout"] = "true";
  w.submit({job, a_cpu_job()});
  EXPECT_EQ(w.decide(), "1:- 2:-");
  w.fail(1, FailureClass::timeout);
  w.fail(2, FailureClass::timeout);
  EXPECT_EQ(w.decide(), "1:-");
  EXPECT_EQ(w.stored(2), "failed");
}

}  // namespace
}  // namespace berth::testing
