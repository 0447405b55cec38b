#include "compete/log_bindings.hpp"

#include <sys/file.h>

#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "temporary_directory.hpp"

namespace berth::compete {
namespace {

using ::testing::HasSubstr;

LogBinding a_binding(std::uint32_t queue = 1, std::uint32_t process = 0) {
  return {{Cards::single, 0, queue, process}, "/data/a.log", "2026-05-01T12:30:05"};
}

TEST(LogBindingsTest, ReadsWhatTheConsoleOfOldWrote) {
  const auto bindings = parse_bindings(
      R"({"multi_1_2_3": {"mode": "multi", "config_index": 1, "queue_id": 2, "process_index": 3,
          "log_path": "/data/x.log", "bound_at": "2025-12-03T10:00:00.123456"},
          "odd": 3, "half": {"mode": "single", "log_path": "/x"}})",
      "f");
  ASSERT_TRUE(bindings);
  ASSERT_EQ(bindings->size(), 1U);
  const LogBinding& one = bindings->at("multi_1_2_3");
  EXPECT_EQ(one.place, (ProcessPlace{Cards::multi, 1, 2, 3}));
  EXPECT_EQ(one.place.key(), "multi_1_2_3");
  EXPECT_EQ(one.log_path, "/data/x.log");
  EXPECT_TRUE(parse_bindings(" \n", "f")->empty());
  for (const char* text : {"[]", "{", "3", "{\"a\": }"}) {
    EXPECT_EQ(parse_bindings(text, "f").error().code, ErrorCode::conflict) << text;
  }
}

TEST(LogBindingsTest, WhatOthersWroteStays) {
  const std::string old =
      R"({"odd": [1, 2], "single_0_1_0": {"log_path": "/old", "colour": "red"}})";
  const std::string text = *with_binding(old, a_binding(), "f");
  EXPECT_THAT(text, HasSubstr(R"("odd": [1,2])"));
  EXPECT_THAT(text, HasSubstr(R"("colour":"red")"));
  EXPECT_EQ(parse_bindings(text, "f")->at("single_0_1_0"), a_binding());
  const std::string without = *without_binding(text, "single_0_1_0", "f");
  EXPECT_THAT(without, HasSubstr("odd"));
  EXPECT_TRUE(parse_bindings(without, "f")->empty());
  EXPECT_EQ(*without_binding(old, "none", "f"), old);
}

TEST(LogBindingsTest, AreKeptInAFile) {
  const TemporaryDirectory dir;
  const LogBindings file((dir.path() / "control" / "logs" / "log_bindings.json").native());
  EXPECT_TRUE(file.read()->empty());
  EXPECT_FALSE(*file.unbind(a_binding().place));
  ASSERT_TRUE(file.bind(a_binding()));
  ASSERT_TRUE(file.bind(a_binding(2, 5)));
  LogBinding later = a_binding(2, 5);
  later.place.config_index = 3;
  ASSERT_TRUE(file.bind(later));
  EXPECT_EQ(file.read()->size(), 3U);
  EXPECT_TRUE(*file.unbind(a_binding().place));
  ASSERT_TRUE(file.unbind_config(Cards::single, 0));
  EXPECT_EQ(file.read()->size(), 1U);
  EXPECT_TRUE(file.read()->contains("single_3_2_5"));
}

TEST(LogBindingsTest, ABrokenFileIsNotOverwritten) {
  const TemporaryDirectory dir;
  const LogBindings file(dir.write("log_bindings.json", "{broken"));
  EXPECT_EQ(file.bind(a_binding()).error().code, ErrorCode::conflict);
  EXPECT_EQ(file.read().error().code, ErrorCode::conflict);
  EXPECT_EQ(dir.read("log_bindings.json"), "{broken");
}

TEST(LogBindingsTest, SeveralWhoBindAtOnceLoseNothing) {
  const TemporaryDirectory dir;
  const LogBindings file((dir.path() / "log_bindings.json").native());
  std::vector<std::thread> threads;
  for (std::uint32_t queue = 0; queue < 4; ++queue) {
    threads.emplace_back([&file, queue] {
      for (std::uint32_t process = 0; process < 10; ++process) {
        EXPECT_TRUE(file.bind(a_binding(queue, process)));
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(file.read()->size(), 40U);
}

}  // namespace
}  // namespace berth::compete
