#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "a_sweep.hpp"
#include "results/html.hpp"
#include "results/sheet.hpp"

namespace berth {
namespace {

Results results_of_sweep() {
  ResultsRequest request;
  request.best = parse_best("max:acc").value();
  return aggregate(a_sweep(), request).value();
}

/// Compares with the file; BERTH_BLESS=1 writes it instead.
void expect_golden(const std::string& name, const std::string& text) {
  const std::string path = std::string(BERTH_GOLDEN_RESULTS) + "/" + name;
  if (std::getenv("BERTH_BLESS") != nullptr) {
    std::ofstream(path, std::ios::binary) << text;
  }
  std::ifstream file(path, std::ios::binary);
  ASSERT_TRUE(file) << path;
  const std::string wanted{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(text, wanted) << path;
}

TEST(SheetTest, Markdown) {
  const Results results = results_of_sweep();
  expect_golden("tall.md", to_markdown(make_sheet(results, SheetShape::tall)));
  expect_golden("wide.md", to_markdown(make_sheet(results, SheetShape::wide)));
}

TEST(SheetTest, Latex) {
  const Results results = results_of_sweep();
  expect_golden("tall.tex", to_latex(make_sheet(results, SheetShape::tall)));
  expect_golden("wide.tex", to_latex(make_sheet(results, SheetShape::wide)));
}

TEST(SheetTest, Csv) {
  expect_golden("results.csv", to_csv(results_of_sweep()));
}

TEST(SheetTest, Json) {
  expect_golden("results.json", to_json(results_of_sweep()));
}

TEST(SheetTest, Html) {
  expect_golden("report.html",
                to_html(results_of_sweep(), {"A sweep", "made on 2026-05-01 12:00:00"}));
}

TEST(SheetTest, RemarksTellWhatIsMissing) {
  Runs runs = a_sweep();
  runs.push_back(a_run(0, {{"lr", "1"}, {"seed", "1"}}, {}, End::never));
  runs.push_back(a_run(9, {{"lr", "1"}, {"seed", "2"}}, {}, End::not_yet));
  runs.push_back(a_run(10, {{"lr", "1"}, {"seed", "3"}}, {}));
  ResultsRequest request;
  request.best = parse_best("max:acc").value();
  const Results results = aggregate(runs, request).value();
  const std::vector<std::string> wanted{
      "best acc (highest mean): lr=0.1: 0.920 ± 0.020 (n=3)",
      "best run: job 3 run-3 lr=0.1 seed=3: 0.94",
      "1 of 9 runs failed: job 5",
      "1 of 9 runs have not ended: job 9",
      "1 of 9 runs were never submitted",
      "1 of 9 runs succeeded without a metric: job 10",
  };
  EXPECT_EQ(remarks(results), wanted);
  EXPECT_EQ(make_sheet(results, SheetShape::wide).rows.back().cells,
            (std::vector<std::string>{"1", "-", "-", "3", "0", "3"}))
      << "unknown is not 0";
}

TEST(SheetTest, NothingThatRunsSayGetsOutOfItsPlace) {
  const std::string evil = "<script>alert(\"x\")</script>|*_\n\\%&$#{}~^,\"q\"";
  Runs runs{a_run(1, {{evil, evil}}, {{evil, {1, 2}}})};
  runs[0].name = evil;
  const Results results = aggregate(runs, {}).value();
  const std::string html = to_html(results, {evil, evil});
  EXPECT_EQ(html.find("<script"), std::string::npos);
  EXPECT_EQ(html.find("alert(\""), std::string::npos);
  EXPECT_EQ(html.find("http:"), std::string::npos);
  const Sheet sheet = make_sheet(results, SheetShape::tall);
  const std::string markdown = to_markdown(sheet);
  EXPECT_EQ(std::count(markdown.begin(), markdown.end(), '\n'), 3);
  EXPECT_NE(markdown.find("\\|\\*\\_"), std::string::npos);
  const std::string latex = to_latex(sheet);
  EXPECT_NE(latex.find("\\textbackslash{}\\%\\&\\$\\#\\{\\}\\textasciitilde{}\\textasciicircum{}"),
            std::string::npos)
      << latex;
  EXPECT_NE(to_csv(results).find("\"\"q\"\"\""), std::string::npos);
}

TEST(SheetTest, AnAxisOfWholeEpochsTellsOfNoPartOfOne) {
  const auto axis = [](std::vector<double> epochs) {
    Runs runs{a_run(1, {{"lr", "1"}}, {})};
    for (const double epoch : epochs) {
      runs[0].metrics["loss"].add(7, epoch);
    }
    const std::string html = to_html(aggregate(runs, {}).value(), {"t", "now"});
    std::vector<std::string> labels;
    constexpr std::string_view kTick = "y=\"340.0\" text-anchor=\"middle\">";
    for (auto at = html.find(kTick); at != std::string::npos; at = html.find(kTick, at + 1)) {
      const auto begin = at + kTick.size();
      labels.push_back(html.substr(begin, html.find('<', begin) - begin));
    }
    return labels;
  };
  using Labels = std::vector<std::string>;
  EXPECT_EQ(axis({1, 2, 3}), (Labels{"1", "2", "3"}));
  EXPECT_EQ(axis({0, 1}), (Labels{"0", "1"}));
  EXPECT_EQ(axis({0, 1, 2, 3, 4, 5, 6, 7}), (Labels{"0", "2", "4", "6"}));
  EXPECT_EQ(axis({0.5, 1}), (Labels{"0.5", "0.6", "0.7", "0.8", "0.9", "1"}));
}

TEST(SheetTest, PlotsSurviveStrangeNumbers) {
  for (const std::vector<double>& values :
       std::vector<std::vector<double>>{{0, 0}, {-1, -2}, {1e300, -1e300}, {5}, {1e-300, 2e-300}}) {
    Runs runs{a_run(1, {{"lr", "1"}}, {{"loss", values}}),
              a_run(2, {{"lr", "1"}}, {{"loss", values}})};
    const std::string html = to_html(aggregate(runs, {}).value(), {"t", "now"});
    EXPECT_EQ(html.find("nan"), std::string::npos) << values[0];
    EXPECT_EQ(html.find("inf"), std::string::npos) << values[0];
  }
}

}  // namespace
}  // namespace berth
