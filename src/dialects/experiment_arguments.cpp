#include "dialects/experiment_arguments.hpp"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "dialects/shell_text.hpp"
#include "jobspec/values.hpp"

namespace berth {
namespace {

const Combination kNoMatrix;

bool is_option_name(std::string_view key) {
  return !key.empty() && !key.starts_with('-') && std::ranges::none_of(key, [](char c) {
    return static_cast<unsigned char>(c) <= 0x20 || c == 0x7f || c == '=';
  });
}

/// Words in quotes are never true or false.
std::optional<bool> as_bool(const Node& node) {
  if (node.kind != Node::Kind::scalar || node.quoted) {
    return std::nullopt;
  }
  const std::string& text = node.text;
  if (text == "true" || text == "True" || text == "TRUE") {
    return true;
  }
  if (text == "false" || text == "False" || text == "FALSE") {
    return false;
  }
  return std::nullopt;
}

ExtraArgument read_one(const Node::Entry& entry, Diagnostics& diagnostics) {
  using Kind = ExtraArgument::Kind;
  const Node& node = *entry.value;
  ExtraArgument out{entry.key, entry.key_at, Kind::value, {}, false};
  if (const auto given = as_bool(node); given || node.kind == Node::Kind::null) {
    out.kind = given.value_or(true) ? Kind::flag : Kind::off;
    return out;
  }
  if (node.kind == Node::Kind::list) {
    out.kind = Kind::list;
    for (const NodePtr& item : node.items) {
      out.values.push_back(read_text(*item, entry.key, kNoMatrix, diagnostics).value_or(""));
    }
    return out;
  }
  out.values.push_back(read_text(node, entry.key, kNoMatrix, diagnostics).value_or(""));
  return out;
}

}  // namespace

std::string ExtraArgument::text() const {
  return kind == Kind::flag  ? "true"
         : kind == Kind::off ? "false"
                             : fmt::format("{}", fmt::join(values, " "));
}

ExtraArguments ExtraArguments::read(const Node& node, Diagnostics& diagnostics) {
  ExtraArguments out;
  if (node.kind == Node::Kind::null) {
    return out;
  }
  if (node.kind != Node::Kind::map) {
    diagnostics.add(node.at, fmt::format("'extra_args' is a map such as {{seed: 42}}, this is {}",
                                         describe(node.kind)));
    return out;
  }
  for (const Node::Entry& entry : node.entries) {
    if (!is_option_name(entry.key)) {
      diagnostics.add(entry.key_at, fmt::format("'{}' cannot be an option; write its name without "
                                                "dashes and blanks",
                                                entry.key));
      continue;
    }
    out.arguments_.push_back(read_one(entry, diagnostics));
  }
  return out;
}

const ExtraArgument* ExtraArguments::find(std::string_view key) const {
  const auto found = std::ranges::find(arguments_, key, &ExtraArgument::key);
  return found == arguments_.end() ? nullptr : &*found;
}

void ExtraArguments::put_into_config(std::string_view key) {
  for (ExtraArgument& argument : arguments_) {
    argument.in_config = argument.in_config || argument.key == key;
  }
}

std::vector<std::string> ExtraArguments::words(
    const std::set<std::string, std::less<>>& without) const {
  std::vector<std::string> out;
  for (const ExtraArgument& argument : arguments_) {
    if (argument.kind == ExtraArgument::Kind::off || argument.in_config ||
        without.contains(argument.key)) {
      continue;
    }
    out.push_back("--" + argument.key);
    out.insert(out.end(), argument.values.begin(), argument.values.end());
  }
  return out;
}

std::map<std::string, std::string> ExtraArguments::texts() const {
  std::map<std::string, std::string> out;
  for (const ExtraArgument& argument : arguments_) {
    out.emplace(argument.key, argument.text());
  }
  return out;
}

std::set<std::string, std::less<>> placeholders_of(std::string_view command) {
  std::set<std::string, std::less<>> out;
  const Placeholder note = [&](std::string_view word) -> std::optional<std::vector<std::string>> {
    out.emplace(word);
    return std::nullopt;
  };
  static_cast<void>(fill_in(command, note));
  return out;
}

}  // namespace berth
