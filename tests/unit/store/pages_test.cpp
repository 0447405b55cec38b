// Pages of jobs and of history: right, and without looking at more than they may.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <utility>

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
  EXPECT_EQ(first.next, ListPlace{{40}}) << "looked at no more than it may";
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
      query.after = {{30}};
      const std::string text = plan(reader_.page_sql(query).value());
      EXPECT_EQ(text.find("TEMP B-TREE"), std::string::npos) << text;
      EXPECT_EQ(text.find("SCAN"), std::string::npos) << text;
    }
  }
}

/// Ten jobs in one batch and 400 beside it: the priority goes from 3 to 7, most have had attempts,
/// some of them two.
class SortedTest : public PagesTest {
 protected:
  static constexpr std::uint64_t kJobs = 410;

  void run() {
    Changes changes{change::QueuePut{{1}, {"day", 0}}, change::QueuePut{{2}, {"night", 1}},
                    change::BatchPut{{1}, "sweep", 1000, 0, 10, Millis(1)}};
    std::uint64_t attempt = 0;
    for (std::uint64_t id = 1; id <= kJobs; ++id) {
      change::JobPut put = job_put(id, id % 41 == 0 ? 1 : 0, 2 - id % 2);
      auto spec = std::make_shared<JobSpec>(*put.spec);
      spec->priority = static_cast<std::int32_t>(3 + id * 7 % 5);
      put.spec = spec;
      changes.push_back(put);
    }
    // Not in the order of ids, and some a second time.
    for (std::uint64_t n = 0; n < kJobs; ++n) {
      const std::uint64_t id = 1 + n * 149 % kJobs;
      change::JobUpdate update = job_update(id, static_cast<JobState>(id % 7));
      update.wall = Millis(static_cast<std::int64_t>(5'000 + n / 3));  // three end at once
      changes.push_back(update);
      if (update.state == JobState::running || update.state == JobState::succeeded || id % 2 == 0) {
        for (std::uint32_t number = 1; number <= 1 + id % 2; ++number) {
          changes.push_back(
              change::AttemptPut{{++attempt}, {id}, number, {"GPU-a"}, {0}, 0, Millis(n)});
          changes.push_back(change::AttemptEnd{{attempt}, false, {}, Millis(n)});
        }
      }
    }
    ASSERT_TRUE(driver_.commit(std::move(changes)).status);
  }

  /// What a plain sort of all rows gives.
  std::vector<std::uint64_t> plain(const JobFilter& query) {
    JobFilter by_id = query;
    by_id.sort = JobSort::id;
    by_id.descending = false;
    by_id.after = {};
    by_id.limit = kJobs;
    std::vector<ListPlace> places;
    const auto rows = reader_.jobs(by_id).value();
    for (const JobRow& row : rows) {
      places.push_back({row.id, key_of(row, query.sort)});
    }
    std::ranges::sort(places, [&](const ListPlace& a, const ListPlace& b) {
      return goes_before(a, b, query.descending);
    });
    std::vector<std::uint64_t> ids;
    for (const ListPlace& place : places) {
      ids.push_back(place.id.value);
    }
    return ids;
  }

  static std::optional<std::int64_t> key_of(const JobRow& row, JobSort sort) {
    switch (sort) {
      case JobSort::id:
        return 0;
      case JobSort::priority:
        return row.priority;
      case JobSort::state:
        return static_cast<std::int64_t>(row.state);
      case JobSort::started:
        return row.last_attempt ? std::optional(static_cast<std::int64_t>(row.last_attempt.value))
                                : std::nullopt;
      case JobSort::ended:
        return row.ended ? std::optional(row.ended->count()) : std::nullopt;
    }
    std::unreachable();
  }

  static std::vector<JobFilter> filters() {
    std::vector<JobFilter> queries(10);
    queries[1].states = {JobState::queued, JobState::failed};
    queries[2].states = {JobState::queued};
    queries[3].queue = "night";
    queries[4].batch = {1};
    queries[5].queue = "day";
    queries[5].batch = {1};
    queries[5].states = {JobState::succeeded, JobState::cancelled};
    queries[6].name = "job *2";
    queries[7].since = Millis(5'060);
    queries[8].ended_before = Millis(5'060);
    queries[8].states = {JobState::queued, JobState::succeeded, JobState::failed};
    queries[9].ids = {{{40}, {90}}, {{7}, {7}}, {{80}, {120}}, {{300}, {10'000}}};
    return queries;
  }
};

constexpr std::array kSortsTried = {JobSort::priority, JobSort::state, JobSort::started,
                                    JobSort::ended};

TEST_F(SortedTest, EveryPageGivesWhatAPlainSortGives) {
  run();
  for (const std::size_t budget : {13U, 100U, 4'000U}) {
    reader_.sort_budget = reader_.lookup_budget = budget;
    for (JobFilter query : filters()) {
      for (const JobSort sort : kSortsTried) {
        for (const bool descending : {false, true}) {
          query.sort = sort;
          query.descending = descending;
          query.limit = 9;
          EXPECT_EQ(all(query), plain(query))
              << to_string(sort) << descending << " budget " << budget;
        }
      }
    }
  }
}

TEST_F(SortedTest, WhoeverKeepsItsPlaceComesOnceWhateverHappensToOthers) {
  run();
  reader_.sort_budget = reader_.lookup_budget = 50;
  for (const JobSort sort : kSortsTried) {
    JobFilter query;
    query.sort = sort;
    query.descending = sort == JobSort::ended;
    query.limit = 20;
    std::vector<std::uint64_t> seen;
    std::uint64_t more = 0;
    while (true) {
      const JobListing page = reader_.list(query).value();
      for (const JobRow& row : page.rows) {
        seen.push_back(row.id.value);
      }
      if (!page.next) {
        break;
      }
      query.after = *page.next;
      // One goes, one comes, and one that was just shown moves.
      Changes changes;
      const std::uint64_t moved = seen.back();
      changes.push_back(job_put(10'000 + 1'000 * static_cast<std::uint64_t>(sort) + ++more, 0, 1));
      change::JobSet set;
      set.id = {moved};
      set.priority = 5;
      changes.push_back(set);
      changes.push_back(
          change::JobsRemove{{{10'000 + 1'000 * static_cast<std::uint64_t>(sort) + more - 1}}});
      ASSERT_TRUE(driver_.commit(std::move(changes)).status);
    }
    std::erase_if(seen, [](std::uint64_t id) { return id > kJobs; });
    if (sort != JobSort::priority) {  // there some have moved, and may come again or not at all
      std::ranges::sort(seen);
      EXPECT_EQ(seen, expected(kJobs, false, [](std::uint64_t) { return true; }))
          << to_string(sort);
    }
  }
}

TEST_F(SortedTest, NoWalkSortsOrScans) {
  run();
  for (JobFilter query : filters()) {
    for (const JobSort sort : kSortsTried) {
      for (const bool descending : {false, true}) {
        for (const ListPlace after : {ListPlace{}, ListPlace{{30}, 4}, ListPlace{{30}}}) {
          query.sort = sort;
          query.descending = descending;
          query.after = after;
          const auto statements = reader_.sorted_sql(query).value();
          for (const std::string& sql : statements) {
            const std::string text = plan(sql);
            EXPECT_EQ(text.find("TEMP B-TREE"), std::string::npos) << sql << "\n" << text;
            EXPECT_EQ(text.find("SCAN"), std::string::npos) << sql << "\n" << text;
          }
        }
      }
    }
  }
}

TEST_F(SortedTest, APageLooksAtNoMoreThanItMay) {
  run();
  reader_.sort_budget = reader_.lookup_budget = 30;
  JobFilter query;
  query.sort = JobSort::priority;
  query.name = "nothing";
  const JobListing page = reader_.list(query).value();
  EXPECT_TRUE(page.rows.empty());
  ASSERT_TRUE(page.next);
  EXPECT_EQ(page.next->key, 3);
  EXPECT_TRUE(all(query).empty());
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

/// Attempt n of job n begins at 1000 n and ends 1500 later; every tenth takes ten times as long,
/// and the last has not ended.
class SpansTest : public PagesTest {
 protected:
  static constexpr std::uint64_t kAttempts = 300;
  static Millis began(std::uint64_t id) { return Millis(1'000 * static_cast<std::int64_t>(id)); }
  static Millis took(std::uint64_t id) { return Millis(id % 10 == 0 ? 15'000 : 1'500); }

  void run() {
    fill(kAttempts);
    Changes changes;
    for (std::uint64_t id = 1; id <= kAttempts; ++id) {
      changes.push_back(change::AttemptPut{{id}, {id}, 1, {"GPU-a"}, {3}, 0, began(id)});
      if (id != kAttempts) {
        change::AttemptEnd end;
        end.id = {id};
        end.verdict.killed = id % 2 == 0;
        end.wall = began(id) + took(id);
        changes.push_back(end);
      }
    }
    ASSERT_TRUE(driver_.commit(std::move(changes)).status);
  }
};

TEST_F(SpansTest, GivesWhatRanInThatTime) {
  run();
  for (const auto& [from, to] : std::vector<std::pair<int, int>>{
           {0, 1'000'000}, {50'000, 60'000}, {55'500, 55'500}, {0, 999}, {299'000, 400'000}}) {
    const auto found = reader_.spans(Millis(from), Millis(to), 1'000).value();
    const auto ran = [&](std::uint64_t id) {
      return began(id) <= Millis(to) && (id == kAttempts || began(id) + took(id) >= Millis(from));
    };
    std::vector<std::uint64_t> ids;
    for (const AttemptSpan& span : found.spans) {
      ids.push_back(span.attempt.id.value);
    }
    EXPECT_EQ(ids, expected(kAttempts, true, ran)) << from << " " << to;
    EXPECT_FALSE(found.more);
  }
  const AttemptSpan last = reader_.spans(Millis(0), Millis(1'000'000), 1).value().spans.at(0);
  EXPECT_EQ(last.attempt.gpus, std::vector<std::string>{"GPU-a"});
  EXPECT_EQ(last.attempt.gpu_indices, std::vector<std::uint32_t>{3});
  EXPECT_EQ(last.attempt.ended, std::nullopt);
  EXPECT_EQ(last.name, "job 300");
}

TEST_F(SpansTest, LooksAtNoMoreThanItMay) {
  run();
  EXPECT_TRUE(reader_.spans(Millis(0), Millis(1'000'000), 10).value().more);
  reader_.scan_budget = 20;
  const auto found = reader_.spans(Millis(0), Millis(100'000), 1'000).value();
  EXPECT_EQ(found.spans.size(), 20U);
  EXPECT_EQ(found.spans.front().attempt.id, AttemptId{100});
  EXPECT_TRUE(found.more);
}

TEST_F(SpansTest, ABatchIsFoundByItsId) {
  fill(10);
  EXPECT_EQ(reader_.batch({1}).value()->name, "sweep");
  EXPECT_EQ(reader_.batch({2}).value(), std::nullopt);
  EXPECT_EQ(reader_.batch({UINT64_MAX}).value(), std::nullopt);
}

}  // namespace
}  // namespace berth::test
