// Where a rule's value comes from, what may be set where, and how a mistake is told.

#include <gtest/gtest.h>

#include "core/rule_table.hpp"
#include "unit/core/policy_table.hpp"

namespace berth::testing {
namespace {

using Layer = event::SetRules::Layer;

event::SetRules setting(Layer layer, std::vector<std::pair<std::string, std::string>> values,
                        std::vector<std::string> unset = {}) {
  event::SetRules set;
  set.layer = layer;
  set.values = std::move(values);
  set.unset = std::move(unset);
  if (layer == Layer::queue) {
    set.queue = "q";
  } else if (layer == Layer::batch) {
    set.batch = BatchId{1};
  }
  return set;
}

void say(World& w, Layer layer, const std::string& value) {
  const auto answer = w.apply(setting(layer, {{"strategy", value}}));
  EXPECT_TRUE(answer) << answer.error().message;
}

void unsay(World& w, Layer layer) {
  const auto answer = w.apply(setting(layer, {}, {"strategy"}));
  EXPECT_TRUE(answer) << answer.error().message;
}

event::JobPatch patch(const std::string& key, const std::string& value) {
  event::JobPatch result;
  result.rules[key] = value;
  return result;
}

event::Move move_to(const std::string& queue) {
  event::Move move;
  move.jobs = {JobId{1}};
  move.to = event::Move::To::queue;
  move.queue = queue;
  return move;
}

/// Every layer has its say: job 1 of batch 1 in queue q.
void say_all(World& w) {
  w.state.base_rules.strategy = Strategy::round_robin;
  say(w, Layer::file, "best_fit");
  say(w, Layer::instance, "pack");
  say(w, Layer::queue, "spread");
  w.submit(a_submission(
               {a_cpu_job().queue("q").rule("strategy", "fragmentation"), a_cpu_job().queue("q")})
               .rule("strategy", "memory_save"));
}

struct LayerCase {
  const char* name;
  std::function<void(World&)> given;
  std::string strategy;  ///< of job 1
};
void PrintTo(const LayerCase& c, std::ostream* out) {
  *out << c.name;
}

class RuleLayers : public ::testing::TestWithParam<LayerCase> {};
TEST_P(RuleLayers, GiveTheClosestValue) {
  World world;
  GetParam().given(world);
  const Job* job = world.state.job(JobId{1});
  ASSERT_NE(job, nullptr);
  EXPECT_EQ(find_rule("strategy")->get(world.state.rules_of(*job)), GetParam().strategy);
}

const std::vector<LayerCase> kLayers = {
    {"WithoutALayerTheBuiltInValueCounts", [](World& w) { w.submit({a_cpu_job()}); }, "most_free"},
    {"TheFileGoesBeforeWhatIsBuiltIn",
     [](World& w) {
       say(w, Layer::file, "best_fit");
       w.submit({a_cpu_job()});
     },
     "best_fit"},
    {"WhatIsSetForThisRunGoesBeforeTheFile",
     [](World& w) {
       say(w, Layer::instance, "pack");
       say(w, Layer::file, "best_fit");
       w.submit({a_cpu_job()});
     },
     "pack"},
    {"TheQueueGoesBeforeTheInstance",
     [](World& w) {
       say(w, Layer::instance, "pack");
       say(w, Layer::queue, "spread");
       w.submit({a_cpu_job().queue("q")});
     },
     "spread"},
    {"AnotherQueueSaysNothing",
     [](World& w) {
       say(w, Layer::instance, "pack");
       say(w, Layer::queue, "spread");
       w.submit({a_cpu_job()});
     },
     "pack"},
    {"TheBatchGoesBeforeTheQueue",
     [](World& w) {
       say(w, Layer::queue, "spread");
       w.submit(a_submission({a_cpu_job().queue("q")}).rule("strategy", "memory_save"));
     },
     "memory_save"},
    {"TheJobGoesBeforeAll", say_all, "fragmentation"},
    {"WithoutTheJobsOwnItsBatchsCounts",
     [](World& w) {
       say_all(w);
       event::JobPatch unset;
       unset.unset = {"strategy"};
       ASSERT_TRUE(w.apply(event::SetJobs{{JobId{1}}, unset}));
     },
     "memory_save"},
    {"WithoutTheBatchsItsQueuesCounts",
     [](World& w) {
       say(w, Layer::queue, "spread");
       w.submit(a_submission({a_cpu_job().queue("q")}).rule("strategy", "memory_save"));
       unsay(w, Layer::batch);
     },
     "spread"},
    {"WithoutTheQueuesTheInstancesCounts",
     [](World& w) {
       say(w, Layer::instance, "pack");
       say(w, Layer::queue, "spread");
       w.submit({a_cpu_job().queue("q")});
       unsay(w, Layer::queue);
     },
     "pack"},
    {"WithoutThatOfThisRunTheFilesCounts",
     [](World& w) {
       say(w, Layer::file, "best_fit");
       say(w, Layer::instance, "pack");
       w.submit({a_cpu_job()});
       unsay(w, Layer::instance);
     },
     "best_fit"},
    {"AFileThatNoLongerSaysItGivesTheBuiltInValueBack",
     [](World& w) {
       say(w, Layer::file, "best_fit");
       w.submit({a_cpu_job()});
       ASSERT_TRUE(w.apply(setting(Layer::file, {{"gpu_left", "1"}})));
     },
     "most_free"},
    {"AFileReadAgainDoesNotUndoWhatIsSetForThisRun",
     [](World& w) {
       say(w, Layer::instance, "pack");
       w.submit({a_cpu_job()});
       say(w, Layer::file, "best_fit");
       ASSERT_TRUE(w.apply(setting(Layer::file, {})));
     },
     "pack"},
    {"AQueueChangedLaterChangesThoseWhoWait",
     [](World& w) {
       w.submit({a_cpu_job().queue("q")});
       say(w, Layer::queue, "spread");
     },
     "spread"},
    {"AQueueChangedLaterChangesThoseWhoRun",
     [](World& w) {
       w.submit({a_cpu_job().queue("q")});
       w.decide();
       say(w, Layer::queue, "spread");
     },
     "spread"},
    {"ABatchChangedLaterChangesItsJobs",
     [](World& w) {
       w.submit(copies(2, a_cpu_job()));
       say(w, Layer::batch, "memory_save");
     },
     "memory_save"},
    {"AJobChangedLaterHasItsOwn",
     [](World& w) {
       w.submit({a_cpu_job()});
       ASSERT_TRUE(w.apply(event::SetJobs{{JobId{1}}, patch("strategy", "pack")}));
     },
     "pack"},
    {"AJobMovedToAnotherQueueObeysThatOne",
     [](World& w) {
       say(w, Layer::queue, "spread");
       w.submit({a_cpu_job()});
       ASSERT_TRUE(w.apply(move_to("q")));
     },
     "spread"},
    {"AJobMovedAwayNoLongerObeysItsQueue",
     [](World& w) {
       say(w, Layer::queue, "spread");
       w.submit({a_cpu_job().queue("q")});
       ASSERT_TRUE(w.apply(move_to("default")));
     },
     "most_free"},
    {"ASubmissionMaySetTheRulesOfItsQueue",
     [](World& w) {
       event::Submit submit = a_submission({a_cpu_job().queue("q")});
       submit.queues.push_back({"q", 0, {{"strategy", "spread"}}});
       w.submit(submit);
     },
     "spread"},
    {"ARestartKeepsTheLayersOfQueueBatchAndJob",
     [](World& w) {
       say(w, Layer::queue, "spread");
       w.submit(a_submission({a_cpu_job().queue("q")}).rule("gpu_left", "1"));
       w.state = restore(w.ledger.snapshot(), Rules{}, {}, w.now);
       EXPECT_EQ(w.state.rules_of(*w.state.job(JobId{1})).gpu_left, 1U);
     },
     "spread"},
};
INSTANTIATE_TEST_SUITE_P(Layers, RuleLayers, ::testing::ValuesIn(kLayers),
                         [](const auto& row) { return std::string(row.param.name); });

struct MistakeCase {
  const char* name;
  Layer layer;
  std::string key;
  std::string value;
  std::string told;
};
void PrintTo(const MistakeCase& c, std::ostream* out) {
  *out << c.name;
}

class RuleMistakes : public ::testing::TestWithParam<MistakeCase> {};
TEST_P(RuleMistakes, NameTheKeyAndChangeNothing) {
  const MistakeCase& row = GetParam();
  World w;
  w.submit(copies(2, a_cpu_job().queue("q")));
  const Rules before = w.state.rules;
  const auto answer = w.apply(setting(row.layer, {{"gpu_left", "1"}, {row.key, row.value}}));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().message, row.told);
  EXPECT_EQ(w.state.rules, before);
  EXPECT_EQ(w.state.rules_of(*w.state.job(JobId{1})), before);
  EXPECT_TRUE(w.last.changes.empty());
}

const std::vector<MistakeCase> kMistakes = {
    {"ATypingErrorIsGuessed", Layer::instance, "strateg", "pack",
     "there is no rule 'strateg'; did you mean 'strategy'?"},
    {"ATypingErrorInADottedKeyIsGuessed", Layer::queue, "foreign.polcy", "wait",
     "there is no rule 'foreign.polcy'; did you mean 'foreign.policy'?"},
    {"WhatResemblesNothingIsNotGuessed", Layer::batch, "colour", "red",
     "there is no rule 'colour'; `berth set` lists them"},
    {"TheNameWithoutItsGroupIsGuessed", Layer::instance, "backoff_duration", "3",
     "there is no rule 'backoff_duration'; did you mean 'retry_config.backoff_duration'?"},
    {"AGroupIsNoRule", Layer::instance, "foreign", "3",
     "there is no rule 'foreign'; it is a group; name one of it, as 'foreign.policy', `berth set "
     "foreign` lists them"},
    {"OfAQueueItIsSetOtherwise", Layer::instance, "queue.car.gpu_left", "2",
     "there is no rule 'queue.car.gpu_left'; `berth set --queue car gpu_left=…` sets it for a "
     "queue"},
    {"TheUsualLimitHasAWord", Layer::queue, "retry_config.exit", "many",
     "retry_config.exit: expected a whole number from 0 to 4294967295, got 'many'; `default` for "
     "the usual"},
    {"AQueueCannotHaveARuleOfTheInstance", Layer::queue, "half_life", "1d",
     "half_life: can be set for the instance only"},
    {"ABatchCannotHaveARuleOfTheInstance", Layer::batch, "backfill", "any",
     "backfill: can be set for the instance only"},
    {"AQueueCannotHaveARuleOfBatches", Layer::queue, "max_gpu", "1",
     "max_gpu: can be set for the instance or a batch only"},
    {"AQueueCannotHaveAnOrder", Layer::queue, "order", "random",
     "order: can be set for the instance or a batch only"},
    {"ABatchCannotSayHowManyOfAResourceThereAre", Layer::batch, "resources.licence", "1",
     "resources.licence: can be set for the instance only"},
    {"AShareIsAtMostAHundred", Layer::instance, "keep_gpu_memory", "101",
     "keep_gpu_memory: expected a whole number from 0 to 100, got '101'"},
    {"ANumberIsWhole", Layer::instance, "gpu_left", "1.5",
     "gpu_left: expected a whole number from 0 to 4294967295, got '1.5'"},
    {"AChoiceNamesWhatThereIs", Layer::queue, "gpu_left_mode", "first",
     "gpu_left_mode: expected one of last, any, got 'first'"},
    {"AnOrderNamesWhatThereIs", Layer::instance, "order", "shuffled",
     "order: expected one of fifo, random, largest_first, got 'shuffled'"},
    {"YesAndNoAreMeant", Layer::instance, "topology", "maybe",
     "topology: expected true or false, got 'maybe'"},
    {"CardsAreIndicesOrUuids", Layer::instance, "gpus", "0,,1",
     "gpus: expected all, or indices and UUIDs between commas as in 0,2-3, got '0,,1'"},
    {"ARangeFromBackToFrontIsNotEveryCard", Layer::instance, "gpus", "0,5-2",
     "gpus: '5-2' is no range; write 2-5"},
};
INSTANTIATE_TEST_SUITE_P(Mistakes, RuleMistakes, ::testing::ValuesIn(kMistakes),
                         [](const auto& row) { return std::string(row.param.name); });

TEST(RuleScopes, AJobCannotHaveARuleOfBatchesOrOfTheInstance) {
  World w;
  const auto batch = w.try_submit({a_cpu_job().rule("order", "random")});
  ASSERT_FALSE(batch);
  EXPECT_EQ(batch.error().message, "the job: order: can be set for the instance or a batch only");
  const auto instance = w.try_submit({a_cpu_job().rule("aging", "1h")});
  ASSERT_FALSE(instance);
  EXPECT_EQ(instance.error().message, "the job: aging: can be set for the instance only");
  EXPECT_TRUE(w.state.jobs.empty());
}

TEST(RuleScopes, ABatchThatHasEndedHasNoRules) {
  World w;
  const auto answer = w.apply(setting(Layer::batch, {{"strategy", "pack"}}));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::not_found);
}

