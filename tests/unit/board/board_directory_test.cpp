// Whatever strangers put on the board: nothing is followed, waited for, believed or crashed on.

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <csignal>
#include <cstring>
#include <functional>

#include "unit/board/a_board.hpp"

namespace berth {
namespace {

namespace fs = std::filesystem;

class BoardDirectoryTest : public BoardTest {
 protected:
  /// Expects that only the one good entry is seen, quickly, beside what `plant` has made.
  void expect_ignored(const std::string& what) const {
    const auto found = seen();
    ASSERT_EQ(found.size(), 1U) << what;
    EXPECT_EQ(found[0].entry.instance, "good") << what;
  }
  [[nodiscard]] std::string mine(const std::string& instance) const {
    return board_place_name(::geteuid(), instance);
  }
};

TEST_F(BoardDirectoryTest, GarbageOfAllKindsIsLeftOut) {
  put(entry_of("good", true));
  const std::string good = encode_board_entry(entry_of("x", true));
  put(mine("x"), "");
  put(mine("cut"), good.substr(0, good.size() / 2));
  put(mine("other-name"), good);  // a valid text in a place of another name
  put(mine("huge"), std::string(kBoardTextMax + 1, 'x'));
  put(board_place_name(::geteuid() + 1, "x"), good);  // the place is not that user's
  {
    BoardEntry lie = entry_of("lie", true);
    lie.uid += 1;
    put(mine("lie"), encode_board_entry(lie));
  }
  std::ofstream(dir + "/" + mine("file")) << good;
  fs::create_directory(dir + "/" + mine("empty"));
  fs::create_directory_symlink(dir + "/" + mine("good"), dir + "/" + mine("link"));
  fs::create_directories(dir + "/" + mine("directory") + "/claims");
  for (const char* odd : {"berth-", "berth-x-y", "berth-1", "berth-1-", "berth--1-a", "berth-+1-a",
                          "berth-99999999999-a", "berth-01-a", "other", "berth-1-a b"}) {
    fs::create_directory(dir + "/" + odd);
  }
  expect_ignored("a heap of garbage");
}

TEST_F(BoardDirectoryTest, APipeIsNotWaitedFor) {
  put(entry_of("good", true));
  const std::string place = dir + "/" + mine("pipe");
  fs::create_directory(place);
  ASSERT_EQ(::mkfifo((place + "/claims").c_str(), 0666), 0);
  ASSERT_EQ(::mkfifo((dir + "/" + mine("pipe-as-place")).c_str(), 0666), 0);
  expect_ignored("pipes");
}

TEST_F(BoardDirectoryTest, LinksAreNotFollowed) {
  put(entry_of("good", true));
  const std::string place = put(mine("x"), "");
  fs::remove(place + "/claims");
  std::ofstream(dir + "/elsewhere") << encode_board_entry(entry_of("x", true));
  fs::create_symlink(dir + "/elsewhere", place + "/claims");
  expect_ignored("a symbolic link");
  fs::remove(place + "/claims");
  fs::create_symlink("/dev/zero", place + "/claims");
  expect_ignored("a link to a device");
}

TEST_F(BoardDirectoryTest, AHardLinkNeitherHidesNorForges) {
  const std::string place = put(entry_of("good", true));
  fs::create_hard_link(place + "/claims", dir + "/stolen");
  const std::string forged = put(mine("forged"), "");
  fs::remove(forged + "/claims");
  fs::create_hard_link(place + "/claims", forged + "/claims");
  expect_ignored("a hard link");
}

TEST_F(BoardDirectoryTest, APlaceInWhichOthersCanWriteIsNotBelieved) {
  put(entry_of("good", true));
  const std::string place = put(entry_of("open", true));
  ASSERT_EQ(::chmod(place.c_str(), 0777), 0);
  expect_ignored("a place open to others");
}

TEST_F(BoardDirectoryTest, AFileOfSomebodyElseIsNotBelieved) {
  if (::geteuid() != 0) {
    // Only root can give files away; an ordinary user can at least claim to be somebody else.
    put(entry_of("good", true));
    put(board_place_name(0, "x"), encode_board_entry({0, "x", "boot-1", {}}));
    expect_ignored("a place in another's name");
    return;
  }
  put(entry_of("good", true));
  const std::string place = put(entry_of("given", true));
  ASSERT_EQ(::chown((place + "/claims").c_str(), 12345, 12345), 0);
  const std::string place2 = put(entry_of("given2", true));
  ASSERT_EQ(::chown(place2.c_str(), 12345, 12345), 0);
  expect_ignored("files of another user");
}

TEST_F(BoardDirectoryTest, AFileWithALeaseIsNotWaitedFor) {
  put(entry_of("good", true));
  const std::string place = put(entry_of("lease", true));
  const Fd file(::open((place + "/claims").c_str(), O_RDWR | O_CLOEXEC));
  ::signal(SIGIO, SIG_IGN);
  if (::fcntl(file.get(), F_SETLEASE, F_WRLCK) == 0) {
    expect_ignored("a leased file");
  }
}

TEST_F(BoardDirectoryTest, ADirectoryThatOthersCanTidyUpIsRefused) {
  ASSERT_EQ(::chmod(dir.c_str(), 0777), 0);
  const auto refused = BoardDirectory::open(dir);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("sticky"), std::string::npos);
  EXPECT_FALSE(BoardDirectory::open(dir + "/nothing"));
  fs::create_directory_symlink("/tmp", dir + "/link");
  EXPECT_FALSE(BoardDirectory::open(dir + "/link"));
}

TEST_F(BoardDirectoryTest, OnlyADaemonThatListensIsAlive) {
  const auto board = open("alive");
  ASSERT_TRUE(board->begin({{"GPU-0", AttemptId{1}, 0, now, ClaimState::held}}));
  const auto found = seen();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_TRUE(directory().answers(found[0]));
  // However many ask, and whether or not it has time for them.
  for (int turn = 0; turn < 400; ++turn) {
    EXPECT_TRUE(directory().answers(found[0])) << turn;
  }
  put(entry_of("dead", true));
  const std::string path = dir + "/" + mine("dead") + "/alive";
  const FoundEntry dead{mine("dead"), entry_of("dead", true)};
  EXPECT_FALSE(directory().answers(dead)) << "no socket at all";
  std::ofstream(path) << "not a socket";
  EXPECT_FALSE(directory().answers(dead));
  fs::remove(path);
  fs::create_symlink(dir + "/" + mine("alive") + "/alive", path);
  EXPECT_FALSE(directory().answers(dead)) << "a link to a socket that is alive";
}

TEST_F(BoardDirectoryTest, ADaemonThatWasKilledIsNotAlive) {
  std::array<int, 2> ready{};
  ASSERT_EQ(::pipe(ready.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto board = open("child");
    const bool begun =
        board->begin({{"GPU-0", AttemptId{1}, 0, now, ClaimState::held}}).has_value();
    const char word = begun ? 'y' : 'n';
    [[maybe_unused]] const ssize_t told = ::write(ready[1], &word, 1);
    ::pause();
    ::_exit(0);
  }
  char word = 0;
  ASSERT_EQ(::read(ready[0], &word, 1), 1);
  ASSERT_EQ(word, 'y');
  const auto found = seen();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_TRUE(directory().answers(found[0]));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_FALSE(directory().answers(found[0]));
  EXPECT_EQ(seen().size(), 1U) << "what it said still stands";
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST_F(BoardDirectoryTest, ASocketOfAnotherUserIsNoSignOfLife) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "takes root: a process of another user must listen in our place";
  }
  const std::string place = put(entry_of("x", true));
  ASSERT_EQ(::chmod(place.c_str(), 0777), 0);
  std::array<int, 2> ready{};
  ASSERT_EQ(::pipe(ready.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setuid(12345) != 0) {
      ::_exit(1);
    }
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = place + "/alive";
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
    const bool listens =
        ::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&  // NOLINT
        ::listen(fd, 5) == 0;
    const char word = listens ? 'y' : 'n';
    [[maybe_unused]] const ssize_t told = ::write(ready[1], &word, 1);
    ::pause();
    ::_exit(0);
  }
  char word = 0;
  ASSERT_EQ(::read(ready[0], &word, 1), 1);
  ASSERT_EQ(word, 'y');
  ASSERT_EQ(::chmod(place.c_str(), 0755), 0);
  const FoundEntry entry{mine("x"), entry_of("x", true)};
  EXPECT_FALSE(directory().answers(entry)) << "the socket is another's file";
  ASSERT_EQ(::chown((place + "/alive").c_str(), 0, 0), 0);
  EXPECT_FALSE(directory().answers(entry)) << "the file is ours, who listens is not";
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ::close(ready[0]);
  ::close(ready[1]);
}

}  // namespace
}  // namespace berth
