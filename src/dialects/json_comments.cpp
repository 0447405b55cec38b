#include "dialects/json_comments.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

#include <fmt/format.h>

namespace berth {
namespace {

Position position_of(std::string_view text, std::size_t at) {
  const std::string_view before = text.substr(0, at);
  const std::size_t line = before.rfind('\n');
  return {static_cast<std::uint32_t>(std::ranges::count(before, '\n')) + 1,
          static_cast<std::uint32_t>(line == std::string_view::npos ? at : at - line - 1) + 1};
}

void blank(std::string& text, std::size_t begin, std::size_t end) {
  std::replace_if(
      text.begin() + static_cast<std::ptrdiff_t>(begin),
      text.begin() + static_cast<std::ptrdiff_t>(end),
      [](char c) { return c != '\n' && c != '\r'; }, ' ');
}

/// Behind the string that begins at `at`.
std::size_t end_of_string(std::string_view text, std::size_t at) {
  for (++at; at < text.size() && text[at] != '"' && text[at] != '\n'; ++at) {
    at += text[at] == '\\' ? 1 : 0;
  }
  return std::min(at + 1, text.size());
}

}  // namespace

std::string blank_comments(std::string_view text, Diagnostics& diagnostics) {
  std::string out(text);
  std::size_t comma = std::string_view::npos;  // the last thing before here, if it is one
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view rest = text.substr(at);
    if (rest.starts_with("//") || rest.starts_with("/*")) {
      const bool line = rest[1] == '/';
      std::size_t end = line ? text.find('\n', at) : text.find("*/", at + 2);
      if (end == std::string_view::npos && !line) {
        diagnostics.add(position_of(text, at), "this comment has no end");
      }
      end = end == std::string_view::npos ? text.size() : line ? end : end + 2;
      blank(out, at, end);
      at = end;
      continue;
    }
    const char c = rest.front();
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
      out[at] = c == '\t' ? ' ' : c;
      ++at;
      continue;
    }
    if ((c == '}' || c == ']') && comma != std::string_view::npos) {
      out[comma] = ' ';
    }
    comma = c == ',' ? at : std::string_view::npos;
    at = c == '"' ? end_of_string(text, at) : at + 1;
  }
  return out;
}

std::vector<std::string> top_keys(std::string_view text) {
  Diagnostics ignored("");
  const std::string plain = blank_comments(text, ignored);
  text = plain;
  std::vector<std::string> keys;
  int depth = 0;
  std::string_view last;  // a string or a bare word, until something else comes
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c == '"') {
      const auto end = end_of_string(text, at);
      last = text.substr(at + 1, end - at - 1);
      last = last.substr(0, last.rfind('"'));
      at = end;
      continue;
    }
    const auto word_end = std::min(text.find_first_of("\"{}[]:, \t\r\n", at), text.size());
    if (word_end > at) {
      last = text.substr(at, word_end - at);
      at = word_end;
      continue;
    }
    depth += c == '{' || c == '[' ? 1 : c == '}' || c == ']' ? -1 : 0;
    if (c == ':' && depth == 1 && !last.empty()) {
      keys.emplace_back(last);
    }
    last = c == ' ' || c == '\t' || c == '\r' || c == '\n' ? last : std::string_view();
    ++at;
  }
  return keys;
}

void check_brackets(std::string_view text, Diagnostics& diagnostics) {
  std::vector<std::size_t> open;
  std::size_t last = 0;
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c == '{' || c == '[') {
      open.push_back(at);
    } else if ((c == '}' || c == ']') && !open.empty()) {
      open.pop_back();
    }
    const std::size_t next = c == '"' ? end_of_string(text, at) : at + 1;
    if (c == '"' && (next == at + 1 || text[next - 1] != '"')) {
      return;  // a quote is open, which says more
    }
    last = c == ' ' || c == '\n' || c == '\r' ? last : at;
    at = next;
  }
  if (!open.empty()) {
    const Position begin = position_of(text, open.back());
    diagnostics.add(
        position_of(text, last),
        fmt::format("not valid JSON: a '{}' is missing at the end, for the '{}' of line "
                    "{}",
                    text[open.back()] == '{' ? '}' : ']', text[open.back()], begin.line));
  }
}

}  // namespace berth
