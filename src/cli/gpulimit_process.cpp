// What /proc tells of a task and of the machine.

#include <dirent.h>
#include <fmt/format.h>

#include <charconv>
#include <fstream>
#include <sstream>
#include <utility>

#include "cli/gpulimit.hpp"

namespace berth::cli::gpulimit {
namespace {

/// When a process began, in ticks since the machine did.
std::optional<std::uint64_t> start_of(const std::string& pid) {
  const std::string text = read_text(fmt::format("/proc/{}/stat", pid));
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) {
    return std::nullopt;
  }
  constexpr int kStartField = 20;  // counted from the state, which follows the name
  std::istringstream fields(text.substr(name_end + 1));
  std::string word;
  for (int i = 0; i < kStartField; ++i) {
    fields >> word;
  }
  std::uint64_t start = 0;
  const auto [at, error] = std::from_chars(word.data(), word.data() + word.size(), start);
  return error == std::errc() ? std::optional(start) : std::nullopt;
}

}  // namespace

std::string read_text(const std::string& path) {
  const std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  // A process may end while it is read; an iterator would throw then, this takes what there was.
  text << file.rdbuf();
  return std::move(text).str();
}

std::optional<std::uint32_t> find_process(const std::string& instance, std::uint64_t job,
                                          std::uint32_t attempt) {
  const std::string_view nul("\0", 1);
  const auto entry = [&](const std::string& text) {
    return std::string(nul) + text + std::string(nul);
  };
  const std::string dir = entry(fmt::format("BERTH_DIR={}", instance));
  const std::string id = entry(fmt::format("BERTH_JOB_ID={}", job));
  const std::string number = entry(fmt::format("BERTH_ATTEMPT_NUMBER={}", attempt));
  std::optional<std::pair<std::uint64_t, std::uint32_t>> first;
  DIR* processes = ::opendir("/proc");
  if (processes == nullptr) {
    return std::nullopt;
  }
  while (const dirent* found = ::readdir(processes)) {  // NOLINT(concurrency-mt-unsafe)
    const std::string name = static_cast<const char*>(found->d_name);
    std::uint32_t pid = 0;
    const auto [at, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (error != std::errc() || at != name.data() + name.size()) {
      continue;
    }
    const std::string environment =
        std::string(nul) + read_text(fmt::format("/proc/{}/environ", name));
    if (environment.find(dir) == std::string::npos || environment.find(id) == std::string::npos ||
        environment.find(number) == std::string::npos) {
      continue;
    }
    if (const auto start = start_of(name)) {
      first = std::min(first.value_or(std::pair{*start, pid}), std::pair{*start, pid});
    }
  }
  ::closedir(processes);
  return first ? std::optional(first->second) : std::nullopt;
}

}  // namespace berth::cli::gpulimit
