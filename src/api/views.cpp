#include "api/views.hpp"

#include "api/text.hpp"

namespace berth {
namespace {

constexpr std::string_view kPlain =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._/=:,@%+";

void append_quoted(std::string& out, std::string_view word) {
  const bool plain = !word.empty() && word.find_first_not_of(kPlain) == std::string_view::npos;
  if (plain) {
    out += word;
    return;
  }
  out += '\'';
  for (const char c : word) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      out += c;
    }
  }
  out += '\'';
}

}  // namespace

std::string display_commands(const std::vector<Command>& commands, std::size_t max_bytes) {
  std::string out;
  for (const Command& command : commands) {
    out += out.empty() ? "" : "; ";
    for (std::size_t i = 0; i < command.argv.size() && out.size() <= max_bytes; ++i) {
      out += i == 0 ? "" : " ";
      if (command.shell) {
        out += command.argv[i];
      } else {
        append_quoted(out, command.argv[i]);
      }
    }
    if (out.size() > max_bytes) {
      break;
    }
  }
  if (out.size() > max_bytes) {
    std::size_t cut = max_bytes;
    // Not in the middle of a character.
    while (cut > 0 && (static_cast<unsigned char>(out[cut]) & 0xC0) == 0x80) {
      --cut;
    }
    out.resize(cut);
    out += "…";
  }
  return to_utf8(out);
}

}  // namespace berth
