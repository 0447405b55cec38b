#include "jobspec/yaml_tree.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <sstream>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

namespace berth {
namespace {

constexpr std::size_t kDeepest = 32;
/// What aliases may add to the tree: without a bound nine short lines make a billion nodes.
constexpr std::size_t kMostAliased = 1'000'000;

Position to_position(const YAML::Mark& mark) {
  const auto one_based = [](int value) {
    return value < 0 ? 1U : static_cast<std::uint32_t>(value) + 1;
  };
  return {one_based(mark.line), one_based(mark.column)};
}

/// Ends the parse; thrown by the builder through yaml-cpp's parser and caught in parse_yaml.
struct Unreadable {
  Position at;
  std::string message;
};

class TreeBuilder : public YAML::EventHandler {
 public:
  explicit TreeBuilder(Diagnostics& diagnostics) : diagnostics_(diagnostics) {}

  [[nodiscard]] NodePtr root() const { return root_; }
  /// Where the last text in quotes, or in a block, begins.
  [[nodiscard]] std::optional<Position> last_quoted() const { return last_quoted_; }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > 1) {
      throw Unreadable{to_position(mark), "a job file holds one YAML document, here is a second"};
    }
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    // Where nothing is written, the parser tells where the next thing is.
    const auto* key = stack_.empty() || !stack_.back().key ? nullptr : &*stack_.back().key;
    const Position at = to_position(mark);
    leaf(key != nullptr && key->at.line != at.line ? key->at : at, anchor, Node::Kind::null, {},
         false);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    leaf(to_position(mark), anchor, Node::Kind::scalar, value, tag == "!");
    if (tag == "!") {
      last_quoted_ = to_position(mark);
    }
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) {
      throw Unreadable{to_position(mark), "this alias stands inside what it names"};
    }
    aliased_ += found->second->weight;
    if (aliased_ > kMostAliased) {
      throw Unreadable{to_position(mark),
                       fmt::format("aliases add more than {} values to this file", kMostAliased)};
    }
    put(found->second, to_position(mark));
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& /*tag*/, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value /*style*/) override {
    open(mark, anchor, Node::Kind::list);
  }
  void OnSequenceEnd() override { close(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& /*tag*/, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value /*style*/) override {
    open(mark, anchor, Node::Kind::map);
  }
  void OnMapEnd() override { close(); }

 private:
  struct Key {
    std::string text;
    Position at;
    bool repeated = false;
  };
  struct Frame {
    std::shared_ptr<Node> node;
    YAML::anchor_t anchor = YAML::NullAnchor;
    std::optional<Key> key;  // of a map: read, and waiting for its value
    std::unordered_map<std::string, std::uint32_t> lines;  // where each key of a map was
  };

  void leaf(Position at, YAML::anchor_t anchor, Node::Kind kind, std::string text, bool quoted) {
    auto node = std::make_shared<Node>();
    node->kind = kind;
    node->at = at;
    node->text = std::move(text);
    node->quoted = quoted;
    if (anchor != YAML::NullAnchor) {
      anchors_[anchor] = node;
    }
    put(node, node->at);
  }

  void open(const YAML::Mark& mark, YAML::anchor_t anchor, Node::Kind kind) {
    if (stack_.size() >= kDeepest) {
      throw Unreadable{to_position(mark), "nested too deeply"};
    }
    auto node = std::make_shared<Node>();
    node->kind = kind;
    node->at = to_position(mark);
    stack_.push_back({std::move(node), anchor, std::nullopt, {}});
  }

  void close() {
    auto frame = std::move(stack_.back());
    stack_.pop_back();
    if (frame.anchor != YAML::NullAnchor) {
      anchors_[frame.anchor] = frame.node;
    }
    const auto at = frame.node->at;
    put(std::move(frame.node), at);
  }

  /// A value is complete: it goes where the innermost open list or map wants it.
  void put(NodePtr node, Position at) {
    if (stack_.empty()) {
      root_ = std::move(node);
      return;
    }
    auto& frame = stack_.back();
    if (frame.node->kind == Node::Kind::list) {
      frame.node->weight += node->weight;
      frame.node->items.push_back(std::move(node));
    } else if (!frame.key) {
      put_key(frame, *node, at);
    } else {
      auto key = std::move(*frame.key);
      frame.key.reset();
      if (!key.repeated) {
        frame.node->weight += node->weight;
        frame.node->entries.push_back({std::move(key.text), key.at, std::move(node)});
      }
    }
  }

  void put_key(Frame& frame, const Node& node, Position at) {
    if (node.kind != Node::Kind::scalar) {
      throw Unreadable{at, fmt::format("a key must be a word, this is {}", describe(node.kind))};
    }
    const auto [seen, fresh] = frame.lines.try_emplace(node.text, at.line);
    if (!fresh) {
      diagnostics_.add(
          at, fmt::format("key '{}' appears twice, first in line {}", node.text, seen->second));
    }
    frame.key = Key{node.text, at, !fresh};
  }

  Diagnostics& diagnostics_;
  NodePtr root_;
  std::vector<Frame> stack_;
  std::map<YAML::anchor_t, NodePtr> anchors_;  // complete ones only
  std::size_t aliased_ = 0;
  std::optional<Position> last_quoted_;
  int documents_ = 0;
};

