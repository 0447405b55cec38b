#include "api/resources.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>

namespace berth {
namespace {

namespace json = boost::json;
using testing::HasSubstr;

TEST(ResourcesTest, PagesHaveLimitsAndAnOrder) {
  EXPECT_EQ(*parse_batch_query({}), PageQuery{});
  EXPECT_EQ(*parse_batch_query({{"after", "7"}, {"limit", "5"}, {"order", "desc"}}),
            (PageQuery{7, 5, true}));
  EXPECT_TRUE(parse_rule_changes_query({})->descending);
  for (const Query& wrong :
       {Query{{"limit", "0"}}, Query{{"limit", "1001"}}, Query{{"order", "up"}},
        Query{{"after", "-1"}}, Query{{"what", "1"}}, Query{{"limit", ""}}}) {
    EXPECT_FALSE(parse_batch_query(wrong));
  }
}

TEST(ResourcesTest, AStretchOfTimeBeginsBeforeItEnds) {
  EXPECT_EQ(parse_timeline_query({{"from", "1"}, {"to", "2"}})->to, Millis(2));
  EXPECT_FALSE(parse_timeline_query({{"from", "3"}, {"to", "2"}}));
  EXPECT_FALSE(parse_gpu_history_query({}));
  EXPECT_EQ(parse_gpu_history_query({{"gpu", "0"}})->limit, 200U);
  EXPECT_FALSE(parse_gpu_history_query({{"gpu", "0"}, {"points", "5001"}}));
}

TEST(ResourcesTest, AStreamHasTopics) {
  EXPECT_EQ(*parse_stream_query({}), StreamQuery{});
  const auto some = parse_stream_query({{"topics", "status,events"}, {"after", "9"}});
  EXPECT_EQ(*some, (StreamQuery{true, false, true, 9}));
  EXPECT_FALSE(parse_stream_query({{"topics", ""}}));
  EXPECT_FALSE(parse_stream_query({{"topics", "weather"}}));
}

TEST(ResourcesTest, JobsAreFoundByTheirNames) {
  EXPECT_EQ(parse_job_query({{"name", "lr-*"}})->name, "lr-*");
  EXPECT_EQ(parse_job_query({{"q", "Lr*1"}})->name, "*[lL][rR][*]1*");
  EXPECT_EQ(parse_job_query({{"q", ""}})->name, "");
  EXPECT_FALSE(parse_job_query({{"q", "a"}, {"name", "b"}}));
  EXPECT_FALSE(parse_job_query({{"q", std::string(201, 'a')}}));
  EXPECT_FALSE(parse_job_query({{"name", "*a*a*a*a*a*a*a*a*a*"}}));
  EXPECT_FALSE(parse_job_query({{"name", "[]*]*[^]*]*********"}}));
  EXPECT_TRUE(parse_job_query({{"name", "[]*]*[^]*]*[**********"}}));
  // Whatever is searched for goes into the target of the next page, as a pattern.
  for (const std::string& text :
       {std::string(200, 'a'), std::string(20, '*'), std::string("[]*")}) {
    const auto searched = parse_job_query({{"q", text}});
    ASSERT_TRUE(searched) << text;
    const auto again = parse_job_query({{"name", searched->name}});
    ASSERT_TRUE(again) << text;
    EXPECT_EQ(*again, *searched) << text;
  }
  EXPECT_TRUE(parse_job_query({{"sort", "-id"}})->descending);
  EXPECT_FALSE(parse_job_query({{"sort", "mood"}}));
  EXPECT_FALSE(parse_job_query({{"fields", "id,mood"}}));
}

TEST(ResourcesTest, APageMayHaveSomeFieldsOnly) {
  JobPage page;
  page.jobs.resize(2);
  page.jobs[1].id = 7;
  page.jobs[1].name = "seven";
  page.next = ListPlace{{7}};
  const json::value some = json::parse(encode(page, {"id", "name", "expedited"}));
  EXPECT_EQ(some.at("jobs").as_array().size(), 2U);
  EXPECT_EQ(json::serialize(some.at("jobs").at(1)), R"({"id":7,"name":"seven"})");
  EXPECT_EQ(some.at("next"), 7);
  EXPECT_EQ(encode(page, {}), encode(page));
  EXPECT_EQ(job_query_target(*parse_job_query({{"fields", "id,name"}, {"name", "a b"}})),
            "/api/jobs?name=a%20b&fields=id,name");
}

TEST(ResourcesTest, EveryFieldOfAJobCanBeAskedFor) {
  JobView job;
  job.excused = 1;
  job.expedited = true;
  job.params = {{"a", "b"}};
  const json::value page = json::parse(encode(JobPage{{job}, {}}));
  for (const auto& [key, value] : page.at("jobs").at(0).as_object()) {
    EXPECT_TRUE(is_job_field(key)) << key;
  }
}

TEST(ResourcesTest, AFileMustNameItsPlace) {
  const auto asked = decode_file_request(
      R"({"text": "a", "name": "x.txt", "dialect": null, "cwd": "/d", "key": "k"})");
  ASSERT_TRUE(asked);
  EXPECT_EQ(*asked, (FileRequest{"a", "x.txt", std::nullopt, "/d", "k"}));
  EXPECT_FALSE(decode_check_request(R"({"text": "a", "cwd": "/d", "key": "k"})"));
  EXPECT_FALSE(decode_check_request(R"({"text": "a", "cwd": "d"})"));
  EXPECT_FALSE(decode_check_request(R"({"cwd": "/d"})"));
  EXPECT_FALSE(decode_check_request(R"({"text": "a", "cwd": "/d", "name": "../x"})"));
}

TEST(ResourcesTest, UnknownIsNullAndEveryStateIsCounted) {
  BatchView batch;
  batch.id = 3;
  batch.counts[JobState::failed] = 2;
  const json::value shown = json::parse(encode(batch));
  EXPECT_TRUE(shown.at("name").is_null());
  EXPECT_EQ(shown.at("counts").at("failed"), 2);
  EXPECT_EQ(shown.at("counts").as_object().size(), 7U);
  GpuHistoryView history{"GPU-1", {{Millis(5), {}, 3U, {}, {}}}};
  EXPECT_EQ(encode(history),
            R"({"gpu":"GPU-1","points":[{"t":5,"memory_used":null,"utilization":3,)"
            R"("temperature":null,"power_mw":null}]})");
  EXPECT_THAT(encode_refused_file({ErrorCode::invalid, "no"}, {{"error", "", 3, 0, "what"}}),
              HasSubstr(R"("line":3,"column":null)"));
}

}  // namespace
}  // namespace berth
