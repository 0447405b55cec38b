#include "daemon/compete_query.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth {
namespace {

using ::testing::HasSubstr;

HttpRequest a_request(std::map<std::string, std::string> query, std::string body = {}) {
  HttpRequest request;
  request.query = std::move(query);
  request.body = std::move(body);
  return request;
}

TEST(CompeteQueryTest, RefusesWhatNobodyKnows) {
  EXPECT_TRUE(CompeteQuery::read(a_request({{"kill", "1"}}), {"kill"}));
  const auto unknown = CompeteQuery::read(a_request({{"kil", "1"}}), {"kill"});
  ASSERT_FALSE(unknown);
  EXPECT_THAT(unknown.error().message, HasSubstr("'kil' is not known here; there is kill"));
  EXPECT_FALSE(CompeteQuery::read(a_request({{"x", ""}}), {}));
}

TEST(CompeteQueryTest, ABodyCountsMoreThanTheQuery) {
  const auto query = CompeteQuery::read(
      a_request({{"queue_id", "1"}, {"mode", "multi"}}, R"({"queue_id": 2, "log_path": "/x"})"),
      {"mode", "queue_id", "log_path"}, true);
  ASSERT_TRUE(query);
  EXPECT_EQ(query->text("queue_id"), "2");
  EXPECT_EQ(query->text("mode"), "multi");
  EXPECT_EQ(query->text("log_path"), "/x");
  for (const char* body : {"[]", "{", "3", R"({"mode": null})", R"({"mode": ["a"]})"}) {
    EXPECT_FALSE(CompeteQuery::read(a_request({}, body), {"mode"}, true)) << body;
  }
  EXPECT_TRUE(CompeteQuery::read(a_request({}, "{"), {"mode"}));  // nobody looks at it
}

TEST(CompeteQueryTest, ReadsAProcessesPlace) {
  const std::map<std::string, std::string> whole = {
      {"mode", "multi"}, {"config_index", "3"}, {"queue_id", "7"}, {"process_index", "0"}};
  const auto known = {std::string_view("mode"), std::string_view("config_index"),
                      std::string_view("queue_id"), std::string_view("process_index")};
  EXPECT_EQ(*CompeteQuery::read(a_request(whole), known)->place(),
            (compete::ProcessPlace{compete::Cards::multi, 3, 7, 0}));
  for (const auto& [name, value] : whole) {
    auto less = whole;
    less.erase(name);
    const auto place = CompeteQuery::read(a_request(less), known)->place();
    ASSERT_FALSE(place) << name;
    EXPECT_EQ(place.error().code, ErrorCode::invalid) << name;
  }
}

TEST(CompeteQueryTest, ReadsFlagsAndPieces) {
  const auto read = [](std::map<std::string, std::string> values) {
    return *CompeteQuery::read(a_request(std::move(values)),
                               {"kill", "config_index", "offset", "limit", "tail", "tail_lines"});
  };
  EXPECT_TRUE(*read({{"kill", "true"}}).flag("kill"));
  EXPECT_FALSE(*read({{"kill", "0"}}).flag("kill"));
  EXPECT_FALSE(*read({}).flag("kill"));
  EXPECT_FALSE(read({{"kill", "yes"}}).flag("kill"));
  EXPECT_EQ(*read({}).config_index(), 0U);
  EXPECT_FALSE(read({{"config_index", ""}}).config_index());
  EXPECT_EQ(read({}).piece()->tail, compete::kTailLinesUsual);
  EXPECT_EQ(read({{"tail_lines", "7"}}).piece()->tail, 7U);
  EXPECT_EQ(read({{"tail", "8"}}).piece()->tail, 8U);
  EXPECT_EQ(read({{"offset", "9"}, {"limit", "10"}}).piece()->limit, 10U);
  EXPECT_FALSE(read({{"offset", "9"}, {"tail", "1"}}).piece());
  EXPECT_FALSE(read({{"limit", "1048577"}}).piece());
  EXPECT_FALSE(read({{"offset", "-1"}}).piece());
}

}  // namespace
}  // namespace berth
