// tests/golden/jobfile/<case>/input.yaml against expected.json (accepted) or expected.txt
// (refused). After a wanted change: BERTH_BLESS=1 build/tests/jobspec_test
// --gtest_filter='*Golden*', then read the difference.

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "jobspec/job_file.hpp"

namespace berth {
namespace {

namespace fs = std::filesystem;

std::string slurp(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string quote(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += fmt::format("\\{}", c);
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\u{:04x}", c);
    } else {
      out += c;
    }
  }
  return out + "\"";
}

template <class List, class Format>
std::string list(const List& items, Format format, std::string_view brackets = "[]") {
  std::string out(1, brackets[0]);
  for (const auto& item : items) {
    out += (out.size() > 1 ? ", " : "") + format(item);
  }
  return out + brackets[1];
}

std::string counts(const std::map<std::string, std::uint64_t>& map) {
  return list(
      map, [](const auto& item) { return fmt::format("{}: {}", quote(item.first), item.second); },
      "{}");
}

std::string texts(const Overrides& map) {
  return list(
      map,
      [](const auto& item) { return fmt::format("{}: {}", quote(item.first), quote(item.second)); },
      "{}");
}

/// Every field in every job, so that a change of a default shows.
std::string to_json(const JobSpec& job) {
  const auto number = [](auto value) { return std::to_string(value); };
  const auto& [gpus, gpu_memory, cpus, memory, resources, rules, time] = job.request;
  const auto& payload = job.payload;
  const auto command = [](const Command& c) {
    return c.shell ? quote(c.argv.front()) : list(c.argv, quote);
  };
  std::string out = fmt::format("    {{\"name\": {}", quote(job.name));
  const auto add = [&](std::string_view key, const std::string& value) {
    out += fmt::format(",\n     \"{}\": {}", key, value);
  };
  add("run", list(payload.commands, command));
  add("gpus", fmt::format("[{}, {}]", gpus.min, gpus.max));
  add("gpu_memory", gpu_memory ? number(*gpu_memory) : "null");
  add("cpus", number(cpus));
  add("memory", number(memory));
  add("resources", counts(resources));
  add("rules", texts(rules));
  add("queue", quote(job.queue));
  add("priority", number(job.priority));
  add("after", list(job.after_index, number));
  add("after_kind", quote(to_string(job.after_kind)));
  add("start_at", number(job.start_at.count()));
  add("retries", number(job.retries));
  add("time_ms", number(payload.time_limit.count()));
  add("grace_ms", number(payload.grace.count()));
  add("env", list(payload.extra_env, quote));
  add("cwd", quote(payload.cwd));
  add("log", quote(payload.log));
  add("linger", payload.linger ? "true" : "false");
  if (payload.warning.signal != 0) {
    add("signal", quote(format_warning(payload.warning)));
  }
  return out + "}";
}

std::string to_json(const JobFile& file) {
  const auto queue = [](const QueueSpec& q) {
    return q.rules.empty() ? fmt::format("[{}, {}]", quote(q.name), q.limit)
                           : fmt::format("[{}, {}, {}]", quote(q.name), q.limit, texts(q.rules));
  };
  std::string jobs;
  for (const auto& job : file.jobs) {
    jobs += (jobs.empty() ? "" : ",\n") + to_json(job);
  }
  return fmt::format(
      "{{\"name\": {},\n \"queues\": {},\n \"max_concurrent\": {},\n \"resources\": {},\n "
      "\"rules\": {},\n "
      "\"warnings\": {},\n \"jobs\": [\n{}\n ]}}\n",
      quote(file.name), list(file.queues, queue), file.max_concurrent, counts(file.resources),
      texts(file.rules), list(file.warnings, quote), jobs);
}

std::vector<std::string> cases() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(BERTH_GOLDEN_DIR)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

class JobFileGolden : public testing::TestWithParam<std::string> {};

TEST_P(JobFileGolden, IsReadAsBefore) {
  const auto folder = fs::path(BERTH_GOLDEN_DIR) / GetParam();
  const auto input = slurp(folder / "input.yaml");
  const auto file = parse_job_file(input, "input.yaml", "/base");
  std::string got;
  if (file) {
    got = to_json(*file);
  } else {
    for (const auto& diagnostic : file.error()) {
      got += render(diagnostic, input);
    }
  }
  const auto expected = folder / (file ? "expected.json" : "expected.txt");
  if (std::getenv("BERTH_BLESS") != nullptr) {
    fs::remove(folder / (file ? "expected.txt" : "expected.json"));
    std::ofstream(expected, std::ios::binary) << got;
  }
  ASSERT_TRUE(fs::exists(expected)) << expected << " is missing; what was read:\n" << got;
  EXPECT_EQ(got, slurp(expected));
}

INSTANTIATE_TEST_SUITE_P(Cases, JobFileGolden, testing::ValuesIn(cases()),
                         [](const auto& param_info) { return param_info.param; });

}  // namespace
}  // namespace berth
