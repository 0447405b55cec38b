// Pausing, moving, starting out of turn and changing jobs and rules.

#include <gtest/gtest.h>

#include "core/rule_table.hpp"
#include "unit/core/invariants.hpp"
#include "unit/core/world.hpp"

namespace berth::testing {
namespace {

using What = Controlled::What;

std::vector<JobId> ids(std::initializer_list<std::uint64_t> numbers) {
  std::vector<JobId> out;
  for (const std::uint64_t n : numbers) {
    out.push_back(JobId{n});
  }
  return out;
}

/// "held 1,2; refused 3 (runs already); absent 9".
std::string shown(const Result<Answer>& answer) {
  if (!answer) {
    return "error: " + answer.error().message;
  }
  const auto& controlled = std::get<Controlled>(*answer);
  std::string out;
  const auto add = [&out](std::string_view what, const std::vector<JobId>& jobs,
                          const std::string& note = {}) {
    out += fmt::format("{}{} ", out.empty() ? "" : "; ", what);
    for (const JobId id : jobs) {
      out += fmt::format("{}{}", id == jobs.front() ? "" : ",", id.value);
    }
    out += note;
  };
  for (const auto& [what, jobs] : controlled.jobs) {
    add(to_string(what), jobs);
  }
  for (const auto& [why, jobs] : controlled.refused) {
    add("refused", jobs, " (" + why + ")");
  }
  if (!controlled.absent.empty()) {
    add("absent", controlled.absent);
  }
  return out;
}

Verdict killed() {
  Verdict verdict;
  verdict.killed = true;
  return verdict;
}

class ControlTest : public ::testing::Test {
 protected:
  World w;

