#include "api/target.hpp"

#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/utf8.hpp"

namespace berth {
namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

enum class Plus { literal, space };

std::optional<std::string> percent_decode(std::string_view text, Plus plus) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%') {
      const int high = i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
      const int low = i + 2 < text.size() ? hex_digit(text[i + 2]) : -1;
      if (high < 0 || low < 0) {
        return std::nullopt;
      }
      out += static_cast<char>(high * 16 + low);
      i += 2;
    } else {
      out += text[i] == '+' && plus == Plus::space ? ' ' : text[i];
    }
  }
  // What is handed to C would end at a zero.
  return out.find('\0') == std::string::npos ? std::optional(std::move(out)) : std::nullopt;
}

std::unexpected<Error> malformed() {
  return fail(ErrorCode::invalid, "malformed request target");
}

}  // namespace

Result<Target> parse_target(std::string_view target) {
  if (!target.starts_with('/')) {
    return malformed();
  }
  Target result;
  const auto mark = target.find('?');
  auto path = percent_decode(target.substr(0, mark), Plus::literal);
  if (!path) {
    return malformed();
  }
  result.path = std::move(*path);
  std::string_view rest = mark == std::string_view::npos ? "" : target.substr(mark + 1);
  while (!rest.empty()) {
    const auto end = rest.find('&');
    const std::string_view pair = rest.substr(0, end);
    rest = end == std::string_view::npos ? "" : rest.substr(end + 1);
    if (pair.empty()) {
      continue;
    }
    const auto equals = pair.find('=');
    auto name = percent_decode(pair.substr(0, equals), Plus::space);
    auto value = percent_decode(
        equals == std::string_view::npos ? std::string_view() : pair.substr(equals + 1),
        Plus::space);
    if (!name || !value) {
      return malformed();
    }
    // One that comes twice is refused: readers would not agree about which of the two counts.
    if (!result.query.try_emplace(*name, std::move(*value)).second) {
      return fail(ErrorCode::invalid,
                  fmt::format("{}: comes twice; give it once, with commas between values where it "
                              "takes several",
                              printable(*name)));
    }
  }
  return result;
}

std::string percent_encode(std::string_view text) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  constexpr std::string_view kPlain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~,";
  std::string out;
  for (const char c : text) {
    if (kPlain.find(c) != std::string_view::npos) {
      out += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      out += '%';
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    }
  }
  return out;
}

}  // namespace berth
