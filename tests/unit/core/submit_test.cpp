// What a submission may ask, what it is told when it may not, and what it leaves behind.

#include <gtest/gtest.h>

#include "unit/core/world.hpp"

namespace berth::testing {
namespace {

/// A submission that is refused: the code, a part of the message, and nothing else.
struct Refusal {
  const char* name;
  std::function<event::Submit(World&)> given;
  ErrorCode code;
  std::string says;
};

void PrintTo(const Refusal& refusal, std::ostream* out) {
  *out << refusal.name;
}

class SubmitRefusal : public ::testing::TestWithParam<Refusal> {};

TEST_P(SubmitRefusal, NamesTheThingAndChangesNothing) {
  World world;
  world.see_idle(1);
  world.submit({a_job(), a_cpu_job().queue("other")});
  world.decide();
  event::Submit submit = GetParam().given(world);
  const std::string before = fingerprint(world.state);
  const auto answer = world.apply(std::move(submit));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, GetParam().code);
  EXPECT_NE(answer.error().message.find(GetParam().says), std::string::npos)
      << answer.error().message;
  EXPECT_TRUE(world.last.changes.empty());
  EXPECT_TRUE(world.last.effects.empty());
  EXPECT_EQ(fingerprint(world.state), before);
}

event::Submit of(std::vector<JobSpec> jobs) {
  event::Submit submit;
  submit.jobs = std::move(jobs);
  // A refusal must leave these alone too.
  submit.queues = {{"new", 3}};
  submit.resources = {{"disk", 4}};
  return submit;
}

const std::vector<Refusal> kRefusals = {
    {"WithoutJobs", [](World&) { return of({}); }, ErrorCode::invalid, "no jobs"},
    {"WithoutACommand",
     [](World&) { return of({a_job(), a_job().named("empty").without_command()}); },
     ErrorCode::invalid, "job 'empty' has no command"},
    {"WithAnEmptyRange", [](World&) { return of({a_job().gpus(3, 2)}); }, ErrorCode::invalid,
     "the job: gpus 3..2 is empty"},
    {"WithAShareOfNothing", [](World&) { return of({a_job().memory(0)}); }, ErrorCode::invalid,
     "gpu_memory must be more than 0"},
    {"WithoutAQueue", [](World&) { return of({a_job().queue("")}); }, ErrorCode::invalid,
     "names no queue"},
    {"WithANamelessQueue",
     [](World&) {
       auto submit = of({a_job()});
       submit.queues.push_back({"", 1});
       return submit;
     },
     ErrorCode::invalid, "a queue needs a name"},
    {"WithAResourceNobodyHasDeclared", [](World&) { return of({a_job().resource("licence", 1)}); },
     ErrorCode::invalid, "how many 'licence' there are"},
    {"WithMoreOfAResourceThanThereIs", [](World&) { return of({a_job().resource("disk", 5)}); },
     ErrorCode::invalid, "asks for 5 'disk', there are only 4"},
    {"FollowingAJobThatNeverWas", [](World&) { return of({a_job().after(99)}); },
     ErrorCode::not_found, "there is no job 99 to follow"},
    {"FollowingAJobThatHasFailed",
     [](World&) {
       auto submit = of({a_job().named("next").after(77)});
       submit.finished_dependencies[JobId{77}] = JobState::failed;
       return submit;
     },
     ErrorCode::conflict, "job 'next' is to follow job 77, which has failed"},
    {"FollowingAJobThatWasKilled",
     [](World&) {
       auto submit = of({a_job().after(77)});
       submit.finished_dependencies[JobId{77}] = JobState::killed;
       return submit;
     },
     ErrorCode::conflict, "which has been ended early"},
    {"FollowingItself", [](World&) { return of({a_job().after_index(0)}); }, ErrorCode::invalid,
     "after_index 0"},
    {"FollowingAPositionThatIsNotThere", [](World&) { return of({a_job().after_index(1)}); },
     ErrorCode::invalid, "after_index 1"},
    {"FollowingEachOther",
     [](World&) {
       return of({a_job().named("a").after_index(1), a_job().named("b").after_index(0)});
     },
     ErrorCode::invalid, "in a circle"},
    {"FollowingACircleNamesAMemberOfIt",
     [](World&) {
       return of({a_job().named("outside").after_index(1), a_job().named("in").after_index(2),
                  a_job().named("in").after_index(3), a_job().named("in").after_index(1)});
     },
     ErrorCode::invalid, "'in' is part of it"},
    {"WhenTheDiskIsFull",
     [](World& w) {
       w.fill_disk();
       return of({a_job()});
     },
     ErrorCode::no_space, "/var has 0 B left"},
};

INSTANTIATE_TEST_SUITE_P(Submissions, SubmitRefusal, ::testing::ValuesIn(kRefusals),
                         [](const auto& row) { return std::string(row.param.name); });

TEST(Submit, GivesConsecutiveIdsAndOneBatch) {
  World w;
  const Submitted first = w.submit(copies(3, a_cpu_job()));
  EXPECT_EQ(first, (Submitted{BatchId{1}, JobId{1}, 3}));
  const Submitted second = w.submit(copies(2, a_cpu_job()));
  EXPECT_EQ(second, (Submitted{BatchId{2}, JobId{4}, 2}));
}

TEST(Submit, MakesNoBatchForASingleJob) {
  World w;
  EXPECT_EQ(w.submit({a_cpu_job()}).batch, BatchId{});
  EXPECT_TRUE(w.state.batches.empty());
}

TEST(Submit, MakesABatchForASingleJobThatNamesOne) {
  World w;
  event::Submit submit;
  submit.batch_name = "sweep";
  submit.jobs = {a_cpu_job()};
  EXPECT_EQ(w.submit(std::move(submit)).batch, BatchId{1});
}

TEST(Submit, AfterAJobThatHasSucceededDoesNotWait) {
  World w;
  w.submit({a_cpu_job()});
  w.decide();
  w.succeed(1);
  event::Submit submit;
  submit.jobs = {a_cpu_job().after(1)};
  submit.finished_dependencies[JobId{1}] = JobState::succeeded;
  w.submit(std::move(submit));
  EXPECT_EQ(w.decide(), "2:-");
}

TEST(Submit, AfterAJobOfAnEarlierSubmissionWaitsForIt) {
  World w;
  w.submit({a_cpu_job()});
  w.decide();
  w.submit({a_cpu_job().after(1)});
  EXPECT_EQ(w.decide(), "");
  w.succeed(1);
  EXPECT_EQ(w.decide(), "2:-");
}

TEST(Submit, RemembersTheClientKeyWithItsAnswer) {
  World w;
  event::Submit submit;
  submit.client_key = "k-1";
  submit.owner = 1000;
  submit.jobs = copies(2, a_cpu_job());
  w.submit(std::move(submit));
  const auto* key = std::get_if<change::ClientKey>(&w.last.changes.back());
  ASSERT_NE(key, nullptr);
  EXPECT_EQ(key->key, "k-1");
  EXPECT_EQ(key->owner, 1000U);
  EXPECT_EQ(key->first, JobId{1});
  EXPECT_EQ(key->count, 2U);
}

TEST(Submit, WritesAQueueOnlyWhenItIsNewOrChanges) {
  World w;
  const auto queues_written = [&w] {
    return std::ranges::count_if(w.last.changes, [](const Change& change) {
      return std::holds_alternative<change::QueuePut>(change);
    });
  };
  w.submit({a_cpu_job()});
  EXPECT_EQ(queues_written(), 1);
  w.submit({a_cpu_job()});
  EXPECT_EQ(queues_written(), 0);
  w.set_queue("default", 4);
  w.submit({a_cpu_job()});
  EXPECT_EQ(queues_written(), 1);
  w.submit({a_cpu_job()});
  EXPECT_EQ(queues_written(), 0);
}

}  // namespace
}  // namespace berth::testing
