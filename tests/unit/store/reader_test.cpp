#include "store/reader.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "support.hpp"

namespace berth::test {
namespace {

class ReaderTest : public testing::Test {
 protected:
  ReaderTest() : driver_(options_for(file_)), reader_(StoreReader::open(file_).value()) {}

  std::vector<std::uint64_t> ids(const JobFilter& query) {
    const auto rows = reader_.jobs(query);
    EXPECT_TRUE(rows) << rows.error().message;
    std::vector<std::uint64_t> found;
    for (const JobRow& row : *rows) {
      found.push_back(row.id.value);
    }
    return found;
  }

  /// 1..60: queue 1 or 2 by parity, batch 1 for multiples of 3, state by id % 7.
  void fill() {
    Changes changes{change::QueuePut{{1}, {"day", 0}}, change::QueuePut{{2}, {"night", 1}},
                    change::BatchPut{{1}, "sweep", 1000, 0, 20, Millis(1)}};
    for (std::uint64_t id = 1; id <= 60; ++id) {
      changes.push_back(job_put(id, id % 3 == 0 ? 1 : 0, 2 - id % 2));
      changes.push_back(job_update(id, static_cast<JobState>(id % 7)));
    }
    ASSERT_TRUE(driver_.commit(std::move(changes)).status);
  }

