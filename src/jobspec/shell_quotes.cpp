#include "jobspec/shell_quotes.hpp"

#include <algorithm>
#include <utility>

namespace berth {
namespace {

constexpr std::string_view kEndsWord = " \t\n;|&()<>";

std::string with_backslashes(std::string_view value, std::string_view special) {
  std::string out;
  for (const char c : value) {
    out += special.find(c) == std::string_view::npos ? "" : "\\";
    out += c;
  }
  return out;
}

std::string in_single_quotes(std::string_view value) {
  std::string out;
  for (const char c : value) {
    out += c == '\'' ? std::string_view(R"('\'')") : std::string_view(&c, 1);
  }
  return out;
}

}  // namespace

bool is_plain_value(std::string_view value) {
  constexpr std::string_view kPlain = "_@%+=:,./-~^";
  const bool braces = value.find(',') == std::string_view::npos &&
                      value.find("..") == std::string_view::npos;  // else bash expands them
  return std::ranges::all_of(value, [&](char c) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    const bool of_utf8 = static_cast<unsigned char>(c) >= 0x80;
    return letter || of_utf8 || kPlain.find(c) != std::string_view::npos ||
           (braces && (c == '{' || c == '}'));
  });
}

ShellPlace ShellReader::place_at(std::size_t offset) {
  while (at_ < std::min(offset, text_.size())) {
    step();
  }
  for (const HereDocument& document : documents_) {
    if (offset >= document.first && offset < document.last) {
      return document.expands ? ShellPlace::here : ShellPlace::here_plain;
    }
  }
  return place();
}

void ShellReader::step() {
  const char c = text_[at_];
  const ShellPlace now = place();
  if (now == ShellPlace::bare) {
    return step_bare();
  }
  if (now == ShellPlace::comment) {
    if (c == '\n') {
      open_.pop_back();
      return;  // which the line around it has to see
    }
    ++at_;
    return;
  }
  if (c == '\\' && now != ShellPlace::single) {
    at_ += 2;
  } else if (c == open_.back().close) {
    open_.pop_back();
    ++at_;
  } else if (now == ShellPlace::twofold && c == '`') {
    enter(ShellPlace::bare, '`', 1);
  } else if (now == ShellPlace::twofold && text_.substr(at_).starts_with("$(")) {
    enter(ShellPlace::bare, ')', 2);
  } else {
    ++at_;
  }
}

void ShellReader::step_bare() {
  const auto rest = text_.substr(at_);
  const char c = rest.front();
  if (c == '\\') {
    at_ += 2;
  } else if (!open_.empty() && c == open_.back().close) {
    open_.pop_back();
    ++at_;
  } else if (c == '\'') {
    enter(ShellPlace::single, '\'', 1);
  } else if (c == '"') {
    enter(ShellPlace::twofold, '"', 1);
  } else if (rest.starts_with("$'")) {
    enter(ShellPlace::escaped, '\'', 2);
  } else if (c == '(') {
    enter(ShellPlace::bare, ')', 1);
  } else if (c == '`') {
    enter(ShellPlace::bare, '`', 1);
  } else if (c == '#' && begins_word()) {
    enter(ShellPlace::comment, '\n', 1);
  } else if (rest.starts_with("<<<")) {
    at_ += 3;
  } else if (rest.starts_with("<<")) {
    announce_here_document();
  } else {
    ++at_;
    if (c == '\n') {
      begin_here_documents();
    }
  }
}

void ShellReader::enter(ShellPlace place, char close, std::size_t size) {
  open_.push_back({place, close});
  at_ += size;
}

bool ShellReader::begins_word() const {
  return at_ == 0 || kEndsWord.find(text_[at_ - 1]) != std::string_view::npos;
}

void ShellReader::announce_here_document() {
  at_ += 2;
  HereDocument document;
  if (at_ < text_.size() && text_[at_] == '-') {
    document.tabs = true;
    ++at_;
  }
  at_ = std::min(text_.find_first_not_of(" \t", at_), text_.size());
  char quote = 0;
  for (; at_ < text_.size(); ++at_) {
    const char c = text_[at_];
    if (quote == 0 && kEndsWord.find(c) != std::string_view::npos) {
      break;
    }
    if (c == '\\' || c == quote || (quote == 0 && (c == '\'' || c == '"'))) {
      document.expands = false;
      quote = c == '\\' ? quote : c == quote ? char{0} : c;
    } else {
      document.end += c;
    }
  }
  announced_.push_back(std::move(document));
}

void ShellReader::begin_here_documents() {
  for (HereDocument& document : std::exchange(announced_, {})) {
    for (std::size_t line = at_; line < text_.size();) {
      const auto end = std::min(text_.find('\n', line), text_.size());
      auto words = text_.substr(line, end - line);
      if (document.tabs) {
        words.remove_prefix(std::min(words.find_first_not_of('\t'), words.size()));
      }
      if (words == document.end) {
        document.first = at_;
        document.last = line;
        at_ = end;
        documents_.push_back(std::move(document));
        break;
      }
      // Without an end it was none, but numbers that are shifted.
      line = end + 1;
    }
  }
}

std::string quote_value(std::string_view value, ShellPlace place) {
  switch (place) {
    case ShellPlace::bare:
      return is_plain_value(value) ? std::string(value) : "'" + in_single_quotes(value) + "'";
    case ShellPlace::single:
      return in_single_quotes(value);
    case ShellPlace::twofold:
      return with_backslashes(value, "\"\\$`");
    case ShellPlace::escaped:
      return with_backslashes(value, "'\\");
    case ShellPlace::here:
      return with_backslashes(value, "\\$`");
    case ShellPlace::here_plain:
      return std::string(value);
    case ShellPlace::comment:
      break;
  }
  std::string line(value);
  std::ranges::replace(line, '\n', ' ');
  return line;
}

}  // namespace berth
