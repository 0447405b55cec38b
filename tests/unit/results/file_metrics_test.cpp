#include <gtest/gtest.h>

#include "results/file_metrics.hpp"

namespace berth {
namespace {

double last(const Observations& found, const std::string& name) {
  return found.at(name).taken(Take::last, false).value();
}

TEST(FileMetricsTest, ReadsNestedJson) {
  const auto found = metrics_of_file(
      R"({"test": {"acc": 0.93, "per_class": {"cat": 0.5}}, "n": 10, "ok": true, "name": "x",
          "history": [{"epoch": 1, "loss": 0.5}, {"epoch": 2, "loss": 0.25}], "curve": [3, 2, 1]})",
      "out/metrics.json");
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(last(*found, "test.acc"), 0.93);
  EXPECT_EQ(last(*found, "test.per_class.cat"), 0.5);
  EXPECT_EQ(last(*found, "n"), 10);
  EXPECT_EQ(last(*found, "history.loss"), 0.25);
  const std::vector<Series::Point> wanted{{1, 0.5}, {2, 0.25}};
  EXPECT_EQ(found->at("history.loss").points(), wanted);
  EXPECT_EQ(found->at("curve").count(), 3U);
  EXPECT_FALSE(found->contains("ok"));
  EXPECT_FALSE(found->contains("history.epoch"));
}

TEST(FileMetricsTest, ReadsJsonLinesAndForgivesAnUnfinishedLast) {
  const auto found = metrics_of_file(
      "{\"step\": 10, \"loss\": 1.5}\n\n{\"step\": 20, \"loss\": 1.25}\r\n{\"step\": 30, \"lo",
      "x.jsonl");
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(last(*found, "loss"), 1.25);
  EXPECT_EQ(found->size(), 1U);
  const auto wrong = metrics_of_file("{\"a\": 1}\nnonsense\n{\"a\": 2}\n", "x.jsonl");
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.error().message.find("line 2"), std::string::npos) << wrong.error().message;
}

TEST(FileMetricsTest, ReadsCsv) {
  const auto found = metrics_of_file(
      "\xef\xbb\xbf"
      "epoch,\"acc, top 1\",note\r\n1,0.5,\"a \"\"b\"\"\"\r\n2,0.75,\r\n",
      "log.csv");
  ASSERT_TRUE(found);
  EXPECT_EQ(last(*found, "acc, top 1"), 0.75);
  EXPECT_EQ(found->size(), 1U);
  EXPECT_EQ(last(metrics_of_file("a\tb\n1\t2\n", "x.tsv").value(), "b"), 2);
}

TEST(FileMetricsTest, ReadsReportsAndPassesOverTheRest) {
  const Observations found = metrics_of_report(
      "{\"state\":\"normal_exit\"}\n{\"metrics\":{\"acc\":0.5},\"step\":1}\nnonsense\n"
      "{\"metrics\":{\"acc\":0.75,\"deep\":{\"x\":1}},\"step\":2,\"wall\":17}\n{\"metrics\":{"
      "\"acc\":0.");
  EXPECT_EQ(last(found, "acc"), 0.75);
  EXPECT_EQ(last(found, "deep.x"), 1);
  EXPECT_EQ(found.size(), 2U);
  const std::vector<Series::Point> wanted{{1, 0.5}, {2, 0.75}};
  EXPECT_EQ(found.at("acc").points(), wanted);
}

TEST(FileMetricsTest, FillsInPlaces) {
  const std::map<std::string, std::string> values{{"name", "run 1"}, {"lr", "0.1"}};
  EXPECT_EQ(fill_in("out/{name}/{lr}.json", values), "out/run 1/0.1.json");
  EXPECT_EQ(fill_in("plain}.json", values), "plain}.json");
  const auto wrong = fill_in("out/{rl}.json", values);
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().message, "{rl} is not known; there are {lr}, {name}");
}

}  // namespace
}  // namespace berth