  std::string plan(const JobFilter& query) {
    Db db = Db::open(file_, Db::Mode::read_only).value();
    Stmt stmt = db.prepare("EXPLAIN QUERY PLAN " + reader_.page_sql(query).value()).value();
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

TEST_F(ReaderTest, TheNewestOfTheSameExperimentAreFound) {
  const auto put = [](std::uint64_t id, std::uint64_t fingerprint, const char* name) {
    auto job = job_put(id);
    auto spec = std::make_shared<JobSpec>(*job.spec);
    spec->payload.fingerprint = fingerprint;
    spec->name = name;
    job.spec = spec;
    return job;
  };
  ASSERT_TRUE(
      driver_
          .commit({put(1, ~0ULL, "a"), job_update(1, JobState::succeeded), put(2, ~0ULL, "a"),
                   job_update(2, JobState::succeeded), put(3, ~0ULL, "a"),
                   job_update(3, JobState::cancelled), put(4, ~0ULL, "a"), put(5, ~0ULL, "b"),
                   put(6, 7, "a"), job_update(6, JobState::killed)})
          .status);
  EXPECT_EQ(reader_.same_jobs(~0ULL, "a").value(), (SameJobs{{2}, {4}}));
  EXPECT_EQ(reader_.same_jobs(~0ULL, "b").value(), (SameJobs{{}, {5}}));
  EXPECT_EQ(reader_.same_jobs(7, "a").value(), SameJobs{});
  EXPECT_EQ(reader_.same_jobs(8, "a").value(), SameJobs{});
  // One that ran after it and failed has written over what it left.
  auto failed = job_update(7, JobState::failed);
  failed.attempts = 1;
  ASSERT_TRUE(driver_.commit({put(7, ~0ULL, "a"), failed}).status);
  EXPECT_EQ(reader_.same_jobs(~0ULL, "a").value(), (SameJobs{{}, {4}}));
}

TEST_F(ReaderTest, ARevivedJobHasNoEndLeft) {
  auto failed = job_update(1, JobState::failed);
  failed.failure = FailureClass::exit;
  failed.exit_code = 3;
  failed.attempts = 2;
  failed.message = "exit 3";
  auto again = job_update(1, JobState::queued);
  again.attempts = 2;
  again.revived = true;
  ASSERT_TRUE(driver_.commit({change::QueuePut{{1}, {"day", 0}}, job_put(1), failed}).status);
  const auto ended = driver_.store().find_ended_job({1});
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->attempts, 2U);
  ASSERT_TRUE(driver_.commit({again}).status);
  EXPECT_FALSE(driver_.store().find_ended_job({1})) << "it has not ended any more";
  const auto row = reader_.job({1}).value().value();
  EXPECT_EQ(row.state, JobState::queued);
  EXPECT_FALSE(row.ended || row.failure || row.exit_code);
  EXPECT_EQ(row.message, "");
  EXPECT_EQ(row.attempts, 2U);
  EXPECT_EQ(reader_.counts().value(), (StateCounts{1, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(driver_.store().load().value().jobs.size(), 1U);
}

TEST_F(ReaderTest, AJobIsShownInFull) {
  auto put = job_put(7, 3, 2);
  auto spec = std::make_shared<JobSpec>(*put.spec);
  spec->payload.log = "/logs/7";
  spec->payload.commands = {{true, {"echo hello"}}};
  spec->payload.environment = std::make_shared<const Environment>(Environment{"PATH=/bin"});
  spec->retries = 3;
  put.spec = spec;
  put.after = {{5}, {2}};
  auto running = job_update(7, JobState::running);
  running.attempts = 1;
  running.wall = Millis(50);
  change::AttemptEnd end;
  end.id = {9};
  end.wall = Millis(60);
  end.verdict = {FailureClass::gpu_oom,
                 1,
                 15,
                 true,
                 "out of memory",
                 Millis(1),
                 Millis(2),
                 kMiB,
                 kGiB,
                 4,
                 5 * kMiB,
                 Millis(59)};
  auto failed = job_update(7, JobState::failed);
  failed.failure = FailureClass::gpu_oom;
  failed.exit_code = -1;
  failed.message = "out of memory";
  failed.attempts = 1;
  failed.wall = Millis(61);
  const change::AttemptPut attempt{{9}, {7}, 1, {"GPU-a"}, {4}, kGiB, Millis(50)};
  ASSERT_TRUE(driver_
                  .commit({change::QueuePut{{2}, {"night", 1}},
                           change::BatchPut{{3}, "sweep", 1000, 0, 1, Millis(1)}, put, attempt,
                           running, end, failed})
                  .status);
  const auto row = reader_.job({7}).value();
  ASSERT_TRUE(row);
  EXPECT_EQ(row->name, "job 7");
  EXPECT_EQ(row->queue, "night");
  EXPECT_EQ(row->batch.value, 3U);
  EXPECT_EQ(row->after, (std::vector<JobId>{{2}, {5}}));
  EXPECT_EQ(row->submitted, Millis(1'007));
  EXPECT_EQ(row->started, Millis(50));
  EXPECT_EQ(row->ended, Millis(61));
  EXPECT_EQ(row->state, JobState::failed);
  EXPECT_EQ(row->failure, FailureClass::gpu_oom);
  EXPECT_EQ(row->exit_code, -1);
  EXPECT_EQ(row->message, "out of memory");
  EXPECT_EQ(row->log, "/logs/7");
  EXPECT_EQ(row->last_attempt.value, 9U);
  EXPECT_EQ(row->gpus, (std::vector<std::string>{"GPU-a"}));
  EXPECT_EQ(row->gpu_indices, (std::vector<std::uint32_t>{4}));
  const auto attempts = reader_.attempts({7}).value();
  ASSERT_EQ(attempts.size(), 1U);
  EXPECT_EQ(attempts[0].verdict, end.verdict);
  EXPECT_EQ(attempts[0].ended, Millis(60));
  EXPECT_EQ(attempts[0].boot_id, "boot-1");
  const auto payload = reader_.payload({7}).value();
  ASSERT_TRUE(payload);
  EXPECT_EQ(*payload, spec->payload);
  EXPECT_FALSE(reader_.job({8}).value());
  EXPECT_FALSE(reader_.payload({8}).value());
}

TEST_F(ReaderTest, AnUpdateReplacesWhatWasKnownOfTheOutcome) {
  auto first = job_update(1, JobState::queued);
  first.exit_code = 3;
  first.failure = FailureClass::timeout;
  first.message = "too slow";
  ASSERT_TRUE(driver_.commit({job_put(1), first, job_update(1, JobState::cancelled)}).status);
  const auto row = reader_.job({1}).value();
  EXPECT_EQ(row->exit_code, std::nullopt);
  EXPECT_EQ(row->failure, std::nullopt);
  EXPECT_EQ(row->message, "");
  EXPECT_EQ(row->started, std::nullopt);
}

TEST_F(ReaderTest, EveryQueryGivesWhatAPlainFilterGives) {
  fill();
  const std::vector<std::vector<JobState>> state_sets = {
      {},
      {JobState::queued},
      {JobState::failed, JobState::running, JobState::failed},
      {JobState::queued, JobState::running, JobState::paused, JobState::succeeded, JobState::failed,
       JobState::killed, JobState::cancelled}};
  const std::vector<std::vector<std::pair<JobId, JobId>>> id_sets = {
      {}, {{{40}, {50}}, {{3}, {9}}, {{8}, {12}}, {{70}, {~0ULL}}, {{5}, {2}}}};
  int checked = 0;
  for (const auto& states : state_sets) {
    for (const char* queue : {"", "day", "night", "none"}) {
      for (const std::uint64_t batch : {0U, 1U, 2U}) {
        for (const auto& id_set : id_sets) {
          for (const std::uint64_t after : {0U, 8U, 45U}) {
            for (const bool descending : {false, true}) {
              const JobFilter query{states, queue, {batch}, id_set, {{after}}, descending, 6, {}};
              std::vector<std::uint64_t> expected;
              for (std::uint64_t n = 1; n <= 60; ++n) {
                const std::uint64_t id = descending ? 61 - n : n;
                const auto state = static_cast<JobState>(id % 7);
                const bool listed =
                    id_set.empty() || std::ranges::any_of(id_set, [&](const auto& range) {
                      return range.first.value <= id && id <= range.second.value;
                    });
                if ((states.empty() || std::ranges::count(states, state) > 0) &&
                    (*queue == '\0' || queue == std::string(id % 2 == 1 ? "day" : "night")) &&
                    (batch == 0 || (id % 3 == 0 ? 1U : 0U) == batch) && listed &&
                    (after == 0 || (descending ? id < after : id > after)) && expected.size() < 6) {
                  expected.push_back(id);
                }
              }
              EXPECT_EQ(ids(query), expected) << reader_.page_sql(query).value();
              ++checked;
            }
          }
        }
      }
    }
  }
  EXPECT_EQ(checked, 4 * 4 * 3 * 2 * 3 * 2);
}

TEST_F(ReaderTest, SinceLeavesOutWhatEndedBefore) {
  Changes changes{change::QueuePut{{1}, {"day", 0}},
                  change::BatchPut{{1}, "sweep", 1000, 0, 20, Millis(1)}};
  for (std::uint64_t id = 1; id <= 20; ++id) {
    changes.push_back(job_put(id, id % 3 == 0 ? 1 : 0, 1));
    auto update = job_update(id, id % 5 == 0 ? JobState::running : JobState::failed);
    update.wall = Millis(1000 + static_cast<std::int64_t>(id));
    changes.push_back(update);
  }
  ASSERT_TRUE(driver_.commit(std::move(changes)).status);
  JobFilter query;
  query.since = Millis(1017);
  EXPECT_EQ(ids(query), (std::vector<std::uint64_t>{5, 10, 15, 17, 18, 19, 20}));
  query.states = {JobState::failed};
  EXPECT_EQ(ids(query), (std::vector<std::uint64_t>{17, 18, 19}));
  query.states = {};
  query.batch = {1};
  EXPECT_EQ(ids(query), (std::vector<std::uint64_t>{15, 18}));
  query.batch = {};
  query.queue = "day";
  query.ids = {{{1}, {17}}};
  EXPECT_EQ(ids(query), (std::vector<std::uint64_t>{5, 10, 15, 17}));
}

TEST_F(ReaderTest, NoPageSortsOrScans) {
  fill();
  std::vector<JobFilter> queries(5);
  queries[0].states = {JobState::queued, JobState::running, JobState::paused};
  queries[1].states = {JobState::succeeded};
  queries[2].queue = "night";
  queries[3].batch = {1};
  for (JobFilter& query : queries) {
    for (const bool descending : {false, true}) {
      query.descending = descending;
      query.after = {{30}};
      const std::string text = plan(query);
      EXPECT_EQ(text.find("TEMP B-TREE"), std::string::npos) << text;
      EXPECT_EQ(text.find("SCAN"), std::string::npos) << text;
    }
  }
}

TEST_F(ReaderTest, CountsFollowEveryChange) {
  fill();
  StateCounts all{};
  StateCounts batch{};
  std::array<StateCounts, 2> queues{};
  for (std::uint64_t id = 1; id <= 60; ++id) {
    ++all[id % 7];
    ++queues.at(reader_.job({id}).value()->queue_id.value - 1)[id % 7];
    batch[id % 7] += id % 3 == 0 ? 1 : 0;
  }
  EXPECT_EQ(reader_.counts().value(), all);
  EXPECT_EQ(reader_.counts({1}).value(), batch);
  EXPECT_EQ(reader_.counts({2}).value(), StateCounts{});
  const auto batches = reader_.batches().value();
  ASSERT_EQ(batches.size(), 1U);
  EXPECT_EQ(batches[0].counts, batch);
  EXPECT_EQ(batches[0].name, "sweep");
  EXPECT_EQ(reader_.queues().value(),
            (std::vector<QueueRow>{{{1}, {"day", 0}, false, queues[0]},
                                   {{2}, {"night", 1}, false, queues[1]}}));
}

TEST_F(ReaderTest, TheCountsOfQueuesFollowMovesAndRemovals) {
  ASSERT_TRUE(driver_
                  .commit({change::QueuePut{{1}, {"day", 0}}, change::QueuePut{{2}, {"night", 1}},
                           job_put(1), job_put(2), job_put(3), job_put(4, 0, 2)})
                  .status);
  change::JobSet move;
  move.id = {1};
  move.queue = QueueId{2};
  change::JobSet stay;
  stay.id = {2};
  stay.queue = QueueId{1};
  // Moved and ended in one transaction, it counts as ended, there.
  ASSERT_TRUE(
      driver_
          .commit({move, stay, job_update(1, JobState::succeeded), job_update(3, JobState::killed)})
          .status);
  const auto counts = [&](std::size_t at) { return reader_.queues().value().at(at).counts; };
  EXPECT_EQ(counts(0), (StateCounts{1, 0, 0, 0, 0, 1, 0}));
  EXPECT_EQ(counts(1), (StateCounts{1, 0, 0, 1, 0, 0, 0}));
  ASSERT_TRUE(driver_.commit({change::JobsRemove{{{1}, {3}, {99}}}}).status);
  EXPECT_EQ(counts(0), (StateCounts{1, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(counts(1), (StateCounts{1, 0, 0, 0, 0, 0, 0}));
}

TEST_F(ReaderTest, BatchesComeInPages) {
  Changes changes;
  for (std::uint64_t id = 1; id <= 5; ++id) {
    changes.push_back(change::BatchPut{{id}, "b", 0, 0, 0, Millis(1)});
  }
  ASSERT_TRUE(driver_.commit(std::move(changes)).status);
  const auto page = reader_.batches({4}, 2, true).value();
  ASSERT_EQ(page.size(), 2U);
  EXPECT_EQ(page[0].id.value, 3U);
  EXPECT_EQ(page[1].id.value, 2U);
  EXPECT_EQ(reader_.batches({4}).value().size(), 1U);
}

TEST_F(ReaderTest, HistoryIsReadForwardFromAnyPoint) {
  Changes changes;
  for (std::uint64_t n = 1; n <= 9; ++n) {
    changes.push_back(
        change::History{"kind", {n % 3}, {n}, {n % 2}, "line " + std::to_string(n), Millis(n)});
  }
  ASSERT_TRUE(driver_.commit(std::move(changes)).status);
  const auto seqs = [&](const HistoryQuery& query) {
    std::vector<std::uint64_t> found;
    const auto rows = reader_.history(query).value();
    for (const auto& row : rows) {
      found.push_back(row.seq);
    }
    return found;
  };
  EXPECT_EQ(seqs({4, {}, {}, 3}), (std::vector<std::uint64_t>{5, 6, 7}));
  EXPECT_EQ(seqs({1, {1}, {}, 50}), (std::vector<std::uint64_t>{4, 7}));
  EXPECT_EQ(seqs({1, {}, {1}, 50}), (std::vector<std::uint64_t>{3, 5, 7, 9}));
  EXPECT_EQ(seqs({0, {1}, {1}, 50}), (std::vector<std::uint64_t>{1, 7}));
  const auto last = reader_.history({8, {}, {}, 50}).value();
  ASSERT_EQ(last.size(), 1U);
  EXPECT_EQ(last[0], (HistoryRow{9, "kind", {0}, {9}, {1}, "line 9", Millis(9)}));
}

TEST_F(ReaderTest, IntegrityIsChecked) {
  fill();
  EXPECT_TRUE(reader_.check_integrity());
}

}  // namespace
}  // namespace berth::test
