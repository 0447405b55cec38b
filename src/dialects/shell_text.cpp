#include "dialects/shell_text.hpp"

#include <algorithm>

namespace berth {
namespace {

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/// The name in the braces that `text` begins with; empty: it begins with something else.
std::string_view braced(std::string_view text) {
  if (!text.starts_with('{')) {
    return {};
  }
  const auto* const end =
      std::find_if_not(text.begin() + 1, text.end(), [](char c) { return is_word(c) || c == '-'; });
  return end != text.end() && *end == '}'
             ? text.substr(1, static_cast<std::size_t>(end - text.begin()) - 1)
             : std::string_view();
}

/// Inside of which quotes a place of a command is.
enum class Quotes : char { none = 0, single = '\'', twofold = '"' };

std::string joined(const std::vector<std::string>& words, Quotes quotes) {
  std::string out;
  for (const std::string& word : words) {
    out += out.empty() ? "" : " ";
    if (quotes == Quotes::none) {
      out += quote_word(word);
      continue;
    }
    for (const char c : word) {
      if (quotes == Quotes::single && c == '\'') {
        out += R"('\'')";
      } else {
        const bool special = c == '"' || c == '\\' || c == '$' || c == '`';
        out += quotes == Quotes::twofold && special ? "\\" : "";
        out += c;
      }
    }
  }
  return out;
}

class Filler {
 public:
  Filler(std::string_view text, const Placeholder& words_of) : text_(text), words_of_(words_of) {}

  std::string fill() {
    while (at_ < text_.size()) {
      step();
    }
    while (out_.ends_with(' ')) {
      out_.pop_back();
    }
    return std::move(out_);
  }

 private:
  void step() {
    const std::string_view rest = text_.substr(at_);
    const char c = rest.front();
    if (rest.starts_with("{{") || rest.starts_with("${")) {
      return keep(2);
    }
    if (c == '\\' && quotes_ != Quotes::single) {
      return keep(2);
    }
    if (const std::string_view name = braced(rest); !name.empty()) {
      return replace(name);
    }
    if (quotes_ == Quotes::none && (c == '\'' || c == '"')) {
      quotes_ = c == '"' ? Quotes::twofold : Quotes::single;
    } else if (c == static_cast<char>(quotes_)) {
      quotes_ = Quotes::none;
    }
    keep(1);
  }

  void keep(std::size_t count) {
    out_ += text_.substr(at_, count);
    at_ = std::min(text_.size(), at_ + count);
  }

  void replace(std::string_view name) {
    const auto words = words_of_(name);
    if (!words) {
      return keep(name.size() + 2);
    }
    if (words->empty() && out_.ends_with(' ')) {
      out_.pop_back();
    }
    out_ += joined(*words, quotes_);
    at_ += name.size() + 2;
  }

  std::string_view text_;
  const Placeholder& words_of_;
  std::string out_;
  std::size_t at_ = 0;
  Quotes quotes_ = Quotes::none;
};

}  // namespace

std::string quote_word(std::string_view word) {
  constexpr std::string_view kPlain = "@%+=:,./-";
  bool plain = !word.empty();
  for (std::size_t i = 0; plain && i < word.size(); ++i) {
    const std::string_view name = braced(word.substr(i));
    plain = is_word(word[i]) || kPlain.find(word[i]) != std::string_view::npos || !name.empty();
    i += name.empty() ? 0 : name.size() + 1;
  }
  if (plain) {
    return std::string(word);
  }
  std::string out = "'";
  for (const char c : word) {
    out += c == '\'' ? std::string_view(R"('\'')") : std::string_view(&c, 1);
  }
  return out + "'";
}

std::string fill_in(std::string_view text, const Placeholder& words_of) {
  return Filler(text, words_of).fill();
}

}  // namespace berth
