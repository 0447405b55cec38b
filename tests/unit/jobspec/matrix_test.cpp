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

Parsed parse(std::string_view yaml) {
  Diagnostics diagnostics("m.yaml");
  auto tree = parse_yaml(yaml, diagnostics);
  auto matrix = Matrix::read(*tree, diagnostics);
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
