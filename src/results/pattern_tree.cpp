#include "results/pattern_tree.hpp"

#include <fmt/format.h>

#include <cctype>
#include <optional>

#include "base/utf8.hpp"

namespace berth {
namespace {

using Kind = PatternNode::Kind;
using Check = Pattern::Step::Check;
using Bytes256 = Pattern::Bytes256;

constexpr int kDepthMax = 60;
constexpr std::uint32_t kRepeatMax = 1000;

Bytes256 all_where(int (*is)(int)) {
  Bytes256 out;
  for (int byte = 0; byte < 128; ++byte) {
    out[static_cast<std::size_t>(byte)] = is(byte) != 0;
  }
  return out;
}

Bytes256 word_bytes() {
  Bytes256 out = all_where(std::isalnum);
  out.set('_');
  return out;
}

/// \d, \w, \s and their opposites.
std::optional<Bytes256> named_set(char letter) {
  switch (letter) {
    case 'd':
      return all_where(std::isdigit);
    case 'D':
      return ~all_where(std::isdigit);
    case 'w':
      return word_bytes();
    case 'W':
      return ~word_bytes();
    case 's':
      return all_where(std::isspace);
    case 'S':
      return ~all_where(std::isspace);
    default:
      return std::nullopt;
  }
}

std::optional<char> escaped_byte(char letter) {
  switch (letter) {
    case 't':
      return '\t';
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 'f':
      return '\f';
    default:
      return std::isalnum(static_cast<unsigned char>(letter)) != 0 ? std::nullopt
                                                                   : std::optional(letter);
  }
}

PatternNode bytes_node(const Bytes256& bytes) {
  PatternNode node;
  node.kind = Kind::bytes;
  node.bytes = bytes;
  return node;
}

PatternNode check_node(Check check) {
  PatternNode node;
  node.kind = Kind::check;
  node.check = check;
  return node;
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<PatternTree> parse() {
    if (text_.starts_with("(?i)")) {
      either_case_ = true;
      at_ = 4;
    }
    TRY_ASSIGN(PatternNode root, either());
    if (at_ < text_.size()) {
      return wrong("there is a ) without its (");
    }
    return PatternTree{std::move(root), groups_};
  }

 private:
  [[nodiscard]] bool at_end() const { return at_ >= text_.size(); }
  [[nodiscard]] bool next_is(char c) const { return !at_end() && text_[at_] == c; }
  bool take(char c) {
    if (!next_is(c)) {
      return false;
    }
    ++at_;
    return true;
  }
  [[nodiscard]] std::unexpected<Error> wrong(std::string_view what) const {
    return fail(ErrorCode::invalid,
                fmt::format("at character {} of '{}': {}", at_ + 1, to_utf8(text_), what));
  }

  Result<PatternNode> either() {
    if (++depth_ > kDepthMax) {
      return wrong("groups are nested too deeply");
    }
    PatternNode node;
    node.kind = Kind::either;
    do {
      TRY_ASSIGN(PatternNode one, sequence());
      node.children.push_back(std::move(one));
    } while (take('|'));
    --depth_;
    if (node.children.size() == 1) {
      return std::move(node.children.front());
    }
    return node;
  }

  Result<PatternNode> sequence() {
    PatternNode node;
    node.kind = Kind::sequence;
    while (!at_end() && !next_is('|') && !next_is(')')) {
      TRY_ASSIGN(PatternNode one, repeated());
      node.children.push_back(std::move(one));
    }
    return node;
  }

  Result<PatternNode> repeated() {
    TRY_ASSIGN(PatternNode node, atom());
    while (!at_end()) {
      PatternNode repeat;
      repeat.kind = Kind::repeat;
      repeat.most = PatternNode::kNoMost;
      if (take('*')) {
        repeat.least = 0;
      } else if (take('+')) {
        repeat.least = 1;
      } else if (take('?')) {
        repeat.most = 1;
      } else if (next_is('{') && at_ + 1 < text_.size() &&
                 std::isdigit(static_cast<unsigned char>(text_[at_ + 1])) != 0) {
        TRY(bounds(repeat));
      } else {
        break;
      }
      if (node.kind == Kind::check) {
        return wrong("a place in the text cannot be repeated");
      }
      repeat.lazy = take('?');
      if (next_is('+') || next_is('*')) {
        return wrong("write one of * + ? {m,n} after what is repeated");
      }
      repeat.children.push_back(std::move(node));
      node = std::move(repeat);
    }
    return node;
  }

  Result<std::uint32_t> number() {
    std::uint32_t value = 0;
    const std::size_t begin = at_;
    while (!at_end() && text_[at_] >= '0' && text_[at_] <= '9') {
      value = value * 10 + static_cast<std::uint32_t>(text_[at_++] - '0');
      if (value > kRepeatMax) {
        return wrong(fmt::format("more than {} times", kRepeatMax));
      }
    }
    if (at_ == begin) {
      return wrong("a number is missing");
    }
    return value;
  }

  Status bounds(PatternNode& repeat) {
    ++at_;
    TRY_ASSIGN(repeat.least, number());
    repeat.most = repeat.least;
    if (take(',')) {
      repeat.most = PatternNode::kNoMost;
      if (!next_is('}')) {
        TRY_ASSIGN(repeat.most, number());
      }
    }
    if (!take('}')) {
      return wrong("the } is missing");
    }
    if (repeat.most < repeat.least) {
      return wrong("the greater number comes second");
    }
    return {};
  }

  Result<PatternNode> atom() {
    const char c = text_[at_];
    switch (c) {
      case '(':
        return group();
      case '[':
        return set();
      case '.':
        ++at_;
        return bytes_node(~Bytes256().set('\n'));
      case '^':
        ++at_;
        return check_node(Check::begin);
      case '$':
        ++at_;
        return check_node(Check::end);
      case '\\':
        return escape();
      case '*':
      case '+':
      case '?':
        return wrong("there is nothing to repeat");
      default:
        return literal();
    }
  }

  Result<PatternNode> group() {
    ++at_;
    PatternNode node;
    node.kind = Kind::group;
    if (take('?')) {
      if (!take(':') && !named_group(node)) {
        return wrong("of (?…) there are (?:…), (?P<name>…) and, in front, (?i)");
      }
    } else {
      node.number = ++groups_;
    }
    TRY_ASSIGN(PatternNode inside, either());
    if (!take(')')) {
      return wrong("the ) is missing");
    }
    node.children.push_back(std::move(inside));
    return node;
  }

  bool named_group(PatternNode& node) {
    std::size_t at = at_ + (next_is('P') ? 1 : 0);
    if (at + 1 >= text_.size() || text_[at] != '<' ||
        std::isalpha(static_cast<unsigned char>(text_[at + 1])) == 0) {
      return false;
    }
    at = text_.find('>', at);
    if (at == std::string_view::npos) {
      return false;
    }
    at_ = at + 1;
    node.number = ++groups_;
    return true;
  }

  Result<PatternNode> escape() {
    if (at_ + 1 >= text_.size()) {
      return wrong("a \\ at the end");
    }
    const char letter = text_[at_ + 1];
    if (letter == 'b' || letter == 'B') {
      at_ += 2;
      return check_node(letter == 'b' ? Check::word : Check::no_word);
    }
    const auto bytes = named_set(letter);
    const auto byte = escaped_byte(letter);
    if (!bytes && !byte) {
      return wrong(fmt::format("\\{} is not known here", letter));
    }
    at_ += 2;
    return bytes_node(bytes ? *bytes : cased(*byte));
  }

  [[nodiscard]] Bytes256 cased(char c) const {
    Bytes256 out;
    const auto byte = static_cast<unsigned char>(c);
    out.set(byte);
    if (either_case_ && byte < 128) {
      out.set(static_cast<std::size_t>(std::tolower(byte)));
      out.set(static_cast<std::size_t>(std::toupper(byte)));
    }
    return out;
  }

  /// One character, of as many bytes as it has.
  Result<PatternNode> literal() {
    const std::size_t length = std::max<std::size_t>(1, utf8_length(text_.substr(at_)));
    PatternNode node;
    node.kind = Kind::sequence;
    for (std::size_t i = 0; i < length; ++i) {
      node.children.push_back(bytes_node(cased(text_[at_++])));
    }
    return node.children.size() == 1 ? std::move(node.children.front()) : std::move(node);
  }

  /// One byte of a set, or a whole named set added to `out`.
  Result<std::optional<char>> set_member(Bytes256& out) {
    const char c = text_[at_++];
    if (static_cast<unsigned char>(c) >= 128) {
      --at_;
      return wrong("a range in [ ] goes between ASCII characters");
    }
    if (c != '\\') {
      return c;
    }
    if (at_end()) {
      return wrong("a \\ at the end");
    }
    const char letter = text_[at_];
    if (const auto bytes = named_set(letter)) {
      out |= *bytes;
      ++at_;
      return std::optional<char>();
    }
    const auto byte = escaped_byte(letter);
    if (!byte) {
      return wrong(fmt::format("\\{} is not known here", letter));
    }
    ++at_;
    return byte;
  }

  Result<PatternNode> set() {
    ++at_;
    const bool not_these = take('^');
    Bytes256 out;
    PatternNode others;  // than ASCII
    others.kind = Kind::either;
    for (bool first = true; first || !next_is(']'); first = false) {
      if (at_end()) {
        return wrong("the ] is missing");
      }
      if (static_cast<unsigned char>(text_[at_]) >= 128) {
        TRY_ASSIGN(PatternNode one, literal());
        others.children.push_back(std::move(one));
        continue;
      }
      TRY_ASSIGN(const auto from, set_member(out));
      if (!from) {
        continue;
      }
      char to = *from;
      if (next_is('-') && at_ + 1 < text_.size() && text_[at_ + 1] != ']') {
        ++at_;
        TRY_ASSIGN(const auto end, set_member(out));
        if (!end || *end < *from) {
          return wrong("a range goes from the smaller to the greater character");
        }
        to = *end;
      }
      for (int byte = static_cast<unsigned char>(*from); byte <= static_cast<unsigned char>(to);
           ++byte) {
        out |= cased(static_cast<char>(byte));
      }
    }
    if (not_these && !others.children.empty()) {
      return wrong("in [^ ] only ASCII characters may stand");
    }
    ++at_;
    if (others.children.empty()) {
      return bytes_node(not_these ? ~out : out);
    }
    others.children.push_back(bytes_node(out));
    return others;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int depth_ = 0;
  std::uint32_t groups_ = 0;
  bool either_case_ = false;
};

}  // namespace

Result<PatternTree> parse_pattern(std::string_view text) {
  return Parser(text).parse();
}

}  // namespace berth
