// Submissions that arrive in parts, and work too long for one event.

#include <gtest/gtest.h>

#include "core/apply_context.hpp"
#include "unit/core/world.hpp"

namespace berth::testing {
namespace {

event::SubmitBegin begin(std::uint64_t count) {
  event::SubmitBegin event;
  event.client_key = "key";
  event.count = count;
  event.queues = {{"one", 1}};
  event.resources = {{"disk", 2}};
  return event;
}

class PartsTest : public ::testing::Test {
 protected:
  BatchId open(std::uint64_t count) {
    auto answer = world_.apply(begin(count));
    EXPECT_TRUE(answer);
    return std::get<Submitted>(*answer).batch;
  }
  Result<Answer> part(BatchId batch, std::vector<JobSpec> jobs) {
    return world_.apply(event::SubmitPart{batch, std::move(jobs), {}});
  }
  World world_;
};

TEST_F(PartsTest, NothingStartsBeforeTheEnd) {
  const BatchId batch = open(3);
  ASSERT_TRUE(part(batch, {a_cpu_job(), a_cpu_job()}));
  EXPECT_EQ(world_.decide(), "");
  EXPECT_EQ(world_.waits(), "1:submitting 2:submitting");
  EXPECT_EQ(explain(world_.state, *world_.state.job(JobId{1}), world_.now).front().text,
            "its batch is still being submitted, 2 of 3 so far");
  ASSERT_TRUE(part(batch, {a_cpu_job()}));
  EXPECT_EQ(world_.decide(), "");
  const auto answer = world_.apply(event::SubmitEnd{batch});
  ASSERT_TRUE(answer);
  EXPECT_EQ(std::get<Submitted>(*answer), (Submitted{batch, JobId{1}, 3}));
  EXPECT_EQ(world_.decide(), "1:- 2:- 3:-");
}

TEST_F(PartsTest, OthersGoOnMeanwhileEvenInASerialQueue) {
  world_.set_queue("one", 1);
  const BatchId batch = open(2);
  ASSERT_TRUE(part(batch, {a_cpu_job().queue("one").priority(1)}));
  world_.submit({a_cpu_job().queue("one")});
  EXPECT_EQ(world_.decide(), "3:-") << "a job that has not been submitted yet is in nobody's way";
  ASSERT_TRUE(part(batch, {a_cpu_job().queue("one")}));
  ASSERT_TRUE(world_.apply(event::SubmitEnd{batch}));
  world_.succeed(3);
  EXPECT_EQ(world_.decide(), "1:-");
}

TEST_F(PartsTest, LimitsAndTotalsCountFromTheEndOn) {
  const BatchId batch = open(1);
  EXPECT_TRUE(world_.state.rules.resources.empty());
  ASSERT_TRUE(part(batch, {a_cpu_job().resource("disk", 2)}));
  EXPECT_FALSE(world_.state.queue_names.contains("one"));
  ASSERT_TRUE(world_.apply(event::SubmitEnd{batch}));
  EXPECT_EQ(world_.state.rules.resources.at("disk"), 2U);
  EXPECT_EQ(world_.state.queues.at(world_.state.queue_names.at("one")).limit, 1U);
}

TEST_F(PartsTest, ANewSerialQueueKeepsItsOrderFromTheBeginning) {
  world_.rule("order", "random");
  const std::size_t count = kSlice * 2;
  const BatchId batch = open(count);
  ASSERT_TRUE(part(batch, copies(count, a_cpu_job().queue("one"))));
  ASSERT_TRUE(world_.apply(event::SubmitEnd{batch}));
  EXPECT_EQ(world_.decide(), "1:-");
  world_.succeed(1);
  EXPECT_EQ(world_.decide(), "2:-");
}

TEST_F(PartsTest, PartsMayFollowEachOtherInBothDirections) {
  const BatchId batch = open(3);
  ASSERT_TRUE(part(batch, {a_cpu_job().after_index(2)}));
  ASSERT_TRUE(part(batch, {a_cpu_job().after_index(0), a_cpu_job()}));
  ASSERT_TRUE(world_.apply(event::SubmitEnd{batch}));
  EXPECT_EQ(world_.decide(), "3:-");
  world_.succeed(3);
  EXPECT_EQ(world_.decide(), "1:-");
  world_.succeed(1);
  EXPECT_EQ(world_.decide(), "2:-");
}

TEST_F(PartsTest, WhoFollowsAJobCancelledOnItsWayInIsCancelledToo) {
  const BatchId batch = open(2);
  ASSERT_TRUE(part(batch, {a_cpu_job()}));
  EXPECT_EQ(world_.kill({1}).cancelled, std::vector{JobId{1}});
  ASSERT_TRUE(part(batch, {a_cpu_job().after_index(0)}));
  ASSERT_TRUE(world_.apply(event::SubmitEnd{batch}));
  EXPECT_TRUE(world_.state.jobs.empty());
  EXPECT_TRUE(world_.state.batches.empty());
  EXPECT_EQ(world_.ledger.job(JobId{2}).state, JobState::cancelled);
}

TEST_F(PartsTest, TooManyTooFewAndStrangersAreRefused) {
  const BatchId batch = open(1);
  const auto many = part(batch, {a_cpu_job(), a_cpu_job()});
  ASSERT_FALSE(many);
  EXPECT_NE(many.error().message.find("more jobs than the 1"), std::string::npos);
  const auto few = world_.apply(event::SubmitEnd{batch});
  ASSERT_FALSE(few);
  EXPECT_NE(few.error().message.find("only 0 of the 1"), std::string::npos);
  EXPECT_EQ(part(BatchId{7}, {a_cpu_job()}).error().code, ErrorCode::conflict);
  ASSERT_TRUE(part(batch, {a_cpu_job()}));
  const auto stranger = world_.try_submit({a_cpu_job().after(1)});
  ASSERT_FALSE(stranger);
  EXPECT_NE(stranger.error().message.find("still being submitted"), std::string::npos);
  EXPECT_EQ(world_.apply(begin(0)).error().code, ErrorCode::invalid);
}

TEST_F(PartsTest, AnAbandonedSubmissionLeavesNothing) {
  const std::size_t count = kSlice * 2 + 10;
  const BatchId batch = open(count + 5);
  ASSERT_TRUE(
      part(batch, copies(count, a_cpu_job().after_index(static_cast<std::uint32_t>(count)))));
  ASSERT_TRUE(part(batch, {a_cpu_job()}));
  ASSERT_TRUE(part(batch, {a_cpu_job().after_index(static_cast<std::uint32_t>(count + 3))}));
  ASSERT_TRUE(world_.apply(event::SubmitAbort{batch}));
  EXPECT_FALSE(world_.state.jobs.empty()) << "it should have been too much for one event";
  EXPECT_EQ(world_.go_on(), 2);
  EXPECT_TRUE(world_.state.jobs.empty());
  EXPECT_TRUE(world_.state.batches.empty());
  EXPECT_TRUE(world_.state.pending.empty());
  EXPECT_TRUE(world_.state.dependents.empty()) << "nobody waits for what never came";
  EXPECT_TRUE(world_.ledger.snapshot().open_batches.empty());
  EXPECT_EQ(world_.submit({a_cpu_job()}).first.value, count + 6) << "its ids are not used again";
}

TEST_F(PartsTest, ARestartTakesBackWhatHadArrived) {
  const BatchId batch = open(5);
  ASSERT_TRUE(part(batch, {a_cpu_job(), a_cpu_job()}));
  world_.submit({a_cpu_job()});
  world_.state = restore(world_.ledger.snapshot(), {}, {});
  EXPECT_EQ(world_.alive(), "6:queued");
  ASSERT_TRUE(world_.apply(event::Tick{}));
  EXPECT_FALSE(world_.state.continuing);
  EXPECT_TRUE(world_.ledger.snapshot().open_batches.empty());
  EXPECT_EQ(world_.ledger.snapshot().jobs.size(), 1U);
  EXPECT_EQ(world_.decide(), "6:-");
}

TEST_F(PartsTest, FollowersAreToldASliceAtATime) {
  const std::size_t count = kSlice * 3;
  world_.submit({a_cpu_job()});
  world_.decide();
  world_.submit(copies(count, a_cpu_job().after(1)));
  world_.fail(1);
  EXPECT_EQ(world_.effects(), "forget continue");
  EXPECT_EQ(world_.state.jobs.size(), count - kSlice);
  EXPECT_EQ(world_.go_on(), 3);  // the last finds nothing more
  EXPECT_TRUE(world_.state.jobs.empty());
}

TEST_F(PartsTest, SuccessToo) {
  const std::size_t count = kSlice * 2;
  world_.set_queue("default", 1);
  world_.submit({a_cpu_job()});
  world_.decide();
  world_.submit(copies(count, a_cpu_job().after(1)));
  world_.succeed(1);
  world_.go_on();
  EXPECT_TRUE(world_.state.pending.empty());
  EXPECT_EQ(world_.decide(), "2:-");
}

TEST_F(PartsTest, ARestartFindsFollowersThatWereNotTold) {
  const std::size_t count = kSlice * 2;
  world_.submit({a_cpu_job()});
  world_.decide();
  world_.submit(copies(count, a_cpu_job().after(1)));
  world_.fail(1);
  world_.state = restore(world_.ledger.snapshot(), {}, {});
  EXPECT_EQ(world_.state.jobs.size(), count - kSlice);
  ASSERT_TRUE(world_.apply(event::Tick{}));
  world_.go_on();
  EXPECT_TRUE(world_.state.jobs.empty());
  EXPECT_EQ(world_.ledger.job(JobId{count + 1}).state, JobState::cancelled);
}

}  // namespace
}  // namespace berth::testing
