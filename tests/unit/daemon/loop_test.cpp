#include "daemon/loop.hpp"

#include <gtest/gtest.h>

#include <unistd.h>
#include <csignal>

#include <array>
#include <string>

#include "base/fd.hpp"

namespace berth {
namespace {

struct Pipe {
  Pipe() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe(ends.data()), 0);
    read.reset(ends[0]);
    write.reset(ends[1]);
  }
  Fd read;
  Fd write;
};

TEST(LoopTest, CallsWhenADescriptorBecomesReadableAndMayWatchItAgain) {
  Loop loop;
  const Pipe pipe;
  std::string seen;
  Loop::Handle watch;
  const std::function<void()> on_readable = [&] {
    char c = 0;
    ASSERT_EQ(::read(pipe.read.get(), &c, 1), 1);
    seen += c;
    if (seen.size() == 3) {
      loop.stop();
    } else {
      watch = loop.when_readable(pipe.read.get(), on_readable);
    }
  };
  watch = loop.when_readable(pipe.read.get(), on_readable);
  ASSERT_EQ(::write(pipe.write.get(), "abc", 3), 3);
  loop.run();
  EXPECT_EQ(seen, "abc");
}

TEST(LoopTest, ADroppedHandleCallsNothingAndLeavesTheDescriptorOpen) {
  Loop loop;
  const Pipe pipe;
  bool called = false;
  {
    const auto watch = loop.when_readable(pipe.read.get(), [&] { called = true; });
    const auto timer = loop.after(Millis(1), [&] { called = true; });
  }
  ASSERT_EQ(::write(pipe.write.get(), "x", 1), 1);
  const auto end = loop.after(Millis(30), [&] { loop.stop(); });
  loop.run();
  EXPECT_FALSE(called);
  char c = 0;
  EXPECT_EQ(::read(pipe.read.get(), &c, 1), 1);
}

TEST(LoopTest, TimersFireInOrder) {
  Loop loop;
  std::string seen;
  const auto late = loop.after(Millis(40), [&] {
    seen += 'b';
    loop.stop();
  });
  const auto early = loop.after(Millis(5), [&] { seen += 'a'; });
  loop.run();
  EXPECT_EQ(seen, "ab");
}

TEST(LoopTest, TellsOfEverySignal) {
  Loop loop;
  int count = 0;
  const auto signals = loop.on_signals({SIGUSR1}, [&](int number) {
    EXPECT_EQ(number, SIGUSR1);
    if (++count == 2) {
      loop.stop();
    } else {
      ::raise(SIGUSR1);
    }
  });
  loop.post([] { ::raise(SIGUSR1); });
  loop.run();
  EXPECT_EQ(count, 2);
}

}  // namespace
}  // namespace berth
