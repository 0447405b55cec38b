// Pages of jobs and of history: right, and without looking at more than they may.

#include <gtest/gtest.h>

#include <algorithm>

#include <fmt/format.h>

#include "store/reader.hpp"
#include "support.hpp"

namespace berth::test {
namespace {

class PagesTest : public testing::Test {
 protected:
  PagesTest() : driver_(options_for(file_)), reader_(StoreReader::open(file_).value()) {}

  /// 1..n: state by id % 7; finished ones ended at 2000 + id. Queue 1 or 2 by parity, batch 1 for
  /// multiples of 3.
  void fill(std::uint64_t n) {
    Changes changes{change::QueuePut{{1}, {"day", 0}}, change::QueuePut{{2}, {"night", 1}},
                    change::BatchPut{{1}, "sweep", 1000, 0, 20, Millis(1)}};
    for (std::uint64_t id = 1; id <= n; ++id) {
      changes.push_back(job_put(id, id % 3 == 0 ? 1 : 0, 2 - id % 2));
      changes.push_back(job_update(id, static_cast<JobState>(id % 7)));
    }
    ASSERT_TRUE(driver_.commit(std::move(changes)).status);
  }

  /// Follows the pages to the end; each looks at no more rows than `scan_budget`.
  std::vector<std::uint64_t> all(JobFilter query) {
    std::vector<std::uint64_t> found;
    while (true) {
      const JobListing page = reader_.list(query).value();
      EXPECT_LE(page.rows.size(), query.limit);
      EXPECT_EQ(page.rows.size(), page.heads.size());
      for (const JobRow& row : page.rows) {
        found.push_back(row.id.value);
      }
      if (!page.next) {
        return found;
      }
      query.after = *page.next;
    }
  }

  template <class Matches>
  static std::vector<std::uint64_t> expected(std::uint64_t n, bool descending, Matches matches) {
    std::vector<std::uint64_t> ids;
    for (std::uint64_t id = 1; id <= n; ++id) {
      if (matches(id)) {
        ids.push_back(id);
      }
    }
    if (descending) {
      std::ranges::reverse(ids);
    }
    return ids;
  }

  std::string plan(const std::string& sql) {
    Db db = Db::open(file_, Db::Mode::read_only).value();
    Stmt stmt = db.prepare("EXPLAIN QUERY PLAN " + sql).value();
    std::string text;
    while (stmt.step().value()) {
      text += stmt.text(3) + "\n";
    }
    return text;
  }

