#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include "results/log_metrics.hpp"

namespace berth {
namespace {

using Values = std::map<std::string, double>;

Observations scan(std::string_view text, const std::vector<LogMetric>& metrics = {},
                  std::size_t piece = SIZE_MAX) {
  LogScanner scanner(metrics);
  while (!text.empty()) {
    scanner.feed(text.substr(0, piece));
    text.remove_prefix(std::min(piece, text.size()));
  }
  return std::move(scanner).take();
}

Values last_of(const Observations& found) {
  Values values;
  for (const auto& [name, series] : found) {
    if (const auto value = series.taken(Take::last, false)) {
      values[name] = *value;
    }
  }
  return values;
}

std::string fixture(const std::string& name) {
  std::ifstream file(std::string(BERTH_FIXTURE_LOGS) + "/" + name, std::ios::binary);
  EXPECT_TRUE(file) << name;
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(LogMetricsTest, ReadsWhatProgramsPrintPlainly) {
  EXPECT_EQ(last_of(scan(fixture("plain.log"))), (Values{{"train_loss", 0.9011},
                                                         {"train_acc", 68.4},
                                                         {"acc", 0.6841},
                                                         {"loss", 0.9077},
                                                         {"average_loss", 0.9120},
                                                         {"accuracy", 0.6790},
                                                         {"best_test_accuracy", 68.41}}));
}

TEST(LogMetricsTest, ReadsLightning) {
  const Observations found = scan(fixture("lightning.log"));
  EXPECT_EQ(last_of(found), (Values{{"train_loss", 0.940},
                                    {"val_loss", 0.870},
                                    {"val_acc", 0.694},
                                    {"test_acc", 0.6871000528335571},
                                    {"test_loss", 0.8833270072937012}}));
  const std::vector<Series::Point> wanted{{0, 1.510}, {1, 0.940}};
  EXPECT_EQ(found.at("train_loss").points(), wanted);
}

TEST(LogMetricsTest, ReadsHuggingFace) {
  const Observations found = scan(fixture("huggingface.log"));
  EXPECT_EQ(last_of(found), (Values{{"loss", 0.3811},
                                    {"train_loss", 0.4317},
                                    {"eval_loss", 0.3891},
                                    {"eval_accuracy", 0.8554},
                                    {"eval_f1", 0.8983}}));
  const std::vector<Series::Point> wanted{{1, 0.8088}, {2, 0.8431}, {3, 0.8554}};
  EXPECT_EQ(found.at("eval_accuracy").points(), wanted);
  EXPECT_EQ(found.at("eval_loss").taken(Take::best, true), 0.3690);
}

TEST(LogMetricsTest, ReadsKeras) {
  const Observations found = scan(fixture("keras.log"));
  EXPECT_EQ(last_of(found), (Values{{"accuracy", 0.9623},
                                    {"loss", 0.1279},
                                    {"val_accuracy", 0.9611},
                                    {"val_loss", 0.1313},
                                    {"test_accuracy", 0.9623}}));
  const std::vector<Series::Point> wanted{{1, 0.9460}, {2, 0.9611}};
  EXPECT_EQ(found.at("val_accuracy").points(), wanted);
}

TEST(LogMetricsTest, ReadsChineseNames) {
  EXPECT_EQ(last_of(scan(fixture("chinese.log"))), (Values{{"accuracy", 0.91},
                                                           {"loss", 0.3},
                                                           {"train_loss", 0.7311},
                                                           {"val_loss", 0.6524},
                                                           {"test_accuracy", 91.2},
                                                           {"best_val_accuracy", 0.915},
                                                           {"recall", 0.88}}));
}

TEST(LogMetricsTest, ReadsTheSentenceOfTheTutorialAndNoSettings) {
  EXPECT_EQ(last_of(scan(fixture("tutorial.log"))),
            (Values{{"loss", 1.294}, {"test_accuracy", 54}}));
  EXPECT_EQ(last_of(scan("args: Namespace(target_accuracy=0.99")), Values{});
  EXPECT_EQ(last_of(scan("TrainOutput(global_step=500, training_loss=0.43)")),
            (Values{{"training_loss", 0.43}}));
}

TEST(LogMetricsTest, DoesNotCareHowTheLogIsCutIntoPieces) {
  for (const char* name : {"plain.log", "lightning.log", "huggingface.log", "keras.log",
                           "chinese.log", "tutorial.log"}) {
    const std::string text = fixture(name);
    const Values whole = last_of(scan(text));
    for (const std::size_t piece : {1U, 7U, 64U}) {
      EXPECT_EQ(last_of(scan(text, {}, piece)), whole) << name << " in pieces of " << piece;
    }
  }
}

TEST(LogMetricsTest, LeavesAloneWhatOnlyLooksLikeAMetric) {
  for (const std::string_view line :
       {"error 404", "Error: 2 files", "precision: 16", "precision=16-mixed", "loss_scale: 65536.0",
        "loss_weight=0.5", "acc 3", "loss: 12s", "map: 5", "loss: 1:30", "accuracy of 3 runs",
        "loss-1.5", "glossary: 0.5", "version acc: 1.2.3", "loss: abc", "loss=", "=0.5", ": 0.5",
        "loss: 3/4"}) {
    EXPECT_EQ(last_of(scan(line)), Values{}) << line;
  }
  for (const std::string_view line : {"accuracy: 0,75", "loss: 1,234"}) {
    EXPECT_EQ(last_of(scan(line)), Values{}) << line << ": half of a number is none";
  }
  EXPECT_EQ(last_of(scan("loss: 3,acc: 0.5")), (Values{{"loss", 3}, {"acc", 0.5}}));
}

TEST(LogMetricsTest, ANumberThatIsNoneMakesTheLastValueUnknown) {
  const Observations found = scan("loss: 0.5\nloss: nan\n");
  EXPECT_EQ(found.at("loss").taken(Take::last, true), std::nullopt);
  EXPECT_EQ(found.at("loss").taken(Take::best, true), 0.5);
}

TEST(LogMetricsTest, FindsWhatAPatternOfTheUserSays) {
  std::vector<LogMetric> metrics;
  metrics.push_back({"acc", Pattern::compile("final ([0-9.]+%?)").value()});
  const Observations found = scan("acc: 0.1\nfinal 91% final 92%\n", metrics);
  EXPECT_EQ(last_of(found), (Values{{"acc", 92}}));
  EXPECT_EQ(found.at("acc").taken(Take::first, false), 91);
  EXPECT_EQ(found.at("acc").taken(Take::mean, false), 91.5);
}

TEST(LogMetricsTest, GivesUpInTheMiddleOfALine) {
  std::string many;
  for (int i = 0; i < 1000; ++i) {
    many += "a?";
  }
  std::vector<LogMetric> metrics;
  metrics.push_back({"acc", Pattern::compile(many + "b([0-9])").value()});
  int asked = 0;
  LogScanner scanner(metrics, Patience([&asked] { return ++asked == 3; }));
  // Some 10^8 steps.
  scanner.feed(std::string(LogScanner::kLineMax, 'a') + "\nb1\nloss: 0.5\n");
  EXPECT_TRUE(scanner.gave_up());
  EXPECT_EQ(asked, 3);
  EXPECT_TRUE(std::move(scanner).take().empty());
}

TEST(LogMetricsTest, StaysSmallHoweverLongTheLogIs) {
  const std::vector<LogMetric> none;
  LogScanner lines(none);
  lines.feed(std::string(4 * LogScanner::kLineMax, 'x'));  // a line without end
  lines.feed("\n");
  for (int i = 0; i < 100'000; ++i) {
    lines.feed("loss: 0.5 acc: 0." + std::to_string(i) + "\n");
  }
  const Observations found = std::move(lines).take();
  EXPECT_EQ(found.at("loss").count(), 100'000U);
  EXPECT_LE(found.at("loss").points().size(), 513U);
  EXPECT_GE(found.at("loss").points().size(), 200U);
}

}  // namespace
}  // namespace berth
