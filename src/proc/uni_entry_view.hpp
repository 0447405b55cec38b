#pragma once
// What an attempt says of itself in uni_id.json (docs/formats/state-files.md), read in place. The
// supervisor includes only this: no heap, no exceptions, no JSON library.

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace berth {

/// One entry of uni_id.json, as far as its pid matters.
struct UniEntryView {
  std::int64_t pid = 0;   ///< 0: none
  bool running = true;    ///< nothing is said of an end
  bool complete = false;  ///< the text is one JSON object, as far as brackets and quotes go
};

/// Walks over JSON that nobody vouches for, checking no more than what finding a key needs.
class UniEntryReader {
 public:
  explicit UniEntryReader(std::string_view text) : rest_(text) {}

  /// `uni_id` must need no escapes, as ours do not. Of equal keys the last counts.
  [[nodiscard]] UniEntryView find(std::string_view uni_id) {
    UniEntryView found;
    found.complete = members([&](std::string_view key) {
      if (key != uni_id) {
        return skip();
      }
      found = {};
      return next() == '{' ? members([&](std::string_view field) { return take(field, found); })
                           : skip();
    });
    return found;
  }

 private:
  /// The next character that is no space; it stays. 0: none.
  char next() {
    const auto at = rest_.find_first_not_of(" \t\r\n");
    rest_.remove_prefix(at == std::string_view::npos ? rest_.size() : at);
    return rest_.empty() ? '\0' : rest_.front();
  }

  bool eat(char c) {
    if (next() != c) {
      return false;
    }
    rest_.remove_prefix(1);
    return true;
  }

  /// The text between quotes, escapes and all.
  bool string(std::string_view& out) {
    if (!eat('"')) {
      return false;
    }
    for (std::size_t i = 0; i < rest_.size(); ++i) {
      if (rest_[i] == '\\') {
        ++i;
      } else if (rest_[i] == '"') {
        out = rest_.substr(0, i);
        rest_.remove_prefix(i + 1);
        return true;
      }
    }
    return false;
  }

  /// Calls `value(key)` before each value of an object, which has to go past it.
  template <class Value>
  bool members(Value value) {
    if (!eat('{')) {
      return false;
    }
    if (eat('}')) {
      return true;
    }
    do {
      std::string_view key;
      if (!string(key) || !eat(':') || !value(key)) {
        return false;
      }
    } while (eat(','));
    return eat('}');
  }

  /// Past a number, true, false or null.
  std::string_view word() {
    next();
    const auto end = rest_.find_first_of(",]} \t\r\n");
    const std::string_view text = rest_.substr(0, end);
    rest_.remove_prefix(text.size());
    return text;
  }

  /// Past any value, without recursion: whoever nests deeply must not use up our stack.
  bool skip() {
    std::size_t depth = 0;
    do {
      const char c = next();
      std::string_view ignored;
      if (c == '"') {
        if (!string(ignored)) {
          return false;
        }
      } else if (c == '{' || c == '[') {
        rest_.remove_prefix(1);
        ++depth;
      } else if (depth > 0 && (c == '}' || c == ']')) {
        rest_.remove_prefix(1);
        --depth;
      } else if (depth > 0 && (c == ',' || c == ':')) {
        rest_.remove_prefix(1);
      } else if (word().empty()) {
        return false;
      }
    } while (depth > 0);
    return true;
  }

  bool take(std::string_view field, UniEntryView& found) {
    if (field == "state" && next() == '"') {
      std::string_view state;
      if (!string(state)) {
        return false;
      }
      found.running = state == "running";
      return true;
    }
    if (field == "pid" && next() >= '0' && next() <= '9') {
      found.pid = number(word());
      return true;
    }
    return skip();
  }

  /// 0: it is none that a process could have.
  static std::int64_t number(std::string_view text) {
    constexpr std::int64_t kMost = 1'000'000'000;
    std::int64_t value = 0;
    for (const char c : text) {
      if (c < '0' || c > '9' || value > kMost) {
        return 0;
      }
      value = value * 10 + (c - '0');
    }
    return value > kMost ? 0 : value;
  }

  std::string_view rest_;
};

}  // namespace berth
