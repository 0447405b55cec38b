#include "compete/command_configs.hpp"

#include <sys/stat.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compete/command_tree.hpp"
#include "temporary_directory.hpp"

namespace berth::compete {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::uint32_t> indices(const CommandConfigs& configs) {
  std::vector<std::uint32_t> found;
  const auto files = configs.list();
  EXPECT_TRUE(files);
  for (const ConfigFile& file : files.value_or(std::vector<ConfigFile>())) {
    found.push_back(file.index);
  }
  return found;
}

TEST(PlacesTest, NumbersAndNamesOfFilesBelongTogether) {
  EXPECT_EQ(config_file_name(Cards::single, 0), "command_gpu.txt");
  EXPECT_EQ(config_file_name(Cards::multi, 12), "command_gpus_12.txt");
  for (const Cards mode : {Cards::single, Cards::multi}) {
    for (const std::uint32_t index : {0U, 1U, 10U, kMostConfigs}) {
      EXPECT_EQ(config_index_of(mode, config_file_name(mode, index)), index);
    }
  }
  for (const char* name :
       {"command_gpus.txt", "command_gpu_.txt", "command_gpu_0.txt", "command_gpu_01.txt",
        "command_gpu_1.txt.backup", "command_gpu_10000.txt", "command_gpu-1.txt", "command_gpu",
        "command_gpu_x.txt", "command.txt", "xcommand_gpu.txt"}) {
    EXPECT_EQ(config_index_of(Cards::single, name), std::nullopt) << name;
  }
}

TEST(PlacesTest, AllFilesAreFoundFromTheDirectoryOfTheCommandFiles) {
  const Places above = places_of("/p/scripts/command/");
  EXPECT_EQ(above.command_dir, "/p/scripts/command");
  EXPECT_EQ(above.log_bindings(), "/p/scripts/control/logs/log_bindings.json");
  EXPECT_EQ(above.control_setting(), "/p/scripts/config/control_setting.yaml");
  EXPECT_EQ(places_of("/p/mine").scheduler_dir, "/p/mine");
  EXPECT_EQ(usual_command_dir("/home/me"), "/home/me/berth/command");
  EXPECT_TRUE(check_command_dir("/x"));
  EXPECT_FALSE(check_command_dir("x"));
}

TEST(PlacesTest, ModesAndNumbersAreChecked) {
  EXPECT_EQ(*mode_from("single"), Cards::single);
  EXPECT_EQ(*mode_from("multi"), Cards::multi);
  EXPECT_EQ(mode_from("both").error().code, ErrorCode::not_found);
  EXPECT_EQ(*config_index_from("9999"), 9999U);
  for (const char* text : {"", "-1", "x", "1.0", "10000", " 1", "01", "99999999999"}) {
    EXPECT_EQ(config_index_from(text).error().code, ErrorCode::invalid) << text;
  }
}

TEST(CommandConfigsTest, TheFirstOneIsToldOfBeforeItIsThere) {
  const TemporaryDirectory dir;
  const CommandConfigs configs(places_of(dir.path() / "command"), Cards::single);
  const auto files = *configs.list();
  ASSERT_EQ(files.size(), 1U);
  EXPECT_EQ(files[0].index, 0U);
  EXPECT_FALSE(files[0].exists);
  EXPECT_EQ(*configs.read(0), std::nullopt);
  EXPECT_EQ(configs.must_read(0).error().code, ErrorCode::not_found);
}

TEST(CommandConfigsTest, DeletingOneRenumbersNoOther) {
  const TemporaryDirectory dir;
  const CommandConfigs configs(places_of(dir.path()), Cards::single);
  const CommandConfigs others(places_of(dir.path()), Cards::multi);
  for (std::uint32_t index = 0; index < 4; ++index) {
    EXPECT_EQ(configs.create()->index, index);
  }
  EXPECT_EQ(others.create()->index, 0U);
  ASSERT_TRUE(configs.write(3, "1\ntrue\n1\n", {}));
  ASSERT_TRUE(configs.remove(2));
  EXPECT_THAT(indices(configs), ElementsAre(0, 1, 3));
  EXPECT_EQ(**configs.read(3), "1\ntrue\n1\n");
  EXPECT_EQ(configs.remove(2).error().code, ErrorCode::not_found);
  EXPECT_EQ(configs.remove(0).error().code, ErrorCode::invalid);
  EXPECT_EQ(configs.create()->index, 2U);
  EXPECT_EQ(configs.create()->index, 4U);
  EXPECT_THAT(indices(others), ElementsAre(0));
}

TEST(CommandConfigsTest, WhatWasThereBeforeIsKept) {
  const TemporaryDirectory dir;
  const CommandConfigs configs(places_of(dir.path()), Cards::single);
  ASSERT_TRUE(configs.write(1, "one", {}));
  ASSERT_TRUE(configs.write(1, "two", version_of("one")));
  EXPECT_EQ(dir.read("command_gpu_1.txt"), "two");
  EXPECT_EQ(dir.read("command_gpu_1.txt.backup"), "one");
  const Status late = configs.write(1, "three", version_of("one"));
  EXPECT_EQ(late.error().code, ErrorCode::conflict);
  EXPECT_EQ(dir.read("command_gpu_1.txt"), "two");
  EXPECT_THAT(indices(configs), ElementsAre(1));
}

TEST(CommandConfigsTest, WhatIsPrivateStaysSo) {
  const TemporaryDirectory dir;
  const CommandConfigs configs(places_of(dir.path()), Cards::single);
  const auto mode = [&](const std::string& name) {
    return std::filesystem::status(dir.path() / name).permissions();
  };
  for (const bool anew : {true, false}) {
    const std::string file = dir.write("command_gpu_1.txt", "one");
    ASSERT_EQ(::chmod(file.c_str(), 0600), 0);
    if (!anew) {
      ASSERT_EQ(::chmod((file + ".backup").c_str(), 0644), 0);
    }
    ASSERT_TRUE(configs.write(1, "two", {}));
    EXPECT_EQ(mode("command_gpu_1.txt"), std::filesystem::perms(0600));
    EXPECT_EQ(mode("command_gpu_1.txt.backup"), std::filesystem::perms(0600));
  }
}

TEST(CommandConfigsTest, ALinkOfTheUserIsWrittenThrough) {
  const TemporaryDirectory dir;
  const CommandConfigs configs(places_of(dir.path()), Cards::single);
  dir.write("mine/commands", "one");
  std::filesystem::create_symlink("mine/commands", dir.path() / "command_gpu_1.txt");
  ASSERT_TRUE(configs.write(1, "two", version_of("one")));
  EXPECT_EQ(dir.read("mine/commands"), "two");
  EXPECT_EQ(dir.read("command_gpu_1.txt.backup"), "one");
  EXPECT_TRUE(std::filesystem::is_symlink(dir.path() / "command_gpu_1.txt"));
}

TEST(CommandConfigsTest, SaysWhatIsInTheWay) {
  const TemporaryDirectory dir;
  dir.write("file", "");
  const CommandConfigs in_file(places_of((dir.path() / "file").native()), Cards::single);
  EXPECT_THAT(in_file.create().error().message, HasSubstr("cannot make the directory"));
  ASSERT_EQ(::mkfifo((dir.path() / "command_gpu.txt").c_str(), 0600), 0);
  const CommandConfigs configs(places_of(dir.path()), Cards::single);
  EXPECT_THAT(configs.read(0).error().message, HasSubstr("no regular file"));
}

}  // namespace
}  // namespace berth::compete
