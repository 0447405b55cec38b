#include "daemon/process_notes.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "gpu/process_facts.hpp"

namespace berth {
namespace {

/// Asks until it is told.
ProcessNote wait_for(ProcessNotes& notes, const ProcessNotes::Process& process) {
  for (;;) {
    ProcessNote note = notes.of(process);
    if (note != ProcessNote{}) {
      return note;
    }
    std::this_thread::yield();
  }
}

TEST(ProcessNotesTest, EachProcessIsLookedUpOnce) {
  std::atomic<int> looked{0};
  ProcessNotes notes([&looked](const ProcessNotes::Process& process) {
    ++looked;
    return ProcessNote{"user", std::to_string(process.pid)};
  });
  EXPECT_EQ(wait_for(notes, {7, 1, 1000}).command, "7");
  EXPECT_EQ(wait_for(notes, {8, 1, 1000}).command, "8");
  EXPECT_EQ(notes.of({7, 1, 1000}).command, "7");
  EXPECT_EQ(looked, 2);
}

TEST(ProcessNotesTest, ALookThatHangsKeepsNobodyWaiting) {
  // Outlives the test if need be, as the look does.
  struct Gate {
    std::mutex mutex;
    std::condition_variable opened;
    bool open = false;
  };
  const auto gate = std::make_shared<Gate>();
  {
    ProcessNotes notes([gate](const ProcessNotes::Process&) {
      std::unique_lock lock(gate->mutex);
      gate->opened.wait(lock, [&] { return gate->open; });
      return ProcessNote{};
    });
    EXPECT_EQ(notes.of({7, 1, 1000}), ProcessNote{});
    EXPECT_EQ(notes.of({7, 1, 1000}), ProcessNote{});
  }
  const std::lock_guard lock(gate->mutex);
  gate->open = true;
  gate->opened.notify_all();
}

TEST(ProcessNotesTest, KnowsThisProcess) {
  const auto pid = static_cast<std::uint32_t>(::getpid());
  const auto facts = ProcessReader().read(pid);
  ASSERT_TRUE(facts);
  const ProcessNote note = read_process_note({pid, facts->stat.start_time, facts->uid});
  EXPECT_FALSE(note.user.empty());
  EXPECT_NE(note.command.find("daemon_test"), std::string::npos) << note.command;
}

TEST(ProcessNotesTest, APidThatBecameAnothersHasNoCommand) {
  const auto pid = static_cast<std::uint32_t>(::getpid());
  EXPECT_EQ(read_process_note({pid, 1, 0}).command, "");
}

TEST(ProcessNotesTest, ACommandLineIsOneLineThatCanBeRead) {
  using namespace std::string_view_literals;
  EXPECT_EQ(command_line_of("python\0train.py\0--lr\0"sv), "python train.py --lr");
  EXPECT_EQ(command_line_of(""), "");
  EXPECT_EQ(command_line_of("a\nb\xff\0"sv).find('\n'), std::string::npos);
  const std::string longest = command_line_of(std::string(5000, 'x'));
  EXPECT_LT(longest.size(), 1100U);
  EXPECT_TRUE(longest.ends_with("…"));
}

TEST(ProcessNotesTest, AUserWithoutANameIsANumber) {
  EXPECT_EQ(user_name(0), "root");
  EXPECT_EQ(user_name(3'999'999'999U), "3999999999");
}

}  // namespace
}  // namespace berth
