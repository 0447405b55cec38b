// Removing jobs and what nobody needs any more, and copying the log back meanwhile.

#include <gtest/gtest.h>

#include <array>
#include <fstream>

#include <fmt/format.h>

#include "store/reader.hpp"
#include "support.hpp"

namespace berth::test {
namespace {

class RemovalTest : public testing::Test {
 protected:
  RemovalTest() : driver_(std::in_place, options_for(file_)) {}

  StoreReader reader() { return StoreReader::open(file_).value(); }
  std::int64_t rows(const char* table) {
    Db db = Db::open(file_, Db::Mode::read_only).value();
    return db.integer(fmt::format("SELECT count(*) FROM {}", table)).value();
  }
  void commit(Changes changes) {
    const auto outcome = driver_->commit(std::move(changes));
    ASSERT_TRUE(outcome.status) << outcome.status.error().message;
  }
  void reopen() {
    driver_.reset();
    driver_.emplace(options_for(file_));
    ASSERT_TRUE(driver_->is_open()) << driver_->error().message;
  }

  TempDir dir_;
  std::filesystem::path file_ = dir_ / "store.db";
  std::optional<Driver> driver_;
};

TEST_F(RemovalTest, ARemovedJobLeavesNothingAndItsIdIsNotGivenAgain) {
  auto second = job_put(2, 1);
  second.after = {{1}};
  commit({change::BatchPut{{1}, "b", 0, 0, 2, Millis(1)}, job_put(1, 1), second, job_put(3),
          change::AttemptPut{{1}, {1}, 1, {}, {}, 0, Millis(1)},
          change::AttemptEnd{{1}, false, {}, Millis(2)}, job_update(1, JobState::succeeded),
          change::History{"submitted", {1}, {}, {1}, "", Millis(1)},
          change::History{"succeeded", {1}, {1}, {1}, "", Millis(2)}});
  commit({change::JobsRemove{{{1}, {77}}}});
  EXPECT_FALSE(reader().job({1}).value());
  EXPECT_EQ(rows("jobs"), 2);
  EXPECT_EQ(rows("payloads"), 2);
  EXPECT_EQ(rows("attempts"), 0);
  EXPECT_EQ(rows("history"), 0);
  EXPECT_EQ(reader().counts().value(), (StateCounts{2, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(reader().counts({1}).value(), (StateCounts{1, 0, 0, 0, 0, 0, 0}));
  ASSERT_EQ(reader().batches().value().size(), 1U) << "one of its jobs is left";
  reopen();
  const Snapshot snapshot = driver_->store().load().value();
  ASSERT_EQ(snapshot.jobs.size(), 2U);
  EXPECT_TRUE(snapshot.jobs[0].after.empty()) << "what it followed had succeeded";
  EXPECT_EQ(snapshot.last_attempt, AttemptId{1});

  commit({change::JobsRemove{{{2}, {3}}}});
  EXPECT_TRUE(reader().batches().value().empty()) << "a batch without jobs goes with the last";
  EXPECT_EQ(rows("dependencies"), 0);
  EXPECT_EQ(reader().counts().value(), StateCounts{});
  reopen();
  EXPECT_EQ(driver_->store().load().value().last_job, JobId{3});
  // Sequence numbers go on, too, though the lines that had them are gone.
  commit({change::History{"added", {}, {}, {}, "", Millis(3)}});
  EXPECT_EQ(reader().history({}).value().at(0).seq, 3U);
}

TEST_F(RemovalTest, AFingerprintGoesWithItsJob) {
  const auto with = [](std::uint64_t id, std::uint64_t fingerprint) {
    auto put = job_put(id);
    auto spec = std::make_shared<JobSpec>(*put.spec);
    spec->payload.fingerprint = fingerprint;
    put.spec = spec;
    return put;
  };
  commit({with(1, ~0ULL), with(2, ~0ULL), with(3, 5), with(4, 0)});
  EXPECT_EQ(rows("fingerprints"), 3);
  commit({change::JobsRemove{{{1}, {3}, {4}}}});
  EXPECT_EQ(rows("fingerprints"), 1);
}

TEST_F(RemovalTest, ABatchThatStillArrivesStaysThoughItHasNoJobs) {
  change::BatchPut batch{{1}, "b", 0, 0, 2, Millis(1)};
  batch.in_parts = batch.open = true;
  commit({batch, job_put(1, 1), job_update(1, JobState::cancelled)});
  commit({change::JobsRemove{{{1}}}});
  EXPECT_EQ(rows("batches"), 1);
  change::BatchPut given_up = batch;
  given_up.id = {2};
  commit({given_up});
  commit({change::BatchRemove{{2}}});
  EXPECT_EQ(rows("batches"), 1) << "one that is given up goes while it is open";
  batch.open = false;
  commit({batch, job_put(2, 1), job_update(2, JobState::cancelled)});
  commit({change::JobsRemove{{{2}}}});
  EXPECT_EQ(rows("batches"), 0);
}

TEST_F(RemovalTest, EnvironmentsGoWithTheirLastUserButNotUnderANewOne) {
  const auto with = [](std::uint64_t id, const char* variable) {
    auto put = job_put(id);
    auto spec = std::make_shared<JobSpec>(*put.spec);
    spec->payload.environment = std::make_shared<const Environment>(Environment{variable});
    put.spec = spec;
    return put;
  };
  commit({with(1, "A=1"), with(2, "B=1"), with(3, "C=1")});
  commit({change::JobsRemove{{{1}, {2}}}});
  Trim begin;
  begin.begin_environments = true;
  ASSERT_TRUE(driver_->trim(begin));
  commit({with(4, "B=1")});  // during the sweep somebody begins to use one of them again
  StoreReader look = reader();
  std::unordered_set<std::int64_t> used;
  std::optional<JobId> after;
  do {
    ASSERT_TRUE(look.environments_used(after, 1, used));
  } while (after);
  Trim end;
  end.environments = {1, 2};  // as a sweep that had begun before job 4 came would have it
  ASSERT_TRUE(driver_->trim(end));
  EXPECT_EQ(look.environment_ids().value(), (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(used, (std::unordered_set<std::int64_t>{2, 3}));
  EXPECT_EQ(look.payload({4}).value()->environment->at(0), "B=1");
  commit({with(5, "A=1")});
  EXPECT_EQ(reader().payload({5}).value()->environment->at(0), "A=1");
}

TEST_F(RemovalTest, TheOldestGoFirstAndKeysWithTheirJobs) {
  Changes changes;
  for (std::uint64_t id = 1; id <= 6; ++id) {
    changes.push_back(job_put(id));
    auto update = job_update(id, id == 3 ? JobState::running : JobState::failed);
    update.wall = Millis(static_cast<std::int64_t>(1'000 - id));
    changes.push_back(update);
    changes.push_back(change::ClientKey{fmt::format("key {}", id), 7, {}, {id}, 1});
  }
  changes.push_back(change::History{"paused", {}, {}, {}, "", Millis(10)});
  changes.push_back(change::History{"started", {1}, {}, {}, "", Millis(11)});
  changes.push_back(change::History{"paused", {}, {}, {}, "", Millis(12)});
  commit(std::move(changes));
  StoreReader look = reader();
  const auto oldest = look.oldest_finished(std::nullopt, 2).value();
  ASSERT_EQ(oldest.size(), 2U);
  EXPECT_EQ(oldest[0].id, JobId{6});
  EXPECT_EQ(oldest[1].id, JobId{5});
  EXPECT_EQ(look.oldest_finished(Millis(996), 10).value().size(), 2U);

  std::optional<std::uint64_t> line;
  EXPECT_EQ(look.loose_history(line, Millis(12), 10).value(), std::vector<std::uint64_t>{1});
  EXPECT_FALSE(line);
  EXPECT_TRUE(look.loose_history(line, Millis(100), 1).value().size() == 1 && line == 1U);

  commit({change::JobsRemove{{{1}, {5}}}});
  std::optional<KeyRow> key;
  std::vector<KeyRow> keys;
  do {
    const auto found = look.loose_keys(key, {4}, 2).value();
    keys.insert(keys.end(), found.begin(), found.end());
  } while (key);
  ASSERT_EQ(keys.size(), 1U) << "that of job 5 is too young, the others have their jobs";
  EXPECT_EQ(keys[0].first, JobId{1});
  EXPECT_EQ(look.has_jobs(7, "key 1").value(), false) << "all of its jobs are gone";
  EXPECT_EQ(look.has_jobs(7, "key 2").value(), true);
  EXPECT_EQ(look.has_jobs(8, "key 2").value(), std::nullopt) << "it is somebody else's";
  Trim trim;
  trim.keys = keys;
  trim.history = {1};
  ASSERT_TRUE(driver_->trim(trim));
  EXPECT_EQ(rows("client_keys"), 5);
  EXPECT_FALSE(driver_->store().find_key("key 1", 7));
  EXPECT_EQ(rows("history"), 1) << "one line trimmed, one gone with its job";
}

/// How often a log has started over: its header counts that, the most significant byte first.
std::uint32_t starts_of(const std::filesystem::path& wal) {
  constexpr std::size_t kAt = 12;
  std::array<unsigned char, kAt + 4> header{};
  std::ifstream file(wal, std::ios::binary);
  file.read(reinterpret_cast<char*>(header.data()), header.size());
  std::uint32_t count = 0;
  for (std::size_t i = kAt; i < header.size(); ++i) {
    count = count << 8U | header.at(i);
  }
  return count;
}

// How large the log becomes in between depends on how often the thread that copies gets to run. So
// the load goes on until it has started over often enough, within a number of commits in which the
// hard limit alone, where commits wait, would have brought that about three times.
TEST(CheckpointTest, UnderSteadyLoadTheLogStartsOverAgainAndAgain) {
  const TempDir dir;
  StoreOptions options = options_for(dir / "store.db");
  options.checkpoint_pages = 64;
  const auto wal = dir / "store.db-wal";
  std::uintmax_t largest = 0;
  std::uint64_t id = 0;
  {
    Driver driver(options);
    ASSERT_TRUE(driver.commit({job_put(++id)}).status);
    const std::uint32_t first = starts_of(wal);
    while (id < 1'500 || (starts_of(wal) < first + 10 && id < 6'000)) {
      ASSERT_TRUE(driver.commit({job_put(++id)}).status);
      largest = std::max(largest, std::filesystem::file_size(wal));
    }
    EXPECT_GE(starts_of(wal), first + 10) << "after " << id << " commits";
  }
  EXPECT_LT(largest, 64 * kMiB) << "no commit had to wait";
  EXPECT_EQ(StoreReader::open(options.file).value().counts().value()[0], id);
}

TEST(CheckpointTest, AboveTheHardLimitCommitsWaitAndAReaderIsNotWaitedFor) {
  const TempDir dir;
  StoreOptions options = options_for(dir / "store.db");
  options.checkpoint_pages = 16;
  options.checkpoint_slack = 16;
  Driver driver(options);
  ASSERT_TRUE(driver.commit({job_put(1)}).status);
  Db reading = Db::open(options.file, Db::Mode::read_only).value();
  ASSERT_TRUE(reading.exec("BEGIN"));
  ASSERT_TRUE(reading.integer("SELECT count(*) FROM jobs"));
  for (std::uint64_t id = 2; id <= 200; ++id) {
    ASSERT_TRUE(driver.commit({job_put(id)}).status);
  }
  EXPECT_EQ(reading.integer("SELECT count(*) FROM jobs").value(), 1) << "it sees its own instant";
  reading.rollback();
  const auto grown = std::filesystem::file_size(dir / "store.db-wal");
  EXPECT_TRUE(wait_for([&, id = 1'000ULL]() mutable {
    EXPECT_TRUE(driver.commit({job_put(++id)}).status);
    return std::filesystem::file_size(dir / "store.db-wal") <= grown + 64 * 4096 && id > 1'300;
  })) << "without the reader the log starts over";
}

}  // namespace
}  // namespace berth::test
