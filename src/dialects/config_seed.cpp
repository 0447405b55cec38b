#include "dialects/config_seed.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "jobspec/yaml_tree.hpp"

namespace berth {
namespace {

constexpr std::string_view kKey = "seed";

std::size_t offset_of(std::string_view text, Position at) {
  std::size_t begin = 0;
  for (std::uint32_t line = 1; line < at.line; ++line) {
    const std::size_t end = text.find('\n', begin);
    if (end == std::string_view::npos) {
      return text.size();
    }
    begin = end + 1;
  }
  return std::min(text.size(), begin + at.column - 1);
}

/// How many bytes a value takes; 0: it is not written in one piece.
std::size_t length_of(std::string_view text, const Node& value) {
  if (!value.quoted) {
    return text.starts_with(value.text) ? value.text.size() : 0;
  }
  const std::size_t closing = value.text.size() + 1;
  const bool in_quotes = text.starts_with('"') || text.starts_with('\'');
  return in_quotes && text.substr(1).starts_with(value.text) && closing < text.size() &&
                 text[closing] == text.front()
             ? closing + 1
             : 0;
}

std::string replace(std::string_view text, std::size_t at, std::size_t length,
                    std::string_view by) {
  return fmt::format("{}{}{}", text.substr(0, at), by, text.substr(at + length));
}

std::string add_seed(std::string_view text, const Node& root, std::string_view seed) {
  if (root.kind == Node::Kind::map) {
    const std::size_t at = offset_of(text, root.at);
    if (text.substr(at).starts_with('{')) {
      return replace(text, at + 1, 0,
                     fmt::format("\"seed\": {}{}", seed, root.entries.empty() ? "" : ", "));
    }
  }
  const bool ends = text.empty() || text.ends_with('\n');
  const std::size_t indent = root.kind == Node::Kind::map ? root.at.column - 1 : 0;
  return fmt::format("{}{}{:{}}seed: {}\n", text, ends ? "" : "\n", "", indent, seed);
}

/// How many bytes of `text` say "nothing"; 0: nothing is written there.
std::size_t null_length(std::string_view text) {
  for (const std::string_view word : {"~", "null", "Null", "NULL"}) {
    if (text.starts_with(word)) {
      return word.size();
    }
  }
  return 0;
}

std::string set_seed(std::string_view text, const Node::Entry& entry, std::string_view seed) {
  if (entry.value->kind == Node::Kind::null) {
    const std::size_t at = offset_of(text, entry.value->at);
    const std::size_t length = null_length(text.substr(at));
    if (length > 0 && entry.value->at.line == entry.key_at.line) {
      return replace(text, at, length, seed);
    }
    const std::size_t key = offset_of(text, entry.key_at);
    const std::size_t colon = std::min(text.find(':', key), text.size() - 1);
    return replace(text, colon + 1, 0, fmt::format(" {}", seed));
  }
  const std::size_t at = offset_of(text, entry.value->at);
  return replace(text, at, length_of(text.substr(at), *entry.value), seed);
}

/// Whether the change did what it was meant to, and nothing else at the top.
bool has_seed(std::string_view text, std::string_view seed, std::size_t entries) {
  Diagnostics ignored("");
  const NodePtr root = parse_yaml(text, ignored);
  const Node* value = root != nullptr ? root->find(kKey) : nullptr;
  return ignored.empty() && value != nullptr && value->kind == Node::Kind::scalar &&
         value->text == seed && root->entries.size() == entries;
}

}  // namespace

Result<std::string> with_seed(std::string_view text, std::string_view seed) {
  text = without_mark(text);
  Diagnostics diagnostics("");
  const NodePtr root = parse_yaml(text, diagnostics);
  if (root == nullptr || !diagnostics.empty()) {
    const Diagnostic first = diagnostics.take().front();
    return fail(ErrorCode::invalid, fmt::format("line {}: {}", first.at.line, first.message));
  }
  if (root->kind != Node::Kind::map && root->kind != Node::Kind::null) {
    return fail(ErrorCode::invalid,
                fmt::format("it must be a map of keys, this is {}", describe(root->kind)));
  }
  const auto found =
      std::ranges::find_if(root->entries, [](const auto& entry) { return entry.key == kKey; });
  const bool there = found != root->entries.end();
  std::string out = there ? set_seed(text, *found, seed) : add_seed(text, *root, seed);
  if (!has_seed(out, seed, root->entries.size() + (there ? 0 : 1))) {
    return fail(ErrorCode::invalid,
                there ? fmt::format("line {}: write 'seed' with one plain value on its line",
                                    found->key_at.line)
                      : std::string("write 'seed: 0' into it on a line of its own"));
  }
  return out;
}

}  // namespace berth
