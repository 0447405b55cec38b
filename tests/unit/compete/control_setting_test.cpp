#include "compete/control_setting.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "temporary_directory.hpp"

namespace berth::compete {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kText =
    "target-yaml-path: ../config/gpu_manage.yaml # the rules\n"
    "port: 29214   # changed if taken\n"
    "secret: \"hush\"\n"
    "mine: 3\n";

TEST(ControlSettingTest, ReadsWhatItKnowsAndKeepsTheSecret) {
  const auto setting = parse_control_setting(kText, "f");
  ASSERT_TRUE(setting);
  EXPECT_EQ(setting->values,
            (std::map<std::string, std::string>{{"target-yaml-path", "../config/gpu_manage.yaml"},
                                                {"port", "29214"}}));
  EXPECT_TRUE(setting->secret);
  // The usual file is only meant where it is there.
  EXPECT_EQ(target_yaml(*setting, "/p/config/control_setting.yaml"), "");
  const auto other = parse_control_setting("target-yaml-path: ../config/mine.yaml\n", "f");
  ASSERT_TRUE(other);
  EXPECT_EQ(target_yaml(*other, "/p/config/control_setting.yaml"), "/p/config/mine.yaml");
  EXPECT_EQ(target_yaml({}, "/p/config/control_setting.yaml"), "");
  EXPECT_TRUE(parse_control_setting("", "f")->values.empty());
  EXPECT_EQ(parse_control_setting("- a\n", "f").error().code, ErrorCode::conflict);
  EXPECT_THAT(parse_control_setting("a: [\n", "f").error().message, HasSubstr("f:"));
}

TEST(ControlSettingTest, ChangesOneValueAndNothingElse) {
  EXPECT_EQ(
      *edit_control_setting(kText, {{"port", "8080"}, {"target-yaml-path", "/a b.yaml"}}, "f"),
      "target-yaml-path: '/a b.yaml' # the rules\n"
      "port: 8080   # changed if taken\n"
      "secret: \"hush\"\n"
      "mine: 3\n");
  EXPECT_EQ(*edit_control_setting("port: 1", {{"allow-lan", "false"}}, "f"),
            "port: 1\nallow-lan: false\n");
  EXPECT_EQ(*edit_control_setting("", {{"log-level", "debug"}}, "f"), "log-level: debug\n");
}

TEST(ControlSettingTest, RefusesWhatCannotBe) {
  using Values = std::map<std::string, std::string>;
  for (const Values& values :
       {Values{{"port", "0"}}, Values{{"port", "65536"}}, Values{{"port", "x"}},
        Values{{"allow-lan", "perhaps"}}, Values{{"secret", "new"}}, Values{{"mine", "4"}},
        Values{{"log-level", ""}}, Values{{"log-level", "a\nb"}}}) {
    EXPECT_FALSE(edit_control_setting(kText, values, "f")) << values.begin()->first;
  }
  EXPECT_EQ(edit_control_setting("port:\n  8080\n", {{"port", "1"}}, "f").error().code,
            ErrorCode::conflict);
  EXPECT_EQ(edit_control_setting("[1]", {{"port", "1"}}, "f").error().code, ErrorCode::conflict);
}

TEST(ControlSettingTest, IsKeptInAFile) {
  const TemporaryDirectory dir;
  const std::string file = (dir.path() / "config" / "control_setting.yaml").native();
  EXPECT_TRUE(read_control_setting(file)->values.empty());
  ASSERT_TRUE(save_control_setting(file, {{"port", "8080"}}));
  ASSERT_TRUE(save_control_setting(file, {{"allow-lan", "false"}}));
  EXPECT_EQ(dir.read("config/control_setting.yaml"), "port: 8080\nallow-lan: false\n");
  EXPECT_FALSE(save_control_setting(file, {{"port", "-1"}}));
  EXPECT_EQ(read_control_setting(file)->values.at("port"), "8080");
}

TEST(ControlSettingTest, AConfigurationThatIsNotThereIsTold) {
  const TemporaryDirectory dir;
  const std::string file = (dir.path() / "config" / "control_setting.yaml").native();
  const auto with = [](const std::string& target) {
    ControlSetting setting;
    setting.values["target-yaml-path"] = target;
    return setting;
  };
  EXPECT_EQ(missing_target({}, file), "");
  EXPECT_EQ(target_yaml(with("../config/gpu_manage.yaml"), file), "") << "as if it were not said";
  EXPECT_EQ(missing_target(with("../config/gpu_manage.yaml"), file), "");
  const std::string mine = (dir.path() / "config" / "mine.yaml").native();
  EXPECT_EQ(missing_target(with("mine.yaml"), file), mine);
  dir.write("config/mine.yaml", "");
  EXPECT_EQ(missing_target(with("mine.yaml"), file), "");
  dir.write("config/gpu_manage.yaml", "");
  EXPECT_EQ(target_yaml(with("../config/gpu_manage.yaml"), file),
            (dir.path() / "config" / "gpu_manage.yaml").native());
}

}  // namespace
}  // namespace berth::compete
