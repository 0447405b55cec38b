// Backups while the store is in use, and starting from them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "store/backup.hpp"
#include "store/reader.hpp"
#include "store/schema.hpp"
#include "support.hpp"

namespace berth::test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

const fs::path kFixtures = BERTH_FIXTURES_DIR;
const auto kGoOn = [](const BackupProgress&) { return true; };

class BackupTest : public testing::Test {
 protected:
  std::string instance(const fs::path& file) {
    return StoreReader::open(file).value().instance_id().value();
  }
  std::vector<std::string> beside(const std::string& part) {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(dir_.path())) {
      const std::string name = entry.path().filename();
      if (name.find(part) != std::string::npos) {
        names.push_back(name);
      }
    }
    return names;
  }

  TempDir dir_;
  fs::path file_ = dir_ / "berth.db";
  fs::path copy_ = dir_ / "copy";
};

TEST_F(BackupTest, ABackupIsOneInstantWhileCommitsGoOn) {
  Driver driver(options_for(file_));
  std::uint64_t id = 0;
  for (; id < 3'000; ++id) {
    ASSERT_TRUE(driver.commit({job_put(id + 1)}).status);
  }
  std::uint64_t steps = 0;
  const auto size = backup_store(file_, copy_, false, [&](const BackupProgress& progress) {
    EXPECT_LE(progress.pages, progress.total);
    ++steps;
    return driver.commit({job_put(++id)}).status.has_value();
  });
  ASSERT_TRUE(size) << size.error().message;
  EXPECT_EQ(*size, fs::file_size(copy_));
  EXPECT_GE(steps, 2U);
  EXPECT_TRUE(beside(".part").empty());
  StoreReader backup = StoreReader::open(copy_).value();
  EXPECT_TRUE(backup.check_integrity());
  EXPECT_EQ(backup.counts().value()[0], 3'000U);
  EXPECT_EQ(driver.store().load().value().jobs.size(), id);
  EXPECT_EQ(fs::status(copy_).permissions() & fs::perms::others_all, fs::perms::none);

  const auto again = backup_store(file_, copy_, false, kGoOn);
  ASSERT_FALSE(again);
  EXPECT_THAT(again.error().message, HasSubstr("--force"));
  EXPECT_TRUE(backup_store(file_, copy_, true, kGoOn));
  EXPECT_FALSE(backup_store(file_, dir_.path(), true, kGoOn));
}

TEST_F(BackupTest, OneThatIsCutOffLeavesNothing) {
  Driver driver(options_for(file_));
  const auto stopped = backup_store(file_, copy_, false, [](const auto&) { return false; });
  ASSERT_FALSE(stopped);
  EXPECT_TRUE(beside("copy").empty());
  const auto nowhere = backup_store(file_, dir_ / "none/copy", false, kGoOn);
  ASSERT_FALSE(nowhere);
  EXPECT_THAT(nowhere.error().message, HasSubstr("none/copy"));
  write_bytes(dir_ / "copy.part", "left by one that was killed");
  EXPECT_TRUE(backup_store(file_, copy_, false, kGoOn));
}

TEST_F(BackupTest, ARestoredStoreGoesOnAboveAllIdsAndTheOtherIsKept) {
  {
    Driver driver(options_for(file_));
    ASSERT_TRUE(driver
                    .commit({job_put(1), change::AttemptPut{{4}, {1}, 1, {}, {}, 0, Millis(1)},
                             job_update(1, JobState::running), job_put(2),
                             change::History{"submitted", {1}, {}, {}, "", Millis(1)}})
                    .status);
    ASSERT_TRUE(backup_store(file_, copy_, false, kGoOn));
    ASSERT_TRUE(driver
                    .commit({job_put(3), change::AttemptPut{{9}, {3}, 1, {}, {}, 0, Millis(1)},
                             change::History{"submitted", {3}, {}, {}, "", Millis(1)},
                             change::QueuePut{{5}, {"late", 0}},
                             change::BatchPut{{6}, "late", 0, 0, 0, Millis(1)}})
                    .status);
  }
  const std::string id = instance(file_);
  const auto restored = restore_store(copy_, file_, {{2}, {11}}, Millis(1'700'000'000'000));
  ASSERT_TRUE(restored) << restored.error().message;
  EXPECT_TRUE(restored->same_instance);
  EXPECT_EQ(restored->jobs, 2U);
  EXPECT_EQ(restored->waiting, 1U);
  EXPECT_EQ(restored->running, 1U);
  EXPECT_EQ(restored->unreadable, "");
  EXPECT_EQ(instance(file_), id);
  EXPECT_TRUE(StoreReader::open(restored->kept).value().job({3}).value());
  EXPECT_TRUE(beside("db.restore").empty());
  Driver driver(options_for(file_));
  const Snapshot snapshot = driver.store().load().value();
  EXPECT_EQ(snapshot.jobs.size(), 2U);
  ASSERT_EQ(snapshot.attempts.size(), 1U);
  EXPECT_EQ(snapshot.last_job, JobId{3});
  EXPECT_EQ(snapshot.last_attempt, AttemptId{11}) << "a record on disk had it";
  EXPECT_EQ(snapshot.last_batch, BatchId{6});
  EXPECT_EQ(snapshot.last_queue, QueueId{5});
  ASSERT_TRUE(driver.commit({change::History{"x", {}, {}, {}, "", Millis(2)}}).status);
  EXPECT_EQ(StoreReader::open(file_).value().history({}).value().back().seq, 3U);
}

TEST_F(BackupTest, ABackupOfAnotherInstanceBecomesANewOne) {
  Driver(options_for(dir_ / "other.db")).close();
  ASSERT_TRUE(backup_store(dir_ / "other.db", copy_, false, kGoOn));
  Driver(options_for(file_)).close();
  const std::string before = instance(file_);
  const auto restored = restore_store(copy_, file_, {}, Millis(1));
  ASSERT_TRUE(restored);
  EXPECT_FALSE(restored->same_instance);
  EXPECT_NE(instance(file_), before);
  EXPECT_NE(instance(file_), instance(copy_));
}

TEST_F(BackupTest, AnUnreadableStoreIsReplacedAndKept) {
  Driver(options_for(file_)).close();
  ASSERT_TRUE(backup_store(file_, copy_, false, kGoOn));
  write_bytes(file_, "this is not a database");
  write_bytes(dir_ / "berth.db-wal", "nor is this its log");
  const auto restored = restore_store(copy_, file_, {{40}, {50}}, Millis(1));
  ASSERT_TRUE(restored) << restored.error().message;
  EXPECT_THAT(restored->unreadable, HasSubstr("not an SQLite database"));
  EXPECT_EQ(read_bytes(restored->kept), "this is not a database");
  EXPECT_EQ(read_bytes(restored->kept + "-wal"), "nor is this its log");
  Driver driver(options_for(file_));
  ASSERT_TRUE(driver.is_open());
  EXPECT_EQ(driver.store().load().value().last_job, JobId{40});
}

TEST_F(BackupTest, WhatIsNoBackupIsRefusedAndNothingChanges) {
  Driver(options_for(file_)).close();
  const std::string before = read_bytes(file_);
  write_bytes(copy_, "rubbish");
  auto refused = restore_store(copy_, file_, {}, Millis(1));
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr(copy_.native() + ": not a berth store"));

  fs::copy_file(file_, copy_, fs::copy_options::overwrite_existing);
  std::string damaged = read_bytes(copy_);
  for (std::size_t at = 5 * 4096 + 100; at < 5 * 4096 + 600; ++at) {
    damaged[at] = '\xee';
  }
  damaged.replace(4096, 1'000, 1'000, '\x7f');
  write_bytes(copy_, damaged);
  EXPECT_FALSE(restore_store(copy_, file_, {}, Millis(1)));

  fs::copy_file(file_, copy_, fs::copy_options::overwrite_existing);
  write_bytes(dir_ / "copy-wal", "a log");
  refused = restore_store(copy_, file_, {}, Millis(1));
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("not a backup"));
  EXPECT_FALSE(restore_store(dir_ / "nothing", file_, {}, Millis(1)));
  EXPECT_EQ(read_bytes(file_), before);
  EXPECT_TRUE(beside("restore").empty());
}

TEST_F(BackupTest, ABackupOfVersion1IsBroughtForward) {
  Driver(options_for(file_)).close();
  const auto restored = restore_store(kFixtures / "0.1.0/berth.db", file_, {}, Millis(1));
  ASSERT_TRUE(restored) << restored.error().message;
  EXPECT_EQ(restored->version, 1U);
  EXPECT_EQ(restored->running, 2U);
  Driver driver(options_for(file_));
  ASSERT_TRUE(driver.is_open()) << driver.error().message;
  EXPECT_EQ(driver.store().load().value().last_job, JobId{9});
}

}  // namespace
}  // namespace berth::test
