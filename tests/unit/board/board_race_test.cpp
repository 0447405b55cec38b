// Two berths race for one card, thousands of times, and one of them is killed now and then, among
// remains of daemons that are gone and what somebody leaves there who wishes them ill.
//
// As root the two are different users (65534 and 12345), as they are meant to be. An ordinary user
// cannot become another, so they are two instances of one user: the same protocol, but the board
// cannot tell them apart by the owner of a file.

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <new>
#include <random>
#include <thread>

#include <fmt/format.h>

#include "unit/board/a_board.hpp"

namespace berth {
namespace {

constexpr int kRacers = 2;
#ifndef __has_feature
#define __has_feature(what) 0  // GCC has none
#endif
#if __has_feature(address_sanitizer)
constexpr int kSlowness = 10;  // it looks for other faults than a race has
#else
constexpr int kSlowness = 1;
#endif
constexpr std::uint64_t kTurns = 3'000 / kSlowness;
constexpr std::uint64_t kTurnsEach = 300 / kSlowness;
constexpr int kKills = 40 / kSlowness;
constexpr std::chrono::seconds kPatience{240};

/// Late enough for what was claimed at 0 to have lapsed, however lately the machine has booted.
Millis race_clock() {
  return read_clock().mono + std::chrono::hours(1);
}

/// What the racers and the referee see of each other, besides the board.
struct Track {
  std::atomic<int> holder{0};  ///< 1 + the racer that has the card
  std::atomic<std::uint64_t> clashes{0};
  std::atomic<std::uint64_t> errors{0};
  std::array<std::atomic<std::uint64_t>, kRacers> turns{};
  std::atomic<bool> over{false};
};

class BoardRaceTest : public BoardTest {
 protected:
  void SetUp() override {
    BoardTest::SetUp();
    void* memory =
        ::mmap(nullptr, sizeof(Track), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    track = new (memory) Track;
  }
  void TearDown() override {
    ::munmap(track, sizeof(Track));
    BoardTest::TearDown();
  }

  [[nodiscard]] static std::uint32_t user_of(int racer) {
    return ::geteuid() != 0 ? ::geteuid() : racer == 0 ? 65534U : 12345U;
  }

  [[nodiscard]] static std::string mine(const std::string& instance) {
    return board_place_name(::geteuid(), instance);
  }

  /// Claims on the card of the race that nobody must heed, and traps.
  void litter() {
    BoardEntry rebooted = entry_of("rebooted", true, race_clock());
    rebooted.boot = "boot-0";
    put(rebooted);
    put(entry_of("lapsed", true));
    put(entry_of("gone", false, race_clock()));  // an intent, and nobody listens
    BoardEntry lie = entry_of("lie", true, race_clock());
    lie.uid += 1;
    put(mine("lie"), encode_board_entry(lie));
    put(mine("huge"), std::string(kBoardTextMax + 1, 'x'));
    const std::string pipe = put(mine("pipe"), "");
    std::filesystem::remove(pipe + "/" + kBoardFile);
    ASSERT_EQ(::mkfifo((pipe + "/" + kBoardFile).c_str(), 0666), 0);
    const std::string link = put(mine("link"), "");
    std::filesystem::remove(link + "/" + kBoardFile);
    std::filesystem::create_symlink("/dev/zero", link + "/" + kBoardFile);
    std::ofstream(dir + "/" + mine("file")) << "no place at all";
  }
  /// A claim of which a piece is missing, another one each time, written while others read.
  void scribble(std::minstd_rand& random) {
    const std::string text = encode_board_entry(entry_of("torn", true, race_clock()));
    put(mine("torn"), text.substr(0, random() % (text.size() - 1)));
  }
  /// Whatever remains apart from that.
  void expect_tidy() const {
    for (const auto& entry : std::filesystem::directory_iterator(dir)) {
      const std::string name = entry.path().filename();
      const bool litter = std::ranges::any_of(
          std::array{"rebooted", "lapsed", "gone", "lie", "huge", "pipe", "link", "file", "torn"},
          [&name](const char* instance) { return name == mine(instance); });
      EXPECT_TRUE(litter) << name << " is still there";
    }
  }

  pid_t start(int racer) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (::geteuid() == 0 && ::setuid(user_of(racer)) != 0) {
        ++track->errors;
        ::_exit(1);
      }
      run(racer);
      ::_exit(0);
    }
    return child;
  }

  void run(int racer) {
    BoardConfig config = this->config(fmt::format("racer-{}", racer));
    config.uid = user_of(racer);
    config.now = race_clock;
    auto board = Board::open(std::move(config));
    if (!board || !(*board)->begin({})) {
      ++track->errors;
      return;
    }
    std::minstd_rand random{std::random_device{}()};
    std::uniform_int_distribution<int> micros(0, 1'000);
    for (std::uint64_t attempt = 1; !track->over; ++attempt) {
      now = race_clock();
      const auto answer = (*board)->ask(AttemptId{attempt}, 0, {"GPU-0"}, idle());
      if (!answer) {
        ++track->errors;
        return;
      }
      if (answer->has_value()) {
        std::this_thread::sleep_for(std::chrono::microseconds(micros(random)));
        continue;
      }
      int nobody = 0;
      if (!track->holder.compare_exchange_strong(nobody, racer + 1)) {
        ++track->clashes;
      }
      if (attempt % 4 == 0) {
        std::this_thread::sleep_for(std::chrono::microseconds(micros(random)));
      }
      ++track->turns[static_cast<std::size_t>(racer)];
      int mine = racer + 1;
      if (!track->holder.compare_exchange_strong(mine, 0)) {
        ++track->clashes;
      }
      if (!(*board)->keep_only({})) {
        ++track->errors;
        return;
      }
    }
    (*board)->leave();
  }

  [[nodiscard]] bool enough() const {
    std::uint64_t all = 0;
    bool each = true;
    for (const auto& turns : track->turns) {
      all += turns;
      each = each && turns >= kTurnsEach;
    }
    return each && all >= kTurns;
  }

  Track* track = nullptr;
};

TEST_F(BoardRaceTest, TwoNeverHaveTheCardAtOnceAndBothGetIt) {
  litter();
  std::array<pid_t, kRacers> racers{};
  for (int racer = 0; racer < kRacers; ++racer) {
    racers[static_cast<std::size_t>(racer)] = start(racer);
  }
  const auto until = std::chrono::steady_clock::now() + kPatience;
  std::minstd_rand random{std::random_device{}()};
  int kills = 0;
  while ((!enough() || kills < kKills) && track->clashes == 0 && track->errors == 0 &&
         std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 40));
    scribble(random);
    if (kills < kKills) {
      // Whoever has the card, mostly; it may also hit one that asks or reads.
      const int holder = track->holder;
      const int victim = holder > 0 ? holder - 1 : static_cast<int>(random() % kRacers);
      pid_t& pid = racers[static_cast<std::size_t>(victim)];
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
      // It no longer has the card. The board says that it does until its next daemon speaks.
      int gone = victim + 1;
      track->holder.compare_exchange_strong(gone, 0);
      pid = start(victim);
      ++kills;
    }
  }
  track->over = true;
  for (const pid_t pid : racers) {
    ::waitpid(pid, nullptr, 0);
  }
  EXPECT_EQ(track->clashes, 0U);
  EXPECT_EQ(track->errors, 0U);
  EXPECT_EQ(kills, kKills);
  for (const auto& turns : track->turns) {
    EXPECT_GE(turns, kTurnsEach);
  }
  EXPECT_TRUE(enough());
  expect_tidy();  // everybody has left
}

}  // namespace
}  // namespace berth