TEST(RuleScopes, ItIsTooLateForTheRulesOfAJobThatRuns) {
  World w;
  w.submit({a_cpu_job()});
  w.decide();
  const auto answer = w.apply(event::SetJobs{{JobId{1}}, patch("strategy", "pack")});
  ASSERT_TRUE(answer);
  const auto& refused = std::get<Controlled>(*answer).refused;
  ASSERT_EQ(refused.size(), 1U);
  EXPECT_EQ(refused.begin()->first, "runs already, too late for rules");
}

TEST(RuleScopes, WhatIsUnsetMustBeARule) {
  World w;
  const auto answer = w.apply(setting(Layer::instance, {}, {"strateg"}));
  ASSERT_FALSE(answer);
  EXPECT_NE(answer.error().message.find("did you mean 'strategy'"), std::string::npos);
}

TEST(RuleScopes, AQueueIsMadeForItsRules) {
  World w;
  say(w, Layer::queue, "spread");
  EXPECT_TRUE(w.state.queue_names.contains("q"));
}

TEST(RuleScopes, SayingTheSameAgainIsNoNews) {
  World w;
  w.submit(copies(2, a_cpu_job().queue("q")));
  for (const Layer layer : {Layer::instance, Layer::file, Layer::queue, Layer::batch}) {
    say(w, layer, "pack");
    say(w, layer, "pack");
    EXPECT_EQ(w.told(), "");
  }
}