bool is_indented_by_tab(std::string_view text, std::uint32_t line) {
  text = line_of(text, line);
  return text.substr(0, text.find_first_not_of(" \t")).find('\t') != std::string_view::npos;
}

/// Whether the quote that stands there has its other half. yaml-cpp lets the end of the file close
/// it, and takes all that follows for part of the text.
bool is_closed(std::string_view text, Position at) {
  const std::string_view line = line_of(text, at.line);
  if (at.column > line.size()) {
    return true;
  }
  const char* const begin = line.data() + at.column - 1;
  const std::string_view rest(begin, static_cast<std::size_t>(text.data() + text.size() - begin));
  const char quote = rest.front();
  if (quote != '"' && quote != '\'') {
    return true;  // a block, or what stands before a quote
  }
  for (std::size_t i = 1; i < rest.size(); ++i) {
    const bool doubled = quote == '\'' && rest.substr(i).starts_with("''");
    if (doubled || (quote == '"' && rest[i] == '\\')) {
      ++i;  // what follows is part of the text
    } else if (rest[i] == quote) {
      return true;
    }
  }
  return false;
}

/// yaml-cpp takes some control characters for the end of the file and says nothing.
bool check_characters(std::string_view text, Diagnostics& diagnostics) {
  Position at;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 && c != '\t' && c != '\n' && c != '\r') {
      diagnostics.add(
          at, fmt::format("control character 0x{:02x}: this is not a text file in UTF-8", byte));
      return false;
    }
    at = c == '\n' ? Position{at.line + 1, 1} : Position{at.line, at.column + 1};
  }
  return true;
}

}  // namespace

const Node* Node::find(std::string_view key) const {
  const auto found = std::find_if(entries.begin(), entries.end(),
                                  [&](const Entry& entry) { return entry.key == key; });
  return found == entries.end() ? nullptr : found->value.get();
}

std::string_view describe(Node::Kind kind) {
  switch (kind) {
    case Node::Kind::null:
      return "nothing";
    case Node::Kind::scalar:
      return "a single value";
    case Node::Kind::list:
      return "a list";
    case Node::Kind::map:
      return "a map";
  }
  return "";
}

NodePtr parse_yaml(std::string_view text, Diagnostics& diagnostics) {
  if (!check_characters(text, diagnostics)) {
    return nullptr;
  }
  TreeBuilder builder(diagnostics);
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const Unreadable& error) {
    diagnostics.add(error.at, error.message);
    return nullptr;
  } catch (const YAML::Exception& error) {
    // Most often a bare placeholder: in [a-{b}] the brace opens a map.
    const bool flow = error.msg.find("flow") != std::string::npos;
    const auto at = to_position(error.mark);
    diagnostics.add(at, fmt::format("not valid YAML: {}{}", error.msg,
                                    is_indented_by_tab(text, at.line)
                                        ? "; this line is indented with a tab, use blanks"
                                    : flow ? "; inside [ ] and { } quote texts that have braces"
                                           : ""));
    return nullptr;
  }
  if (const auto at = builder.last_quoted(); at && !is_closed(text, *at)) {
    diagnostics.add(*at, "not valid YAML: the quote that begins here is not closed");
    return nullptr;
  }
  if (builder.root() == nullptr) {
    return std::make_shared<Node>();
  }
  return builder.root();
}

}  // namespace berth
