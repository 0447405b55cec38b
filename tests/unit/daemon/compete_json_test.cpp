#include "daemon/compete_json.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>

namespace berth {
namespace {

namespace json = boost::json;
using compete::Cards;
using ::testing::HasSubstr;

compete::ConfigFile a_file() {
  return {2, "/c/command_gpu_2.txt", "command_gpu_2.txt", true};
}

TEST(CompeteJsonTest, WhatIsToldCanBeSentBack) {
  const std::string text = "# top\n\n2\npython a.py\n20\n\n1\ntrue\n1.5\n";
  const std::string told = encode_config(Cards::single, {a_file(), text}, false);
  const json::value value = json::parse(told);
  EXPECT_EQ(value.at("queues").at(0).at("id").as_int64(), 1);
  EXPECT_EQ(value.at("queues").at(1).at("processes").at(0).at("memory").as_int64(), 20);
  EXPECT_EQ(value.at("version").as_string(), compete::version_of(text));
  EXPECT_FALSE(value.as_object().contains("text"));
  const auto edit = decode_config(told, Cards::single, 2);
  ASSERT_TRUE(edit) << edit.error().message;
  EXPECT_EQ(edit->queues[1].processes[0].commands[0], "python a.py");
  EXPECT_EQ(edit->queues[0].processes[0].memory_gib, 1.5);
  EXPECT_EQ(edit->version, compete::version_of(text));
  EXPECT_FALSE(decode_config(told, Cards::single, 1));
  EXPECT_FALSE(decode_config(told, Cards::multi, 2));
  const json::value with = json::parse(encode_config(Cards::single, {a_file(), text}, true));
  EXPECT_EQ(with.at("text").as_string(), text);
}

TEST(CompeteJsonTest, SaysWhereABodyIsWrong) {
  const auto error = [](std::string_view body, Cards mode = Cards::single) {
    const auto edit = decode_config(body, mode, 0);
    return edit ? std::string("none") : edit.error().message;
  };
  EXPECT_THAT(error("{}"), HasSubstr("either queues or text"));
  EXPECT_THAT(error(R"({"queues": [{"id": 1, "processes": [{"commands": ["x"], "memory": 0}]}]})"),
              HasSubstr("queues[0].processes[0].memory"));
  EXPECT_THAT(error(R"({"queues": [{"id": 1.5, "processes": []}]})"), HasSubstr("queues[0].id"));
  EXPECT_THAT(error(R"({"queues": [{"id": 1, "processes": [{"commands": ["x"], "memory": 1}]}]})",
                    Cards::multi),
              HasSubstr("gpu_count"));
  EXPECT_EQ(error(R"({"queues": []})"), "none");
}

TEST(CompeteJsonTest, MistakesComeWithTheirPlaces) {
  const HttpResponse response =
      mistakes_response(a_file(), {{a_file().file_name, {3, 1}, "no command"},
                                   {"g", {4, 2}, "no memory"},
                                   {"h", {0, 0}, "no file"}});
  EXPECT_EQ(response.status, 422);
  const json::value value = json::parse(response.body);
  EXPECT_EQ(value.at("error").at("code").as_string(), "invalid");
  EXPECT_THAT(std::string(value.at("error").at("message").as_string()), HasSubstr("3 mistakes"));
  EXPECT_EQ(value.at("problems").at(1).at("line").as_int64(), 4);
  EXPECT_TRUE(value.at("problems").at(0).at("file").is_null()) << "the text itself";
  EXPECT_EQ(value.at("problems").at(1).at("file").as_string(), "g");
  EXPECT_TRUE(value.at("problems").at(2).at("line").is_null());
}

TEST(CompeteJsonTest, AStateIsThatOfTheFileAndMore) {
  BatchReport batch;
  batch.id = BatchId{7};
  batch.traits.pid = 4'194'311;
  batch.traits.mode = "single";
  batch.jobs.resize(2);
  batch.jobs[0].row.queue = "command_gpu/1";
  batch.jobs[0].row.state = JobState::running;
  batch.jobs[1].row.queue = "command_gpu/1";
  batch.jobs[1].row.state = JobState::cancelled;
  const json::value state = json::parse(encode_state(batch, Millis{0}));
  EXPECT_TRUE(state.at("running").as_bool());
  EXPECT_TRUE(state.at("stopped").as_bool());
  EXPECT_EQ(state.at("pid").as_int64(), 4'194'311);
  EXPECT_EQ(state.at("queues").at("1").at("total_tasks").as_int64(), 2);
  batch.jobs[1].row.state = JobState::queued;
  EXPECT_FALSE(json::parse(encode_state(batch, Millis{0})).at("stopped").as_bool());
  const json::value idle = json::parse(encode_idle(Cards::multi, a_file(), Millis{0}));
  EXPECT_EQ(idle.at("state").as_string(), "idle");
  EXPECT_TRUE(idle.at("pid").is_null());
  EXPECT_EQ(idle.at("mode").as_string(), "multi");
}

TEST(CompeteJsonTest, TheSecretIsNeverTold) {
  const auto setting = compete::parse_control_setting("secret: hush\nport: 1\n", "f");
  const std::string told = encode_settings(*setting, "/c/control_setting.yaml");
  EXPECT_EQ(told.find("hush"), std::string::npos);
  EXPECT_TRUE(json::parse(told).at("settings").at("secret").at("set").as_bool());
  EXPECT_EQ(decode_settings(R"({"port": 1, "allow-lan": false, "log-level": "x"})")->at("port"),
            "1");
  EXPECT_FALSE(decode_settings("[]"));
  EXPECT_FALSE(decode_settings(R"({"port": null})"));
}

}  // namespace
}  // namespace berth
