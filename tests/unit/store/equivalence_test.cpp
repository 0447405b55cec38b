// The SQLite store and its twin in memory mean the same by every change.

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "store/memory_store.hpp"
#include "store/reader.hpp"
#include "support.hpp"
#include "test_vfs.hpp"

namespace berth::test {
namespace {

void compare(SqliteStore& store, StoreReader& reader, MemoryStore& twin) {
  RC_ASSERT(describe(store.load().value()) == describe(twin.snapshot()));
  JobFilter all;
  all.limit = 1'000'000;
  const auto rows = reader.jobs(all).value();
  RC_ASSERT(rows.size() == twin.job_ids().size());
  for (const JobRow& row : rows) {
    RC_ASSERT(row == twin.job(row.id).value());
    RC_ASSERT(reader.attempts(row.id).value() == twin.attempts(row.id));
    RC_ASSERT(reader.payload(row.id).value() == twin.payload(row.id));
    RC_ASSERT(store.find_job_state(row.id) == twin.find_job_state(row.id));
    RC_ASSERT(store.find_ended_job(row.id) == twin.find_ended_job(row.id));
  }
  RC_ASSERT(reader.counts().value() == twin.counts());
  RC_ASSERT(reader.batches({}, 1'000'000).value() == twin.batches());
  RC_ASSERT(reader.queues().value() == twin.queues());
  RC_ASSERT(reader.history({0, {}, {}, 1'000'000}).value() == twin.history());
  for (int n = 0; n < 10; ++n) {
    for (std::uint32_t owner = 0; owner < 3; ++owner) {
      const std::string key = "key " + std::to_string(n);
      const auto stored = store.find_key(key, owner);
      const auto kept = twin.find_key(key, owner);
      RC_ASSERT(stored.has_value() == kept.has_value());
      if (stored) {
        RC_ASSERT(stored->batch == kept->batch && stored->first == kept->first &&
                  stored->count == kept->count);
      }
    }
  }
}

TEST(EquivalenceTest, AnyHistoryGivesTheSameStateInBoth) {
  install_test_vfs();
  set_disk_sync_free(true);
  const bool ok = rc::check("SqliteStore and MemoryStore agree", [] {
    const auto seed = *rc::gen::inRange<std::uint64_t>(0, 1ULL << 40);
    const auto steps = *rc::gen::inRange(1, 25);
    const TempDir dir;
    StoreOptions options = options_for(dir / "store.db");
    options.vfs = kTestVfs;
    options.checkpoint_pages = 40;
    auto driver = std::make_unique<Driver>(options);
    MemoryStore twin({"boot-1", {}});
    Workload workload(seed);
    for (int step = 0; step < steps; ++step) {
      Transaction transaction = workload.next();
      bool answered = false;
      twin.commit(transaction, [&](CommitOutcome o) { answered = o.status.has_value(); });
      twin.complete();
      RC_ASSERT(answered);
      RC_ASSERT(driver->commit(std::move(transaction)).status.has_value());
      if (step % 10 == 5) {
        driver = nullptr;
        options.boot_id = "boot-" + std::to_string(step);
        driver = std::make_unique<Driver>(options);
        twin.crash(MemoryStore::Pending::lost, options.boot_id);
      }
    }
    StoreReader reader = StoreReader::open(options.file, kTestVfs).value();
    compare(driver->store(), reader, twin);
  });
  set_disk_sync_free(false);
  EXPECT_TRUE(ok);
}

TEST(MemoryStoreTest, ACrashDropsOrKeepsWhatIsPending) {
  MemoryStore store({"boot-1", {}});
  bool answered = false;
  const auto done = [&](CommitOutcome) { answered = true; };
  store.commit({{job_put(1)}, {}}, done);
  EXPECT_TRUE(store.committing());
  store.crash(MemoryStore::Pending::lost, "boot-2");
  EXPECT_TRUE(store.snapshot().jobs.empty());
  store.commit({{job_put(2), change::AttemptPut{{1}, {2}, 1, {}, {}, 0, Millis(1)}}, {}}, done);
  store.crash(MemoryStore::Pending::durable, "boot-3");
  EXPECT_FALSE(answered);
  ASSERT_EQ(store.snapshot().jobs.size(), 1U);
  EXPECT_EQ(store.snapshot().attempts.at(0).boot_id, "boot-2");
}

TEST(MemoryStoreTest, AnErrorKeepsNothingAndRefusesWhatFollows) {
  MemoryStore store;
  std::vector<bool> answers;
  const auto done = [&](CommitOutcome o) { answers.push_back(o.status.has_value()); };
  store.commit({{job_put(1)}, {}}, done);
  store.complete();
  store.commit({{job_put(2), job_update(77, JobState::failed)}, {}}, done);
  store.complete();
  store.commit({{job_put(3)}, {}}, done);
  store.complete();
  EXPECT_EQ(answers, (std::vector<bool>{true, false, false}));
  EXPECT_EQ(store.snapshot().last_job.value, 1U);
}

TEST(MemoryStoreTest, TheAnswerIsWhatTheTestWants) {
  MemoryStore store({"", [](AttemptId id) -> Status {
                       return id.value == 2 ? fail(ErrorCode::io, "no record") : Status();
                     }});
  std::optional<CommitOutcome> outcome;
  const auto done = [&](CommitOutcome o) { outcome = std::move(o); };
  CommitOutcome low;
  low.low_space = true;
  store.commit({{}, {{1}, {2}}}, done);
  store.complete(low);
  ASSERT_TRUE(outcome && outcome->status);
  EXPECT_TRUE(outcome->low_space);
  ASSERT_EQ(outcome->unprepared.size(), 1U);
  EXPECT_EQ(outcome->unprepared[0].first.value, 2U);
  CommitOutcome failed;
  failed.status = fail(ErrorCode::io, "disk gone");
  store.commit({{job_put(1)}, {}}, done);
  store.complete(failed);
  EXPECT_FALSE(outcome->status);
  EXPECT_TRUE(store.snapshot().jobs.empty());
}

}  // namespace
}  // namespace berth::test
