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

}  // namespace
}  // namespace berth
