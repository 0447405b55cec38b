// Files that cannot be used: each gives an error that names the file and the next step, and is left
// byte for byte as it was.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>

#include "store/schema.hpp"
#include "support.hpp"

namespace berth::test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class OpenTest : public testing::Test {
 protected:
  void make_store() {
    Driver driver(options_for(file_));
    ASSERT_TRUE(driver.is_open());
    ASSERT_TRUE(driver.commit({job_put(1)}).status);
  }

  void sql(const char* statements) {
    Db db = Db::open(file_, Db::Mode::create).value();
    const Status done = db.exec(statements);
    ASSERT_TRUE(done) << done.error().message;
  }

  /// Opening fails with this code and these words, and changes nothing.
  void expect_refused(ErrorCode code, const std::vector<std::string>& words) {
    const std::string before = read_bytes(file_);
    const std::string wal_before = read_bytes(wal_);
    {
      Driver driver(options_for(file_));
      ASSERT_FALSE(driver.is_open());
      EXPECT_EQ(driver.error().code, code) << driver.error().message;
      EXPECT_THAT(driver.error().message, HasSubstr(file_.native()));
      for (const auto& word : words) {
        EXPECT_THAT(driver.error().message, HasSubstr(word));
      }
    }
    EXPECT_TRUE(read_bytes(file_) == before) << "the file has changed";
    EXPECT_TRUE(read_bytes(wal_) == wal_before) << "the log has changed";
  }

  TempDir dir_;
  fs::path file_ = dir_ / "store.db";
  fs::path wal_ = dir_ / "store.db-wal";
};

