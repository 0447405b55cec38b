#include "board/board_entry.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/crc32.hpp"

namespace berth {
namespace {

constexpr std::string_view kTitle = "berth-claims 1";
constexpr std::size_t kWordMax = 96;
constexpr std::size_t kSumLine = 10;  ///< "*5f0b5e9a\n"

std::unexpected<Error> damaged(std::string_view what) {
  return fail(ErrorCode::corrupt, fmt::format("not a claims entry: {}", what));
}

template <class T>
std::optional<T> number(std::string_view text) {
  T value{};
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec != std::errc{} || parsed.ptr != text.data() + text.size()) {
    return std::nullopt;
  }
  return value;
}

/// The text up to `end`, which is taken away from the rest with it.
std::string_view take(std::string_view& rest, char end) {
  const std::size_t at = rest.find(end);
  const std::string_view taken = rest.substr(0, at);
  rest.remove_prefix(at == std::string_view::npos ? rest.size() : at + 1);
  return taken;
}

std::optional<ClaimState> parse_state(std::string_view text) {
  for (const ClaimState state : {ClaimState::waiting, ClaimState::wanted, ClaimState::held}) {
    if (text == to_string(state)) {
      return state;
    }
  }
  return std::nullopt;
}

Result<BoardClaim> parse_claim(std::string_view rest) {
  BoardClaim claim;
  claim.gpu = take(rest, ' ');
  const auto state = parse_state(take(rest, ' '));
  if (!is_card_name(claim.gpu) || !state) {
    return damaged("a claim without card or state");
  }
  claim.state = *state;
  while (!rest.empty()) {
    std::string_view value = take(rest, ' ');
    const std::string_view key = take(value, '=');
    if (key != "attempt" && key != "memory" && key != "since") {
      continue;
    }
    const auto parsed = number<std::uint64_t>(value);
    if (!parsed || *parsed > static_cast<std::uint64_t>(INT64_MAX)) {
      return damaged("a claim with a wrong number");
    }
    if (key == "attempt") {
      claim.attempt = AttemptId{*parsed};
    } else if (key == "memory") {
      claim.memory = *parsed;
    } else {
      claim.since = Millis(static_cast<std::int64_t>(*parsed));
    }
  }
  return claim;
}

}  // namespace

std::string_view to_string(ClaimState state) {
  switch (state) {
    case ClaimState::waiting:
      return "waiting";
    case ClaimState::wanted:
      return "wanted";
    case ClaimState::held:
      return "held";
  }
  return "";
}

bool is_card_name(std::string_view text) {
  return !text.empty() && text.size() <= kWordMax &&
         std::ranges::all_of(text, [](char c) { return c > ' ' && c < '\x7f'; });
}

bool is_board_word(std::string_view text) {
  return !text.empty() && text.size() <= kWordMax && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.' || c == ':';
  });
}

std::string encode_board_entry(const BoardEntry& entry) {
  std::string text = fmt::format("{}\nuid {}\ninstance {}\nboot {}\n", kTitle, entry.uid,
                                 entry.instance, entry.boot);
  for (const BoardClaim& claim : entry.claims) {
    text +=
        fmt::format("claim {} {} attempt={} memory={} since={}\n", claim.gpu,
                    to_string(claim.state), claim.attempt.value, claim.memory, claim.since.count());
  }
  return text + fmt::format("*{:08x}\n", crc32(text));
}

Result<BoardEntry> decode_board_entry(std::string_view text) {
  if (text.size() > kBoardTextMax || text.size() < kSumLine) {
    return damaged("its size");
  }
  const std::string_view sum = text.substr(text.size() - kSumLine);
  text.remove_suffix(kSumLine);
  if (sum != fmt::format("*{:08x}\n", crc32(text)) || !text.ends_with('\n')) {
    return damaged("its checksum");
  }
  if (take(text, '\n') != kTitle) {
    return damaged("its version");
  }
  BoardEntry entry;
  bool has_uid = false;
  while (!text.empty()) {
    std::string_view line = take(text, '\n');
    const std::string_view key = take(line, ' ');
    if (key == "uid") {
      const auto uid = number<std::uint32_t>(line);
      has_uid = uid.has_value();
      entry.uid = uid.value_or(0);
    } else if (key == "instance") {
      entry.instance = line;
    } else if (key == "boot") {
      entry.boot = line;
    } else if (key == "claim") {
      TRY_ASSIGN(BoardClaim claim, parse_claim(line));
      entry.claims.push_back(std::move(claim));
    }
  }
  if (!has_uid || !is_board_word(entry.instance) || !is_board_word(entry.boot)) {
    return damaged("it does not say whose it is");
  }
  return entry;
}

}  // namespace berth