TEST(RuleScopes, ABatchsMaxConcurrentCountsFromItsSubmissionOn) {
  World w;
  w.submit(a_submission(copies(3, a_cpu_job())).rule("max_concurrent", "2"));
  EXPECT_EQ(w.decide(), "1:- 2:-");
  EXPECT_EQ(w.waits(), "3:batch_limit");
  w.batch_rule(1, "max_concurrent", "3");
  EXPECT_EQ(w.decide(), "3:-");
}

TEST(RequestShapes, EqualRequestsAreOneShape) {
  World w;
  w.submit(a_submission({a_cpu_job(), a_cpu_job(), a_cpu_job().rule("strategy", "pack")}));
  EXPECT_EQ(w.state.shapes.size(), 2U);
}

TEST(RequestShapes, QueuesAndBatchesAreToldApart) {
  World w;
  w.submit({a_cpu_job(), a_cpu_job().queue("q")});
  w.submit({a_cpu_job()});
  EXPECT_EQ(w.state.shapes.size(), 3U);
}

TEST(RequestShapes, AreForgottenWithTheirLastJob) {
  World w;
  w.submit({a_cpu_job(), a_cpu_job().rule("strategy", "pack")});
  w.decide();
  w.succeed(1);
  EXPECT_EQ(w.state.shapes.size(), 1U);
  w.kill({2});
  w.fail(2);
  EXPECT_EQ(w.state.shapes.size(), 0U);
}

