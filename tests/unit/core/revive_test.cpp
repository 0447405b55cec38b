// Jobs that ended and live again.

#include <gtest/gtest.h>

#include "unit/core/world.hpp"

namespace berth::testing {
namespace {

class ReviveTest : public ::testing::Test {
 protected:
  World w;

  /// With what the store knows, as the engine would add it. "revived 1; refused 2 (has succeeded)".
  std::string revive(std::initializer_list<std::uint64_t> jobs, bool succeeded = false) {
    event::Revive event;
    event.succeeded = succeeded;
    for (const std::uint64_t id : jobs) {
      event.jobs.push_back(JobId{id});
      if (const auto row = w.ledger.ended(JobId{id})) {
        for (const JobId dependency : row->after) {
          if (const auto ended = w.ledger.ended(dependency)) {
            event.finished_dependencies.emplace(dependency, ended->state);
          }
        }
        event.ended.push_back(*row);
      }
    }
    const auto answer = w.apply(std::move(event));
    if (!answer) {
      return "error: " + answer.error().message;
    }
    const auto& controlled = std::get<Controlled>(*answer);
    std::string out;
    const auto add = [&out](std::string_view what, const std::vector<JobId>& ids,
                            const std::string& note) {
      out += fmt::format("{}{} ", out.empty() ? "" : "; ", what);
      for (const JobId id : ids) {
        out += fmt::format("{}{}", id == ids.front() ? "" : ",", id.value);
      }
      out += note;
    };
    for (const auto& [what, ids] : controlled.jobs) {
      add(to_string(what), ids, "");
    }
    for (const auto& [why, ids] : controlled.refused) {
      add("refused", ids, " (" + why + ")");
    }
    if (!controlled.absent.empty()) {
      add("absent", controlled.absent, "");
    }
    return out;
  }
  void run_and_fail(std::uint64_t job) {
    w.decide();
    w.fail(job);
  }
};

TEST_F(ReviveTest, AFailedJobWaitsAgainAndItsAttemptsGoOnCounting) {
  w.submit({a_cpu_job().retries(1)});
  run_and_fail(1);
  run_and_fail(1);
  ASSERT_EQ(w.alive(), "");
  EXPECT_EQ(revive({1}), "revived 1");
  EXPECT_EQ(w.told(), "revived");
  EXPECT_EQ(w.alive(), "1:queued");
  EXPECT_EQ(w.state.job(JobId{1})->retries_used, 0U) << "its retries begin anew";
  EXPECT_EQ(w.decide(), "1:-");
  EXPECT_EQ(w.state.attempts.at(w.attempt_of(1)).number, 3U);
  w.fail(1);
  EXPECT_EQ(w.alive(), "1:queued") << "it may be tried once more";
  w.decide();
  w.succeed(1);
  EXPECT_EQ(w.alive(), "");
}

TEST_F(ReviveTest, WhatIsLeftOfTheEndIsCleared) {
  w.submit({a_cpu_job()});
  run_and_fail(1);
  revive({1});
  const auto& update = std::get<change::JobUpdate>(w.last.changes.front());
  EXPECT_TRUE(update.revived);
  EXPECT_EQ(update.state, JobState::queued);
  EXPECT_FALSE(update.failure);
  EXPECT_FALSE(update.exit_code);
  EXPECT_EQ(update.message, "");
  EXPECT_EQ(update.attempts, 1U);
}

TEST_F(ReviveTest, KilledAndCancelledOnesToo) {
  w.submit({a_cpu_job(), a_cpu_job().after_index(0)});
  w.decide();
  w.kill({1, 2});
  Verdict verdict;
  verdict.killed = true;
  w.end(1, verdict);
  ASSERT_EQ(w.alive(), "");
  EXPECT_EQ(revive({1, 2}), "revived 1,2");
  EXPECT_EQ(w.decide(), "1:-") << "2 follows 1, as before";
  w.succeed(1);
  EXPECT_EQ(w.decide(), "2:-");
}

TEST_F(ReviveTest, OneThatSucceededOnlyWhenAsked) {
  w.submit({a_cpu_job()});
  w.decide();
  w.succeed(1);
  EXPECT_EQ(revive({1}), "refused 1 (has succeeded)");
  EXPECT_EQ(w.alive(), "");
  EXPECT_EQ(revive({1}, true), "revived 1");
}

TEST_F(ReviveTest, WhoIsAliveOrUnknownIsNamed) {
  w.submit({a_cpu_job()});
  EXPECT_EQ(revive({1, 7}), "refused 1 (has not ended); absent 7");
  w.decide();
  w.fail(1);
  EXPECT_EQ(revive({1, 1}), "revived 1") << "once is enough";
}

TEST_F(ReviveTest, DependentsThatWereCancelledAreNotTouched) {
  w.submit({a_cpu_job(), a_cpu_job().after_index(0)});
  run_and_fail(1);
  ASSERT_EQ(w.alive(), "");
  EXPECT_EQ(revive({1}), "revived 1");
  EXPECT_EQ(w.alive(), "1:queued");
}

TEST_F(ReviveTest, OneThatFollowsWhatFailedNeedsThatToo) {
  w.submit({a_cpu_job(), a_cpu_job().after_index(0)});
  run_and_fail(1);
  EXPECT_EQ(revive({2}), "refused 2 (follows job 1, which failed; run both again)");
  EXPECT_EQ(revive({2, 1}), "revived 1,2") << "in whatever order they are named";
  w.decide();
  w.fail(1);
  EXPECT_EQ(w.alive(), "") << "it is told once more, and cancelled once more";
}

TEST_F(ReviveTest, ItsBatchComesBackWithItsLimitAndRules) {
  event::Submit submit;
  submit.batch_name = "sweep";
  submit.batch_max_concurrent = 1;
  submit.batch_rules = {{"order", "fifo"}};
  submit.jobs = {a_cpu_job(), a_cpu_job()};
  w.submit(std::move(submit));
  run_and_fail(1);
  run_and_fail(2);
  ASSERT_TRUE(w.state.batches.empty());
  EXPECT_EQ(revive({1, 2}), "revived 1,2");
  ASSERT_EQ(w.state.batches.size(), 1U);
  EXPECT_EQ(w.state.batches.begin()->second.max_concurrent, 1U);
  EXPECT_EQ(w.state.batches.begin()->second.rules.at("order"), "fifo");
  EXPECT_EQ(w.decide(), "1:-") << "one at a time";
  w.succeed(1);
  w.decide();
  w.succeed(2);
  EXPECT_TRUE(w.state.batches.empty());
}

TEST_F(ReviveTest, WithoutRoomOnTheDiskNobodyLivesAgain) {
  w.submit({a_cpu_job()});
  run_and_fail(1);
  w.fill_disk();
  EXPECT_EQ(revive({1}).find("error: no room"), 0U);
  EXPECT_EQ(w.alive(), "");
}

TEST_F(ReviveTest, RemovingWhatHasEndedLeavesWhatLivesAgain) {
  w.submit({a_cpu_job()});
  run_and_fail(1);
  revive({1});
  const auto answer = w.apply(event::Remove{{JobId{1}}, true});
  EXPECT_EQ(std::get<Removed>(*answer).running, std::vector{JobId{1}});
  EXPECT_EQ(w.alive(), "1:queued");
}

TEST_F(ReviveTest, ARestartFindsItWaiting) {
  w.submit({a_cpu_job(), a_cpu_job().after_index(0)});
  run_and_fail(1);
  revive({1, 2});
  const State restored = restore(w.ledger.snapshot(), w.state.rules, w.state.host, w.now);
  EXPECT_EQ(fingerprint(restored), fingerprint(w.state));
}

TEST_F(ReviveTest, WhatRunsAfterARestartDoesNotWaitForWhatItFollowed) {
  w.submit({a_cpu_job(), a_cpu_job().after_index(0)});
  w.decide();
  w.succeed(1);
  w.decide();
  revive({1}, true);
  State restored = restore(w.ledger.snapshot(), w.state.rules, w.state.host, w.now);
  EXPECT_EQ(restored.job(JobId{2})->waiting_for, 0U);
  EXPECT_TRUE(restored.pending.empty());
}

}  // namespace
}  // namespace berth::testing
