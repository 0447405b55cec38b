// #BERTH lines: the options of `berth add`, and --array.

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>

#include <fmt/format.h>

#include "dialects/script_job.hpp"

namespace berth {
namespace {

/// Options that are a key of a job by another spelling.
constexpr auto kSameKey = std::to_array<std::pair<std::string_view, std::string_view>>({
    {"--queue", "queue"},
    {"--priority", "priority"},
    {"--gpus", "gpus"},
    {"--gpu-memory", "gpu_memory"},
    {"--cpus", "cpus"},
    {"--memory", "memory"},
    {"--at", "at"},
    {"--in", "in"},
    {"--retries", "retries"},
    {"--time", "time"},
    {"--grace", "grace"},
    {"--signal", "signal"},
    {"--cwd", "cwd"},
});

/// Options that add an entry to a map: NAME=VALUE.
constexpr auto kEntries = std::to_array<std::pair<std::string_view, std::string_view>>({
    {"--resource", "resources"},
    {"--env", "env"},
    {"--rule", "rules"},
});

constexpr auto kKnown = std::to_array<ScriptOption>({
    {"--after"},
    {"--after-any"},
    {"--after-failed"},
    {"--array"},
    {"--at"},
    {"--cpus"},
    {"--cwd"},
    {"--env"},
    {"--gpu-memory"},
    {"--gpus"},
    {"--grace"},
    {"--in"},
    {"--linger", 0, Takes::nothing},
    {"--log"},
    {"--memory"},
    {"--name"},
    {"--priority"},
    {"--queue"},
    {"--requeue", 0, Takes::nothing},
    {"--resource"},
    {"--retries"},
    {"--rule"},
    {"--signal"},
    {"--time"},
});

constexpr std::size_t kMostIds = 10'000;

/// "3", "3,5-9"
std::optional<std::vector<JobId>> parse_ids(std::string_view text) {
  std::vector<JobId> ids;
  while (true) {
    const auto comma = text.find(',');
    const auto part = text.substr(0, comma);
    const auto dash = part.find('-');
    std::uint64_t first = 0;
    std::uint64_t last = 0;
    const auto read = [](std::string_view digits, std::uint64_t& out) {
      const auto* end = digits.data() + digits.size();
      const auto [stop, error] = std::from_chars(digits.data(), end, out);
      return !digits.empty() && error == std::errc{} && stop == end && out != 0;
    };
    const auto end_text = dash == std::string_view::npos ? part : part.substr(dash + 1);
    if (!read(part.substr(0, dash), first) || !read(end_text, last) || last < first ||
        last - first >= kMostIds || ids.size() >= kMostIds) {
      return std::nullopt;
    }
    for (auto id = first; id <= last; ++id) {
      ids.push_back(JobId{id});
    }
    if (comma == std::string_view::npos) {
      return ids;
    }
    text.remove_prefix(comma + 1);
  }
}

template <std::size_t N>
std::string_view key_in(const std::array<std::pair<std::string_view, std::string_view>, N>& table,
                        std::string_view name) {
  const auto found = std::find_if(table.begin(), table.end(),
                                  [&](const auto& pair) { return pair.first == name; });
  return found == table.end() ? std::string_view() : found->second;
}

void take_after(ScriptJob& job, const GivenOption& given, const ScriptReport& report) {
  const After kind = given.name == "--after-any"      ? After::any
                     : given.name == "--after-failed" ? After::failed
                                                      : After::ok;
  auto ids = parse_ids(given.value);
  if (!ids) {
    report.diagnostics.add(
        given.at, fmt::format("{}: '{}' is not a list of ids; write for example 3 or 3,5-9",
                              given.name, given.value));
    return;
  }
  if (set_after_kind(job, kind, given.at, report)) {
    job.after.insert(job.after.end(), ids->begin(), ids->end());
  }
}

void take_entry(ScriptJob& job, std::string_view key, const GivenOption& given,
                const ScriptReport& report) {
  const auto equals = given.value.find('=');
  if (equals == 0 || equals == std::string::npos) {
    report.diagnostics.add(given.at,
                           fmt::format("{}: '{}' is not NAME=VALUE", given.name, given.value));
    return;
  }
  job.keys.put(key, given.value.substr(0, equals), given.value.substr(equals + 1), given.at);
}

void take(const GivenOption& given, const std::string& here, ScriptJob& job,
          const ScriptReport& report) {
  if (given.name == "--at" || given.name == "--in") {
    job.keys.set_start(given.name.substr(2), given.value, given.at);
  } else if (const auto key = key_in(kSameKey, given.name); !key.empty()) {
    job.keys.set(key, given.value, given.at);
  } else if (const auto map = key_in(kEntries, given.name); !map.empty()) {
    take_entry(job, map, given, report);
  } else if (given.name.starts_with("--after")) {
    take_after(job, given, report);
  } else if (given.name == "--name") {
    job.name = {given.value, given.at};
  } else if (given.name == "--log") {
    job.keys.set("log", (std::filesystem::path(here) / given.value).lexically_normal().string(),
                 given.at);
  } else if (given.name == "--array") {
    auto tasks = parse_array(given.value);
    if (tasks) {
      job.array = std::move(*tasks);
    } else {
      report.diagnostics.add(given.at, fmt::format("--array: {}", tasks.error().message));
    }
  } else {
    job.keys.set(given.name.substr(2), "true", given.at);  // --linger, --requeue
  }
}

}  // namespace

void read_berth_lines(const std::vector<DirectiveLine>& lines, const std::string& here,
                      ScriptJob& job, const ScriptReport& report) {
  for (const auto& line : lines) {
    if (line.slurm) {
      continue;
    }
    for (const auto& given : read_options(line, kKnown, report)) {
      take(given, here, job, report);
    }
  }
}

}  // namespace berth