TEST(RequestShapes, AreForgottenWhenTheirOnlyJobIsChanged) {
  World w;
  w.submit({a_cpu_job()});
  for (const char* size : {"1GiB", "2GiB", "3GiB", "4GiB"}) {
    ASSERT_TRUE(w.apply(event::SetJobs{{JobId{1}}, patch("memory_margin", size)}));
    EXPECT_EQ(w.state.shapes.size(), 1U);
  }
}

TEST(RequestShapes, OfCancelledJobsAreForgotten) {
  World w;
  w.submit({a_cpu_job(), a_cpu_job().after_index(0).rule("strategy", "pack")});
  w.kill({1});
  EXPECT_EQ(w.state.shapes.size(), 0U);
}

// --- what is told of a change
// ---------------------------------------------------------------------

/// What the last change put into the history.
std::string told_of(World& w, const event::SetRules& set) {
  EXPECT_TRUE(w.apply(set));
  for (const Change& change : w.last.changes) {
    if (const auto* history = std::get_if<change::History>(&change)) {
      return history->detail;
    }
  }
  return "";
}

TEST(RuleHistory, SaysWhereAndWhatHeldBefore) {
  World w;
  EXPECT_EQ(told_of(w, setting(Layer::instance, {{"gpu_left", "1"}, {"keep_host_memory", "8g"}})),
            "rules for this run: gpu_left=1 (was 0), keep_host_memory=8GiB (was 0)");
  EXPECT_EQ(told_of(w, setting(Layer::instance, {}, {"gpu_left"})),
            "rules for this run: gpu_left=0 (was 1, unset)");
  EXPECT_EQ(told_of(w, setting(Layer::instance, {{"resources.licence", "2"}})),
            "rules for this run: resources.licence=2 (was 0)");
  EXPECT_EQ(told_of(w, setting(Layer::instance, {{"queue.car.limit", "1"}})),
            "rules for this run: queue.car.limit=1 (was 0)");
  EXPECT_EQ(told_of(w, setting(Layer::queue, {{"gpu_left", "2"}})),
            "rules of queue 'q': gpu_left=2 (was 0)");
  w.submit(a_submission({a_cpu_job(), a_cpu_job()}).rule("strategy", "pack"));
  EXPECT_EQ(told_of(w, setting(Layer::batch, {{"max_concurrent", "3"}})),
            "rules of batch 1: max_concurrent=3 (was 0)");
}

