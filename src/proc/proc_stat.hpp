#pragma once
// What berth reads from /proc/<pid>/stat. Shared by the daemon and the supervisor: no heap.

#include <cstdint>
#include <cstring>
#include <string_view>

namespace berth {

struct ProcStat {
  std::int32_t pid = 0;
  std::int32_t parent = 0;
  std::int32_t group = 0;
  std::int32_t session = 0;
  std::int32_t threads = 0;
  char state = '?';
  std::uint64_t start_ticks = 0;
  char name[16] = {};

  /// Nothing left but an exit status. A leader that has left its threads behind also shows `Z`,
  /// yet its process lives on.
  [[nodiscard]] bool dead() const { return (state == 'Z' && threads <= 1) || state == 'X'; }
};

/// Total. The name may contain spaces and parentheses, so fields are counted from the last ')'.
[[nodiscard]] inline bool parse_proc_stat(std::string_view text, ProcStat& out) {
  const auto open = text.find('(');
  const auto close = text.rfind(')');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open ||
      close + 2 >= text.size()) {
    return false;
  }
  const std::string_view name = text.substr(open + 1, close - open - 1).substr(0, 15);
  std::memcpy(out.name, name.data(), name.size());
  out.name[name.size()] = '\0';
  out.state = text[close + 2];
  std::uint64_t pid = 0;
  for (const char c : text.substr(0, open)) {
    if (c >= '0' && c <= '9') {
      pid = pid * 10 + static_cast<std::uint64_t>(c - '0');
    }
  }
  out.pid = static_cast<std::int32_t>(pid);

  constexpr int kParent = 4;
  constexpr int kGroup = 5;
  constexpr int kSession = 6;
  constexpr int kThreads = 20;
  constexpr int kStart = 22;
  int field = 3;
  std::size_t at = close + 3;
  while (at < text.size() && field < kStart) {
    ++at;  // the space before the field
    ++field;
    std::uint64_t value = 0;
    bool digits = false;
    for (; at < text.size() && text[at] != ' ' && text[at] != '\n'; ++at) {
      if (text[at] >= '0' && text[at] <= '9') {
        value = value * 10 + static_cast<std::uint64_t>(text[at] - '0');
        digits = true;
      }
    }
    if (!digits) {
      return false;
    }
    switch (field) {
      case kParent:
        out.parent = static_cast<std::int32_t>(value);
        break;
      case kGroup:
        out.group = static_cast<std::int32_t>(value);
        break;
      case kSession:
        out.session = static_cast<std::int32_t>(value);
        break;
      case kThreads:
        out.threads = static_cast<std::int32_t>(value);
        break;
      case kStart:
        out.start_ticks = value;
        break;
      default:
        break;
    }
  }
  return field == kStart;
}

}  // namespace berth
