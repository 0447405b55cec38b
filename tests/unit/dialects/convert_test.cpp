// A file of any format, written as a native one and read again, makes the same batch.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

#include <gtest/gtest.h>

#include "dialects/dialect.hpp"
#include "jobspec/job_yaml.hpp"

namespace berth {
namespace {

namespace fs = std::filesystem;

Result<std::string> slurp(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    return fail(ErrorCode::not_found, path.string() + " is not there");
  }
  return std::string(std::istreambuf_iterator<char>(in), {});
}

Source source_of(std::string_view text, const fs::path& path) {
  Source source;
  source.text = text;
  source.file_name = path.filename().string();
  source.base_dir = path.parent_path();
  source.here = "/here";
  source.user = "ann";
  source.host = "node1";
  source.read = slurp;
  return source;
}

/// Whether the file could be read; if so, its result has been judged.
bool judge(std::string_view text, const fs::path& path, const DialectOptions& options = {}) {
  const auto file = parse_file(source_of(text, path), options);
  if (!file) {
    return false;
  }
  // Only what a fuzzer has found may lack names that differ; it cannot be converted.
  std::vector<std::string> names;
  for (const auto& job : file->jobs) {
    names.push_back(job.name);
  }
  std::sort(names.begin(), names.end());
  const bool differ = std::adjacent_find(names.begin(), names.end()) == names.end();
  if (!differ && path.string().starts_with(BERTH_FUZZ_CORPUS_DIR)) {
    return false;
  }
  EXPECT_TRUE(differ) << path << ": a native file needs names that differ";
  const auto yaml = to_yaml(*file);
  DialectOptions native;
  native.dialect = Dialect::native;
  const auto again = parse_file(source_of(yaml, "/elsewhere/result.yaml"), native);
  EXPECT_TRUE(again) << path << "\n"
                     << yaml << "\n"
                     << (again ? "" : again.error().front().message);
  EXPECT_TRUE(!again || same_submission(*file, *again)) << path << "\n" << yaml;
  return true;
}

TEST(Convert, ScriptsKeepEverything) {
  EXPECT_TRUE(
      judge("#!/bin/bash\n#SBATCH -J a -a 0-3%2 -G 2 -t 1:00:00 -o out/%A_%a.txt -e err.txt\n"
            "#SBATCH --export=FOO=1,KEEP -d afternotok:7 --signal=USR1@60\n\nif true; then\n  echo "
            "\"$SLURM_ARRAY_TASK_ID {port}\"\nfi\n",
            "/files/job.sh"));
  EXPECT_TRUE(judge("#!/usr/bin/env python3\n#BERTH --gpus 1 --requeue\nprint({'a': 1})\n",
                    "/files/job.py"));
}

TEST(Convert, CommandLineRulesAreKept) {
  DialectOptions options;
  options.min_memory = 8 * kGiB;
  options.max_util = 10;
  options.max_wait = Millis(90'500);
  options.max_concurrent = 3;
  EXPECT_TRUE(judge("version: 1\njobs: [{run: x}]\n", "/files/a.yaml", options));
}

/// Whatever of these each dialect can read.
TEST(Convert, EveryFileThatCanBeReadKeepsItsBatch) {
  std::map<Dialect, int> read;
  for (const fs::path root : {BERTH_EXAMPLES_DIR, BERTH_JOBFILE_DIR, BERTH_FUZZ_CORPUS_DIR}) {
    for (const auto& entry : fs::recursive_directory_iterator(root)) {
      const auto& path = entry.path();
      const bool skipped = path.string().find("not_utf8") != std::string::npos ||
                           path.extension() == ".dict" || path.extension() == ".log";
      if (!entry.is_regular_file() || skipped || entry.file_size() > 1'000'000) {
        continue;
      }
      if (root == BERTH_FUZZ_CORPUS_DIR && path.string().find("/script/") == std::string::npos &&
          path.string().find("/commands/") == std::string::npos &&
          path.string().find("/fedwhat/") == std::string::npos) {
        continue;  // of formats that are no job files
      }
      const auto text = slurp(path);
      ASSERT_TRUE(text);
      if (judge(*text, path)) {
        ++read[recognise(*text, path.filename().string())];
      }
    }
  }
  EXPECT_GE(read[Dialect::native], 10);
  EXPECT_GE(read[Dialect::script], 1);
}

}  // namespace
}  // namespace berth