TEST(RuleHistory, SaysWhoWhereThatIsKnown) {
  World w;
  event::SetRules set = setting(Layer::instance, {{"gpu_left", "1"}});
  set.by = "token laptop";
  EXPECT_EQ(told_of(w, set), "rules for this run, by token laptop: gpu_left=1 (was 0)");
}

TEST(RuleHistory, TellsWhatIsSavedFromWhatHoldsForThisRun) {
  World w;
  event::SetRules set = setting(Layer::instance, {{"gpu_left", "1"}});
  told_of(w, set);
  EXPECT_EQ(told_of(w, set), "");
  set.saved = true;
  EXPECT_EQ(told_of(w, set), "rules for berth.yaml: gpu_left=1");
  EXPECT_EQ(told_of(w, setting(Layer::file, {{"gpu_left", "1"}})), "");
  EXPECT_EQ(told_of(w, setting(Layer::instance, {}, {"gpu_left"})), "");
  EXPECT_EQ(told_of(w, set), "");
}

TEST(RuleHistory, TellsOfAFileOnlyWhatItChanges) {
  World w;
  told_of(w, setting(Layer::file, {{"gpu_left", "1"}, {"strategy", "pack"}}));
  EXPECT_EQ(told_of(w, setting(Layer::file, {{"strategy", "pack"}})),
            "rules of berth.yaml: gpu_left=0 (was 1)");
}

}  // namespace
}  // namespace berth::testing
