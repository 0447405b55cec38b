// Power cuts: every write and sync of a run is recorded, and for the instants around each sync the
// disk is rebuilt as a power cut could have left it. Each such disk must open, be whole, and hold a
// prefix of the transactions that contains every answered one.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <random>

#include "store/reader.hpp"
#include "support.hpp"
#include "test_vfs.hpp"

namespace berth::test {
namespace {

constexpr std::size_t kSector = 512;

struct Recording {
  std::string base;  ///< the database before the first operation; there is no log
  std::vector<DiskOp> ops;
  std::vector<std::size_t> answered;  ///< number of operations before the k-th answer
  std::vector<std::string> states;    ///< after k transactions
};

Recording record_run(std::uint64_t seed, int transactions) {
  Recording recording;
  const TempDir dir;
  {  // the states that are right, from an undisturbed twin
    Workload workload(seed);
    Driver driver(options_for(dir / "twin.db"));
    recording.states.push_back(dump(dir / "twin.db"));
    for (int n = 0; n < transactions; ++n) {
      EXPECT_TRUE(driver.commit(workload.next()).status);
      recording.states.push_back(dump(dir / "twin.db"));
    }
  }
  StoreOptions options = options_for(dir / "store.db");
  options.vfs = kTestVfs;
  options.checkpoint_pages = 15;  // several checkpoints, and a log that starts over
  Driver(options).close();
  recording.base = read_bytes(options.file);
  start_recording();
  {
    Workload workload(seed);
    Driver driver(options);
    bool asks_again = false;
    driver.on_answer = [&] {
      if (!asks_again) {
        recording.answered.push_back(recorded());
      }
    };
    for (int n = 0; n < transactions; ++n) {
      EXPECT_TRUE(driver.commit(workload.next()).status);
      // The copying back goes on beside the commits; twice it is waited for, so that there is some
      // of it in every recording. A commit asks for none while a pass is still under way, and after
      // these no other follows: trimming nothing, which writes nothing, asks again.
      if (n == 12 || n == 24) {
        asks_again = true;
        EXPECT_TRUE(wait_for([&] {
          EXPECT_TRUE(driver.trim({}));
          return recorded_database_syncs() >= (n == 12 ? 1U : 2U);
        }));
        asks_again = false;
      }
    }
    driver.on_answer = nullptr;
  }
  recording.ops = stop_recording();
  return recording;
}

enum class Damage {
  drop,     ///< nothing after the last sync of a file arrived
  keep,     ///< everything arrived
  subset,   ///< some writes arrived, others did not
  sectors,  ///< the same for every single sector: torn and out of order
};

struct File {
  bool exists = false;
  std::string bytes;
};

void write_at(File& file, std::size_t offset, std::string_view bytes) {
  file.exists = true;
  if (file.bytes.size() < offset + bytes.size()) {
    file.bytes.resize(offset + bytes.size(), '\0');
  }
  file.bytes.replace(offset, bytes.size(), bytes);
}

void apply(File& file, const DiskOp& op) {
  switch (op.kind) {
    case DiskOp::Kind::write:
      write_at(file, static_cast<std::size_t>(op.offset), op.bytes);
      break;
    case DiskOp::Kind::truncate:
      file.bytes.resize(static_cast<std::size_t>(op.offset), '\0');
      break;
    case DiskOp::Kind::erase:
      file = {};
      break;
    case DiskOp::Kind::sync:
      break;
  }
}

void apply_sectors(File& file, const DiskOp& op, std::mt19937_64& random) {
  const auto begin = static_cast<std::size_t>(op.offset);
  const std::size_t end = begin + op.bytes.size();
  for (std::size_t at = begin; at < end;) {
    const std::size_t next = std::min(end, (at / kSector + 1) * kSector);
    if (random() % 3 != 0) {
      write_at(file, at, std::string_view(op.bytes).substr(at - begin, next - at));
    }
    at = next;
  }
}

/// The disk after a power cut that follows the first `cut` operations.
std::array<File, 2> image(const Recording& recording, std::size_t cut, Damage damage,
                          std::mt19937_64& random) {
  std::array<std::size_t, 2> synced{};
  for (std::size_t i = 0; i < cut; ++i) {
    if (recording.ops[i].kind == DiskOp::Kind::sync) {
      synced[recording.ops[i].wal ? 1 : 0] = i;
    }
  }
  std::array<File, 2> files;
  files[0] = {true, recording.base};
  for (std::size_t i = 0; i < cut; ++i) {
    const DiskOp& op = recording.ops[i];
    const std::size_t which = op.wal ? 1 : 0;
    const bool safe = i < synced[which] || damage == Damage::keep;
    if (!safe && damage == Damage::sectors && op.kind == DiskOp::Kind::write) {
      apply_sectors(files[which], op, random);
    } else if (safe || (damage != Damage::drop && random() % 2 == 0)) {
      apply(files[which], op);
    }
  }
  return files;
}

class CrashImageTest : public testing::Test {
 protected:
  CrashImageTest() {
    install_test_vfs();
    set_disk_sync_free(true);
  }
  ~CrashImageTest() override { set_disk_sync_free(false); }

