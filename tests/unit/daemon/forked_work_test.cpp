#include "daemon/forked_work.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/fd.hpp"

namespace berth {
namespace {

constexpr ForkedWork::Limits kUsual{Millis(60'000), 4, 64 << 20};

struct Told {
  std::vector<Result<std::string>> results;
};

/// Runs the loop until so many have been told.
ForkedWork::Then tell(Loop& loop, Told& told, std::size_t until = 1) {
  return [&loop, &told, until](Result<std::string> result) {
    told.results.push_back(std::move(result));
    if (told.results.size() == until) {
      loop.stop();
    }
  };
}

TEST(ForkedWorkTest, TellsWhatWasWorkedOutFromWhatWasThereAtTheFork) {
  Loop loop;
  ForkedWork forked(loop, "the sum", kUsual);
  Told told;
  std::string mine = "as it was";
  forked.run(
      [&mine] {
        mine += ", changed by the child";
        return mine;
      },
      tell(loop, told));
  mine = "changed by the parent";
  loop.run();
  ASSERT_TRUE(told.results.at(0)) << told.results.at(0).error().message;
  EXPECT_EQ(*told.results[0], "as it was, changed by the child");
  EXPECT_EQ(mine, "changed by the parent");
}

TEST(ForkedWorkTest, ALongResultArrivesWhole) {
  Loop loop;
  ForkedWork forked(loop, "the text", kUsual);
  Told told;
  forked.run([] { return std::string(5'000'000, 'x') + "!"; }, tell(loop, told));
  loop.run();
  ASSERT_TRUE(told.results.at(0));
  EXPECT_EQ(told.results[0]->size(), 5'000'001U);
  EXPECT_TRUE(told.results[0]->ends_with("x!"));
}

TEST(ForkedWorkTest, WhatTakesTooLongOrIsTooLongIsGivenUpAndTheNextGoesOn) {
  Loop loop;
  ForkedWork forked(loop, "the sum", {Millis(3'000), 4, 1'000});
  Told told;
  forked.run(
      [] {
        ::pause();
        return std::string();
      },
      tell(loop, told, 3));
  forked.run([] { return std::string(100'000, 'x'); }, tell(loop, told, 3));
  forked.run([] { return std::string("2"); }, tell(loop, told, 3));
  loop.run();
  ASSERT_FALSE(told.results.at(0));
  EXPECT_EQ(told.results[0].error().code, ErrorCode::unavailable);
  EXPECT_EQ(told.results[0].error().message, "the sum was given up: it took longer than 3.0 s");
  ASSERT_FALSE(told.results.at(1));
  EXPECT_EQ(told.results[1].error().message, "the sum was given up: it is larger than 0.98 KiB");
  ASSERT_TRUE(told.results.at(2));
  EXPECT_EQ(*told.results[2], "2");
}

TEST(ForkedWorkTest, AChildThatDiesIsToldAndNothingOfItsResultIsBelieved) {
  Loop loop;
  ForkedWork forked(loop, "the sum", kUsual);
  Told told;
  forked.run(
      []() -> std::string {
        ::kill(::getpid(), SIGKILL);
        return "never";
      },
      tell(loop, told, 3));
  forked.run([]() -> std::string { throw std::runtime_error("broken"); }, tell(loop, told, 3));
  forked.run([]() -> std::string { throw std::bad_alloc(); }, tell(loop, told, 3));
  loop.run();
  ASSERT_EQ(told.results.size(), 3U);
  const std::array<std::string, 3> why{"was ended by SIGKILL; is memory short?",
                                       "ended with code 4", "found no memory"};
  for (std::size_t i = 0; i < why.size(); ++i) {
    ASSERT_FALSE(told.results[i]);
    EXPECT_EQ(told.results[i].error().message, "the process that worked out the sum " + why.at(i));
  }
}

TEST(ForkedWorkTest, OneAfterTheOtherAndNotTooMany) {
  Loop loop;
  ForkedWork forked(loop, "the sum", {Millis(60'000), 2, 1'000});
  Told told;
  int asked = 0;
  for (int i = 0; i < 3; ++i) {
    forked.run([&asked] { return std::to_string(asked); }, tell(loop, told, 4));
    ++asked;
  }
  forked.run([] { return std::string("too many"); }, tell(loop, told, 4));
  ASSERT_EQ(told.results.size(), 1U);  // at once
  EXPECT_EQ(told.results[0].error().code, ErrorCode::busy);
  loop.run();
  EXPECT_EQ(*told.results.at(1), "0");
  EXPECT_EQ(*told.results.at(2), "3");  // as it is when its turn comes
  EXPECT_EQ(*told.results.at(3), "3");
}

TEST(ForkedWorkTest, TheChildHoldsNothingOpenAndTakesNoSignalMeantForTheDaemon) {
  std::string path = ::testing::TempDir() + "forked-XXXXXX";
  Fd held(::mkstemp(path.data()));
  ASSERT_TRUE(held);
  ASSERT_EQ(::flock(held.get(), LOCK_EX | LOCK_NB), 0);
  Loop loop;
  int signals = 0;
  const auto handler = loop.on_signals({SIGUSR1}, [&](int) { ++signals; });
  ForkedWork forked(loop, "the look", kUsual);
  Told told;
  forked.run(
      [] {
        std::string open;
        for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
          std::error_code error;
          const auto target = std::filesystem::read_symlink(entry.path(), error);
          if (!error && !target.native().starts_with("/proc/")) {
            open += target.native().substr(0, 5) + " ";
          }
        }
        struct sigaction action{};
        ::sigaction(SIGUSR1, nullptr, &action);
        return open + (action.sa_handler == SIG_DFL ? "default" : "handled");
      },
      tell(loop, told));
  loop.run();
  ASSERT_TRUE(told.results.at(0)) << told.results[0].error().message;
  EXPECT_EQ(*told.results[0], "pipe: default");
  EXPECT_EQ(signals, 0);
  std::filesystem::remove(path);
}

TEST(ForkedWorkTest, WhileAnotherThreadAllocatesTheChildCanToo) {
  Loop loop;
  ForkedWork forked(loop, "the sum", {Millis(60'000), 50, 1'000});
  std::atomic<bool> stop = false;
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&stop] {
      while (!stop) {
        const std::vector<std::string> some(20, std::string(100, 'x'));
      }
    });
  }
  Told told;
  for (int i = 0; i < 40; ++i) {
    forked.run(
        [] { return std::to_string(std::vector<std::string>(1'000, std::string(99, 'y')).size()); },
        tell(loop, told, 40));
  }
  loop.run();
  stop = true;
  for (std::thread& thread : threads) {
    thread.join();
  }
  for (const auto& result : told.results) {
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_EQ(*result, "1000");
  }
}

TEST(ForkedWorkTest, ClosingTellsEverybodyAndLeavesNoChild) {
  Loop loop;
  Told told;
  {
    ForkedWork forked(loop, "the sum", kUsual);
    for (int i = 0; i < 2; ++i) {
      forked.run(
          [] {
            ::pause();
            return std::string();
          },
          tell(loop, told, 2));
    }
    forked.close();
    forked.run([] { return std::string(); }, tell(loop, told, 3));
  }
  ASSERT_EQ(told.results.size(), 3U);
  for (const auto& result : told.results) {
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().message, "the daemon was stopped");
  }
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

}  // namespace
}  // namespace berth
