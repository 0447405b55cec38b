#include "jobspec/matrix.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace berth {
namespace {

const Combination kValues = {{"lr", "0.1"}, {"seed", "7"}};

TEST(Substitute, ReplacesAxesAndLeavesEveryOtherBraceAlone) {
  EXPECT_EQ(substitute("--lr {lr} --seed={seed}", kValues), "--lr 0.1 --seed=7");
  EXPECT_EQ(substitute("{lr}{seed}{lr}", kValues), "0.170.1");
  EXPECT_EQ(substitute("{other} {} { lr } {lr", kValues), "{other} {} { lr } {lr");
  EXPECT_EQ(substitute("f() { echo {1..3}; }", kValues), "f() { echo {1..3}; }");
  EXPECT_EQ(substitute(R"({"lr":{lr},"o":{"seed":{seed}}})", kValues),
            R"({"lr":0.1,"o":{"seed":7}})");
  EXPECT_EQ(substitute("docker ps --format '{{.Names}}'", kValues),
            "docker ps --format '{{.Names}}'");
}

TEST(Substitute, DoubledBracesEscapeAnAxisAndDollarsKeepShellVariables) {
  EXPECT_EQ(substitute("{{lr}} {lr}", kValues), "{lr} 0.1");
  EXPECT_EQ(substitute("{{lr} {lr}}", kValues), "{0.1 0.1}");
  EXPECT_EQ(substitute("${lr} $ {lr} ${lr:-1}", kValues), "${lr} $ 0.1 ${lr:-1}");
  EXPECT_EQ(substitute("{{lr}}", {}), "{{lr}}") << "without a matrix nothing is touched";
}

TEST(Substitute, DoesNotLookIntoWhatItPutIn) {
  EXPECT_EQ(substitute("{a}", {{"a", "{b}"}, {"b", "x"}}), "{b}");
}

TEST(Mentions, SeesPlaceholdersOnly) {
  EXPECT_TRUE(mentions("train-{lr}", "lr"));
  EXPECT_FALSE(mentions("train-{{lr}}", "lr"));
  EXPECT_FALSE(mentions("train-${lr}", "lr"));
  EXPECT_FALSE(mentions("train-lr", "lr"));
}

RC_GTEST_PROP(SubstituteProps, text_without_the_axes_is_unchanged, ()) {
  const auto text = *rc::gen::container<std::string>(rc::gen::elementOf(std::string("{}$ ax\"")));
  RC_ASSERT(substitute(text, {{"missing", "v"}}) == text);
}

RC_GTEST_PROP(SubstituteProps, replaces_as_often_as_it_mentions, ()) {
  const auto text = *rc::gen::container<std::string>(rc::gen::elementOf(std::string("{}$ab")));
  const auto out = substitute(text, {{"a", "\x01"}});
  RC_ASSERT((std::count(out.begin(), out.end(), '\x01') > 0) == mentions(text, "a"));
}

struct Parsed {
  NodePtr tree;  // the matrix borrows from it
  Matrix matrix;
  std::vector<Diagnostic> errors;
};

Parsed parse(std::string_view yaml, std::string table = "") {
  Diagnostics diagnostics("m.yaml");
  auto tree = parse_yaml(yaml, diagnostics);
  const OtherFiles others{"/base", [&](const std::filesystem::path& path) -> Result<std::string> {
                            if (table.empty()) {
                              return fail(ErrorCode::not_found, path.string() + " is not there");
                            }
                            return table;
                          }};
  auto matrix = Matrix::read(*tree, diagnostics, others);
  return {std::move(tree), std::move(matrix), diagnostics.take()};
}

std::string all(const Matrix& matrix) {
  std::string out;
  for (std::uint64_t i = 0; i < matrix.size(); ++i) {
    for (const auto& [axis, value] : matrix.at(i)) {
      out += fmt::format("{}={} ", axis, value);
    }
    out.back() = '\n';
  }
  return out;
}

TEST(MatrixTest, FirstAxisVariesSlowestAndIncludeComesLast) {
  const auto parsed = parse("{a: [1, 2], b: [x, y], include: [{a: 9, b: z}]}");
  EXPECT_TRUE(parsed.errors.empty());
  EXPECT_EQ(all(parsed.matrix), "a=1 b=x\na=1 b=y\na=2 b=x\na=2 b=y\na=9 b=z\n");
}

TEST(MatrixTest, AListIsTheCombinationsThemselves) {
  const auto parsed = parse("[{a: 1, b: 2}, {a: 3}]");
  EXPECT_TRUE(parsed.errors.empty());
  EXPECT_EQ(all(parsed.matrix), "a=1 b=2\na=3\n");
}

TEST(MatrixTest, WithoutOneThereIsOneEmptyCombination) {
  const Matrix matrix;
  EXPECT_EQ(matrix.size(), 1U);
  EXPECT_TRUE(matrix.at(0).empty());
}

TEST(MatrixTest, RangesAndScalesAreAxes) {
  const auto parsed = parse("a: 1..3\nb: log(1e-3, 1e-1, 3)\n");
  EXPECT_TRUE(parsed.errors.empty());
  EXPECT_EQ(all(parsed.matrix),
            "a=1 b=0.001\na=1 b=0.01\na=1 b=0.1\na=2 b=0.001\na=2 b=0.01\na=2 b=0.1\n"
            "a=3 b=0.001\na=3 b=0.01\na=3 b=0.1\n");
  EXPECT_EQ(all(parse("{a: {linear: [0, 1, 3]}}").matrix), "a=0\na=0.5\na=1\n");
  EXPECT_EQ(all(parse("{a: [1..3]}").matrix), "a=1..3\n") << "values of a list are what they are";
}

TEST(MatrixTest, ZippedAxesGoTogether) {
  const auto parsed = parse("{seed: [1, 2], zip: {model: [s, m], batch: [64, 16]}}");
  EXPECT_TRUE(parsed.errors.empty());
  EXPECT_EQ(all(parsed.matrix),
            "seed=1 model=s batch=64\nseed=1 model=m batch=16\n"
            "seed=2 model=s batch=64\nseed=2 model=m batch=16\n");
  EXPECT_EQ(all(parse("{zip: [{a: 1..2, b: [x, y]}, {c: [7]}]}").matrix),
            "a=1 b=x c=7\na=2 b=y c=7\n");
}

TEST(MatrixTest, ZippedAxesOfDifferentLengthsAreRefused) {
  const auto parsed = parse("{zip: {a: [1, 2], b: 1..3}}");
  ASSERT_EQ(parsed.errors.size(), 1U);
  EXPECT_EQ(parsed.errors[0].message,
            "axes that go together have equally many values, but 'a' has 2 and 'b' has 3");
  EXPECT_EQ(parsed.errors[0].at, (Position{1, 7}));
}

TEST(MatrixTest, TablesAreReadAndCombinedWithOtherAxes) {
  const auto parsed = parse("{csv: p.csv, seed: [1, 2]}",
                            "\xef\xbb\xbflr, name\r\n0.1,\"a, \"\"b\"\"\"\r\n\r\n 2 ,c\r\n");
  EXPECT_TRUE(parsed.errors.empty());
  EXPECT_EQ(all(parsed.matrix),
            "lr=0.1 name=a, \"b\" seed=1\nlr=0.1 name=a, \"b\" seed=2\n"
            "lr=2 name=c seed=1\nlr=2 name=c seed=2\n");
}

TEST(MatrixTest, MistakesInATableHaveItsNameAndLine) {
  const auto parsed = parse("{csv: sub/p.csv}", "a,b\n1,2\n3\n\n4,5,6\n\"x");
  std::string told;
  for (const auto& error : parsed.errors) {
    told += fmt::format("{}:{}: {}\n", error.file, error.at.line, error.message);
  }
  EXPECT_EQ(told,
            "/base/sub/p.csv:3: this row has 1 field and the header 2\n"
            "/base/sub/p.csv:5: this row has 3 fields and the header 2\n"
            "/base/sub/p.csv:6: this quoted field has no end\n"
            "/base/sub/p.csv:6: this row has 1 field and the header 2\n");
  const auto missing = parse("{csv: p.csv}");
  ASSERT_FALSE(missing.errors.empty());
  EXPECT_EQ(missing.errors.back().message, "'csv': /base/p.csv is not there");
}

TEST(MatrixTest, ListsOfValuesAreAxesWhateverTheirNames) {
  EXPECT_EQ(all(parse("{zip: [1, 2], csv: [x]}").matrix), "zip=1 csv=x\nzip=2 csv=x\n");
}

TEST(MatrixTest, AnAxisStandsInOnePlaceOnly) {
  const auto parsed = parse("{a: [1], zip: {a: [1], b: [2]}}");
  ASSERT_EQ(parsed.errors.size(), 1U);
  EXPECT_EQ(parsed.errors[0].message, "axis 'a' is there twice");
}

TEST(MatrixTest, AHugeProductSaturatesInsteadOfWrapping) {
  std::string yaml = "{";
  for (int axis = 0; axis < 80; ++axis) {
    yaml += fmt::format("a{}: [1, 2, 3, 4], ", axis);
  }
  const auto parsed = parse(yaml + "}");
  EXPECT_TRUE(parsed.errors.empty());
  EXPECT_EQ(parsed.matrix.size(), std::uint64_t{1} << 63U);
}

}  // namespace
}  // namespace berth
