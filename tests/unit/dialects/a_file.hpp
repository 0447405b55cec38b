#pragma once
// A job file of some dialect with the files around it, and what becomes of it.

#include <map>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "dialects/dialect.hpp"
#include "jobspec/job_writer.hpp"

namespace berth::test {

struct AFile {
  std::string text;
  std::string name = "jobs.yaml";
  std::map<std::string, std::string> others = {};  ///< by absolute path
  DialectOptions options = {};

  [[nodiscard]] Parsed parse() const {
    const auto read = [this](const std::filesystem::path& path) -> Result<std::string> {
      const auto found = others.find(path.string());
      if (found == others.end()) {
        return fail(ErrorCode::not_found, "no such file");
      }
      return found->second;
    };
    Source source;
    source.text = text;
    source.file_name = name;
    source.base_dir = "/base";
    source.read = read;
    return parse_file(source, options);
  }
  /// What it becomes; a mistake in it is one of the test.
  [[nodiscard]] JobFile read() const {
    Parsed file = parse();
    EXPECT_TRUE(file) << mistakes();
    return file ? std::move(*file) : JobFile{};
  }
  /// "3:5: …", a line each.
  [[nodiscard]] std::string mistakes() const {
    std::string out;
    if (const Parsed file = parse(); !file) {
      for (const Diagnostic& diagnostic : file.error()) {
        out += fmt::format("{}:{}: {}\n", diagnostic.at.line, diagnostic.at.column,
                           diagnostic.message);
      }
    }
    return out;
  }
};

/// As a native job file.
inline std::string written(const JobFile& file) {
  std::string out = job_file_head(file);
  for (std::size_t i = 0; i < file.jobs.size(); ++i) {
    out += i > 0 ? ", " : "";
    append_job(out, file.jobs[i], file.jobs);
  }
  return out + "]}";
}

/// What is written as a native file and read again is written the same.
inline void expect_round_trip(const JobFile& file) {
  const std::string once = written(file);
  const auto again = parse_job_file(once, "again.json", "/elsewhere");
  ASSERT_TRUE(again) << again.error().front().message;
  EXPECT_EQ(written(*again), once);
}

inline const std::string& command_of(const JobSpec& job) {
  EXPECT_EQ(job.payload.commands.size(), 1U);
  EXPECT_TRUE(job.payload.commands.front().shell);
  return job.payload.commands.front().argv.front();
}

}  // namespace berth::test
