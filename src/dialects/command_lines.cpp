#include "dialects/command_lines.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <span>

#include <fmt/format.h>

namespace berth {
namespace {

constexpr std::string_view kBlanks = " \t\v\f\r";
constexpr std::string_view kWideBlank = "\u3000";
constexpr std::string_view kDigits = "0123456789";

std::string_view trim(std::string_view text) {
  while (!text.empty()) {
    if (kBlanks.find(text.front()) != std::string_view::npos) {
      text.remove_prefix(1);
    } else if (text.starts_with(kWideBlank)) {
      text.remove_prefix(kWideBlank.size());
    } else if (kBlanks.find(text.back()) != std::string_view::npos) {
      text.remove_suffix(1);
    } else if (text.ends_with(kWideBlank)) {
      text.remove_suffix(kWideBlank.size());
    } else {
      break;
    }
  }
  return text;
}

/// "20" or "20.5".
bool is_number(std::string_view text) {
  const auto whole = std::min(text.find_first_not_of(kDigits), text.size());
  if (whole == 0 || whole == text.size()) {
    return whole != 0;
  }
  const auto fraction = text.substr(whole + 1);
  return text[whole] == '.' && !fraction.empty() &&
         fraction.find_first_not_of(kDigits) == std::string_view::npos;
}

/// Digits and commas as Chinese input methods write them: U+FF10 to U+FF19, U+FF0C, U+FF0E.
std::size_t wide_length(std::string_view text) {
  if (text.size() < 3 || text[0] != '\xEF' || text[1] != '\xBC') {
    return 0;
  }
  const auto last = static_cast<unsigned char>(text[2]);
  return (last >= 0x90 && last <= 0x99) || last == 0x8C || last == 0x8E ? 3 : 0;
}

/// Nothing but digits, of any width, signs and units of memory.
bool is_near_number(std::string_view text) {
  constexpr std::string_view kOthers = "+-.,eEgGmMkKtTiIbB \t";
  constexpr std::string_view kFirst = "+-.";
  if (text.empty() ||
      (kDigits.find(text.front()) == std::string_view::npos &&
       kFirst.find(text.front()) == std::string_view::npos && wide_length(text) == 0)) {
    return false;
  }
  bool digit = false;
  while (!text.empty()) {
    const auto wide = wide_length(text);
    const bool narrow = kDigits.find(text.front()) != std::string_view::npos;
    if (wide == 0 && !narrow && kOthers.find(text.front()) == std::string_view::npos) {
      return false;
    }
    digit = digit || narrow || wide > 0;
    text.remove_prefix(std::max<std::size_t>(wide, 1));
  }
  return digit;
}

bool is_one_of(std::string_view word, std::span<const std::string_view> known) {
  return std::ranges::any_of(known, [word](std::string_view one) {
    return std::ranges::equal(word, one, {}, [](char c) {
      return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
  });
}

constexpr std::array<std::string_view, 3> kUnits = {"g", "gb", "gib"};
constexpr std::array<std::string_view, 10> kNouns = {"gpu",    "gpus", "card", "cards", "queue",
                                                     "memory", "mem",  "vram", "free",  "id"};

/// Words that name a number and could not be a command that somebody forgot a line break before:
/// no character that a shell or a path makes something of, and in front a word that no program is
/// called.
bool is_note(std::string_view text) {
  constexpr std::string_view kQuotes[] = {"“", "”", "‘", "’"};
  const auto word = text.substr(0, text.find_first_of(kBlanks));
  const bool foreign = !word.empty() && static_cast<unsigned char>(word.front()) >= 0x80;
  if (!foreign && !is_one_of(word, kUnits) && !is_one_of(word, kNouns)) {
    return false;
  }
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == ' ' || c == '\t' || static_cast<unsigned char>(c) >= 0x80;
    if (!plain || wide_length(text.substr(i)) > 0) {
      return false;
    }
  }
  return std::ranges::none_of(
      kQuotes, [text](auto quote) { return text.find(quote) != std::string_view::npos; });
}

/// What stands where a number may.
struct Value {
  std::string_view number;  ///< empty: it is none
  bool memory = false;
};

/// "20", "20GB", "20 GB", "20 剩余显存".
Value value_in(std::string_view text) {
  const auto end = std::min(text.find_first_not_of("0123456789."), text.size());
  const auto number = text.substr(0, end);
  const auto rest = text.substr(end);
  const auto note = trim(rest);
  if (!is_number(number)) {
    return {};
  }
  if (rest.empty()) {
    return {number};
  }
  const auto word = note.substr(0, note.find_first_of(kBlanks));
  const bool unit = is_one_of(word, kUnits);
  const bool apart = note.size() < rest.size();
  return (apart || unit) && is_note(note) ? Value{number, unit} : Value{};
}

CommandLine classify(std::string_view text, Position at) {
  CommandLine line;
  line.at = at;
  line.text = text;
  const auto bare = trim(text.substr(0, text.find('#')));
  const auto comma = bare.find(',');
  const bool two = comma != std::string_view::npos && is_number(trim(bare.substr(0, comma)));
  const auto one = value_in(bare);
  const auto second = two ? value_in(trim(bare.substr(comma + 1))) : Value{};
  const auto blank = std::min(bare.find_first_of(kBlanks), bare.size());
  if (!one.number.empty()) {
    line.kind = CommandLine::Kind::number;
    line.value = one.number;
    line.memory = one.memory;
  } else if (!second.number.empty()) {
    line.kind = CommandLine::Kind::pair;
    line.value = trim(bare.substr(0, comma));
    line.second = second.number;
  } else if (is_near_number(bare)) {
    line.kind = CommandLine::Kind::near_number;
    line.value = bare;
  } else if (is_number(bare.substr(0, blank))) {
    line.kind = CommandLine::Kind::near_number;
    line.value = bare.substr(0, blank);
    line.second = trim(bare.substr(blank));
  }
  return line;
}

bool may_open(std::string_view before) {
  constexpr std::string_view kAfter = " \t=;&|(<>,:'\"";
  return before.empty() || kAfter.find(before.back()) != std::string_view::npos;
}

bool may_close(std::string_view behind) {
  constexpr std::string_view kBefore = " \t;&|)<>,'\"";
  return behind.empty() || kBefore.find(behind.front()) != std::string_view::npos;
}

/// The next quote that no backslash stands before, from `from` on.
std::size_t next_quote(std::string_view text, char quote, std::size_t from) {
  for (std::size_t i = from; i < text.size(); ++i) {
    if (text[i] == '\\' && quote == '"') {
      ++i;
    } else if (text[i] == quote) {
      return i;
    }
  }
  return std::string_view::npos;
}

/// Whether the quotes in `text` come in pairs around words, as people write them.
bool is_well_quoted(std::string_view text, char quote) {
  auto open = next_quote(text, quote, 0);
  while (open != std::string_view::npos) {
    const auto close = next_quote(text, quote, open + 1);
    if (close == std::string_view::npos || !may_open(text.substr(0, open)) ||
        !may_close(text.substr(close + 1))) {
      return false;
    }
    open = next_quote(text, quote, close + 1);
  }
  return true;
}

/// Whether a line break would follow, if this were not the end.
bool goes_on(std::string_view command) {
  const auto last = command.find_last_not_of('\\');
  const auto count = command.size() - (last == std::string_view::npos ? 0 : last + 1);
  return count % 2 == 1;
}

std::expected<std::string, std::string> checked(std::string_view command) {
  const auto bare = trim(command);
  if (bare.empty()) {
    return std::unexpected("this command is empty");
  }
  if (bare.find_first_not_of(kDigits) == std::string_view::npos) {
    return std::unexpected(fmt::format(
        "'{}' is a number in quotes, and a number is never a command; remove the quotes", bare));
  }
  if (bare.front() == '-') {
    return std::unexpected(
        "this begins with '-' and would run as a command of its own; does it belong to the line "
        "before?");
  }
  if (goes_on(bare)) {
    return std::unexpected("a command is one line; put what follows the '\\' here instead of it");
  }
  return std::string(command);
}

std::expected<std::string, std::string> unquoted(std::string_view line) {
  const char quote = line.front();
  const auto close = next_quote(line, quote, 1);
  if (close == std::string_view::npos) {
    return std::unexpected(
        "the quote that begins this command is not closed; close it at the end "
        "of the line, or leave it out");
  }
  if (close == line.size() - 1) {
    return checked(line.substr(1, close - 1));
  }
  const auto behind = trim(line.substr(close + 1));
  if (behind.starts_with('#')) {
    return std::unexpected(
        "a note cannot follow a quoted command: '#' is part of commands; put the note on a line of "
        "its own");
  }
  if (line.back() != quote) {
    return checked(line);
  }
  const auto inner = line.substr(1, line.size() - 2);
  const bool around = is_well_quoted(inner, quote);
  const bool bare = is_well_quoted(line, quote);
  if (around == bare) {
    return std::unexpected(
        fmt::format("this reads both ways: with quotes around it, as the command [{}], and without "
                    "any, as [{}]; put it into {} quotes, or remove the outer ones",
                    inner, line, quote == '"' ? "single" : "double"));
  }
  return checked(around ? inner : line);
}

}  // namespace

std::vector<CommandBlock> split_blocks(std::string_view text) {
  std::vector<CommandBlock> blocks;
  bool open = false;
  for (std::uint32_t number = 1; !text.empty(); ++number) {
    const auto end = std::min(text.find('\n'), text.size());
    const auto whole = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const auto line = trim(whole);
    if (line.empty()) {
      open = false;
      continue;
    }
    if (line.front() == '#') {
      continue;
    }
    if (!open) {
      blocks.emplace_back();
      open = true;
    }
    const auto column = static_cast<std::uint32_t>(line.data() - whole.data()) + 1;
    blocks.back().push_back(classify(line, {number, column}));
  }
  return blocks;
}

std::expected<std::string, std::string> command_of(std::string_view line) {
  if (line.find('\0') != std::string_view::npos) {
    return std::unexpected("this command contains a NUL character");
  }
  if (line.find('\r') != std::string_view::npos) {
    return std::unexpected(
        "there is a carriage return inside this line; lines end with LF or CRLF");
  }
  if (line.starts_with("“") || line.starts_with("”") || line.starts_with("‘")) {
    return std::unexpected("typographic quotes quote nothing; write \"…\" or no quotes at all");
  }
  if (line.front() == '"' || line.front() == '\'') {
    return unquoted(line);
  }
  return checked(line);
}

}  // namespace berth
