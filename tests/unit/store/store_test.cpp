#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <mutex>

#include "base/failpoint.hpp"
#include "store/schema.hpp"
#include "support.hpp"

namespace berth::test {
namespace {

class StoreTest : public testing::Test {
 protected:
  StoreReader reader() { return StoreReader::open(file_).value(); }

  TempDir dir_;
  std::filesystem::path file_ = dir_ / "store.db";
};

TEST_F(StoreTest, AnEmptyStoreLoadsAsNothing) {
  Driver driver(options_for(file_));
  ASSERT_TRUE(driver.is_open()) << driver.error().message;
  EXPECT_EQ(describe(driver.store().load().value()), describe(Snapshot{}));
}

TEST_F(StoreTest, TheInstanceIdIsMadeOnce) {
  std::string id;
  {
    Driver driver(options_for(file_));
    id = driver.store().instance_id();
  }
  EXPECT_EQ(id.size(), 16U);
  EXPECT_EQ(id.find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_EQ(Driver(options_for(file_)).store().instance_id(), id);
  EXPECT_EQ(reader().instance_id().value(), id);
  EXPECT_NE(Driver(options_for(dir_ / "other.db")).store().instance_id(), id);
}

TEST_F(StoreTest, ACleanCloseLeavesOneFileWithEverything) {
  {
    Driver driver(options_for(file_));
    ASSERT_TRUE(driver.commit({job_put(1)}).status);
  }
  EXPECT_FALSE(std::filesystem::exists(dir_ / "store.db-wal"));
  EXPECT_EQ(Driver(options_for(file_)).store().load().value().jobs.size(), 1U);
}

TEST_F(StoreTest, RulesDelaysDrainsAndUsageComeBack) {
  {
    Driver driver(options_for(file_));
    auto put = job_put(1, 3, 2);
    auto spec = std::make_shared<JobSpec>(*put.spec);
    spec->request.rules = {{"gpu_left", "1"}};
    spec->start_at = Millis(9'000);
    put.spec = spec;
    auto again = job_update(2, JobState::queued);
    again.attempts = 1;
    again.not_before = Millis(7'000);
    change::BatchPut batch{{3}, "sweep", 1000, 5, 1, Millis(1)};
    batch.rules = {{"order", "random"}};
    const change::AttemptPut attempt{{9}, {4}, 1, {"GPU-a"}, {0}, kGiB, Millis(55)};
    ASSERT_TRUE(
        driver
            .commit({change::QueuePut{{2}, {"night", 1, {{"strategy", "pack"}}}}, batch, put,
                     job_put(2), again, job_put(4), attempt, job_update(4, JobState::running),
                     change::AttemptGivesWay{{9}, GivesWay::stranger}, change::InstancePut{true},
                     change::EccPut{"GPU-a", 2}, change::EccPut{"GPU-b", 1},
                     change::EccPut{"GPU-b", 4}, change::DrainPut{"GPU-a", true, "fan", Millis(1)},
                     change::DrainPut{"GPU-b", true, "xid", Millis(1)},
                     change::UsagePut{false, 1000, 1.5, Millis(1)},
                     change::UsagePut{true, 3, 2.5, Millis(2)},
                     change::UsagePut{true, 8, 2.5, Millis(2)}})
            .status);
    ASSERT_TRUE(driver
                    .commit({change::DrainPut{"GPU-b", false, "", Millis(3)},
                             change::UsagePut{false, 1000, 0.5, Millis(3)},
                             change::BatchRules{{3}, {{"order", "fifo"}}, 6}})
                    .status);
    StoreReader reading = reader();
    EXPECT_EQ(reading.job(JobId{1}).value()->not_before, Millis(9'000));
    EXPECT_EQ(reading.attempts(JobId{4}).value().at(0).gives_way, GivesWay::stranger);
  }
  const Snapshot snapshot = Driver(options_for(file_)).store().load().value();
  EXPECT_TRUE(snapshot.paused);
  EXPECT_EQ(snapshot.drains, (std::map<std::string, std::string>{{"GPU-a", "fan"}}));
  EXPECT_EQ(snapshot.ecc, (std::map<std::string, std::uint64_t>{{"GPU-a", 2}, {"GPU-b", 4}}));
  ASSERT_EQ(snapshot.usage.size(), 2U) << "that of a batch without live jobs is not needed";
  EXPECT_EQ(snapshot.usage[0].gpu_ms, 0.5);
  EXPECT_EQ(snapshot.usage[1].id, 3U);
  EXPECT_EQ(snapshot.queues.at(0).second.rules, (Overrides{{"strategy", "pack"}}));
  EXPECT_EQ(snapshot.batches.at(0).rules, (Overrides{{"order", "fifo"}}));
  EXPECT_EQ(snapshot.batches.at(0).max_concurrent, 6U);
  ASSERT_EQ(snapshot.jobs.size(), 3U);
  EXPECT_EQ(snapshot.jobs[0].request.rules, (Overrides{{"gpu_left", "1"}}));
  EXPECT_EQ(snapshot.jobs[0].not_before, Millis(9'000));
  EXPECT_FALSE(snapshot.jobs[0].backing_off);
  EXPECT_EQ(snapshot.jobs[0].submitted, Millis(1'001));
  EXPECT_EQ(snapshot.jobs[1].not_before, Millis(7'000));
  EXPECT_TRUE(snapshot.jobs[1].backing_off);
  EXPECT_EQ(snapshot.attempts.at(0).started, Millis(55));
  EXPECT_EQ(snapshot.attempts.at(0).gives_way, GivesWay::stranger);
}

TEST_F(StoreTest, WhatAJobStillWaitsForDependsOnTheKindOfDependency) {
  Driver driver(options_for(file_));
  Changes changes = {job_put(1), job_put(2), job_put(3), job_update(1, JobState::succeeded),
                     job_update(2, JobState::failed)};
  for (const After kind : {After::ok, After::any, After::failed}) {
    auto put = job_put(10 + static_cast<std::uint64_t>(kind));
    auto spec = std::make_shared<JobSpec>(*put.spec);
    spec->after_kind = kind;
    put.spec = spec;
    put.after = {{1}, {2}, {3}, {99}};  // the last has been removed
    changes.push_back(put);
  }
  ASSERT_TRUE(driver.commit(std::move(changes)).status);
  const Snapshot snapshot = driver.store().load().value();
  ASSERT_EQ(snapshot.jobs.size(), 4U);
  EXPECT_EQ(snapshot.jobs[1].after, (std::vector<JobId>{{2}, {3}}));
  EXPECT_EQ(snapshot.jobs[2].after, (std::vector<JobId>{{3}}));
  EXPECT_EQ(snapshot.jobs[3].after, (std::vector<JobId>{{1}, {3}}));
  EXPECT_EQ(snapshot.jobs[3].after_kind, After::failed);
  EXPECT_EQ(snapshot.failed_dependencies,
            (std::vector<std::pair<JobId, JobState>>{{{1}, JobState::succeeded},
                                                     {{2}, JobState::failed}}));
}

TEST_F(StoreTest, EveryChangeComesBackFromLoad) {
  {
    Driver driver(options_for(file_));
    auto put = job_put(7, 3, 2);
    auto spec = std::make_shared<JobSpec>(*put.spec);
    spec->priority = -3;
    spec->retries = 2;
    spec->request.gpu_memory = 5 * kGiB;
    spec->request.resources = {{"licence", 1}};
    put.spec = spec;
    auto update = job_update(7, JobState::running);
    update.attempts = 1;
    update.retries_used = 1;
    update.kill_requested = true;
    const change::AttemptPut attempt{{9}, {7}, 4, {"GPU-a", "GPU-b"}, {0, 1}, kGiB, Millis(5)};
    ASSERT_TRUE(
        driver
            .commit({change::QueuePut{{2}, {"night", 1}}, change::ResourcePut{"licence", 4},
                     change::BatchPut{{3}, "sweep", 1000, 5, 1, Millis(1)}, put, update, attempt})
            .status);
  }
  const Snapshot snapshot = Driver(options_for(file_)).store().load().value();
  EXPECT_EQ(snapshot.queues,
            (std::vector<std::pair<QueueId, QueueSpec>>{{QueueId{2}, QueueSpec{"night", 1}}}));
  EXPECT_EQ(snapshot.resources, (std::map<std::string, std::uint64_t>{{"licence", 4}}));
  ASSERT_EQ(snapshot.batches.size(), 1U);
  EXPECT_EQ(snapshot.batches[0].name, "sweep");
  EXPECT_EQ(snapshot.batches[0].max_concurrent, 5U);
  ASSERT_EQ(snapshot.jobs.size(), 1U);
  const auto& job = snapshot.jobs[0];
  EXPECT_EQ(job.id.value, 7U);
  EXPECT_EQ(job.batch.value, 3U);
  EXPECT_EQ(job.queue.value, 2U);
  EXPECT_EQ(job.owner, 1000U);
  EXPECT_EQ(job.priority, -3);
  EXPECT_EQ(job.request.gpu_memory, 5 * kGiB);
  EXPECT_EQ(job.request.resources.at("licence"), 1U);
  EXPECT_EQ(job.retries, 2U);
  EXPECT_EQ(job.retries_used, 1U);
  EXPECT_EQ(job.attempts, 1U);
  EXPECT_EQ(job.state, JobState::running);
  EXPECT_TRUE(job.kill_requested);
  ASSERT_EQ(snapshot.attempts.size(), 1U);
  const auto& open = snapshot.attempts[0];
  EXPECT_EQ(open.id.value, 9U);
  EXPECT_EQ(open.job.value, 7U);
  EXPECT_EQ(open.number, 4U);
  EXPECT_EQ(open.gpus, (std::vector<std::string>{"GPU-a", "GPU-b"}));
  EXPECT_EQ(open.gpu_memory, kGiB);
  EXPECT_EQ(open.boot_id, "boot-1");
  EXPECT_EQ(snapshot.last_job.value, 7U);
  EXPECT_EQ(snapshot.last_attempt.value, 9U);
  EXPECT_EQ(snapshot.last_batch.value, 3U);
  EXPECT_EQ(snapshot.last_queue.value, 2U);
}

TEST_F(StoreTest, AnOpenAttemptKeepsTheBootItStartedIn) {
  const auto attempt = [](std::uint64_t id) {
    return change::AttemptPut{{id}, {1}, 1, {}, {}, 0, Millis(1)};
  };
  {
    Driver driver(options_for(file_));
    ASSERT_TRUE(driver.commit({job_put(1), attempt(1)}).status);
  }
  StoreOptions options = options_for(file_);
  options.boot_id = "boot-2";
  Driver driver(options);
  ASSERT_TRUE(driver.commit({attempt(2)}).status);
  const Snapshot snapshot = driver.store().load().value();
  ASSERT_EQ(snapshot.attempts.size(), 2U);
  EXPECT_EQ(snapshot.attempts[0].boot_id, "boot-1");
  EXPECT_EQ(snapshot.attempts[1].boot_id, "boot-2");
}

TEST_F(StoreTest, OnlyUnfinishedWorkIsLoadedAndOnlyDependenciesNotYetSucceeded) {
  Driver driver(options_for(file_));
  auto last = job_put(5);
  last.after = {{3}, {1}, {2}, {3}};
  ASSERT_TRUE(driver
                  .commit({job_put(1), job_put(2), job_put(3), job_put(4), last,
                           job_update(1, JobState::succeeded), job_update(2, JobState::failed),
                           job_update(4, JobState::paused)})
                  .status);
  const Snapshot snapshot = driver.store().load().value();
  ASSERT_EQ(snapshot.jobs.size(), 3U);
  EXPECT_EQ(snapshot.jobs[0].id.value, 3U);
  EXPECT_EQ(snapshot.jobs[1].id.value, 4U);
  EXPECT_EQ(snapshot.jobs[1].state, JobState::paused);
  EXPECT_EQ(snapshot.jobs[2].id.value, 5U);
  EXPECT_EQ(snapshot.jobs[2].after, (std::vector<JobId>{{2}, {3}}));
}

TEST_F(StoreTest, WhatSomebodyChangedIsThereAfterARestart) {
  change::JobSet moved;
  moved.id = {1};
  moved.queue = QueueId{2};
  moved.priority = 2;
  moved.rank = -7;
  moved.expedited = true;
  change::JobSet asked;
  asked.id = {2};
  asked.name = "renamed";
  asked.request = Request{};
  asked.request->cpus = 3;
  asked.retries = 4;
  asked.time_limit = Millis(5'000);
  asked.grace = Millis(7);
  auto killed = job_update(3, JobState::running);
  killed.kill_requested = true;
  killed.kill_grace = Millis(0);
  {
    Driver driver(options_for(file_));
    ASSERT_TRUE(
        driver
            .commit({change::QueuePut{{1}, {"a", 1}, true}, change::QueuePut{{2}, {"b", 0}, true},
                     job_put(1), job_put(2), job_put(3), moved, asked, killed,
                     change::QueuePut{{2}, {"b", 4}, false}})
            .status);
  }
  Driver driver(options_for(file_));
  const Snapshot snapshot = driver.store().load().value();
  EXPECT_EQ(snapshot.paused_queues, std::set<QueueId>{QueueId{1}});
  ASSERT_EQ(snapshot.jobs.size(), 3U);
  EXPECT_EQ(snapshot.jobs[0].queue, QueueId{2});
  EXPECT_EQ(snapshot.jobs[0].priority, 2);
  EXPECT_EQ(snapshot.jobs[0].rank, -7);
  EXPECT_TRUE(snapshot.jobs[0].expedited);
  EXPECT_EQ(snapshot.jobs[1].request.cpus, 3U);
  EXPECT_EQ(snapshot.jobs[1].retries, 4U);
  EXPECT_EQ(snapshot.jobs[1].rank, 0);
  EXPECT_TRUE(snapshot.jobs[2].kill_requested);
  EXPECT_EQ(snapshot.jobs[2].kill_grace, Millis(0));
  StoreReader reader = StoreReader::open(file_).value();
  const Payload payload = reader.payload({2}).value().value();
  EXPECT_EQ(payload.time_limit, Millis(5'000));
  EXPECT_EQ(payload.grace, Millis(7));
  EXPECT_EQ(payload.commands, job_put(2).spec->payload.commands);
  EXPECT_EQ(reader.job({2}).value()->name, "renamed");
  EXPECT_EQ(reader.job({1}).value()->queue, "b");
}

TEST_F(StoreTest, AChangeOfAJobThatIsNotThereIsRefused) {
  Driver driver(options_for(file_));
  change::JobSet set;
  set.id = {5};
  EXPECT_FALSE(driver.commit({set}).status);
}

TEST_F(StoreTest, IdsNeverGoBackwardsEvenWhenRowsAreDeleted) {
  {
    Driver driver(options_for(file_));
    ASSERT_TRUE(driver
                    .commit({change::BatchPut{{8}, "b", 0, 0, 1, Millis(1)}, job_put(41, 8),
                             change::AttemptPut{{17}, {41}, 1, {}, {}, 0, Millis(1)}})
                    .status);
  }
  {
    Db db = Db::open(file_, Db::Mode::read_write).value();
    ASSERT_TRUE(db.exec("DELETE FROM jobs; DELETE FROM attempts; DELETE FROM batches"));
  }
  Driver driver(options_for(file_));
  ASSERT_TRUE(driver.commit({job_put(40)}).status);  // a smaller id must not lower it either
  const Snapshot snapshot = driver.store().load().value();
  EXPECT_EQ(snapshot.last_job.value, 41U);
  EXPECT_EQ(snapshot.last_attempt.value, 17U);
  EXPECT_EQ(snapshot.last_batch.value, 8U);
}

TEST_F(StoreTest, AClientKeyIsAnsweredPerOwnerAndTheFirstAnswerStands) {
  Driver driver(options_for(file_));
  ASSERT_TRUE(driver.commit({change::ClientKey{"k", 1, {2}, {3}, 4}}).status);
  ASSERT_TRUE(driver.commit({change::ClientKey{"k", 1, {9}, {9}, 9}}).status);
  const auto found = driver.store().find_key("k", 1);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->batch.value, 2U);
  EXPECT_EQ(found->first.value, 3U);
  EXPECT_EQ(found->count, 4U);
  EXPECT_FALSE(driver.store().find_key("k", 2));
  EXPECT_FALSE(driver.store().find_key("K", 1));
}

TEST_F(StoreTest, WhatIsUnderWayIsAlreadyFound) {
  std::mutex gate;  // holds the commit up until the questions have been asked
  StoreOptions options = options_for(file_);
  options.prepare = [&](AttemptId) -> Status {
    const std::lock_guard guard(gate);
    return {};
  };
  Driver driver(options);
  ASSERT_TRUE(driver.commit({job_put(1)}).status);
  bool durable = false;
  std::unique_lock closed(gate);
  driver.store().commit(
      {{job_update(1, JobState::failed), change::ClientKey{"k", 1, {}, {1}, 1}}, {AttemptId{1}}},
      [&](CommitOutcome outcome) { durable = outcome.status.has_value(); });
  const auto key = driver.store().find_key("k", 1);
  ASSERT_TRUE(key);
  EXPECT_EQ(key->first.value, 1U);
  EXPECT_EQ(driver.store().find_job_state({1}), JobState::failed);
  EXPECT_EQ(reader().job({1}).value()->state, JobState::queued) << "readers see what is durable";
  EXPECT_FALSE(durable);
  closed.unlock();
  EXPECT_FALSE(driver.check_space().low);  // answered after the commit
  EXPECT_TRUE(durable);
  EXPECT_EQ(reader().job({1}).value()->state, JobState::failed);
}

TEST_F(StoreTest, TheStateOfAFinishedJobIsFound) {
  Driver driver(options_for(file_));
  ASSERT_TRUE(driver.commit({job_put(1), job_update(1, JobState::killed)}).status);
  ASSERT_TRUE(driver.commit({job_put(2)}).status);
  EXPECT_EQ(driver.store().find_job_state({1}), JobState::killed);
  EXPECT_EQ(driver.store().find_job_state({2}), JobState::queued);
  EXPECT_EQ(driver.store().find_job_state({3}), std::nullopt);
}

TEST_F(StoreTest, RecordsThatCannotBeMadeAreNamedAndTheRestIsCommitted) {
  StoreOptions options = options_for(file_);
  std::vector<std::uint64_t> prepared;
  options.prepare = [&](AttemptId id) -> Status {
    prepared.push_back(id.value);
    return id.value == 2 ? fail(ErrorCode::no_space, "no record") : Status();
  };
  Driver driver(options);
  const CommitOutcome outcome = driver.commit({{job_put(1)}, {{1}, {2}, {3}}});
  EXPECT_TRUE(outcome.status);
  EXPECT_EQ(prepared, (std::vector<std::uint64_t>{1, 2, 3}));
  ASSERT_EQ(outcome.unprepared.size(), 1U);
  EXPECT_EQ(outcome.unprepared[0].first.value, 2U);
  EXPECT_EQ(outcome.unprepared[0].second.message, "no record");
  EXPECT_EQ(driver.store().load().value().jobs.size(), 1U);
}

TEST_F(StoreTest, AnErrorLeavesNothingOfItsTransactionAndRefusesWhatFollows) {
  {
    Driver driver(options_for(file_));
    ASSERT_TRUE(driver.commit({job_put(1)}).status);
    const auto outcome = driver.commit({job_put(2), job_update(77, JobState::failed)});
    ASSERT_FALSE(outcome.status);
    EXPECT_EQ(outcome.status.error().message, "job 77 is not in the store");
    const auto refused = driver.commit({job_put(3)});
    ASSERT_FALSE(refused.status);
    EXPECT_EQ(refused.status.error().message, "job 77 is not in the store");
  }
  const Snapshot snapshot = Driver(options_for(file_)).store().load().value();
  ASSERT_EQ(snapshot.jobs.size(), 1U);
  EXPECT_EQ(snapshot.last_job.value, 1U);
}

TEST_F(StoreTest, AnEnvironmentIsStoredOncePerContent) {
  Driver driver(options_for(file_));
  Changes changes;
  for (std::uint64_t id = 1; id <= 30; ++id) {
    auto put = job_put(id);
    auto spec = std::make_shared<JobSpec>(*put.spec);
    spec->payload.environment =
        std::make_shared<const Environment>(Environment{"N=" + std::to_string(id % 10)});
    put.spec = spec;
    changes.push_back(put);
    if (id % 7 == 0) {
      ASSERT_TRUE(driver.commit(std::exchange(changes, {})).status);
    }
  }
  ASSERT_TRUE(driver.commit(std::move(changes)).status);
  driver.close();
  Db db = Db::open(file_, Db::Mode::read_only).value();
  EXPECT_EQ(db.integer("SELECT count(*) FROM environments").value(), 10);
  StoreReader all = reader();
  for (std::uint64_t id = 1; id <= 30; ++id) {
    EXPECT_EQ(*all.payload({id}).value()->environment,
              (Environment{"N=" + std::to_string(id % 10)}));
  }
}

TEST_F(StoreTest, EqualHashesDoNotConfuseEnvironments) {
  {
    Driver driver(options_for(file_));
    ASSERT_TRUE(driver.commit({job_put(1)}).status);
  }
  {  // another content under the same hash, as a collision would make it
    Db db = Db::open(file_, Db::Mode::read_write).value();
    ASSERT_TRUE(db.exec("UPDATE environments SET data=x'0100'"));
  }
  Driver driver(options_for(file_));
  ASSERT_TRUE(driver.commit({job_put(2)}).status);
  EXPECT_TRUE(reader().payload({1}).value()->environment->empty());
  EXPECT_EQ(*reader().payload({2}).value()->environment, (Environment{"HOME=/home/user"}));
}

TEST_F(StoreTest, MigrationRunsStepsInOrderOrChangesNothing) {
  ASSERT_TRUE(create_store(file_, ""));
  Db db = Db::open(file_, Db::Mode::read_write).value();
  ASSERT_TRUE(db.exec("PRAGMA user_version=1"));
  const Migration steps[] = {{1, "CREATE TABLE second(x)"}, {2, "INSERT INTO second VALUES(3)"}};
  ASSERT_TRUE(migrate(db, steps, 3));
  EXPECT_EQ(db.integer("PRAGMA user_version").value(), 3);
  EXPECT_EQ(db.integer("SELECT x FROM second").value(), 3);
  const Migration broken[] = {{3, "CREATE TABLE fourth(x)"}, {4, "no SQL"}};
  EXPECT_FALSE(migrate(db, broken, 5));
  EXPECT_FALSE(migrate(db, broken, 9));
  EXPECT_EQ(db.integer("PRAGMA user_version").value(), 3);
  EXPECT_EQ(db.integer("SELECT count(*) FROM sqlite_schema WHERE name='fourth'").value(), 0);
}

/// Commits jobs 1, 2, … in a process of its own until the failpoint ends it; gives their number as
/// far as they were answered.
std::uint64_t answered_until_crash(const std::filesystem::path& file, const char* point) {
  int pipe_fds[2];
  if (::pipe(pipe_fds) != 0) {
    ADD_FAILURE() << "pipe";
    return 0;
  }
  const pid_t child = ::fork();
  if (child == 0) {
    ::setenv("BERTH_CRASH_AT", point, 1);
    arm_failpoints();
    Driver driver(options_for(file));
    for (std::uint64_t id = 1; id <= 20; ++id) {
      if (!driver.commit({{job_put(id)}, {{id}}}).status) {
        ::_exit(2);
      }
      if (::write(pipe_fds[1], "x", 1) != 1) {
        ::_exit(3);
      }
    }
    ::_exit(1);
  }
  ::close(pipe_fds[1]);
  std::uint64_t answered = 0;
  char byte = 0;
  while (::read(pipe_fds[0], &byte, 1) == 1) {
    ++answered;
  }
  ::close(pipe_fds[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << point << ' ' << status;
  return answered;
}

TEST_F(StoreTest, AKilledProcessLosesNothingThatWasAnswered) {
  const std::pair<const char*, std::uint64_t> cases[] = {{"before_prepare:5", 4},
                                                         {"after_prepare:5", 4},
                                                         {"before_commit:5", 4},
                                                         {"after_commit:5", 5}};
  int n = 0;
  for (const auto& [point, durable] : cases) {
    const auto file = dir_ / ("crash" + std::to_string(++n)).c_str();
    EXPECT_EQ(answered_until_crash(file, point), 4U) << point;
    EXPECT_EQ(Driver(options_for(file)).store().load().value().last_job.value, durable) << point;
  }
}

}  // namespace
}  // namespace berth::test
