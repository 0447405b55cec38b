// The schema is written from the keys the parser accepts. Here: that it is the one in docs, that
// the parser accepts every key in it, and that each key is explained where people look. After a
// wanted change: BERTH_BLESS=1 build/tests/jobspec_test --gtest_filter='Schema*'

#include "jobspec/schema.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "jobspec/job_file.hpp"
#include "jobspec/keys.hpp"

namespace berth {
namespace {

std::string slurp(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

const std::filesystem::path kDocs = BERTH_FORMATS_DIR;

/// A value that a key of this kind takes.
std::string_view sample(ValueShape shape) {
  switch (shape) {
    case ValueShape::version:
    case ValueShape::integer:
    case ValueShape::gpu_count:
      return "1";
    case ValueShape::text:
    case ValueShape::commands:
      return "x";
    case ValueShape::matrix:
      return "{i: [1]}";
    case ValueShape::size:
      return "8GiB";
    case ValueShape::duration:
      return "2h30m";
    case ValueShape::moment:
      return "2030-01-01 12:30";
    case ValueShape::counts:
    case ValueShape::queues:
      return "{r: 1}";
    case ValueShape::names:
    case ValueShape::after:
      return "[]";
    case ValueShape::variables:
      return "{A: b}";
    case ValueShape::warning:
      return "USR1@120";
    case ValueShape::flag:
      return "true";
    case ValueShape::fingerprint:
      return "'0123456789abcdef'";
    case ValueShape::files:
      return "{state_dir: logs}";
    case ValueShape::job:
    case ValueShape::rules:
    case ValueShape::own_rules:
      return "{}";
    case ValueShape::jobs:
      return "[{run: x}]";
  }
  return {};
}

std::string complaint(const std::string& text) {
  const auto file = parse_job_file(text, "f.yaml", "/base");
  return file ? "" : render(file.error().front(), text);
}

TEST(Schema, IsTheOneInTheDocumentation) {
  const auto path = kDocs / "jobfile.schema.json";
  if (std::getenv("BERTH_BLESS") != nullptr) {
    std::ofstream(path, std::ios::binary) << job_file_schema();
  }
  EXPECT_EQ(slurp(path), job_file_schema());
}

TEST(Schema, EveryKeyIsReadAndExplained) {
  const auto manual = slurp(kDocs / "jobfile.md");
  ASSERT_FALSE(manual.empty());
  const auto schema = job_file_schema();
  const auto check = [&](const KeyInfo& key, const std::string& text) {
    EXPECT_EQ(complaint(text), "");
    EXPECT_FALSE(key.help.empty()) << key.name;
    EXPECT_NE(schema.find(fmt::format("\"{}\": {{\n", key.name)), std::string::npos) << key.name;
    EXPECT_NE(manual.find(fmt::format("`{}`", key.name)), std::string::npos)
        << key.name << " is not in jobfile.md";
  };
  for (const auto& key : kJobKeys) {
    check(key, fmt::format("version: 1\njobs:\n - {}: {}\n{}", key.name, sample(key.shape),
                           key.name == "run" ? "" : "   run: x\n"));
    check(key, fmt::format("version: 1\ndefaults: {{{}: {}}}\njobs: [{{run: x}}]\n", key.name,
                           sample(key.shape)));
  }
  for (const auto& key : kTopKeys) {
    std::string text = fmt::format("{}: {}\n", key.name, sample(key.shape));
    text += key.name == "version" ? "" : "version: 1\n";
    check(key, text + (key.name == "jobs" ? "" : "jobs: [{run: x}]\n"));
  }
  for (const auto& key : kRuleKeys) {
    check(key, fmt::format("version: 1\nrules: {{{}: {}}}\njobs: [{{run: x}}]\n", key.name,
                           sample(key.shape)));
  }
  for (const auto& key : kFilesKeys) {
    check(key, fmt::format("version: 1\nfiles: {{{}: {}}}\njobs: [{{run: x}}]\n", key.name,
                           sample(key.shape)));
  }
  for (const auto& key : kQueueKeys) {
    check(key, fmt::format("version: 1\nqueues: {{q: {{{}: {}}}}}\njobs: [{{run: x}}]\n", key.name,
                           sample(key.shape)));
  }
}

TEST(Schema, DefaultsInItAreThoseOfTheParser) {
  for (const auto& key : kJobKeys) {
    if (key.fallback.empty()) {
      continue;
    }
    const auto plain = parse_job_file("version: 1\njobs: [{run: x}]\n", "f", "/base");
    const auto given = parse_job_file(
        fmt::format("version: 1\njobs: [{{run: x, {}: {}}}]\n", key.name, key.fallback), "f",
        "/base");
    ASSERT_TRUE(given) << key.name << ": " << given.error().front().message;
    const auto& a = plain->jobs.at(0);
    const auto& b = given->jobs.at(0);
    EXPECT_TRUE(a.request == b.request && a.queue == b.queue && a.priority == b.priority &&
                a.retries == b.retries && a.payload.time_limit == b.payload.time_limit &&
                a.payload.grace == b.payload.grace && a.payload.linger == b.payload.linger &&
                a.payload.extra_env == b.payload.extra_env)
        << key.name;
  }
}

}  // namespace
}  // namespace berth
