#include "dialects/text_keys.hpp"

#include <algorithm>
#include <cstddef>

namespace berth {
namespace {

/// Where `key:` next stands; npos: nowhere.
std::size_t find_key(std::string_view text, std::string_view key, std::size_t from) {
  constexpr std::string_view kBefore = " \t\r\n{,-\"'";
  for (std::size_t at = text.find(key, from); at != std::string_view::npos;
       at = text.find(key, at + 1)) {
    const bool begins = at == 0 || kBefore.find(text[at - 1]) != std::string_view::npos;
    std::size_t end = at + key.size();
    if (end < text.size() && (text[end] == '"' || text[end] == '\'')) {
      ++end;
    }
    end = std::min(text.find_first_not_of(" \t", end), text.size());
    if (begins && end < text.size() && text[end] == ':') {
      return at;
    }
  }
  return std::string_view::npos;
}

}  // namespace

bool has_key(std::string_view text, std::string_view key) {
  return find_key(text, key, 0) != std::string_view::npos;
}

bool has_version(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  const bool json = first != std::string_view::npos && text[first] == '{';
  for (std::size_t at = find_key(text, "version", 0); at != std::string_view::npos;
       at = find_key(text, "version", at + 1)) {
    const std::size_t line = text.rfind('\n', at);
    const std::string_view before =
        text.substr(line == std::string_view::npos ? 0 : line + 1,
                    at - (line == std::string_view::npos ? 0 : line + 1));
    if (json || before.find_first_not_of("\"'\xEF\xBB\xBF") == std::string_view::npos) {
      return true;
    }
  }
  return false;
}

}  // namespace berth
