#include "daemon/stop_notes.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace berth {
namespace {

namespace fs = std::filesystem;

class StopNotesTest : public ::testing::Test {
 public:
  StopNotesTest() {
    std::string name = ::testing::TempDir() + "stop-notes-XXXXXX";
    dir_ = ::mkdtemp(name.data());
  }
  ~StopNotesTest() override { fs::remove_all(dir_); }

 protected:
  fs::path dir_;
};

TEST_F(StopNotesTest, WhatWasNotedIsReadUntilItIsRemoved) {
  const StopNotes notes((dir_ / "stops").native());
  EXPECT_TRUE(notes.read().notes.empty());
  const StopNote many{BatchId{12}, false, 1000, {"1", "队列 \"2\"\n"}};
  const StopNote few{BatchId{3}, true, 0, {}};
  ASSERT_TRUE(notes.write(many));
  ASSERT_TRUE(notes.write(few));
  ASSERT_TRUE(notes.write(few));
  const StopNotes::Found found = notes.read();
  EXPECT_TRUE(found.problems.empty());
  EXPECT_EQ(found.notes, (std::vector<StopNote>{few, many}));
  ASSERT_TRUE(notes.remove(BatchId{3}));
  ASSERT_TRUE(notes.remove(BatchId{3}));
  EXPECT_EQ(notes.read().notes, std::vector<StopNote>{many});
}

TEST_F(StopNotesTest, WhatCannotBeReadIsNamedAndStays) {
  const StopNotes notes((dir_ / "stops").native());
  ASSERT_TRUE(notes.write({BatchId{7}, false, 0, {"q"}}));
  for (const char* text : {"", "[]", "{\"batch\": 1}", "{\"batch\": -1, \"kill\": 0}", "\xff"}) {
    std::ofstream(dir_ / "stops" / "1.json") << text;
    const StopNotes::Found found = notes.read();
    EXPECT_EQ(found.notes.size(), 1U) << text;
    ASSERT_EQ(found.problems.size(), 1U) << text;
    EXPECT_NE(found.problems[0].find("stops/1.json does not say"), std::string::npos)
        << found.problems[0];
    EXPECT_TRUE(fs::exists(dir_ / "stops" / "1.json"));
  }
}

TEST_F(StopNotesTest, WhatWasOnlyBegunGoes) {
  const StopNotes notes((dir_ / "stops").native());
  ASSERT_TRUE(notes.write({BatchId{7}, false, 0, {"q"}}));
  std::ofstream(dir_ / "stops" / "7.json.0123abcd.tmp") << "{\"batch\":";
  EXPECT_EQ(notes.read().notes.size(), 1U);
  EXPECT_TRUE(notes.read().problems.empty());
  EXPECT_FALSE(fs::exists(dir_ / "stops" / "7.json.0123abcd.tmp"));
  EXPECT_TRUE(fs::exists(dir_ / "stops" / "7.json"));
}

}  // namespace
}  // namespace berth
