#include "jobspec/matrix.hpp"

#include <algorithm>
#include <unordered_set>

#include <fmt/format.h>

namespace berth {
namespace {

constexpr std::uint64_t kTooMany = std::uint64_t{1} << 63U;

bool is_word(std::string_view name) {
  const auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  return !name.empty() && letter(name.front()) &&
         std::all_of(name.begin(), name.end(),
                     [&](char c) { return letter(c) || (c >= '0' && c <= '9') || c == '-'; });
}

const Binding* find(const Combination& combination, std::string_view axis) {
  const auto found = std::find_if(combination.begin(), combination.end(),
                                  [&](const Binding& binding) { return binding.axis == axis; });
  return found == combination.end() ? nullptr : &*found;
}

/// Calls `on_text(piece)` and `on_axis(name)` for the pieces of a text in order.
template <class OnText, class OnAxis, class IsAxis>
void scan(std::string_view text, IsAxis is_axis, OnText on_text, OnAxis on_axis) {
  std::size_t begin = 0;  // of the text not yet handed on
  std::size_t at = 0;
  while ((at = text.find('{', at)) != std::string_view::npos) {
    const bool doubled = text.substr(at + 1).starts_with('{');
    const auto name_at = at + (doubled ? 2 : 1);
    const auto end = text.find_first_of("{}", name_at);
    const bool closed = end != std::string_view::npos && text[end] == '}' &&
                        (!doubled || text.substr(end + 1).starts_with('}'));
    const auto name = closed ? text.substr(name_at, end - name_at) : std::string_view();
    const bool shell_variable = at > 0 && text[at - 1] == '$';
    if (!closed || shell_variable || !is_axis(name)) {
      ++at;
      continue;
    }
    if (doubled) {
      on_text(text.substr(begin, at + 1 - begin));  // with one of the two braces
      on_text(text.substr(name_at, end + 1 - name_at));
      begin = at = end + 2;
    } else {
      on_text(text.substr(begin, at - begin));
      on_axis(name);
      begin = at = end + 1;
    }
  }
  on_text(text.substr(begin));
}

}  // namespace

std::string substitute(std::string_view text, const Combination& combination) {
  if (combination.empty() || text.find('{') == std::string_view::npos) {
    return std::string(text);
  }
  std::string out;
  scan(
      text, [&](std::string_view name) { return find(combination, name) != nullptr; },
      [&](std::string_view piece) { out += piece; },
      [&](std::string_view name) { out += find(combination, name)->value; });
  return out;
}

bool mentions(std::string_view text, std::string_view axis) {
  bool found = false;
  scan(
      text, [&](std::string_view name) { return name == axis; }, [](std::string_view) {},
      [&](std::string_view) { found = true; });
  return found;
}

std::vector<std::string_view> placeholders(std::string_view text) {
  std::vector<std::string_view> found;
  scan(
      text, is_word, [](std::string_view) {},
      [&](std::string_view name) { found.push_back(name); });
  return found;
}

Matrix Matrix::read(const Node& node, Diagnostics& diagnostics) {
  Matrix matrix;
  matrix.declared_ = true;
  if (node.kind == Node::Kind::list) {
    matrix.read_include(node, diagnostics);
  } else if (node.kind == Node::Kind::map) {
    for (const auto& entry : node.entries) {
      if (entry.key != "include") {
        matrix.read_axis(entry, diagnostics);
      }
    }
    if (const auto* include = node.find("include"); include != nullptr) {
      matrix.read_include(*include, diagnostics);
    }
  } else {
    diagnostics.add(node.at, "'matrix' must be a map of axes, for example {lr: [0.1, 0.01]}");
    return matrix;
  }
  if (matrix.axes_.empty() && matrix.include_.empty()) {
    diagnostics.add(node.at, "'matrix' has no values, so there would be no job");
  }
  return matrix;
}

void Matrix::read_axis(const Node::Entry& entry, Diagnostics& diagnostics) {
  if (!is_word(entry.key)) {
    diagnostics.add(
        entry.key_at,
        fmt::format("'{}' cannot name an axis: use letters, digits, '_' and '-'", entry.key));
    return;
  }
  const auto& node = *entry.value;
  if (node.kind != Node::Kind::list || node.items.empty()) {
    diagnostics.add(node.at,
                    fmt::format("axis '{}' needs a list of values, for example [1, 2]", entry.key));
    return;
  }
  Axis axis{entry.key, {}};
  std::unordered_set<std::string_view> seen;
  for (const auto& item : node.items) {
    if (item->kind != Node::Kind::scalar) {
      diagnostics.add(item->at, fmt::format("a value of axis '{}' must be a single value, this is "
                                            "{}",
                                            entry.key, describe(item->kind)));
    } else if (!seen.insert(item->text).second) {
      diagnostics.add(item->at,
                      fmt::format("axis '{}' has the value '{}' twice", entry.key, item->text));
    } else {
      axis.values.push_back(item->text);
    }
  }
  if (!axis.values.empty()) {
    axes_.push_back(std::move(axis));
  }
}

void Matrix::read_include(const Node& node, Diagnostics& diagnostics) {
  if (node.kind != Node::Kind::list) {
    diagnostics.add(node.at, "'include' must be a list of maps, for example [{lr: 1, seed: 7}]");
    return;
  }
  for (const auto& item : node.items) {
    if (item->kind != Node::Kind::map || item->entries.empty()) {
      diagnostics.add(item->at, fmt::format("each combination is a map of axes, this is {}",
                                            describe(item->kind)));
      continue;
    }
    Combination combination;
    for (const auto& entry : item->entries) {
      if (!is_word(entry.key)) {
        diagnostics.add(entry.key_at, fmt::format("'{}' cannot name an axis", entry.key));
      } else if (entry.value->kind != Node::Kind::scalar) {
        diagnostics.add(entry.value->at,
                        fmt::format("axis '{}' needs a single value here, this is {}", entry.key,
                                    describe(entry.value->kind)));
      } else {
        combination.push_back({entry.key, entry.value->text});
      }
    }
    for (const auto& axis : axes_) {
      if (item->find(axis.name) == nullptr) {
        diagnostics.add(item->at, fmt::format("this combination has no value for '{}'", axis.name));
      }
    }
    include_.push_back(std::move(combination));
  }
}

std::vector<std::string_view> Matrix::axis_names() const {
  std::vector<std::string_view> names;
  const auto add = [&](std::string_view name) {
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      names.push_back(name);
    }
  };
  for (const auto& axis : axes_) {
    add(axis.name);
  }
  for (const auto& combination : include_) {
    for (const auto& binding : combination) {
      add(binding.axis);
    }
  }
  return names;
}

std::uint64_t Matrix::product() const {
  if (axes_.empty()) {
    return declared_ ? 0 : 1;
  }
  std::uint64_t size = 1;
  for (const auto& axis : axes_) {
    if (__builtin_mul_overflow(size, axis.values.size(), &size) || size > kTooMany) {
      return kTooMany;
    }
  }
  return size;
}

std::uint64_t Matrix::size() const {
  return std::min(kTooMany, product() + include_.size());
}

Combination Matrix::at(std::uint64_t index) const {
  const auto in_product = product();
  if (index >= in_product) {
    return include_[index - in_product];
  }
  Combination combination(axes_.size());
  for (std::size_t i = axes_.size(); i-- > 0;) {
    const auto& axis = axes_[i];
    combination[i] = {axis.name, axis.values[index % axis.values.size()]};
    index /= axis.values.size();
  }
  return combination;
}

}  // namespace berth
