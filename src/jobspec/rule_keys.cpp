#include "jobspec/rule_keys.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "jobspec/values.hpp"

namespace berth {
namespace {

bool begins_rules(std::string_view prefix) {
  return std::ranges::any_of(rule_definitions(),
                             [&](const RuleDef& rule) { return rule.key.starts_with(prefix); });
}

std::vector<std::string_view> words_of(RuleScope scope) {
  std::vector<std::string_view> words;
  for (const RuleDef& rule : rule_definitions()) {
    if (rule.scope < scope) {
      continue;
    }
    words.push_back(rule.key);
    const auto group = rule.key.substr(0, rule.key.find('.'));
    if (group != rule.key && std::ranges::find(words, group) == words.end()) {
      words.push_back(group);
    }
  }
  return words;
}

void collect(const std::string& key, const Node::Entry& entry, std::vector<RuleNode>& out,
             Diagnostics& diagnostics) {
  const Node& value = *entry.value;
  if (value.kind != Node::Kind::map) {
    out.push_back({canonical_rule(key), entry.key_at, &value});
    return;
  }
  if (find_rule(key) != nullptr) {
    diagnostics.add(
        value.at, fmt::format("'{}' needs a single value, this is {}", key, describe(value.kind)));
    return;
  }
  for (const auto& below : value.entries) {
    collect(fmt::format("{}.{}", key, below.key), below, out, diagnostics);
  }
}

/// A list is another way to write values between commas.
std::optional<std::string> rule_text(const RuleNode& rule, const Combination& combination,
                                     Diagnostics& diagnostics) {
  if (rule.value->kind != Node::Kind::list) {
    return read_text(*rule.value, rule.key, combination, diagnostics);
  }
  std::string joined;
  for (const auto& item : rule.value->items) {
    const auto text = read_text(*item, rule.key, combination, diagnostics);
    if (!text) {
      return std::nullopt;
    }
    joined += fmt::format("{}{}", joined.empty() ? "" : ",", *text);
  }
  return joined;
}

}  // namespace

bool names_rules(std::string_view key) {
  return find_rule(key) != nullptr || begins_rules(canonical_rule(fmt::format("{}.", key)));
}

const std::vector<std::string_view>& rule_words(RuleScope scope) {
  static const std::vector<std::string_view> kAny = words_of(RuleScope::any);
  static const std::vector<std::string_view> kBatch = words_of(RuleScope::batch);
  static const std::vector<std::string_view> kInstance = words_of(RuleScope::instance);
  return scope == RuleScope::any ? kAny : scope == RuleScope::batch ? kBatch : kInstance;
}

void collect_rules(const Node::Entry& entry, std::vector<RuleNode>& out, Diagnostics& diagnostics) {
  collect(entry.key, entry, out, diagnostics);
}

void collect_rules(const Node& map, RuleScope scope, std::span<const std::string_view> extra,
                   std::vector<RuleNode>& out, Diagnostics& diagnostics) {
  for (const auto& entry : map.entries) {
    if (std::ranges::find(extra, entry.key) != extra.end()) {
      continue;
    }
    const auto dot = entry.key.find('.');
    if (names_rules(entry.key) || names_rules(std::string_view(entry.key).substr(0, dot))) {
      collect_rules(entry, out, diagnostics);
      continue;
    }
    std::vector<std::string_view> words(extra.begin(), extra.end());
    words.insert(words.end(), rule_words(scope).begin(), rule_words(scope).end());
    diagnostics.add(entry.key_at,
                    fmt::format("unknown key '{}'{}", entry.key, key_hint(entry.key, words)));
  }
}

void read_rules(std::span<const RuleNode> rules, RuleScope scope, const Combination& combination,
                Overrides& out, Diagnostics& diagnostics) {
  for (const RuleNode& rule : rules) {
    if (find_rule(rule.key) == nullptr) {
      diagnostics.add_once(rule.at, fmt::format("unknown key '{}'{}", rule.key,
                                                did_you_mean(rule.key, rule_words(scope))));
      continue;
    }
    auto text = rule_text(rule, combination, diagnostics);
    if (!text) {
      continue;
    }
    if (const Status good = check_override(rule.key, *text, scope); !good) {
      diagnostics.add_once(rule.value->at,
                           good.error().message + made_by(rule.value->text, combination));
      continue;
    }
    out.insert_or_assign(rule.key, std::move(*text));
  }
}

}  // namespace berth
