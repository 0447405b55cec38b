// Keys from the bytes a terminal sends.

#include <algorithm>
#include <array>

#include "api/text.hpp"
#include "cli/top_keys.hpp"

namespace berth::cli {
namespace {

using Code = TopKey::Code;

constexpr std::array<std::pair<std::string_view, Code>, 19> kSequences{{{"[A", Code::up},
                                                                        {"[B", Code::down},
                                                                        {"[C", Code::right},
                                                                        {"[D", Code::left},
                                                                        {"OA", Code::up},
                                                                        {"OB", Code::down},
                                                                        {"OC", Code::right},
                                                                        {"OD", Code::left},
                                                                        {"[5~", Code::page_up},
                                                                        {"[6~", Code::page_down},
                                                                        {"[H", Code::home},
                                                                        {"[F", Code::end},
                                                                        {"OH", Code::home},
                                                                        {"OF", Code::end},
                                                                        {"[1~", Code::home},
                                                                        {"[4~", Code::end},
                                                                        {"[7~", Code::home},
                                                                        {"[8~", Code::end},
                                                                        {"[Z", Code::back_tab}}};

/// The length of the sequence behind an escape; 0: it is not complete.
std::size_t sequence_length(std::string_view bytes) {
  if (bytes.empty()) {
    return 0;
  }
  if (bytes[0] == 'O') {
    return bytes.size() >= 2 ? 2 : 0;
  }
  for (std::size_t i = 1; i < bytes.size(); ++i) {
    if (bytes[i] >= '@' && bytes[i] <= '~') {
      return i + 1;
    }
  }
  return 0;
}

std::optional<TopKey> plain_key(std::string_view character) {
  switch (character[0]) {
    case '\r':
    case '\n':
      return TopKey{Code::enter, ""};
    case '\t':
      return TopKey{Code::tab, ""};
    case '\b':
    case '\x7f':
      return TopKey{Code::backspace, ""};
    default:
      break;
  }
  if (static_cast<unsigned char>(character[0]) < 0x20) {
    return std::nullopt;
  }
  return TopKey{Code::text, std::string(character)};
}

/// Whether `bytes` may be the beginning of one character, the rest of which has not come.
bool begins_character(std::string_view bytes) {
  const auto first = static_cast<unsigned char>(bytes[0]);
  const std::size_t whole = first >= 0xF5   ? 1
                            : first >= 0xF0 ? 4
                            : first >= 0xE0 ? 3
                            : first >= 0xC2 ? 2
                                            : 1;
  return bytes.size() < whole &&
         std::ranges::all_of(
             bytes.substr(1),
             [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80; });
}

}  // namespace

std::vector<TopKey> TopKeyReader::feed(std::string_view bytes) {
  rest_ += bytes;
  std::vector<TopKey> out;
  std::string_view left = rest_;
  while (!left.empty()) {
    if (left[0] == '\x1b') {
      const bool begins = left.size() == 1 || left[1] == '[' || left[1] == 'O';
      if (!begins) {
        out.push_back({Code::escape, ""});
        left.remove_prefix(1);
        continue;
      }
      const std::size_t length = sequence_length(left.substr(1));
      if (length == 0) {
        break;
      }
      const std::string_view sequence = left.substr(1, length);
      const auto* const known =
          std::ranges::find(kSequences, sequence, &std::pair<std::string_view, Code>::first);
      if (known != kSequences.end()) {
        out.push_back({known->second, ""});
      }
      left.remove_prefix(length + 1);
      continue;
    }
    if (begins_character(left)) {
      break;
    }
    const std::size_t length = utf8_length(left);
    if (length > 0) {
      if (auto key = plain_key(left.substr(0, length))) {
        out.push_back(std::move(*key));
      }
    }
    left.remove_prefix(std::max<std::size_t>(length, 1));
  }
  rest_ = std::string(left);
  return out;
}

std::vector<TopKey> TopKeyReader::pause() {
  const bool escape = rest_.starts_with('\x1b');
  rest_.clear();
  return escape ? std::vector<TopKey>{{Code::escape, ""}} : std::vector<TopKey>{};
}

}  // namespace berth::cli