  void check(const Recording& recording, std::size_t cut, Damage damage, std::mt19937_64& random) {
    const auto files = image(recording, cut, damage, random);
    write_bytes(file_, files[0].bytes);
    const auto wal = dir_ / "store.db-wal";
    std::filesystem::remove(dir_ / "store.db-shm");
    std::filesystem::remove(wal);
    if (files[1].exists) {
      write_bytes(wal, files[1].bytes);
    }
    StoreOptions options = options_for(file_);
    options.vfs = kTestVfs;
    Driver driver(options);
    ASSERT_TRUE(driver.is_open()) << driver.error().message;
    const auto snapshot = driver.store().load();
    ASSERT_TRUE(snapshot) << snapshot.error().message;
    StoreReader reader = StoreReader::open(file_, kTestVfs).value();
    const Status whole = reader.check_integrity();
    ASSERT_TRUE(whole) << whole.error().message;
    const auto answered = static_cast<std::size_t>(
        std::ranges::count_if(recording.answered, [&](std::size_t at) { return at <= cut; }));
    const std::string found = dump(file_, kTestVfs);
    const bool exact = found == recording.states[answered];
    const bool one_more =
        answered + 1 < recording.states.size() && found == recording.states[answered + 1];
    EXPECT_TRUE(exact || one_more)
        << answered << " transactions were answered, and the store holds something else";
    ++images_;
    ahead_ += one_more && !exact ? 1 : 0;
  }

  TempDir dir_;
  std::filesystem::path file_ = dir_ / "store.db";
  int images_ = 0;
  int ahead_ = 0;  ///< images that hold a transaction nobody had heard of yet
};

TEST_F(CrashImageTest, EveryPowerCutLeavesAPrefixWithEverythingAnswered) {
  for (const std::uint64_t seed : {11U, 12U, 13U}) {
    const Recording recording = record_run(seed, 25);
    ASSERT_EQ(recording.answered.size(), 25U);
    const auto count = [&](bool wal, DiskOp::Kind kind) {
      return std::ranges::count_if(
          recording.ops, [&](const DiskOp& op) { return op.wal == wal && op.kind == kind; });
    };
    ASSERT_GE(count(true, DiskOp::Kind::sync), 25);
    ASSERT_GE(count(false, DiskOp::Kind::sync), 2) << "no checkpoint was recorded";
    std::mt19937_64 random(seed);
    for (std::size_t i = 0; i < recording.ops.size(); ++i) {
      if (recording.ops[i].kind != DiskOp::Kind::sync) {
        continue;
      }
      SCOPED_TRACE(testing::Message() << "seed " << seed << ", sync at operation " << i);
      for (const std::size_t cut : {i, i + 1}) {
        for (const Damage damage : {Damage::drop, Damage::subset, Damage::sectors}) {
          ASSERT_NO_FATAL_FAILURE(check(recording, cut, damage, random));
        }
      }
    }
    for (int n = 0; n < 40; ++n) {  // and at any instant between
      const std::size_t cut = random() % (recording.ops.size() + 1);
      SCOPED_TRACE(testing::Message() << "seed " << seed << ", cut at operation " << cut);
      ASSERT_NO_FATAL_FAILURE(check(recording, cut, Damage::keep, random));
      ASSERT_NO_FATAL_FAILURE(check(recording, cut, Damage::sectors, random));
    }
  }
  EXPECT_GE(images_, 500);
  EXPECT_GT(ahead_, 0) << "no image was taken between a commit and its answer";
  RecordProperty("images", images_);
}

/// The check itself is checked: a disk that lies about a sync must be found out.
TEST_F(CrashImageTest, ALostSyncedWriteIsNoticed) {
  Recording recording = record_run(21, 10);
  ASSERT_EQ(recording.answered.size(), 10U);
  const std::size_t answered = recording.answered[6];
  std::erase_if(recording.ops, [](const DiskOp& op) { return op.kind == DiskOp::Kind::sync; });
  std::mt19937_64 random(1);
  const auto files =
      image(recording, std::min(answered, recording.ops.size()), Damage::drop, random);
  write_bytes(file_, files[0].bytes);
  Driver driver(options_for(file_));
  ASSERT_TRUE(driver.is_open());
  EXPECT_NE(dump(file_), recording.states[7]);
  EXPECT_EQ(dump(file_), recording.states[0]);
}

}  // namespace
}  // namespace berth::test
