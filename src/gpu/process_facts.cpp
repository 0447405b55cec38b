#include "gpu/process_facts.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>

#include "base/fd.hpp"

namespace berth {
namespace {

std::optional<std::string> read_at(int directory, const std::string& path) {
  const Fd file(::openat(directory, path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) {
    return std::nullopt;
  }
  std::string content;
  std::array<char, 4096> buffer{};
  for (;;) {
    const ssize_t got = ::read(file.get(), buffer.data(), buffer.size());
    if (got > 0) {
      content.append(buffer.data(), static_cast<std::size_t>(got));
    } else if (got == 0) {
      return content;
    } else if (errno != EINTR) {
      return std::nullopt;  // ESRCH: it ended meanwhile
    }
  }
}

template <class Number>
std::optional<Number> parse(std::string_view text) {
  Number value = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || rest != text.data() + text.size()) {
    return std::nullopt;
  }
  return value;
}

/// The first word after "Uid:" in the file status.
std::optional<std::uint32_t> parse_uid(std::string_view status) {
  constexpr std::string_view kKey = "\nUid:\t";
  const std::size_t key = status.find(kKey);
  if (key == status.npos) {
    return std::nullopt;
  }
  status.remove_prefix(key + kKey.size());
  return parse<std::uint32_t>(status.substr(0, status.find_first_of("\t\n")));
}

}  // namespace

std::optional<ProcessStat> parse_process_stat(std::string_view text) {
  const std::size_t name_end = text.rfind(')');
  if (name_end == text.npos || !text.substr(name_end + 1).starts_with(' ')) {
    return std::nullopt;
  }
  text.remove_prefix(name_end + 2);
  constexpr int kParentField = 4;
  constexpr int kStartTimeField = 22;
  std::optional<std::uint32_t> parent;
  for (int field = 3;; ++field) {
    const std::size_t end = text.find_first_of(" \n");
    const std::string_view word = text.substr(0, end);
    if (field == kParentField) {
      parent = parse<std::uint32_t>(word);
    } else if (field == kStartTimeField) {
      const auto start_time = parse<std::uint64_t>(word);
      if (!parent || !start_time) {
        return std::nullopt;
      }
      return ProcessStat{*parent, *start_time};
    }
    if (end == text.npos) {
      return std::nullopt;
    }
    text.remove_prefix(end + 1);
  }
}

Millis age_of(std::uint64_t start_time, Millis now_mono) {
  const auto per_second = static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK));
  const std::uint64_t started_ms =
      start_time / per_second * 1000 + start_time % per_second * 1000 / per_second;
  return std::max(now_mono - Millis(started_ms), Millis(0));
}

std::optional<ProcessFacts> ProcessReader::read(std::uint32_t pid) const {
  // All files through one descriptor: they then are of one process, even if its pid is reused.
  const std::string path = proc_ + "/" + std::to_string(pid);
  const Fd directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory) {
    return std::nullopt;
  }
  const auto stat_text = read_at(directory.get(), "stat");
  const auto status = read_at(directory.get(), "status");
  auto name = read_at(directory.get(), "comm");
  const auto stat = stat_text ? parse_process_stat(*stat_text) : std::nullopt;
  // Not the owner of the files: they belong to root for every process that may not be dumped.
  const auto uid = status ? parse_uid(*status) : std::nullopt;
  if (!stat || !uid || !name) {
    return std::nullopt;
  }
  if (name->ends_with('\n')) {
    name->pop_back();
  }
  return ProcessFacts{*stat, *uid, *std::move(name)};
}

std::vector<std::uint32_t> ProcessReader::ancestors(std::uint32_t pid) {
  constexpr std::size_t kAncestorsMax = 64;
  std::vector<std::uint32_t> chain;
  while (pid > 1 && chain.size() < kAncestorsMax) {
    auto known = parents_.find(pid);
    if (known == parents_.end()) {
      const auto text = read_at(AT_FDCWD, proc_ + "/" + std::to_string(pid) + "/stat");
      const auto stat = text ? parse_process_stat(*text) : std::nullopt;
      known = parents_.emplace(pid, stat ? stat->parent : 0).first;
    }
    pid = known->second;
    if (pid != 0) {
      chain.push_back(pid);
    }
  }
  return chain;
}

}  // namespace berth
