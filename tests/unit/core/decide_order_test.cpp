// Who goes first, and who waits for whom: priorities, queues, batches, limits, host resources.

#include <gtest/gtest.h>

#include "unit/core/world.hpp"

namespace berth::testing {
namespace {

class DecideOrder : public ::testing::TestWithParam<Case> {};

TEST_P(DecideOrder, Holds) {
  World world;
  GetParam().given(world);
  EXPECT_EQ(world.decide(), GetParam().starts);
  EXPECT_EQ(world.waits(), GetParam().waits);
}

event::Submit a_batch(std::uint32_t max_concurrent, std::vector<JobSpec> jobs) {
  event::Submit submit;
  submit.batch_name = "sweep";
  submit.batch_max_concurrent = max_concurrent;
  submit.jobs = std::move(jobs);
  return submit;
}

const std::vector<Case> kPriorities = {
    {"JobsStartInTheOrderOfSubmission",
     [](World& w) {
       w.see_idle(2);
       w.submit(copies(3, a_job()));
     },
     "1:0 2:1", "3:gpu(claimed,claimed)"},
    {"ALowerNumberGoesFirst",
     [](World& w) {
       w.see_idle(1);
       w.submit({a_job(), a_job().priority(1)});
     },
     "2:0", "1:gpu(claimed)"},
    {"ANegativePriorityGoesBeforeZero",
     [](World& w) {
       w.see_idle(1);
       w.submit({a_job().priority(0), a_job().priority(-3)});
     },
     "2:0", "1:gpu(claimed)"},
    {"EqualPrioritiesFallBackToSubmissionAcrossQueues",
     [](World& w) {
       w.see_idle(2);
       w.submit({a_job().queue("b"), a_job().queue("a"), a_job().queue("b")});
     },
     "1:0 2:1", "3:gpu(claimed,claimed)"},
    {"PriorityCountsAcrossShapesAndQueues",
     [](World& w) {
       w.see_idle(1);
       w.submit({a_job().queue("a"), a_job().memory(kGiB).queue("b").priority(4)});
     },
     "2:0", "1:gpu(claimed)"},
    {"AJobThatDoesNotFitDoesNotBlockALaterOneThatDoes",
     [](World& w) {
       w.see_idle(1);
       w.submit({a_job().gpus(2), a_job()});
     },
     "2:0", "1:no_gpu"},
    {"AJobOfHigherPriorityThatDoesNotFitDoesNotBlockALowerOne",
     [](World& w) {
       w.see_idle(1);
       w.submit({a_job(), a_job().memory(48 * kGiB).priority(1)});
     },
     "1:0", "2:gpu(too_small)"},
    {"AShapeThatDoesNotFitIsSkippedButItsSmallerSiblingStarts",
     [](World& w) {
       w.see({a_gpu(0).free(10 * kGiB)});
       w.submit({a_job().memory(12 * kGiB), a_job().memory(12 * kGiB), a_job().memory(8 * kGiB)});
     },
     "3:0", "1:gpu(memory) 2:gpu(memory)"},
    {"ALateSubmissionOfHigherPriorityOvertakes",
     [](World& w) {
       w.see_idle(1);
       w.submit(copies(3, a_job()));
       w.decide();
       w.submit({a_job().priority(1)});
       w.succeed(1);
       w.wait(Millis{10});
       w.see_again();
     },
     "4:0", "2:gpu(claimed) 3:gpu(claimed)"},
    {"NothingHappensWithoutJobs", [](World& w) { w.see_idle(1); }, "", ""},
};

const std::vector<Case> kQueues = {
    {"AQueueRunsAtMostItsLimit",
     [](World& w) {
       w.set_queue("q", 2);
       w.submit(copies(4, a_cpu_job().queue("q")));
     },
     "1:- 2:-", "3:queue_limit 4:queue_limit"},
    {"AQueueWithoutLimitRunsEverything",
     [](World& w) { w.submit(copies(4, a_cpu_job().queue("q"))); }, "1:- 2:- 3:- 4:-", ""},
    {"AFullQueueDoesNotHoldUpAnother",
     [](World& w) {
       w.set_queue("q", 2);
       w.submit({a_cpu_job().queue("q"), a_cpu_job().queue("q"), a_cpu_job().queue("q"),
                 a_cpu_job().queue("other")});
     },
     "1:- 2:- 4:-", "3:queue_limit"},
    {"AQueueLimitCountsAllShapesTogether",
     [](World& w) {
       w.see_idle(2);
       w.set_queue("q", 2);
       w.submit({a_job().queue("q"), a_cpu_job().queue("q"), a_job().memory(kGiB).queue("q")});
     },
     "1:0 2:-", "3:queue_limit"},
    {"AQueueOfTwoSkipsWhatDoesNotFit",
     [](World& w) {
       w.see_idle(1);
       w.set_queue("q", 2);
       w.submit({a_job().gpus(2).queue("q"), a_job().queue("q"), a_cpu_job().queue("q")});
     },
     "2:0 3:-", "1:queue_limit+no_gpu"},
    {"ASerialQueueRunsOneAtATimeInOrder",
     [](World& w) {
       w.set_queue("s", 1);
       w.submit(copies(3, a_cpu_job().queue("s")));
     },
     "1:-", "2:queue_limit 3:queue_limit"},
    {"ASerialQueueGoesOnWhenItsJobHasEnded",
     [](World& w) {
       w.set_queue("s", 1);
       w.submit(copies(3, a_cpu_job().queue("s")));
       w.decide();
       w.succeed(1);
     },
     "2:-", "3:queue_limit"},
    {"TheBlockedHeadOfASerialQueueHoldsUpItsFollowers",
     [](World& w) {
       w.see_idle(1);
       w.set_queue("s", 1);
       w.submit({a_job().gpus(2).queue("s"), a_cpu_job().queue("s")});
     },
     "", "1:no_gpu 2:queue_order"},
    {"TheBlockedHeadOfASerialQueueDoesNotHoldUpOtherQueues",
     [](World& w) {
       w.see_idle(1);
       w.set_queue("s", 1);
       w.submit({a_job().gpus(2).queue("s"), a_cpu_job().queue("s"), a_job()});
     },
     "3:0", "1:no_gpu 2:queue_order"},
    {"PriorityReordersASerialQueue",
     [](World& w) {
       w.set_queue("s", 1);
       w.submit({a_cpu_job().queue("s"), a_cpu_job().queue("s").priority(1)});
     },
     "2:-", "1:queue_limit"},
    {"KillingTheBlockedHeadOfASerialQueueLetsTheNextGo",
     [](World& w) {
       w.see_idle(1);
       w.set_queue("s", 1);
       w.submit({a_job().gpus(2).queue("s"), a_cpu_job().queue("s")});
       w.decide();
       w.kill({1});
     },
     "2:-", ""},
    {"AFailedJobOfASerialQueueIsRetriedBeforeItsFollowers",
     [](World& w) {
       w.set_queue("s", 1);
       w.submit({a_cpu_job().queue("s").retries(1), a_cpu_job().queue("s")});
       w.decide();
       w.fail(1);
     },
     "1:-", "2:queue_limit"},
    {"AJobThatWaitsForADependencyDoesNotHoldUpItsSerialQueue",
     [](World& w) {
       w.set_queue("s", 1);
       w.submit({a_cpu_job().queue("s").after_index(1), a_cpu_job().queue("s")});
     },
     "2:-", "1:dependency+queue_limit"},
    {"RaisingALimitStartsMore",
     [](World& w) {
       w.set_queue("q", 1);
       w.submit(copies(4, a_cpu_job().queue("q")));
       w.decide();
       w.set_queue("q", 3);
       w.submit({a_cpu_job().queue("other")});
     },
     "2:- 3:- 5:-", "4:queue_limit"},
    {"LiftingALimitStartsEverything",
     [](World& w) {
       w.set_queue("q", 1);
       w.submit(copies(3, a_cpu_job().queue("q")));
       w.decide();
       w.set_queue("q", 0);
       w.submit({a_cpu_job().queue("other")});
     },
     "2:- 3:- 4:-", ""},
    {"LoweringALimitLetsRunningJobsFinishFirst",
     [](World& w) {
       w.set_queue("q", 3);
       w.submit(copies(4, a_cpu_job().queue("q")));
       w.decide();
       w.set_queue("q", 2);
       w.submit({a_cpu_job().queue("other")});
       w.succeed(1);
     },
     "5:-", "4:queue_limit"},
    {"ALoweredLimitIsReachedFromAbove",
     [](World& w) {
       w.set_queue("q", 3);
       w.submit(copies(4, a_cpu_job().queue("q")));
       w.decide();
       w.set_queue("q", 1);
       w.submit({a_cpu_job().queue("other")});
       w.decide();
       w.succeed(1);
       w.succeed(2);
       w.succeed(3);
     },
     "4:-", ""},
};

const std::vector<Case> kLimits = {
    {"ABatchRunsAtMostItsMaxConcurrent",
     [](World& w) { w.submit(a_batch(2, copies(4, a_cpu_job()))); }, "1:- 2:-",
     "3:batch_limit 4:batch_limit"},
    {"AFullBatchDoesNotHoldUpAnotherInTheSameQueue",
     [](World& w) {
       w.submit(a_batch(1, copies(2, a_cpu_job())));
       w.submit(a_batch(0, copies(2, a_cpu_job())));
     },
     "1:- 3:- 4:-", "2:batch_limit"},
    {"ABatchLimitHoldsAcrossQueues",
     [](World& w) { w.submit(a_batch(1, {a_cpu_job().queue("a"), a_cpu_job().queue("b")})); },
     "1:-", "2:batch_limit"},
    {"ABatchGoesOnWhenOneOfItsJobsHasEnded",
     [](World& w) {
       w.submit(a_batch(1, copies(3, a_cpu_job())));
       w.decide();
       w.fail(1);
     },
     "2:-", "3:batch_limit"},
    {"AFullBatchBlocksTheSerialQueueWhoseHeadItOwns",
     [](World& w) {
       w.set_queue("s", 1);
       w.submit({a_cpu_job().queue("s")});
       w.submit(a_batch(1, {a_cpu_job().queue("other"), a_cpu_job().queue("s")}));
       w.submit({a_cpu_job().queue("s")});
       w.decide();
       w.succeed(1);
     },
     "", "3:batch_limit 4:queue_order"},
    {"TheInstanceRunsAtMostMaxConcurrent",
     [](World& w) {
       w.state.rules.max_concurrent = 2;
       w.submit(copies(3, a_cpu_job()));
     },
     "1:- 2:-", "3:max_concurrent"},
    {"MaxConcurrentCountsWhatRunsAlready",
     [](World& w) {
       w.state.rules.max_concurrent = 2;
       w.submit({a_cpu_job()});
       w.decide();
       w.submit(copies(2, a_cpu_job().queue("other")));
     },
     "2:-", "3:max_concurrent"},
    {"AFreedSlotOfTheInstanceGoesToTheFirstInOrder",
     [](World& w) {
       w.state.rules.max_concurrent = 1;
       w.submit({a_cpu_job(), a_cpu_job(), a_cpu_job().priority(1)});
       w.decide();
       w.succeed(3);
     },
     "1:-", "2:max_concurrent"},
    {"EveryLimitInTheWayIsNamed",
     [](World& w) {
       w.state.rules.max_concurrent = 1;
       w.set_queue("q", 1);
       w.submit({a_cpu_job().queue("q"), a_job().queue("q").after_index(0)});
       w.see({});
     },
     "1:-", "2:dependency+max_concurrent+queue_limit+no_gpu"},
};

const std::vector<Case> kHost = {
    {"CpusAreCounted",
     [](World& w) {
       w.state.host = {8, 0};
       w.submit(copies(3, a_cpu_job().cpus(4)));
     },
     "1:- 2:-", "3:cpus"},
    {"AJobWithoutCpusIsNotCounted",
     [](World& w) {
       w.state.host = {4, 0};
       w.submit({a_cpu_job().cpus(4), a_cpu_job()});
     },
     "1:- 2:-", ""},
    {"CpusOfAnUnknownHostAreNotLimited",
     [](World& w) { w.submit(copies(2, a_cpu_job().cpus(1000))); }, "1:- 2:-", ""},
    {"CpusComeBackWhenAJobEnds",
     [](World& w) {
       w.state.host = {4, 0};
       w.submit(copies(2, a_cpu_job().cpus(3)));
       w.decide();
       w.succeed(1);
     },
     "2:-", ""},
    {"ALargerHostStartsMore",
     [](World& w) {
       w.state.host = {4, 0};
       w.submit(copies(2, a_cpu_job().cpus(4)));
       w.decide();
       ASSERT_TRUE(w.apply(event::SetHost{{8, 0}}));
     },
     "2:-", ""},
    {"HostMemoryIsCountedToTheLastByte",
     [](World& w) {
       w.state.host = {0, 64 * kGiB};
       w.submit({a_cpu_job().host_memory(63 * kGiB), a_cpu_job().host_memory(kGiB + 1),
                 a_cpu_job().host_memory(kGiB)});
     },
     "1:- 3:-", "2:memory"},
    {"NamedResourcesAreCounted",
     [](World& w) {
       w.set_resource("licence", 3);
       w.submit(copies(3, a_cpu_job().resource("licence", 1).resource("licence", 2)));
     },
     "1:-", "2:resource 3:resource"},
    {"EachResourceIsCountedOnItsOwn",
     [](World& w) {
       w.set_resource("licence", 1);
       w.set_resource("port", 1);
       w.submit({a_cpu_job().resource("licence", 1), a_cpu_job().resource("port", 1),
                 a_cpu_job().resource("licence", 1).resource("port", 1)});
     },
     "1:- 2:-", "3:resource+resource"},
    {"AResourceComesBackWhenAJobIsRevoked",
     [](World& w) {
       w.set_resource("licence", 1);
       w.submit({a_cpu_job().resource("licence", 1).priority(9),
                 a_cpu_job().resource("licence", 1).after_index(0)});
       w.decide();
       w.submit({a_cpu_job().resource("licence", 1)});
       w.revoke(1);
     },
     "3:-", "1:resource 2:dependency+resource"},
    {"RaisingAResourceStartsMore",
     [](World& w) {
       w.set_resource("licence", 1);
       w.submit(copies(2, a_cpu_job().resource("licence", 1)));
       w.decide();
       w.set_resource("licence", 2);
       w.submit({a_cpu_job()});
     },
     "2:- 3:-", ""},
    {"ALoweredResourceBelowItsUseGivesNothing",
     [](World& w) {
       w.set_resource("licence", 2);
       w.submit(copies(3, a_cpu_job().resource("licence", 1)));
       w.decide();
       w.set_resource("licence", 1);
       w.submit({a_cpu_job()});
       w.succeed(1);
     },
     "4:-", "3:resource"},
    {"NothingStartsOnAFullDisk",
     [](World& w) {
       w.submit({a_cpu_job()});
       w.fill_disk();
     },
     "", "1:space"},
    {"WhatWaitedForTheDiskStartsWhenThereIsRoomAgain",
     [](World& w) {
       w.submit({a_cpu_job()});
       w.fill_disk();
       w.decide();
       w.fill_disk(false);
     },
     "1:-", ""},
};

std::string name_of(const ::testing::TestParamInfo<Case>& info) {
  return info.param.name;
}
INSTANTIATE_TEST_SUITE_P(Priorities, DecideOrder, ::testing::ValuesIn(kPriorities), name_of);
INSTANTIATE_TEST_SUITE_P(Queues, DecideOrder, ::testing::ValuesIn(kQueues), name_of);
INSTANTIATE_TEST_SUITE_P(Limits, DecideOrder, ::testing::ValuesIn(kLimits), name_of);
INSTANTIATE_TEST_SUITE_P(Host, DecideOrder, ::testing::ValuesIn(kHost), name_of);

}  // namespace
}  // namespace berth::testing
