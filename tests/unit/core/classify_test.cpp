// Why an attempt failed: one case per signature, and whose fault it was.

#include <csignal>

#include <gtest/gtest.h>

#include "core/classify.hpp"

namespace berth {
namespace {

constexpr const char* kTorch =
    "Traceback (most recent call last):\n"
    "  File \"train.py\", line 88, in <module>\n"
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total "
    "capacity of 24.00 GiB of which 1.00 GiB is free. Including non-PyTorch memory, this process "
    "has 22.50 GiB memory in use. Of the allocated memory 21.00 GiB is allocated by PyTorch, and "
    "1.00 GiB is reserved by PyTorch but unallocated.\n";
constexpr const char* kTorchCrowded =
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total "
    "capacity of 24.00 GiB of which 512.00 MiB is free. Process 4711 has 18.00 GiB memory in use. "
    "Including non-PyTorch memory, this process has 5.50 GiB memory in use.\n";

Verdict exited(std::int32_t code) {
  Verdict verdict;
  verdict.failure = FailureClass::exit;
  verdict.exit_code = code;
  verdict.message = "exited";
  return verdict;
}

Verdict signalled(std::int32_t signal) {
  Verdict verdict;
  verdict.failure = FailureClass::exit;
  verdict.signal = signal;
  verdict.message = "killed by a signal";
  return verdict;
}

struct LogCase {
  const char* name;
  std::string log;
  FailureClass failure;
  Blame blame;
};

void PrintTo(const LogCase& c, std::ostream* out) {
  *out << c.name;
}

class Signatures : public ::testing::TestWithParam<LogCase> {};

TEST_P(Signatures, AreUnderstood) {
  Evidence evidence;
  evidence.log_end = GetParam().log;
  evidence.uses_gpus = true;
  evidence.card = 24 * kGiB;
  const Finding finding = classify(exited(1), evidence);
  EXPECT_EQ(to_string(finding.failure), to_string(GetParam().failure)) << finding.what;
  EXPECT_EQ(to_string(finding.blame), to_string(GetParam().blame)) << finding.what;
  EXPECT_FALSE(finding.what.empty());
}

using enum FailureClass;

INSTANTIATE_TEST_SUITE_P(
    GpuMemory, Signatures,
    ::testing::Values(
        LogCase{"TorchNow", kTorch, gpu_oom, Blame::own},
        LogCase{"TorchBeforeTwo",
                "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.50 GiB (GPU "
                "0; 23.69 GiB total capacity; 21.00 GiB already allocated; 1.10 GiB free; 22.40 "
                "GiB reserved in total by PyTorch) If reserved memory is >> allocated memory\n",
                gpu_oom, Blame::own},
        LogCase{"TorchBeforeOne",
                "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 7.79 GiB "
                "total capacity; 7.60 GiB already allocated; 10.00 MiB free; 7.70 GiB reserved in "
                "total by PyTorch)\n",
                gpu_oom, Blame::own},
        LogCase{"TorchWithoutText", "raise torch.OutOfMemoryError\n", gpu_oom, Blame::own},
        LogCase{"Rocm", "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 4.00 GiB\n",
                gpu_oom, Blame::own},
        LogCase{"CudaError", "RuntimeError: CUDA error: out of memory\n", gpu_oom, Blame::own},
        LogCase{"Accelerator", "torch.AcceleratorError: CUDA error: out of memory\n", gpu_oom,
                Blame::own},
        LogCase{"TensorFlow",
                "tensorflow.python.framework.errors_impl.ResourceExhaustedError: OOM when "
                "allocating tensor with shape[8192,65536] and type float on "
                "/job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc [Op:MatMul]\n",
                gpu_oom, Blame::own},
        LogCase{"TensorFlowAllocator",
                "W bfc_allocator.cc:479] Allocator (GPU_0_bfc) ran out of memory trying to "
                "allocate 2.00GiB (rounded to 2147483648)requested by op MatMul\n",
                gpu_oom, Blame::own},
        LogCase{"Jax",
                "jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to "
                "allocate 30.55GiB.\n",
                gpu_oom, Blame::own},
        LogCase{"JaxInBytes",
                "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while "
                "trying to allocate 17179869184 bytes.\n",
                gpu_oom, Blame::own},
        LogCase{"Driver", "CUDA_ERROR_OUT_OF_MEMORY: out of memory\n", gpu_oom, Blame::own},
        LogCase{"Runtime", "cudaErrorMemoryAllocation: out of memory\n", gpu_oom, Blame::own},
        LogCase{"Cublas",
                "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling "
                "`cublasCreate(handle)`\n",
                gpu_oom, Blame::own},
        LogCase{"CudnnAlloc", "RuntimeError: cuDNN error: CUDNN_STATUS_ALLOC_FAILED\n", gpu_oom,
                Blame::own},
        LogCase{"CudnnBegin", "RuntimeError: cuDNN error: CUDNN_STATUS_NOT_INITIALIZED\n", gpu_oom,
                Blame::own},
        LogCase{"VllmAtStart",
                "ValueError: Free memory on device cuda:0 (13.91/79.33 GiB) on startup is less "
                "than desired GPU memory utilization (0.95, 75.36 GiB). Decrease it.\n",
                gpu_oom, Blame::neighbour},
        LogCase{"VllmBlocks",
                "ValueError: No available memory for the cache blocks. Try increasing it.\n",
                gpu_oom, Blame::own},
        LogCase{"VllmSequence",
                "ValueError: The model's max seq len (131072) is larger than the maximum number "
                "of tokens that can be stored in KV cache (30464).\n",
                gpu_oom, Blame::own},
        LogCase{"VllmCache",
                "ValueError: To serve at least one request, 16.00 GiB KV cache is needed, which "
                "is larger than the available KV cache memory (7.20 GiB).\n",
                gpu_oom, Blame::own},
        LogCase{"NextToOthers", kTorchCrowded, gpu_oom, Blame::neighbour}),
    [](const auto& tested) { return tested.param.name; });

INSTANTIATE_TEST_SUITE_P(
    NotGpuMemory, Signatures,
    ::testing::Values(
        LogCase{"TensorFlowSurvives",
                "W bfc_allocator.cc:312] Allocator (GPU_0_bfc) ran out of memory trying to "
                "allocate 1.20GiB with freed_by_count=0. The caller indicates that this is not a "
                "failure, but this may mean that there could be performance gains.\n",
                FailureClass::exit, Blame::own},
        LogCase{"TensorFlowOnTheHost",
                "ResourceExhaustedError: OOM when allocating tensor with shape[1000000,4096] on "
                "/job:localhost/replica:0/task:0/device:CPU:0 by allocator cpu\n",
                host_oom, Blame::own},
        LogCase{"TensorFlowSomewhere", "ResourceExhaustedError: failed to allocate memory\n",
                FailureClass::exit, Blame::own},
        LogCase{"Triton",
                "triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: "
                "102400, Hardware limit: 101376. Reducing block sizes may help.\n",
                FailureClass::exit, Blame::code_bug},
        LogCase{"Nothing", "Traceback\nValueError: bad learning rate\n", FailureClass::exit,
                Blame::own},
        LogCase{"Empty", "", FailureClass::exit, Blame::own}),
    [](const auto& tested) { return tested.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Bugs, Signatures,
    ::testing::Values(
        LogCase{"IllegalAccess",
                "RuntimeError: CUDA error: an illegal memory access was encountered\n",
                FailureClass::exit, Blame::code_bug},
        LogCase{"Assert", "torch.AcceleratorError: CUDA error: device-side assert triggered\n",
                FailureClass::exit, Blame::code_bug},
        LogCase{"Misaligned", "RuntimeError: CUDA error: misaligned address\n", FailureClass::exit,
                Blame::code_bug},
        LogCase{"LaunchFailure", "CUDA error: unspecified launch failure\n", FailureClass::exit,
                Blame::code_bug},
        LogCase{"NoKernel",
                "CUDA error: no kernel image is available for execution on the device\n",
                FailureClass::exit, Blame::code_bug},
        LogCase{"AssertThenCublas",
                "CUDA error: device-side assert triggered\n"
                "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`\n",
                FailureClass::exit, Blame::code_bug}),
    [](const auto& tested) { return tested.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Hardware, Signatures,
    ::testing::Values(
        LogCase{"Ecc", "RuntimeError: CUDA error: uncorrectable ECC error encountered\n", gpu_lost,
                Blame::hardware},
        LogCase{"Lost", "Unable to determine the device handle for GPU: GPU is lost.\n", gpu_lost,
                Blame::hardware},
        LogCase{"Bus",
                "NVRM: Xid (PCI:0000:05:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen "
                "off the bus.\n",
                gpu_lost, Blame::hardware},
        LogCase{"NoDevice", "CUDA error: no CUDA-capable device is detected\n", gpu_lost,
                Blame::hardware}),
    [](const auto& tested) { return tested.param.name; });

INSTANTIATE_TEST_SUITE_P(
    HostMemory, Signatures,
    ::testing::Values(
        LogCase{"Kernel", "[123.4] Out of memory: Killed process 812 (python)\n", host_oom,
                Blame::own},
        LogCase{"Cgroup",
                "Memory cgroup out of memory: Killed process 812 (python) total-vm:9999kB\n",
                host_oom, Blame::own},
        LogCase{"Constraint", "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null)\n", host_oom,
                Blame::own},
        LogCase{"DataLoader",
                "RuntimeError: DataLoader worker (pid 812) is killed by signal: Killed.\n",
                host_oom, Blame::own},
        LogCase{"Slurm",
                "slurmstepd: error: Detected 1 oom_kill event in StepId=42.0. Some of the step "
                "tasks have been OOM Killed.\n",
                host_oom, Blame::own},
        LogCase{"Ray", "ray.exceptions.OutOfMemoryError: Task was killed\n", host_oom, Blame::own}),
    [](const auto& tested) { return tested.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Aftermath, Signatures,
    ::testing::Values(
        LogCase{"UnhandledCuda", "ncclUnhandledCudaError: NCCL: unhandled cuda error\n",
                FailureClass::exit, Blame::own},
        LogCase{"UnhandledSystem", "NCCL error: unhandled system error\n", FailureClass::exit,
                Blame::own},
        LogCase{"Internal", "internal error - please report this issue to the NCCL developers\n",
                FailureClass::exit, Blame::own},
        LogCase{"Remote", "remote process exited or there was a network error\n",
                FailureClass::exit, Blame::own},
        LogCase{"RemoteError", "ncclRemoteError: A call failed\n", FailureClass::exit, Blame::own},
        LogCase{"Watchdog",
                "[Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=5) ran "
                "for 600081 milliseconds before timing out.\n",
                FailureClass::exit, Blame::own},
        LogCase{"OfAnOutOfMemory",
                std::string(kTorch) +
                    "[Rank 1] Watchdog caught collective operation timeout: WorkNCCL\n",
                gpu_oom, Blame::own}),
    [](const auto& tested) { return tested.param.name; });

INSTANTIATE_TEST_SUITE_P(
    LastWins, Signatures,
    ::testing::Values(
        LogCase{"BugAfterMemory",
                std::string(kTorch) + "smaller batch\nCUDA error: device-side assert triggered\n",
                FailureClass::exit, Blame::code_bug},
        LogCase{"MemoryAfterBug", std::string("warning: misaligned address\n") + kTorch, gpu_oom,
                Blame::own},
        LogCase{"OwnAfterNeighbour", std::string(kTorchCrowded) + kTorch, gpu_oom, Blame::own},
        LogCase{"NeighbourAfterOwn", std::string(kTorch) + kTorchCrowded, gpu_oom,
                Blame::neighbour},
        LogCase{"AnyCase", "RUNTIMEERROR: CUDA OUT OF MEMORY\n", gpu_oom, Blame::own}),
    [](const auto& tested) { return tested.param.name; });

TEST(Figures, OfTorchAreRead) {
  Evidence evidence;
  evidence.log_end = kTorch;
  const Finding finding = classify(exited(1), evidence);
  ASSERT_TRUE(finding.figures);
  EXPECT_EQ(*finding.figures, (MemoryFigures{2 * kGiB, 24 * kGiB, kGiB, 45 * kGiB / 2, 0, true}));
  EXPECT_EQ(finding.needed(), 49 * kGiB / 2);
  EXPECT_EQ(finding.what,
            "out of GPU memory: asked for 2 GiB more with 22.5 GiB of 24 GiB in use by itself");
}

TEST(Figures, OfOthersAreAddedUp) {
  const MemoryFigures figures = read_figures(
      "tried to allocate 20.00 mib. gpu 0 has a total capacity of 79.32 gib of which 4.50 mib is "
      "free. process 32777 has 70.00 gib memory in use. process 8 has 6.00 gib memory in use.");
  EXPECT_EQ(figures.tried, 20 * kMiB);
  EXPECT_EQ(figures.others, 76 * kGiB);
  EXPECT_FALSE(figures.own);
}

TEST(Figures, OfNoUseAreNotInvented) {
  EXPECT_EQ(read_figures("cuda out of memory. tried to allocate a lot"), MemoryFigures{});
  EXPECT_EQ(read_figures("tried to allocate 99999999999999999999999.00 tib").tried, std::nullopt);
  EXPECT_EQ(read_figures("(/ free memory on device desired gpu memory utilization ("),
            MemoryFigures{});
}

TEST(Figures, WhatOtherJobsWerePromisedIsNotTheJobsOwn) {
  Evidence evidence;
  evidence.log_end =
      "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 24.00 GiB of "
      "which 1.00 GiB is free.\n";
  evidence.claim = 8 * kGiB;
  evidence.company = 0;
  evidence.fellows = 14 * kGiB;
  EXPECT_EQ(classify(exited(1), evidence).needed(), 11 * kGiB);
}

struct BlameCase {
  const char* name;
  std::string log;
  Bytes claim;
  std::optional<Bytes> peak;
  std::optional<Bytes> intruders;
  Blame blame;
  std::optional<Bytes> company = {};
  Bytes fellows = 0;
};

void PrintTo(const BlameCase& c, std::ostream* out) {
  *out << c.name;
}

class OutOfMemory : public ::testing::TestWithParam<BlameCase> {};

TEST_P(OutOfMemory, IsBlamedOnTheRightOne) {
  Evidence evidence;
  evidence.log_end = GetParam().log;
  evidence.uses_gpus = true;
  evidence.card = 24 * kGiB;
  evidence.claim = GetParam().claim;
  evidence.peak = GetParam().peak;
  evidence.intruders = GetParam().intruders;
  evidence.company = GetParam().company;
  evidence.fellows = GetParam().fellows;
  EXPECT_EQ(to_string(classify(exited(1), evidence).blame), to_string(GetParam().blame));
}

constexpr const char* kOldTorch =
    "CUDA out of memory. Tried to allocate 1.00 GiB (GPU 0; 23.69 GiB total capacity; 21.50 GiB "
    "already allocated; 0.19 GiB free; 22.00 GiB reserved in total by PyTorch)\n";
constexpr const char* kOldTorchGap =
    "CUDA out of memory. Tried to allocate 1.00 GiB (GPU 0; 23.69 GiB total capacity; 11.50 GiB "
    "already allocated; 0.19 GiB free; 12.00 GiB reserved in total by PyTorch)\n";
constexpr const char* kPlain = "CUDA error: out of memory\n";
constexpr const char* kJax =
    "jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate "
    "3000000000 bytes.\n";

INSTANTIATE_TEST_SUITE_P(
    Tells, OutOfMemory,
    ::testing::Values(
        BlameCase{"BeyondItsClaimAmongOthers", kTorchCrowded, 6 * kGiB, {}, {}, Blame::own},
        BlameCase{"WithinItsClaimAmongOthers", kTorchCrowded, 8 * kGiB, {}, {}, Blame::neighbour},
        BlameCase{"WithAWholeCardAmongOthers", kTorchCrowded, 0, {}, {}, Blame::neighbour},
        BlameCase{"WithAWholeCardAndTooBigForIt", kTorch, 0, {}, {}, Blame::own},
        BlameCase{"WithANameForWhatTheDriverNeverShowed", kTorchCrowded, 0, {}, 0, Blame::own, 0},
        BlameCase{"WithANameForWhatTheDriverShowed",
                  kTorchCrowded,
                  0,
                  {},
                  18 * kGiB,
                  Blame::neighbour,
                  18 * kGiB},
        BlameCase{"WithAGapThatItsLibrariesExplain", kOldTorch, 0, {}, {}, Blame::own},
        BlameCase{"WithAGapAndADesktopTooSmallToMatter",
                  kOldTorchGap,
                  0,
                  {},
                  300 * kMiB,
                  Blame::own,
                  300 * kMiB},
        BlameCase{"WithAGapThatTheDriverExplains",
                  kOldTorchGap,
                  0,
                  {},
                  10 * kGiB,
                  Blame::neighbour,
                  10 * kGiB},
        BlameCase{"WithALargeGapAndNoDriver", kOldTorchGap, 0, {}, {}, Blame::neighbour},
        BlameCase{"WithoutNumbersAndAlone", kPlain, 0, 20 * kGiB, 0, Blame::own},
        BlameCase{"WithoutNumbersAndAStranger", kPlain, 0, 2 * kGiB, 20 * kGiB, Blame::neighbour},
        BlameCase{"WithoutNumbersAndASmallStranger", kPlain, 0, 22 * kGiB, 600 * kMiB, Blame::own},
        BlameCase{"WithoutNumbersBeyondItsClaim", kPlain, 4 * kGiB, 5 * kGiB, 10 * kGiB,
                  Blame::own},
        BlameCase{"WithoutNumbersWithinItsClaim", kPlain, 8 * kGiB, 5 * kGiB, 10 * kGiB,
                  Blame::neighbour},
        BlameCase{"WithoutNumbersAndNothingSeen", kPlain, 0, {}, {}, Blame::own},
        BlameCase{"NotSayingWhatWasFreeBesideASmallStranger", kJax, 0, 23 * kGiB, 100 * kMiB,
                  Blame::own, 100 * kMiB},
        BlameCase{"NotSayingWhatWasFreeBesideALargeStranger", kJax, 0, 9 * kGiB, 14 * kGiB,
                  Blame::neighbour, 14 * kGiB},
        BlameCase{"NotSayingWhatWasFreeOfAShareBesideASmallStranger", kJax, 8 * kGiB, 6 * kGiB,
                  100 * kMiB, Blame::own, 100 * kMiB},
        BlameCase{"NotSayingWhatWasFreeOfAShareThatOthersTook", kJax, 8 * kGiB, 6 * kGiB, 17 * kGiB,
                  Blame::neighbour, 17 * kGiB},
        BlameCase{"NotSayingWhatWasFreeOfAShareThatOthersTookTogether", kJax, 8 * kGiB, 6 * kGiB,
                  kGiB, Blame::neighbour, kGiB, 16 * kGiB},
        BlameCase{"NotSayingWhatWasFreeBesideJobsWithinTheirClaims", kJax, 8 * kGiB, 6 * kGiB, 0,
                  Blame::own, 0, 16 * kGiB},
        BlameCase{"BesideJobsThatAMessageNamesWithinTheirClaims",
                  kTorchCrowded,
                  8 * kGiB,
                  {},
                  100 * kMiB,
                  Blame::own,
                  100 * kMiB,
                  18 * kGiB}),
    [](const auto& tested) { return tested.param.name; });

TEST(Classify, KilledByKillAloneIsNoProof) {
  const Finding finding = classify(signalled(SIGKILL), {});
  EXPECT_EQ(finding.failure, FailureClass::exit);
  EXPECT_NE(finding.what.find("not known"), std::string::npos);
  EXPECT_EQ(classify(exited(137), {}).failure, FailureClass::exit);
}

TEST(Classify, KilledByKillWithTheKernelsWordIsHostMemory) {
  Evidence evidence;
  evidence.log_end = "Out of memory: Killed process 12 (python)\n";
  EXPECT_EQ(classify(signalled(SIGKILL), evidence).failure, FailureClass::host_oom);
}

TEST(Classify, WhatTheSupervisorKnowsStands) {
  for (const FailureClass told :
       {host_oom, timeout, cannot_start, node_lost, gpu_lost, preempted}) {
    Verdict verdict = exited(1);
    verdict.failure = told;
    Evidence evidence;
    evidence.log_end = kTorch;
    EXPECT_EQ(classify(verdict, evidence).failure, told);
    EXPECT_EQ(classify(verdict, evidence).what, "exited");
  }
}

TEST(Classify, ASickCardExplainsEverything) {
  Evidence evidence;
  evidence.log_end = "CUDA error: unspecified launch failure\n";
  evidence.uses_gpus = true;
  evidence.card_trouble = "GPU 3: the driver reported the hardware error XID 79";
  const Finding finding = classify(exited(1), evidence);
  EXPECT_EQ(finding.failure, gpu_lost);
  EXPECT_EQ(finding.blame, Blame::hardware);
}

TEST(Classify, ApplicationErrorsOfTheDriverAreTheJobs) {
  Evidence evidence;
  evidence.xids = {31, 43};
  const Finding finding = classify(exited(1), evidence);
  EXPECT_EQ(finding.failure, FailureClass::exit);
  EXPECT_EQ(finding.blame, Blame::code_bug);
  EXPECT_NE(finding.what.find("XID 31, 43"), std::string::npos) << finding.what;
}

TEST(Classify, WhoGivesWayIsNotToBlame) {
  Evidence evidence;
  evidence.log_end = kTorch;
  evidence.gives_way = GivesWay::preempted;
  EXPECT_EQ(classify(exited(1), evidence).failure, preempted);
  evidence.gives_way = GivesWay::stranger;
  EXPECT_EQ(classify(exited(1), evidence).failure, preempted);
  evidence.gives_way = GivesWay::gpu_lost;
  EXPECT_EQ(classify(exited(1), evidence).failure, gpu_lost);
}

TEST(Classify, AJobWithoutCardsDrainsNone) {
  Evidence evidence;
  evidence.log_end = "uncorrectable ECC error encountered\n";
  const Finding finding = classify(exited(1), evidence);
  EXPECT_EQ(finding.failure, FailureClass::exit);
  EXPECT_FALSE(finding.drain);
}

TEST(Classify, NotFindingADeviceDoesNotDrainOne) {
  Evidence evidence;
  evidence.log_end = "no CUDA-capable device is detected\n";
  evidence.uses_gpus = true;
  EXPECT_FALSE(classify(exited(1), evidence).drain);
  evidence.log_end = "uncorrectable ECC error encountered\n";
  EXPECT_TRUE(classify(exited(1), evidence).drain);
}

TEST(Classify, EverySignatureIsInLowerCaseAndFindsItself) {
  for (const Signature& signature : signatures()) {
    const auto found =
        find_signature(std::string(signature.text) + " " + std::string(signature.only_with));
    ASSERT_TRUE(found) << signature.text;
    EXPECT_EQ(found->signature->symptom, signature.symptom) << signature.text;
  }
}

}  // namespace
}  // namespace berth
