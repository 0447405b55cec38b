// Disks that fill up and disks that fail.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <atomic>

#include "support.hpp"
#include "test_vfs.hpp"

namespace berth::test {
namespace {

using testing::HasSubstr;
using Kind = DiskOp::Kind;

class FaultTest : public testing::Test {
 protected:
  FaultTest() {
    install_test_vfs();
    options_ = options_for(file_);
    options_.vfs = kTestVfs;
    options_.ballast = kMiB;
    options_.low_space_margin = 4 * kMiB;
    options_.free_space = [this](const auto&) -> Result<Bytes> { return free_.load(); };
  }
  ~FaultTest() override { set_disk_fault({}); }

  [[nodiscard]] bool ballast_there() const { return std::filesystem::exists(ballast_); }

  std::uint64_t jobs_after_restart() {
    set_disk_fault({});
    return Driver(options_for(file_)).store().load().value().jobs.size();
  }

  TempDir dir_;
  std::filesystem::path file_ = dir_ / "store.db";
  std::filesystem::path ballast_ = dir_ / "store.db.ballast";
  std::atomic<Bytes> free_ = kGiB;
  StoreOptions options_;
};

TEST_F(FaultTest, WithRoomTheBallastLiesThereAndNothingIsLow) {
  Driver driver(options_);
  EXPECT_EQ(std::filesystem::file_size(ballast_), kMiB);
  const auto outcome = driver.commit({job_put(1)});
  EXPECT_TRUE(outcome.status);
  EXPECT_FALSE(outcome.low_space);
  EXPECT_EQ(outcome.space_detail, "");
}

TEST_F(FaultTest, AFullDiskFreesTheBallastAndTheTransactionIsDurable) {
  Driver driver(options_);
  ASSERT_TRUE(driver.commit({job_put(1)}).status);
  // Full as long as the ballast takes up the space.
  set_disk_fault([this](const DiskOp& op) {
    return op.kind == Kind::write && std::filesystem::exists(ballast_) ? SQLITE_FULL : SQLITE_OK;
  });
  free_ = 0;
  const auto outcome = driver.commit({job_put(2), job_update(1, JobState::succeeded)});
  ASSERT_TRUE(outcome.status) << outcome.status.error().message;
  EXPECT_TRUE(outcome.low_space);
  EXPECT_THAT(outcome.space_detail, HasSubstr(dir_.path().native() + ": 0 B free; "));
  EXPECT_FALSE(ballast_there());
  EXPECT_EQ(driver.store().load().value().jobs.size(), 1U);

  // Still low while there is room for the margin alone, over when there is room for both.
  set_disk_fault({});
  free_ = 4 * kMiB;
  EXPECT_TRUE(driver.check_space().low);
  EXPECT_FALSE(ballast_there());
  free_ = 5 * kMiB;
  EXPECT_FALSE(driver.check_space().low);
  EXPECT_TRUE(ballast_there());
  EXPECT_FALSE(driver.commit({job_put(3)}).low_space);
}

TEST_F(FaultTest, ADiskFullInTheMiddleOfALargeTransactionLeavesAWholeStore) {
  Driver driver(options_);
  ASSERT_TRUE(driver.commit({job_put(1)}).status);
  int writes = 0;
  set_disk_fault([&](const DiskOp& op) {
    return op.kind == Kind::write && ballast_there() && ++writes > 20 ? SQLITE_FULL : SQLITE_OK;
  });
  Changes changes;
  for (std::uint64_t id = 2; id <= 2'000; ++id) {
    changes.push_back(job_put(id));
  }
  ASSERT_TRUE(driver.commit(std::move(changes)).status);
  EXPECT_FALSE(ballast_there());
  StoreReader reader = StoreReader::open(file_).value();
  EXPECT_TRUE(reader.check_integrity());
  EXPECT_EQ(reader.counts().value()[0], 2'000U);
  driver.close();
  EXPECT_EQ(jobs_after_restart(), 2'000U);
}

TEST_F(FaultTest, WhatDoesNotFitEvenWithoutTheBallastIsAnErrorAndTheEnd) {
  {
    Driver driver(options_);
    ASSERT_TRUE(driver.commit({job_put(1)}).status);
    int full = 0;
    set_disk_fault(
        [&](const DiskOp& op) { return op.kind == Kind::write ? ++full, SQLITE_FULL : SQLITE_OK; });
    const auto outcome = driver.commit({job_put(2)});
    ASSERT_FALSE(outcome.status);
    EXPECT_EQ(outcome.status.error().code, ErrorCode::no_space);
    EXPECT_THAT(outcome.status.error().message, HasSubstr(file_.native()));
    EXPECT_EQ(full, 2) << "once, and once again without the ballast";
    set_disk_fault({});
    EXPECT_FALSE(driver.commit({job_put(3)}).status) << "nothing may follow an error";
  }
  EXPECT_EQ(jobs_after_restart(), 1U);
}

TEST_F(FaultTest, ANearlyFullDiskIsReportedBeforeItIsFull) {
  free_ = 4 * kMiB - 1;
  Driver driver(options_);
  const auto outcome = driver.commit({job_put(1)});
  EXPECT_TRUE(outcome.status);
  EXPECT_TRUE(outcome.low_space);
  EXPECT_THAT(outcome.space_detail, HasSubstr("free"));
  EXPECT_FALSE(ballast_there());
}

TEST_F(FaultTest, AFailedSyncIsNeverRepeated) {
  {
    Driver driver(options_);
    ASSERT_TRUE(driver.commit({job_put(1)}).status);
    int syncs = 0;
    set_disk_fault([&](const DiskOp& op) {
      return op.kind == Kind::sync ? ++syncs, SQLITE_IOERR_FSYNC : SQLITE_OK;
    });
    const auto outcome = driver.commit({job_put(2)});
    ASSERT_FALSE(outcome.status);
    EXPECT_EQ(outcome.status.error().code, ErrorCode::io);
    EXPECT_THAT(outcome.status.error().message, HasSubstr(file_.native()));
    EXPECT_FALSE(driver.commit({job_put(3)}).status);
    EXPECT_TRUE(ballast_there()) << "that is no matter of space";
    driver.close();
    EXPECT_EQ(syncs, 1);
  }
  // The failed transaction may or may not have reached the disk; the answered one has.
  EXPECT_GE(jobs_after_restart(), 1U);
}

TEST_F(FaultTest, AFailedWriteIsAnErrorAndLeavesTheRestWhole) {
  {
    Driver driver(options_);
    ASSERT_TRUE(driver.commit({job_put(1)}).status);
    int writes = 0;
    set_disk_fault([&](const DiskOp& op) {
      return op.kind == Kind::write && ++writes == 3 ? SQLITE_IOERR_WRITE : SQLITE_OK;
    });
    const auto outcome = driver.commit({job_put(2), job_put(3)});
    ASSERT_FALSE(outcome.status);
    EXPECT_EQ(outcome.status.error().code, ErrorCode::io);
  }
  EXPECT_EQ(jobs_after_restart(), 1U);
}

TEST_F(FaultTest, AFailedCheckpointLosesNothingAndEndsTheStore) {
  options_.checkpoint_pages = 1;
  {
    Driver driver(options_);
    std::atomic<int> failed = 0;
    set_disk_fault([&](const DiskOp& op) {
      return op.kind == Kind::sync && !op.wal ? ++failed, SQLITE_IOERR_FSYNC : SQLITE_OK;
    });
    ASSERT_TRUE(driver.commit({job_put(1)}).status) << "it was durable before the checkpoint";
    ASSERT_TRUE(wait_for([&] { return failed > 0; }));
    CommitOutcome refused;  // the failure is found by the thread that copies, beside the commits
    ASSERT_TRUE(wait_for([&] { return !(refused = driver.commit(Changes{})).status; }));
    EXPECT_EQ(refused.status.error().code, ErrorCode::io);
    EXPECT_EQ(failed, 1);
  }
  EXPECT_EQ(jobs_after_restart(), 1U);
}

TEST_F(FaultTest, ADiskTooFullForACheckpointGoesOnWithTheLog) {
  options_.checkpoint_pages = 1;
  {
    Driver driver(options_);
    set_disk_fault([](const DiskOp& op) {
      return op.kind == Kind::write && !op.wal ? SQLITE_FULL : SQLITE_OK;
    });
    for (std::uint64_t id = 1; id <= 5; ++id) {
      EXPECT_TRUE(driver.commit({job_put(id)}).status);
    }
    set_disk_fault({});
  }
  EXPECT_EQ(jobs_after_restart(), 5U);
}

TEST(BallastTest, WhatAKilledProcessLeftBehindIsTakenOver) {
  const TempDir dir;
  const auto room = [](const auto&) -> Result<Bytes> { return kGiB; };
  const auto none = [](const auto&) -> Result<Bytes> { return 10 * kKiB; };
  {
    const Ballast first(dir / "s", 256 * kKiB, 0, room);
  }
  EXPECT_TRUE(Ballast(dir / "s", 256 * kKiB, 0, none).held());
  EXPECT_FALSE(Ballast(dir / "s", 512 * kKiB, 0, none).held()) << "it is not the whole reserve";
}

TEST(BallastTest, TheRealFileSystemIsAsked) {
  const TempDir dir;
  const auto available = free_space(dir.path());
  ASSERT_TRUE(available);
  EXPECT_GT(*available, 0U);
  EXPECT_FALSE(free_space(dir / "none"));
}

}  // namespace
}  // namespace berth::test
