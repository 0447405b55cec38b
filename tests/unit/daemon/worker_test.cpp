#include "daemon/worker.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "daemon/loop.hpp"

namespace berth {
namespace {

TEST(WorkerTest, RunsTasksInTheOrderTheyWerePosted) {
  std::vector<int> seen;
  {
    Worker worker("test");
    for (int i = 0; i < 1000; ++i) {
      worker.post([&seen, i] { seen.push_back(i); });
    }
  }
  ASSERT_EQ(seen.size(), 1000U);
  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(seen[static_cast<std::size_t>(i)], i);
  }
}

TEST(WorkerTest, FinishesWhatWasPostedBeforeItGoes) {
  std::atomic<int> done{0};
  {
    Worker worker("test");
    worker.post([] { std::this_thread::sleep_for(std::chrono::milliseconds(20)); });
    for (int i = 0; i < 100; ++i) {
      worker.post([&done] { ++done; });
    }
  }
  EXPECT_EQ(done, 100);
}

TEST(WorkerTest, DropsWhatHasNotBegunWhenItGivesUp) {
  std::atomic<bool> begun{false};
  std::atomic<int> done{0};
  Worker worker("test");
  worker.post([&, token = worker.token()] {
    begun = true;
    while (!token.stop_requested()) {
      std::this_thread::yield();
    }
  });
  while (!begun) {
    std::this_thread::yield();
  }
  for (int i = 0; i < 100; ++i) {
    worker.post([&done] { ++done; });
  }
  worker.give_up();
  EXPECT_EQ(worker.backlog(), 0U);
  std::atomic<bool> after{false};
  worker.post([&after] { after = true; });
  while (!after) {
    std::this_thread::yield();
  }
  EXPECT_EQ(done, 0);
}

TEST(WorkerTest, TakesTasksFromManyThreads) {
  int sum = 0;  // only ever touched by the worker
  {
    Worker worker("test");
    std::vector<std::jthread> posters;
    for (int t = 0; t < 4; ++t) {
      posters.emplace_back([&] {
        for (int i = 0; i < 500; ++i) {
          worker.post([&sum] { ++sum; });
        }
      });
    }
    posters.clear();
  }
  EXPECT_EQ(sum, 2000);
}

TEST(WorkerTest, ResultsComeBackThroughTheLoop) {
  Loop loop;
  int sum = 0;  // belongs to the loop's thread
  constexpr int kTasks = 500;
  Worker worker("test");
  for (int i = 1; i <= kTasks; ++i) {
    worker.post([&loop, &sum, i] {
      loop.post([&loop, &sum, i] {
        sum += i;
        if (i == kTasks) {
          loop.stop();
        }
      });
    });
  }
  loop.run();
  EXPECT_EQ(sum, kTasks * (kTasks + 1) / 2);
}

}  // namespace
}  // namespace berth
