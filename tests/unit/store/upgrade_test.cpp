// Stores that released versions have left, kept as they were written.

#include <gtest/gtest.h>

#include <set>

#include <fmt/format.h>

#include "store/schema.hpp"
#include "store/sqlite.hpp"
#include "support.hpp"

namespace berth {
namespace {

using test::Driver;
using test::TempDir;

const std::filesystem::path kFixtures = BERTH_FIXTURES_DIR;

/// Tables with their columns in order, and indexes with theirs.
std::set<std::string> layout(const std::filesystem::path& file) {
  Db db = Db::open(file, Db::Mode::read_only, "").value();
  std::set<std::string> lines;
  for (const char* sql :
       {"SELECT s.type||' '||s.name||' '||group_concat(t.name||' '||t.type||' '||"
        "t.\"notnull\"||' '||coalesce(t.dflt_value,'-')) FROM sqlite_schema s,"
        " pragma_table_info(s.name) t WHERE s.type='table' GROUP BY s.name",
        "SELECT s.type||' '||s.name||' on '||s.tbl_name||' '||group_concat(i.name)"
        " FROM sqlite_schema s, pragma_index_info(s.name) i WHERE s.type='index' GROUP BY "
        "s.name"}) {
    Stmt stmt = db.prepare(sql).value();
    while (stmt.step().value()) {
      lines.insert(stmt.text(0));
    }
  }
  return lines;
}

TEST(UpgradeTest, AStoreOfVersion1IsBroughtForwardWithAllItHolds) {
  const TempDir dir;
  const auto file = dir / "berth.db";
  std::filesystem::copy_file(kFixtures / "0.1.0/berth.db", file);
  StoreOptions options;
  options.file = file;
  {
    Driver driver(options);
    ASSERT_TRUE(driver.is_open()) << driver.error().message;
    const Snapshot snapshot = driver.store().load().value();
    ASSERT_EQ(snapshot.jobs.size(), 6U);
    EXPECT_EQ(snapshot.jobs[0].id, JobId{3});
    EXPECT_EQ(snapshot.jobs[0].state, JobState::running);
    EXPECT_EQ(snapshot.jobs[0].request.gpu_memory, 8 * kGiB);
    EXPECT_EQ(snapshot.jobs[1].after, std::vector{JobId{3}});
    EXPECT_EQ(snapshot.jobs[3].request.resources.at("licence"), 1U);
    EXPECT_EQ(snapshot.jobs[5].priority, 1);
    ASSERT_EQ(snapshot.attempts.size(), 2U);
    EXPECT_EQ(snapshot.attempts[0].job, JobId{3});
    EXPECT_EQ(snapshot.last_job, JobId{9});
    EXPECT_EQ(snapshot.resources.at("licence"), 2U);
    EXPECT_FALSE(snapshot.paused);
    EXPECT_TRUE(snapshot.drains.empty() && snapshot.usage.empty());
    EXPECT_EQ(snapshot.jobs[1].after_kind, After::ok);
    EXPECT_GT(snapshot.jobs[1].submitted, Millis(0));
    EXPECT_GT(snapshot.attempts[0].started, Millis(0));
    EXPECT_EQ(driver.store().instance_id(), "7c148fee77813a5b");

    StoreReader reader = StoreReader::open(file).value();
    const auto failed = reader.job(JobId{2}).value();
    ASSERT_TRUE(failed);
    EXPECT_EQ(failed->state, JobState::failed);
    EXPECT_EQ(failed->exit_code, 3);
    EXPECT_EQ(reader.attempts(JobId{2}).value().size(), 2U);
    const auto payload = reader.payload(JobId{8}).value();
    ASSERT_TRUE(payload);
    EXPECT_EQ(payload->extra_env, Environment{"A=b"});
    EXPECT_TRUE(reader.check_integrity());
    JobFilter queued;
    queued.queue = "serial";
    queued.states = {JobState::queued};
    EXPECT_EQ(reader.jobs(queued).value().size(), 2U);
  }
  const auto fresh = dir / "fresh.db";
  ASSERT_TRUE(create_store(fresh, ""));
  EXPECT_EQ(layout(file), layout(fresh)) << "a store that grew up differs from a new one";
}

TEST(UpgradeTest, AStoreOfVersion3GetsTraitsAndFingerprints) {
  const TempDir dir;
  const auto file = dir / "berth.db";
  const auto fresh = dir / "fresh.db";
  ASSERT_TRUE(create_store(fresh, ""));
  ASSERT_TRUE(create_store(file, ""));
  {
    Db db = Db::open(file, Db::Mode::read_write, "").value();
    ASSERT_TRUE(
        db.exec("DROP TABLE queue_counters; DROP INDEX jobs_priority; DROP TABLE fingerprints; "
                "ALTER TABLE batches DROP COLUMN traits;"
                "INSERT INTO batches VALUES(4,'old',0,2,0,1,0,NULL);"
                "PRAGMA user_version=3"));
  }
  StoreOptions options;
  options.file = file;
  const Driver driver(options);
  ASSERT_TRUE(driver.is_open()) << driver.error().message;
  StoreReader reader = StoreReader::open(file).value();
  const auto batches = reader.batches().value();
  ASSERT_EQ(batches.size(), 1U);
  EXPECT_EQ(batches[0].name, "old");
  EXPECT_EQ(batches[0].traits, BatchTraits{});
  EXPECT_EQ(layout(file), layout(fresh));
}

TEST(UpgradeTest, AStoreOfVersion4CanBeListedByPriority) {
  const TempDir dir;
  const auto file = dir / "berth.db";
  const auto fresh = dir / "fresh.db";
  ASSERT_TRUE(create_store(fresh, ""));
  {
    Driver old(test::options_for(file));
    change::JobPut urgent = test::job_put(2);
    auto spec = std::make_shared<JobSpec>(*urgent.spec);
    spec->priority = 1;
    urgent.spec = spec;
    ASSERT_TRUE(old.commit({change::QueuePut{{1}, {"day", 0}}, test::job_put(1), urgent}).status);
  }
  {
    Db db = Db::open(file, Db::Mode::read_write, "").value();
    ASSERT_TRUE(
        db.exec("DROP TABLE queue_counters; DROP INDEX jobs_priority;"
                "PRAGMA user_version=4"));
  }
  const Driver driver(test::options_for(file));
  ASSERT_TRUE(driver.is_open()) << driver.error().message;
  StoreReader reader = StoreReader::open(file).value();
  JobFilter query;
  query.sort = JobSort::priority;
  EXPECT_EQ(reader.job_ids(query).value(), (std::vector{JobId{2}, JobId{1}}));
  EXPECT_EQ(layout(file), layout(fresh));
}

TEST(UpgradeTest, AStoreOfVersion5GetsTheCountsOfItsQueues) {
  const TempDir dir;
  const auto file = dir / "berth.db";
  const auto fresh = dir / "fresh.db";
  ASSERT_TRUE(create_store(fresh, ""));
  std::vector<QueueRow> before;
  {
    Driver old(test::options_for(file));
    ASSERT_TRUE(old.commit({change::QueuePut{{1}, {"day", 0}}, change::QueuePut{{2}, {"night", 1}},
                            test::job_put(1), test::job_put(2), test::job_put(3, 0, 2),
                            test::job_update(2, JobState::failed)})
                    .status);
    before = StoreReader::open(file).value().queues().value();
  }
  {
    Db db = Db::open(file, Db::Mode::read_write, "").value();
    ASSERT_TRUE(db.exec("DROP TABLE queue_counters; PRAGMA user_version=5"));
  }
  const Driver driver(test::options_for(file));
  ASSERT_TRUE(driver.is_open()) << driver.error().message;
  const auto queues = StoreReader::open(file).value().queues().value();
  EXPECT_EQ(queues, before);
  ASSERT_EQ(queues.size(), 2U);
  EXPECT_EQ(queues[0].counts, (StateCounts{1, 0, 0, 0, 1, 0, 0}));
  EXPECT_EQ(queues[1].counts, (StateCounts{1, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(layout(file), layout(fresh));
}

}  // namespace
}  // namespace berth
