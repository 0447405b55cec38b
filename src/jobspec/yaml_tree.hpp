#pragma once
// YAML as a tree that knows where everything stood. The only place that knows yaml-cpp.
//
// The tree is built from parser events rather than with yaml-cpp's own nodes: those keep no
// position of keys, silently let a repeated key win, and expand nothing but also bound nothing.

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "jobspec/diagnostic.hpp"

namespace berth {

struct Node;
/// Shared because an alias is the same node once more.
using NodePtr = std::shared_ptr<const Node>;

struct Node {
  enum class Kind { null, scalar, list, map };
  struct Entry {
    std::string key;
    Position key_at;
    NodePtr value;
  };

  Kind kind = Kind::null;
  Position at;
  std::string text;            ///< of a scalar
  bool quoted = false;         ///< a scalar in quotes: a text, whatever it looks like
  std::vector<NodePtr> items;  ///< of a list
  std::vector<Entry> entries;  ///< of a map, in the order of the file, each key once
  std::size_t weight = 1;      ///< nodes below and including this one, aliases written out

  [[nodiscard]] const Node* find(std::string_view key) const;
};

/// "a text", "a list", … for messages.
[[nodiscard]] std::string_view describe(Node::Kind kind);

/// Parses one document. Null if the text could not be read to its end; repeated keys are reported
/// and the first one kept. Never throws, except std::bad_alloc.
[[nodiscard]] NodePtr parse_yaml(std::string_view text, Diagnostics& diagnostics);

}  // namespace berth