TEST_F(OpenTest, ATextFileIsLeftAlone) {
  write_bytes(file_, "these are my notes\n" + std::string(5'000, 'x'));
  expect_refused(ErrorCode::corrupt, {"not an SQLite database", "Move it away"});
  write_bytes(file_, "short");
  expect_refused(ErrorCode::corrupt, {"not an SQLite database"});
}

TEST_F(OpenTest, AnEmptyFileIsLeftAlone) {
  write_bytes(file_, "");
  expect_refused(ErrorCode::corrupt, {"empty"});
}

TEST_F(OpenTest, TheDatabaseOfAnotherProgramIsLeftAlone) {
  sql("CREATE TABLE songs(title)");
  expect_refused(ErrorCode::corrupt, {"another program"});
  sql("PRAGMA application_id=1234; PRAGMA user_version=1; PRAGMA journal_mode=WAL");
  expect_refused(ErrorCode::corrupt, {"another program"});
}

TEST_F(OpenTest, ADirectoryInItsPlaceIsLeftAlone) {
  fs::create_directory(file_);
  Driver driver(options_for(file_));
  ASSERT_FALSE(driver.is_open());
  EXPECT_THAT(driver.error().message, HasSubstr("not a regular file"));
}

TEST_F(OpenTest, AStoreOfANewerVersionIsLeftAlone) {
  make_store();
  sql("PRAGMA user_version=9");
  expect_refused(ErrorCode::refused, {"newer berth", "version 9"});
}

TEST_F(OpenTest, ANewerVersionThatIsOnlyInTheLogIsSeenToo) {
  make_store();
  std::string image;
  std::string log;
  {
    Db db = Db::open(file_, Db::Mode::read_write).value();
    ASSERT_TRUE(db.exec("PRAGMA user_version=7; INSERT INTO meta VALUES('a','b')"));
    image = read_bytes(file_);  // as a crash at this instant leaves it
    log = read_bytes(wal_);
  }
  write_bytes(file_, image);
  write_bytes(wal_, log);
  expect_refused(ErrorCode::refused, {"newer berth", "version 7"});
}

TEST_F(OpenTest, ATruncatedStoreIsLeftAlone) {
  make_store();
  fs::resize_file(file_, 8192);
  expect_refused(ErrorCode::corrupt, {"damaged", "Restore a backup"});
}

TEST_F(OpenTest, ADamagedFirstPageIsLeftAlone) {
  make_store();
  std::string bytes = read_bytes(file_);
  for (std::size_t i = 100; i < 2'000; ++i) {
    bytes[i] = static_cast<char>(0xaa);
  }
  write_bytes(file_, bytes);
  expect_refused(ErrorCode::corrupt, {"restore a backup"});
}

TEST_F(OpenTest, AMissingTableIsNamed) {
  make_store();
  sql("DROP TABLE history");
  expect_refused(ErrorCode::corrupt, {"'history' is missing"});
}

TEST_F(OpenTest, ALogWithoutItsDatabaseIsNotReplayedIntoANewOne) {
  write_bytes(wal_, std::string(4'152, 'w'));
  {
    Driver driver(options_for(file_));
    ASSERT_FALSE(driver.is_open());
    EXPECT_THAT(driver.error().message, HasSubstr("store.db-wal is there"));
  }
  EXPECT_FALSE(fs::exists(file_));
}

TEST_F(OpenTest, AMissingDirectoryIsNamed) {
  Driver driver(options_for(dir_ / "none/store.db"));
  ASSERT_FALSE(driver.is_open());
  EXPECT_THAT(driver.error().message, HasSubstr("none/store.db"));
  EXPECT_THAT(driver.error().message, HasSubstr("No such file or directory"));
}

TEST_F(OpenTest, AnAbandonedDraftIsReplaced) {
  write_bytes(dir_ / "store.db.new", "half a file");
  make_store();
  EXPECT_FALSE(fs::exists(dir_ / "store.db.new"));
}

TEST_F(OpenTest, DamageFurtherInIsFoundByTheFullCheck) {
  make_store();
  std::string bytes = read_bytes(file_);
  std::fill(bytes.begin() + 4'096, bytes.begin() + 20'480, '\x55');
  write_bytes(file_, bytes);
  Db db = Db::open(file_, Db::Mode::read_only).value();
  const Status whole = check_integrity(db);
  ASSERT_FALSE(whole);
  EXPECT_EQ(whole.error().code, ErrorCode::corrupt);
}

TEST_F(OpenTest, ASecondStoreOnTheSameFileIsRefusedWhileTheFirstGoesOn) {
  Driver first(options_for(file_));
  ASSERT_TRUE(first.commit({job_put(1)}).status);
  {
    Driver second(options_for(file_));
    ASSERT_FALSE(second.is_open());
    EXPECT_EQ(second.error().code, ErrorCode::unavailable);
    EXPECT_THAT(second.error().message, HasSubstr("process " + std::to_string(::getpid())));
  }
  EXPECT_TRUE(first.commit({job_put(2)}).status);
  first.close();
  EXPECT_EQ(Driver(options_for(file_)).store().load().value().jobs.size(), 2U);
}

/// Runs `body` in a process of its own, which gives back a text.
std::string in_child(const std::function<std::string()>& body) {
  int fds[2];
  if (::pipe(fds) != 0) {
    return "no pipe";
  }
  const pid_t child = ::fork();
  if (child == 0) {
    const std::string text = body();
    ::_exit(::write(fds[1], text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0 : 1);
  }
  ::close(fds[1]);
  std::string text;
  char buffer[512];
  for (ssize_t got = 0; (got = ::read(fds[0], buffer, sizeof buffer)) > 0;) {
    text.append(buffer, static_cast<std::size_t>(got));
  }
  ::close(fds[0]);
  ::waitpid(child, nullptr, 0);
  return text;
}

std::string open_as_ordinary_user(const fs::path& file) {
  return in_child([&]() -> std::string {
    // Permissions mean nothing to root.
    if (::getuid() == 0 &&
        (::setresgid(65534, 65534, 65534) != 0 || ::setresuid(65534, 65534, 65534) != 0)) {
      return "cannot become another user";
    }
    Driver driver(options_for(file));
    return driver.is_open() ? "opened" : driver.error().message;
  });
}

TEST_F(OpenTest, AStoreInUseByAnotherProcessIsRefused) {
  Driver first(options_for(file_));
  const std::string message = in_child([&]() -> std::string {
    Driver second(options_for(file_));
    return second.is_open() ? "opened" : second.error().message;
  });
  EXPECT_THAT(message,
              HasSubstr("is locked: another berthd (process " + std::to_string(::getpid()) + ")"));
}

TEST_F(OpenTest, ALockOfAnotherProgramIsReported) {
  make_store();
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    sqlite3* db = nullptr;
    const bool locked = sqlite3_open(file_.c_str(), &db) == SQLITE_OK &&
                        sqlite3_exec(db, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr) == SQLITE_OK;
    if (::write(ready[1], locked ? "y" : "n", 1) == 1) {
      ::pause();
    }
    ::_exit(1);
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  EXPECT_EQ(byte, 'y');
  expect_refused(ErrorCode::unavailable, {"locked", "end that process"});
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ::close(ready[0]);
  ::close(ready[1]);
  EXPECT_TRUE(Driver(options_for(file_)).is_open());
}

TEST_F(OpenTest, AReadOnlyFileIsReported) {
  make_store();
  const std::string before = read_bytes(file_);
  fs::permissions(dir_.path(), fs::perms::all);
  fs::permissions(dir_ / "store.db.lock", fs::perms::all);
  fs::permissions(file_, fs::perms(0444));
  const std::string message = open_as_ordinary_user(file_);
  EXPECT_THAT(message, HasSubstr(file_.native() + ": read-only"));
  EXPECT_THAT(message, HasSubstr("make the file writable"));
  EXPECT_TRUE(read_bytes(file_) == before);
}

TEST_F(OpenTest, AnUnreadableFileIsReported) {
  make_store();
  fs::permissions(dir_.path(), fs::perms::all);
  fs::permissions(dir_ / "store.db.lock", fs::perms::all);
  fs::permissions(file_, fs::perms::none);
  EXPECT_THAT(open_as_ordinary_user(file_),
              HasSubstr("cannot open " + file_.native() + ": Permission denied"));
}

TEST_F(OpenTest, AReadOnlyDirectoryIsReported) {
  fs::permissions(dir_.path(), fs::perms(0555));
  const std::string message = open_as_ordinary_user(file_);
  EXPECT_THAT(message, HasSubstr("cannot write in " + dir_.path().native()));
  EXPECT_THAT(message, HasSubstr("BERTH_DIR"));
  EXPECT_FALSE(fs::exists(file_));
  fs::permissions(dir_.path(), fs::perms::all);
}

TEST_F(OpenTest, AReaderRefusesWhatIsNotAStore) {
  EXPECT_FALSE(StoreReader::open(file_));
  write_bytes(file_, std::string(5'000, 'x'));
  EXPECT_FALSE(StoreReader::open(file_));
  fs::remove(file_);
  make_store();
  EXPECT_TRUE(StoreReader::open(file_));
  sql("PRAGMA user_version=9");
  const auto newer = StoreReader::open(file_);
  ASSERT_FALSE(newer);
  EXPECT_THAT(newer.error().message, HasSubstr("newer berth"));
}

}  // namespace
}  // namespace berth::test