  TempDir dir_;
  std::filesystem::path file_ = dir_ / "store.db";
  Driver driver_;
  StoreReader reader_;
};

bool ended(std::uint64_t id) {
  return is_terminal(static_cast<JobState>(id % 7));
}

TEST_F(PagesTest, SinceGivesWhatHasNotEndedOrEndedLater) {
  constexpr std::uint64_t kJobs = 200;
  fill(kJobs);
  for (const std::size_t budget : {7U, 4'000U}) {
    reader_.scan_budget = reader_.lookup_budget = budget;
    for (const std::int64_t since : {0, 2'050, 2'190, 5'000}) {
      for (const bool descending : {false, true}) {
        JobFilter query;
        query.since = Millis(since);
        query.descending = descending;
        query.limit = 9;
        const auto later = [&](std::uint64_t id) {
          return !ended(id) || 2'000 + static_cast<std::int64_t>(id) >= since;
        };
        EXPECT_EQ(all(query), expected(kJobs, descending, later)) << since;
        query.states = {JobState::queued, JobState::failed};
        EXPECT_EQ(all(query), expected(kJobs, descending, [&](std::uint64_t id) {
                    return later(id) && (id % 7 == 0 || id % 7 == 4);
                  }));
        query.queue = "night";
        query.batch = {1};
        query.name = "job *2";
        EXPECT_EQ(all(query), expected(kJobs, descending, [&](std::uint64_t id) {
                    return later(id) && (id % 7 == 0 || id % 7 == 4) && id % 2 == 0 &&
                           id % 3 == 0 && id % 10 == 2;
                  }));
        query.states = {JobState::succeeded};
        query.queue.clear();
        query.batch = {};
        query.name.clear();
        query.ids = {{{20}, {90}}, {{120}, {180}}};
        EXPECT_EQ(all(query), expected(kJobs, descending, [&](std::uint64_t id) {
                    return later(id) && id % 7 == 3 &&
                           ((id >= 20 && id <= 90) || (id >= 120 && id <= 180));
                  }));
      }
    }
  }
}

TEST_F(PagesTest, ALongWindowIsWalkedInIdOrder) {
  constexpr std::uint64_t kJobs = 2'500;
  fill(kJobs);  // more have ended than are sorted in memory
  reader_.scan_budget = reader_.lookup_budget = 300;
  JobFilter query;
  query.since = Millis(2'000 + 400);
  const auto later = [](std::uint64_t id) { return !ended(id) || id >= 400; };
  EXPECT_EQ(all(query), expected(kJobs, false, later));
  query.descending = true;
  EXPECT_EQ(all(query), expected(kJobs, true, later));
}

TEST_F(PagesTest, EndedBeforeGivesOnlyWhatHasEnded) {
  fill(100);
  JobFilter query;
  query.ended_before = Millis(2'050);
  const auto old = [](std::uint64_t id) { return ended(id) && id < 50; };
  EXPECT_EQ(all(query), expected(100, false, old));
  query.queue = "day";
  EXPECT_EQ(all(query),
            expected(100, false, [&](std::uint64_t id) { return old(id) && id % 2 == 1; }));
  query.states = {JobState::running};
  EXPECT_TRUE(all(query).empty());
}

TEST_F(PagesTest, ARareJobIsFoundInManySmallSteps) {
  fill(500);
  reader_.scan_budget = reader_.lookup_budget = 40;
  JobFilter query;
  query.name = "job 4?9";
  const JobListing first = reader_.list(query).value();
  EXPECT_TRUE(first.rows.empty());
  EXPECT_EQ(first.next, JobId{40}) << "looked at no more than it may";
  EXPECT_EQ(all(query),
            (std::vector<std::uint64_t>{409, 419, 429, 439, 449, 459, 469, 479, 489, 499}));
  EXPECT_EQ(reader_.jobs(query).value().size(), 10U);
  query.name = "nothing";
  EXPECT_TRUE(all(query).empty());
}

TEST_F(PagesTest, AListShowsTheCommandWithoutTheEnvironment) {
  fill(3);
  const JobListing page = reader_.list({}).value();
  ASSERT_EQ(page.heads.size(), 3U);
  EXPECT_EQ(page.heads[0].commands.at(0).argv, std::vector<std::string>{"true"});
  EXPECT_EQ(page.heads[0].cwd, "/");
}

TEST_F(PagesTest, NoPageSortsOrScans) {
  fill(60);
  std::vector<JobFilter> queries(9);
  queries[0].states = {JobState::queued, JobState::running, JobState::paused};
  queries[1].queue = "night";
  queries[2].batch = {1};
  queries[3].queue = "night";
  queries[3].batch = {1};
  queries[3].states = {JobState::failed};
  queries[4].name = "job *";
  queries[5].name = "job *";
  queries[5].states = {JobState::failed};
  queries[6].since = Millis(2'010);
  queries[7].since = Millis(2'010);
  queries[7].queue = "day";
  queries[8].ended_before = Millis(2'010);
  for (JobFilter& query : queries) {
    for (const bool descending : {false, true}) {
      query.descending = descending;
      query.after = {30};
      const std::string text = plan(reader_.page_sql(query).value());
      EXPECT_EQ(text.find("TEMP B-TREE"), std::string::npos) << text;
      EXPECT_EQ(text.find("SCAN"), std::string::npos) << text;
    }
  }
}

TEST_F(PagesTest, HistoryComesByJobKindAndTimeFromEitherEnd) {
  Changes changes;
  for (std::uint64_t n = 1; n <= 400; ++n) {
    changes.push_back(change::History{n % 5 == 0 ? "failed" : "started",
                                      {n % 40},
                                      {},
                                      {n % 3},
                                      "",
                                      Millis(static_cast<std::int64_t>(1'000 + n))});
  }
  ASSERT_TRUE(driver_.commit(std::move(changes)).status);
  const auto follow = [&](HistoryQuery query) {
    std::vector<std::uint64_t> seqs;
    while (true) {
      const HistoryPage page = reader_.history_page(query).value();
      for (const HistoryRow& row : page.rows) {
        seqs.push_back(row.seq);
      }
      if (!page.more) {
        return seqs;
      }
      query.after = page.last;
    }
  };
  const auto is = [&](bool descending, auto matches) { return expected(400, descending, matches); };
  for (const std::size_t budget : {11U, 4'000U}) {
    reader_.scan_budget = reader_.lookup_budget = budget;
    for (const bool descending : {false, true}) {
      HistoryQuery query;
      query.descending = descending;
      query.limit = 13;
      query.since = Millis(1'200);
      EXPECT_EQ(follow(query), is(descending, [](auto n) { return n >= 200; }));
      query.kinds = {"failed", "nothing"};
      EXPECT_EQ(follow(query), is(descending, [](auto n) { return n >= 200 && n % 5 == 0; }));
      query.batch = {2};
      EXPECT_EQ(follow(query),
                is(descending, [](auto n) { return n >= 200 && n % 5 == 0 && n % 3 == 2; }));
      query = {};
      query.descending = descending;
      query.jobs = {{{3}, {5}}, {{39}, {39}}};
      EXPECT_EQ(follow(query), is(descending, [](auto n) {
                  return (n % 40 >= 3 && n % 40 <= 5) || n % 40 == 39;
                }));
      query.jobs = {{{3}, {100'000}}};
      EXPECT_EQ(follow(query), is(descending, [](auto n) { return n % 40 >= 3; }));
    }
  }
}

TEST_F(PagesTest, HistoryReadsItsIndexes) {
  HistoryQuery query;
  query.after = 5;
  const auto sorts = [&] {
    const std::string text = plan(reader_.history_sql(query).value());
    EXPECT_EQ(text.find("SCAN"), std::string::npos) << text;
    return text.find("TEMP B-TREE") != std::string::npos;
  };
  for (const bool descending : {false, true}) {
    query = {};
    query.after = 5;
    query.descending = descending;
    EXPECT_FALSE(sorts());
    query.since = Millis(5);
    query.kinds = {"failed"};
    EXPECT_FALSE(sorts());
    query.batch = {1};
    EXPECT_FALSE(sorts());
    query.batch = {};
    query.job = {3};
    EXPECT_FALSE(sorts());
    query.job = {};
    query.jobs = {{{1}, {100'000}}};
    EXPECT_FALSE(sorts());
    query.jobs = {{{1}, {3}}};
    EXPECT_TRUE(sorts()) << "the few lines of a few jobs";
  }
}

}  // namespace
}  // namespace berth::test
