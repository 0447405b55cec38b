// Single files: tests/golden/jobfile. Here is what is better said in code: limits, bombs, bytes.

#include "jobspec/job_file.hpp"

#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace berth {
namespace {

std::expected<JobFile, std::vector<Diagnostic>> parse(std::string_view text) {
  return parse_job_file(text, "f.yaml", "/base");
}

/// The diagnostics as one text, or "accepted".
std::string complaints(std::string_view text) {
  const auto file = parse(text);
  if (file) {
    return "accepted";
  }
  std::string out;
  for (const auto& diagnostic : file.error()) {
    out += render(diagnostic, text);
  }
  return out;
}

TEST(JobFileTest, NamesTheBatchAfterTheFile) {
  const auto file = parse_job_file("version: 1\njobs: [{run: x}]", "dir/sweep.v2.yaml", "/base");
  ASSERT_TRUE(file);
  EXPECT_EQ(file->name, "sweep.v2");
  EXPECT_EQ(file->jobs.at(0).payload.environment, nullptr);
}

TEST(JobFileTest, RefusesMoreThanTwoMillionJobsBeforeMakingThem) {
  std::string axis = "[0";
  for (int i = 1; i < 1500; ++i) {
    axis += fmt::format(",{}", i);
  }
  axis += "]";
  const auto said =
      complaints("version: 1\njobs:\n - run: x\n   matrix: {a: &v " + axis + ", b: *v}\n");
  EXPECT_NE(said.find("f.yaml:3:4: this makes 2250000 jobs in this file, and 2000000 are the most"),
            std::string::npos)
      << said;
  const auto endless = complaints("version: 1\njobs:\n - run: x\n   matrix: {a: &v " + axis +
                                  ", b: *v, c: *v, d: *v, e: *v, f: *v, g: *v}\n");
  EXPECT_NE(endless.find("this makes more than 1000000000000 jobs"), std::string::npos) << endless;
}

TEST(JobFileTest, RefusesAnEndlessAmountOfText) {
  std::string axis;
  for (int i = 0; i < 6000; ++i) {
    axis += fmt::format("{}, ", i);
  }
  const auto said = complaints("version: 1\njobs: [{run: '" + std::string(100'000, 'x') +
                               "', matrix: {a: [" + axis + "]}}]");
  EXPECT_NE(said.find("longer than 512 MiB"), std::string::npos) << said.substr(0, 300);
}

TEST(JobFileTest, RefusesAFileThatIsTooLarge) {
  const auto file = parse(std::string(kJobFileMostBytes + 1, '#'));
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().at(0).message, "this file is larger than 128 MiB; split it");
}

TEST(JobFileTest, BoundsAliases) {
  std::string bomb = "version: 1\nx0: &x0 [a, a, a, a, a, a, a, a, a, a]\n";
  for (int i = 1; i < 12; ++i) {
    bomb += fmt::format("x{}: &x{} [", i, i);
    for (int j = 0; j < 10; ++j) {
      bomb += fmt::format("*x{}, ", i - 1);
    }
    bomb += "]\n";
  }
  EXPECT_NE(complaints(bomb).find("aliases add more than"), std::string::npos);
  EXPECT_NE(complaints("version: 1\njobs: &j [*j]\n").find("inside what it names"),
            std::string::npos);
}

TEST(JobFileTest, AWarningMustBeShorterThanTheTimeLimit) {
  const auto said = [](std::string_view jobs) {
    return complaints(fmt::format("version: 1\ndefaults: {{time: 1m}}\njobs:\n  - {}\n", jobs));
  };
  EXPECT_EQ(said("{run: x, signal: USR1@59}"), "accepted");
  EXPECT_NE(said("{run: x, signal: USR1@60}").find("f.yaml:4:22: 'signal' would come 1m before"),
            std::string::npos);
  const auto varied =
      said("{run: 'x {t}', matrix: {t: [30, 90]}, time: '{t}', signal: {name: USR1, before: 1m}}");
  EXPECT_NE(varied.find("and 'time' is 30s"), std::string::npos) << varied;
  EXPECT_EQ(varied.find("1m30s"), std::string::npos) << varied;
  EXPECT_EQ(said("{run: x, time: 0, signal: USR1}"), "accepted") << "there is no limit";
}

TEST(JobFileTest, WarnsOfDirectoriesThatAreNotThere) {
  const auto file = parse_job_file(
      "version: 1\ndefaults: {cwd: /there}\njobs:\n- run: x\n- run: y\n  cwd: not\n"
      "  matrix: {a: [1, 2]}\n",
      "f.yaml", "/base", Millis{0}, {},
      [](const std::filesystem::path& path) { return path != "/there"; });
  ASSERT_TRUE(file);
  ASSERT_EQ(file->warnings.size(), 1U);
  EXPECT_EQ(file->warnings[0],
            "f.yaml:6:8: cwd '/base/not' is no directory; make it before the job starts");
}

TEST(JobFileTest, WarnsOfSlipsInWordsThatALaunchFillsIn) {
  const auto file = parse(
      "version: 1\njobs:\n- run: a --port {prot} {port} ${jobid} {x,y}\n  log: l-{jobid}.txt\n");
  ASSERT_TRUE(file);
  ASSERT_EQ(file->warnings.size(), 2U);
  EXPECT_EQ(file->warnings[0],
            "f.yaml:3:8: '{prot}' stands for nothing and stays as it is; did you mean '{port}'?");
  EXPECT_EQ(file->warnings[1],
            "f.yaml:4:8: '{jobid}' stands for nothing and stays as it is; did you mean "
            "'{job_id}'?");
}

TEST(JobFileTest, BoundsNesting) {
  const auto said = complaints(std::string(100'000, '['));
  EXPECT_NE(said.find(": nested too deeply"), std::string::npos) << said;
}

TEST(JobFileTest, RefusesControlCharactersAndOtherEncodings) {
  EXPECT_NE(complaints("version: 1\njobs: [{run: 'a\x04'}]\n")
                .find("f.yaml:2:16: control character 0x04"),
            std::string::npos);
  const auto utf16 = complaints(std::string_view("\xff\xfev\0e\0r\0", 8));
  EXPECT_NE(utf16.find("not a text file in UTF-8"), std::string::npos) << utf16;
}

TEST(JobFileTest, KeepsBytesThatAreNotUtf8) {
  const auto file = parse("version: 1\njobs: [{run: [[echo, '\xff\xfe']]}]\n");
  ASSERT_TRUE(file);
  EXPECT_EQ(file->jobs.at(0).payload.commands.at(0).argv.at(1), "\xff\xfe");
}

TEST(JobFileTest, SurvivesAByteOrderMarkAndWindowsLineEnds) {
  const auto file = parse("\xef\xbb\xbfversion: 1\r\njobs:\r\n - run: |\r\n     a\r\n     b\r\n");
  ASSERT_TRUE(file) << file.error().at(0).message;
  EXPECT_EQ(file->jobs.at(0).payload.commands.at(0).argv.at(0), "a\nb\n");
}

TEST(JobFileTest, AQuoteThatIsNotClosedTakesNoOtherLinesWithIt) {
  for (const std::string open : {"\"a\\\"", "'it''s"}) {
    const auto said =
        complaints("version: 1\njobs:\n- name: \"车\"\n  run: " + open + "\n  gpus: 2\n");
    EXPECT_NE(said.find("f.yaml:4:8: not valid YAML: the quote that begins here is not closed"),
              std::string::npos)
        << said;
  }
  for (const std::string good :
       {"\"a\\\"\"", "'it''s'", "|\n    don't", "a \"b", "\"a\n    b\"", "['车', 'b']"}) {
    EXPECT_EQ(complaints("version: 1\njobs:\n- run: " + good + "\n"), "accepted") << good;
  }
}

TEST(JobFileTest, AKeyWithNothingBehindItIsWhereTheMistakeIs) {
  for (const std::string rest : {"    gpus: 0\n", "", "\n\n"}) {
    const auto said = complaints("version: 1\njobs:\n  - name: a\n    run:\n" + rest);
    EXPECT_EQ(said.substr(0, 12), "f.yaml:4:5: ") << said;
  }
}

TEST(JobFileTest, AScriptWithoutItsFirstLineIsTakenForOne) {
  const auto said = complaints("echo hi\n");
  EXPECT_NE(said.find("--dialect script"), std::string::npos) << said;
}

TEST(JobFileTest, StopsComplainingAtSomePoint) {
  std::string text = "version: 1\njobs:\n";
  for (int i = 0; i < 5000; ++i) {
    text += fmt::format(" - {{nonsense{}: 1}}\n", i);
  }
  const auto file = parse(text);
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().size(), 1001U);
  EXPECT_EQ(file.error().back().message, "there may be more errors; these come first");
}

TEST(JobFileTest, ReadsAHundredThousandJobs) {
  std::string axis;
  for (int i = 0; i < 1000; ++i) {
    axis += fmt::format("{}, ", i);
  }
  const auto file = parse("version: 1\njobs:\n - name: s\n   run: x {a} {b}\n   matrix: {a: [" +
                          axis + "], b: [" + axis.substr(0, 100 * 3 + 90) + "]}\n" +
                          " - {name: last, run: y, after: s}\n");
  ASSERT_TRUE(file) << file.error().at(0).message;
  ASSERT_EQ(file->jobs.size(), 100'001U);
  EXPECT_EQ(file->jobs[99'999].name, "s-999-99");
  EXPECT_EQ(file->jobs.back().after_index.size(), 100'000U);
}

TEST(Render, PutsTheCaretUnderTheCharacterItMeans) {
  EXPECT_EQ(render({"f", {1, 6}, "m"}, "\u00e4\u00f6\tx\n"),
            "f:1:6: m\n  1 | \u00e4\u00f6\tx\n    |   \t^\n");
  EXPECT_EQ(render({"f", {12, 2}, "m"}, "one line only"), "f:12:2: m\n");
  EXPECT_EQ(render({"f", {1, 1}, "m"}, std::string(10'000, 'x')), "f:1:1: m\n");
  EXPECT_EQ(render({"f", {1, 1}, "m"}, "\x1b[31m"), "f:1:1: m\n  1 | ?[31m\n    | ^\n");
}

TEST(Closest, FindsTypingErrorsSwapsAndAbbreviations) {
  constexpr std::array<std::string_view, 4> kWords = {"retries", "gpu_memory", "memory", "run"};
  EXPECT_EQ(closest("retires", kWords), "retries");
  EXPECT_EQ(closest("gpu_mem", kWords), "gpu_memory");
  EXPECT_EQ(closest("gpu-memory", kWords), "gpu_memory");
  EXPECT_EQ(closest("memroy", kWords), "memory");
  EXPECT_EQ(closest("rnu", kWords), "run");
  EXPECT_EQ(closest("colour", kWords), "");
  EXPECT_EQ(closest("", kWords), "");
}

class Examples : public testing::TestWithParam<const char*> {};

TEST_P(Examples, AreAcceptedWithoutAWarning) {
  std::ifstream in(std::filesystem::path(BERTH_EXAMPLES_DIR) / GetParam());
  const std::string text(std::istreambuf_iterator<char>(in), {});
  ASSERT_FALSE(text.empty());
  EXPECT_EQ(complaints(text), "accepted");
  EXPECT_TRUE(parse(text)->warnings.empty());
}

INSTANTIATE_TEST_SUITE_P(All, Examples, testing::Values("quickstart.yaml", "pipeline.yaml"));

RC_GTEST_PROP(JobFileProps, any_text_is_accepted_or_explained, (const std::string& noise)) {
  const auto file = parse("version: 1\njobs:\n - run: " + noise + "\n");
  RC_ASSERT((file.has_value() || !file.error().empty()));
}

RC_GTEST_PROP(JobFileProps, chains_in_any_order_are_no_circle, ()) {
  const auto size = *rc::gen::inRange<std::size_t>(1, 30);
  std::vector<std::size_t> order(size);
  for (std::size_t i = 0; i < size; ++i) {
    order[i] = i;
  }
  for (std::size_t i = size; i-- > 1;) {
    std::swap(order[i], order[*rc::gen::inRange<std::size_t>(0, i + 1)]);
  }
  std::string text = "version: 1\njobs:\n";
  for (const auto i : order) {
    const auto after = i == 0 ? std::string() : fmt::format(", after: j{}", i - 1);
    text += fmt::format(" - {{name: j{}, run: x{}}}\n", i, after);
  }
  RC_ASSERT(parse(text).has_value());
  // Closing the chain closes the circle.
  const auto at = text.find("name: j0,");
  const auto closed = text.replace(at, 9, fmt::format("name: j0, after: j{},", size - 1));
  const auto file = parse(closed);
  RC_ASSERT(!file.has_value());
  RC_ASSERT(file.error().size() == 1U);
  RC_ASSERT(file.error()[0].message.find("in a circle: 'j") != std::string::npos);
}

}  // namespace
}  // namespace berth
