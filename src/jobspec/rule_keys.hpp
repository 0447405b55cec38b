#pragma once
// The rules of core/rule_table.hpp as keys of a job file: flat, or as a map where they belong
// together, as in foreign: {policy: wait}.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/rule_table.hpp"
#include "jobspec/matrix.hpp"
#include "jobspec/yaml_tree.hpp"

namespace berth {

/// A rule and where its value stands. Borrows from the tree.
struct RuleNode {
  std::string key;
  Position at;
  const Node* value = nullptr;
};

/// Whether a key names a rule, or several that belong together.
[[nodiscard]] bool names_rules(std::string_view key);

/// The words that may stand before a rule of this scope: "gpu_left", "foreign", "foreign.policy".
[[nodiscard]] const std::vector<std::string_view>& rule_words(RuleScope scope);

/// Adds the rules of one entry, maps written out with dots.
void collect_rules(const Node::Entry& entry, std::vector<RuleNode>& out, Diagnostics& diagnostics);
/// Those of a map that holds nothing else; `extra` are other keys it may have.
void collect_rules(const Node& map, RuleScope scope, std::span<const std::string_view> extra,
                   std::vector<RuleNode>& out, Diagnostics& diagnostics);

/// Their values as text, later ones on top. What is wrong is reported and left out.
void read_rules(std::span<const RuleNode> rules, RuleScope scope, const Combination& combination,
                Overrides& out, Diagnostics& diagnostics);

}  // namespace berth