  std::string pause(std::initializer_list<std::uint64_t> jobs) {
    return shown(w.apply(event::Pause{ids(jobs)}));
  }
  std::string resume(std::initializer_list<std::uint64_t> jobs) {
    return shown(w.apply(event::Resume{ids(jobs)}));
  }
  std::string start(std::initializer_list<std::uint64_t> jobs) {
    return shown(w.apply(event::Expedite{ids(jobs)}));
  }
  std::string move(std::initializer_list<std::uint64_t> jobs, event::Move::To to,
                   std::uint64_t before = 0) {
    event::Move move;
    move.jobs = ids(jobs);
    move.to = to;
    move.before = JobId{before};
    return shown(w.apply(move));
  }
  void pause_queue(const std::string& queue, bool paused = true) {
    ASSERT_TRUE(w.apply(event::PauseQueue{queue, paused}).has_value());
  }
  /// Starts and ends one job after the other: the order in which a serial queue runs them.
  std::string run_order() {
    std::string out;
    while (true) {
      const std::string started = w.decide();
      if (started.empty()) {
        return out;
      }
      const std::string id = started.substr(0, started.find(':'));
      out += (out.empty() ? "" : " ") + id;
      w.succeed(std::stoull(id));
    }
  }
  void TearDown() override {
    EXPECT_EQ(broken_invariant(w.state), "");
    World again;
    again.state = restore(w.ledger.snapshot(), w.state.rules, w.state.host);
    EXPECT_EQ(broken_invariant(again.state), "");
    w.see({});  // the sight of cards lives in memory only
    again.see({});
    EXPECT_EQ(fingerprint(again.state), fingerprint(w.state));
  }
};

TEST_F(ControlTest, AHeldJobDoesNotStartUntilItIsResumed) {
  w.submit(copies(2, a_cpu_job()));
  EXPECT_EQ(pause({1, 9}), "held 1; absent 9");
  EXPECT_EQ(w.decide(), "2:-");
  EXPECT_EQ(w.alive(), "1:paused 2:running");
  EXPECT_EQ(w.waits(), "1:held");
  EXPECT_EQ(pause({1}), "unchanged 1");
  EXPECT_EQ(resume({1, 2}), "released 1; unchanged 2");
  EXPECT_EQ(w.decide(), "1:-");
}

TEST_F(ControlTest, ARunningJobIsStoppedAndKeepsItsCard) {
  w.see_idle(1);
  w.submit(copies(2, a_job()));
  w.decide();
  EXPECT_EQ(pause({1}), "paused 1");
  EXPECT_EQ(w.effects(), "pause");
  EXPECT_EQ(w.stored(1), "paused");
  w.see_again();
  EXPECT_EQ(w.decide(), "");
  EXPECT_EQ(w.waits(), "2:gpu(claimed)");
  EXPECT_EQ(resume({1}), "resumed 1");
  EXPECT_EQ(w.effects(), "resume");
  EXPECT_EQ(w.alive(), "1:running 2:queued");
  w.kill({1, 2});
  w.end(1, killed());
  w.see_again();
}

TEST_F(ControlTest, WhatIsBeingEndedIsNotPaused) {
  w.submit({a_cpu_job()});
  w.decide();
  w.kill({1});
  EXPECT_EQ(pause({1}), "refused 1 (is being ended)");
}

TEST_F(ControlTest, KillEndsPausedJobsOfBothKinds) {
  w.submit(copies(2, a_cpu_job()));
  pause({2});
  w.decide();
  pause({1});
  const Killed answer = w.kill({1, 2});
  EXPECT_EQ(answer.killed, ids({1}));
  EXPECT_EQ(answer.cancelled, ids({2}));
  EXPECT_EQ(w.effects(), "kill");
  w.end(1, killed());
  EXPECT_EQ(w.alive(), "");
}

TEST_F(ControlTest, APausedRunThatFailsIsHeldForItsRetry) {
  w.submit({a_cpu_job().retries(1)});
  w.decide();
  pause({1});
  w.fail(1);
  EXPECT_EQ(w.alive(), "1:paused");
  EXPECT_EQ(w.waits(), "1:held");
  EXPECT_EQ(w.decide(), "");
  EXPECT_EQ(resume({1}), "released 1");
  EXPECT_EQ(w.decide(), "1:-");
  pause({1});
  w.revoke(1);
  EXPECT_EQ(w.alive(), "1:paused");
  pause({1});
  resume({1});
  EXPECT_EQ(w.decide(), "1:-");
}

TEST_F(ControlTest, APausedRunMayEndByItself) {
  w.submit({a_cpu_job()});
  w.decide();
  pause({1});
  w.succeed(1);
  EXPECT_EQ(w.alive(), "");
}

TEST_F(ControlTest, AHeldJobStillFollowsItsDependencies) {
  w.submit({a_cpu_job(), a_cpu_job().after_index(0), a_cpu_job().after_index(0)});
  EXPECT_EQ(pause({2}), "held 2");
  w.decide();
  w.succeed(1);
  EXPECT_EQ(w.waits(), "2:held 3:due");
  EXPECT_EQ(w.decide(), "3:-");
  resume({2});
  EXPECT_EQ(w.decide(), "2:-");
}

TEST_F(ControlTest, AHeldJobIsCancelledWithWhatItFollows) {
  w.submit({a_cpu_job(), a_cpu_job().after_index(0)});
  pause({2});
  w.decide();
  w.fail(1);
  EXPECT_EQ(w.alive(), "");
}

TEST_F(ControlTest, ResumingBeforeTheDependenciesAreMetStartsNothing) {
  w.submit({a_cpu_job(), a_cpu_job().after_index(0)});
  pause({2});
  resume({2});
  EXPECT_EQ(w.decide(), "1:-");
  EXPECT_EQ(w.waits(), "2:dependency");
}

TEST_F(ControlTest, APausedQueueStartsNothingAndGoesOnRunning) {
  w.submit(copies(2, a_cpu_job().queue("car")));
  w.submit({a_cpu_job()});
  pause_queue("car");
  EXPECT_EQ(w.decide(), "3:-");
  EXPECT_EQ(w.waits(), "1:queue_paused 2:queue_paused");
  pause_queue("car", false);
  EXPECT_EQ(w.decide(), "1:- 2:-");
  pause_queue("car");
  w.succeed(1);
  w.submit({a_cpu_job().queue("car")});
  EXPECT_EQ(w.decide(), "");
  const auto unknown = w.apply(event::PauseQueue{"nobody", true});
  ASSERT_FALSE(unknown.has_value());
  EXPECT_EQ(unknown.error().code, ErrorCode::not_found);
}

TEST_F(ControlTest, TheDefaultQueueCanBePausedBeforeItsFirstJob) {
  pause_queue("default");
  w.submit({a_cpu_job()});
  EXPECT_EQ(w.decide(), "");
  EXPECT_EQ(w.waits(), "1:queue_paused");
  pause_queue("default", false);
  EXPECT_EQ(w.decide(), "1:-");
}

TEST_F(ControlTest, AHeldJobCanBeRemoved) {
  w.submit(copies(2, a_cpu_job()));
  ASSERT_TRUE(w.apply(event::Pause{ids({1})}));
  w.decide();
  const auto answer = w.apply(event::Remove{ids({1, 2})});
  ASSERT_TRUE(answer);
  EXPECT_EQ(std::get<Removed>(*answer).removed, ids({1}));
  EXPECT_EQ(std::get<Removed>(*answer).running, ids({2}));
  EXPECT_EQ(broken_invariant(w.state), "");
}

TEST_F(ControlTest, AChainIsRemovedAtOnceAndToldInOrder) {
  w.submit({a_cpu_job(), a_cpu_job().after_index(0), a_cpu_job().after_index(1),
            a_cpu_job().after_index(2)});
  const auto answer = w.apply(event::Remove{ids({1, 2, 3, 4})});
  ASSERT_TRUE(answer);
  EXPECT_EQ(std::get<Removed>(*answer).removed, ids({1, 2, 3, 4}));
  EXPECT_EQ(std::get<Removed>(*answer).cancelled, ids({1, 2, 3, 4}));
}

TEST_F(ControlTest, ALimitSetByASubmissionDoesNotResumeAQueue) {
  w.submit({a_cpu_job().queue("car")});
  pause_queue("car");
  w.set_queue("car", 3);
  w.submit({a_cpu_job().queue("car")});
  EXPECT_EQ(w.decide(), "");
}

TEST_F(ControlTest, MoveChangesTheOrderOfASerialQueue) {
  using To = event::Move::To;
  w.set_queue("serial", 1);
  w.submit(copies(6, a_cpu_job().queue("serial")));
  EXPECT_EQ(move({4, 5}, To::first), "moved 4,5");
  EXPECT_EQ(move({1}, To::last), "moved 1");
  EXPECT_EQ(move({6}, To::before, 3), "moved 6");
  EXPECT_EQ(move({2}, To::before, 6), "moved 2");
  w.submit({a_cpu_job().queue("serial")});
  EXPECT_EQ(run_order(), "4 5 2 6 3 1 7");
}

TEST_F(ControlTest, ManyMovesToTheFrontAndTheEndKeepTheirOrder) {
  using To = event::Move::To;
  w.set_queue("serial", 1);
  w.submit(copies(3, a_cpu_job().queue("serial")));
  for (int i = 0; i < 300; ++i) {
    move({1}, To::last);
    move({2}, To::last);
    move({3}, To::first);
  }
  EXPECT_EQ(run_order(), "3 1 2");
}

TEST_F(ControlTest, AGapThatIsUsedUpIsSaidToBe) {
  using To = event::Move::To;
  w.submit(copies(3, a_cpu_job().queue("serial")));
  std::string last = "moved";
  int moves = 0;
  for (; moves < 100 && last.starts_with("moved"); ++moves) {
    last = move({moves % 2 == 0 ? 1U : 2U}, To::before, 3);
  }
  EXPECT_GT(moves, 15);
  EXPECT_EQ(last,
            "error: there is no room left directly before job 3; move it away and back, or use "
            "--first or --priority");
  EXPECT_EQ(move({3}, To::last), "moved 3");
  EXPECT_EQ(move({1}, To::before, 3), "moved 1");
}

TEST_F(ControlTest, FirstAndLastPassOtherPriorities) {
  using To = event::Move::To;
  w.set_queue("serial", 1);
  w.submit({a_cpu_job().queue("serial").priority(1), a_cpu_job().queue("serial").priority(3),
            a_cpu_job().queue("serial").priority(7)});
  move({3}, To::first);
  move({1}, To::last);
  EXPECT_EQ(run_order(), "3 2 1");
}

TEST_F(ControlTest, MoveChangesQueueAndPriority) {
  w.set_queue("serial", 1);
  w.submit(copies(3, a_cpu_job().queue("serial")));
  event::Move move;
  move.jobs = ids({3});
  move.to = event::Move::To::queue;
  move.queue = "new";
  EXPECT_EQ(shown(w.apply(move)), "moved 3");
  EXPECT_EQ(shown(w.apply(move)), "unchanged 3");
  move.jobs = ids({2});
  move.to = event::Move::To::priority;
  move.priority = 1;
  EXPECT_EQ(shown(w.apply(move)), "moved 2");
  EXPECT_EQ(w.decide(), "2:- 3:-");
  EXPECT_EQ(shown(w.apply(move)), "refused 2 (runs already)");
}

TEST_F(ControlTest, MoveBeforeNeedsAWaitingJobOfTheSameQueue) {
  using To = event::Move::To;
  w.set_queue("a", 1);
  w.submit({a_cpu_job().queue("a"), a_cpu_job().queue("a"), a_cpu_job().queue("b")});
  EXPECT_EQ(move({3}, To::before, 2),
            "refused 3 (is not in queue 'a', where job 2 is; move it there with --queue a)");
  EXPECT_EQ(move({2}, To::before, 2), "unchanged 2");
  EXPECT_EQ(move({2}, To::before, 8), "error: there is no waiting job 8 to stand before");
  w.decide();
  EXPECT_EQ(move({2}, To::before, 1), "error: job 1 runs already; use --first");
}

TEST_F(ControlTest, StartIgnoresLimitOrderAndPauseOfQueueAndBatch) {
  w.set_queue("serial", 1);
  w.submit(copies(3, a_cpu_job().queue("serial")));
  w.decide();
  EXPECT_EQ(start({1, 3, 9}), "expedited 3; refused 1 (runs already); absent 9");
  EXPECT_EQ(w.waits(), "2:queue_limit 3:due");
  EXPECT_EQ(w.decide(), "3:-");
  w.succeed(1);
  EXPECT_EQ(w.decide(), "") << "job 3 takes the place of the serial queue";
  w.succeed(3);
  pause_queue("serial");
  EXPECT_EQ(start({2}), "expedited 2");
  EXPECT_EQ(start({2}), "unchanged 2");
  EXPECT_EQ(w.decide(), "2:-");
  event::Submit limited;
  limited.batch_max_concurrent = 1;
  limited.jobs = copies(2, a_cpu_job());
  w.submit(limited);
  EXPECT_EQ(w.decide(), "4:-");
  start({5});
  EXPECT_EQ(w.decide(), "5:-");
}

TEST_F(ControlTest, StartGoesBeforeAllOthersAndReleasesAHeldJob) {
  w.see_idle(1);
  w.submit({a_job().priority(1), a_job().priority(9), a_job().priority(9)});
  pause({3});
  EXPECT_EQ(start({3}), "expedited 3");
  EXPECT_EQ(w.decide(), "3:0");
  EXPECT_EQ(pause({3}), "paused 3");
  EXPECT_EQ(start({3}), "refused 3 (is paused in the middle of its run; resume it)");
  w.kill({1, 2, 3});
  w.end(3, killed());
  w.see_again();
}

TEST_F(ControlTest, StartWaitsForDependenciesButNotForLimits) {
  w.submit({a_cpu_job(), a_cpu_job().after_index(0), a_cpu_job()});
  w.state.rules.max_concurrent = 1;
  start({2, 3});
  EXPECT_EQ(w.decide(), "3:-");
  EXPECT_EQ(w.waits(), "1:max_concurrent 2:dependency");
  w.succeed(3);
  EXPECT_EQ(w.decide(), "1:-");
  w.succeed(1);
  w.fill_disk();
  EXPECT_EQ(w.decide(), "");
  EXPECT_EQ(w.waits(), "2:space");
  w.fill_disk(false);
  EXPECT_EQ(w.decide(), "2:-");
  w.state.rules.max_concurrent = 0;
}

TEST_F(ControlTest, ARetryAfterAnOutOfTurnStartWaitsForItsTurn) {
  w.set_queue("serial", 1);
  w.submit(copies(2, a_cpu_job().queue("serial").retries(1)));
  w.decide();
  start({2});
  EXPECT_EQ(w.decide(), "2:-");
  w.revoke(2);
  EXPECT_EQ(w.decide(), "2:-") << "nothing has run yet: it still goes first";
  w.fail(2);
  EXPECT_EQ(w.decide(), "");
  EXPECT_EQ(w.waits(), "2:queue_limit");
}

TEST_F(ControlTest, NothingIsDoneToABatchThatIsStillBeingSubmitted) {
  event::SubmitBegin begin;
  begin.count = 2;
  const auto begun = w.apply(begin);
  ASSERT_TRUE(begun.has_value());
  event::SubmitPart part;
  part.batch = w.state.submissions.begin()->first;
  part.jobs = {a_cpu_job()};
  ASSERT_TRUE(w.apply(part).has_value());
  const std::string refused = "refused 1 (belongs to a batch that is still being submitted)";
  EXPECT_EQ(start({1}), refused);
  EXPECT_EQ(pause({1}), refused);
  EXPECT_EQ(w.decide(), "");
  ASSERT_TRUE(w.apply(event::SubmitAbort{part.batch}).has_value());
}

TEST_F(ControlTest, SetChangesWhatAWaitingJobAsksFor) {
  w.see_idle(1);
  w.submit(copies(2, a_job().gpus(2)));
  EXPECT_EQ(w.decide(), "");
  event::SetJobs set;
  set.jobs = ids({1, 9});
  set.patch.gpus = GpuCount{1, 1};
  set.patch.gpu_memory = std::optional(2 * kGiB);
  set.patch.priority = 3;
  set.patch.retries = 2;
  EXPECT_EQ(shown(w.apply(set)), "changed 1; absent 9");
  EXPECT_EQ(w.decide(), "1:0");
  EXPECT_EQ(w.state.job(JobId{1})->retries, 2U);
  EXPECT_EQ(shown(w.apply(set)),
            "refused 1 (runs already, too late for priority, gpus, gpu_memory); absent 9");
  set.jobs = ids({1});
  set.patch = {};
  set.patch.name = "better";
  set.patch.retries = 0;
  EXPECT_EQ(shown(w.apply(set)), "changed 1");
  w.fail(1);
  EXPECT_EQ(w.alive(), "2:queued") << "its retries were taken away";
  w.kill({2});
  w.see_again();
}

TEST_F(ControlTest, SetRefusesWhatCannotBe) {
  w.submit({a_cpu_job()});
  const auto refused = [this](const event::JobPatch& patch) {
    return shown(w.apply(event::SetJobs{ids({1}), patch}));
  };
  EXPECT_EQ(refused({}), "error: nothing is to be changed; give key=value");
  event::JobPatch patch;
  patch.gpus = GpuCount{3, 1};
  EXPECT_EQ(refused(patch), "error: gpus 3..1 is empty; write the smaller number first");
  patch = {};
  patch.gpu_memory = std::optional<Bytes>(0);
  EXPECT_EQ(refused(patch), "error: gpu_memory must be more than 0; `all` means whole cards");
}

TEST_F(ControlTest, RulesAreSetTogetherOrNotAtAll) {
  w.submit(copies(3, a_cpu_job().queue("car")));
  const auto bad = w.apply(event::SetRules{{{"max_concurrent", "1"}, {"max_utilisation", "5"}}});
  ASSERT_FALSE(bad.has_value());
  EXPECT_EQ(bad.error().message,
            "there is no rule 'max_utilisation'; did you mean 'max_utilization'?");
  EXPECT_EQ(w.state.rules.max_concurrent, 0U);
  ASSERT_TRUE(w.apply(event::SetRules{{{"max_concurrent", "2"},
                                       {"queue.car.limit", "1"},
                                       {"resources.licence", "4"},
                                       {"keep_finished", "2d"},
                                       {"log_limit", "10MiB"}}})
                  .has_value());
  EXPECT_EQ(w.state.rules.resources.at("licence"), 4U);
  EXPECT_EQ(w.state.rules.keep_finished, Millis(2 * 86'400'000));
  EXPECT_EQ(w.state.rules.log_limit, 10 * kMiB);
  EXPECT_EQ(w.decide(), "1:-");
  EXPECT_EQ(w.waits(), "2:queue_limit 3:queue_limit");
  ASSERT_TRUE(w.apply(event::SetRules{{{"queue.car.limit", "0"}}}).has_value());
  EXPECT_EQ(w.decide(), "2:-");
  EXPECT_EQ(w.waits(), "3:max_concurrent");
}

TEST_F(ControlTest, TheGraceOfAKillSurvivesARestart) {
  w.submit({a_cpu_job()});
  w.decide();
  ASSERT_TRUE(w.apply(event::Kill{ids({1}), 0, Millis(30'000)}).has_value());
  ASSERT_TRUE(w.apply(event::Kill{ids({1}), 0, Millis(60'000)}).has_value());
  const State again = restore(w.ledger.snapshot(), {}, {});
  EXPECT_EQ(again.attempts.begin()->second.kill_grace, Millis(30'000));
}

TEST(RuleTable, EveryRuleReadsWhatItWrites) {
  const Rules defaults;
  for (const RuleDef& rule : rule_definitions()) {
    Rules rules;
    const std::string text = rule.get(defaults);
    EXPECT_TRUE(set_rule(rules, rule.key, text).has_value()) << rule.key << "=" << text;
    EXPECT_EQ(rules, defaults) << rule.key;
    EXPECT_FALSE(rule.help.empty());
    const Status bad = set_rule(rules, rule.key, "never");
    ASSERT_FALSE(bad.has_value()) << rule.key;
    EXPECT_TRUE(bad.error().message.starts_with(std::string(rule.key) + ": "))
        << bad.error().message;
  }
}

TEST(RuleTable, KnowsTheRulesThatHaveNames) {
  EXPECT_EQ(resource_of_rule("resources.licence"), "licence");
  EXPECT_EQ(resource_of_rule("resources."), std::nullopt);
  EXPECT_EQ(queue_of_rule("queue.my.car.limit"), "my.car");
  EXPECT_EQ(queue_of_rule("queue..limit"), std::nullopt);
  EXPECT_EQ(queue_of_rule("queue.car"), std::nullopt);
  EXPECT_EQ(queue_rule("car"), "queue.car.limit");
  EXPECT_EQ(exact_size(8000 * kMiB), "8000MiB");
  EXPECT_EQ(exact_size(1025), "1025");
  EXPECT_EQ(exact_duration(Millis(90'000)), "90s");
}

}  // namespace
}  // namespace berth::testing
