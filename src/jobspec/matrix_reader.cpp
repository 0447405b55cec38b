// A matrix as it stands in a job file.

#include <optional>
#include <unordered_set>

#include <fmt/format.h>

#include "jobspec/matrix.hpp"
#include "jobspec/value_list.hpp"

namespace berth {
namespace {

/// Lists of plain values are axes, whatever they are called.
bool is_zip(const Node::Entry& entry) {
  const auto& items = entry.value->items;
  return entry.key == "zip" && (items.empty() || items.front()->kind == Node::Kind::map);
}

bool is_table(const Node::Entry& entry) {
  return entry.key == "csv" && entry.value->kind != Node::Kind::list;
}

/// {log: [1e-5, 1e-1, 5]} is how log(1e-5, 1e-1, 5) is written where commas mean something else.
std::optional<std::string> scale_text(const Node& node) {
  if (node.kind != Node::Kind::map || node.entries.size() != 1) {
    return std::nullopt;
  }
  const auto& entry = node.entries.front();
  if ((entry.key != "linear" && entry.key != "log") || entry.value->kind != Node::Kind::list) {
    return std::nullopt;
  }
  std::string text;
  for (const auto& item : entry.value->items) {
    text += fmt::format("{}{}", text.empty() ? "" : ", ", item->text);
  }
  return fmt::format("{}({})", entry.key, text);
}

/// The values of an axis that is not a list: a range, a scale, or several of them.
std::optional<std::vector<std::string>> read_values(const Node::Entry& entry,
                                                    Diagnostics& diagnostics) {
  const auto& node = *entry.value;
  auto text = scale_text(node);
  if (!text && node.kind == Node::Kind::scalar && is_value_list(node.text)) {
    text = node.text;
  }
  if (!text) {
    diagnostics.add(node.at, fmt::format("axis '{}' needs a list of values, for example [1, 2], or "
                                         "a range such as 1..3",
                                         entry.key));
    return std::nullopt;
  }
  auto values = expand_values(*text);
  if (!values) {
    diagnostics.add(node.at, fmt::format("axis '{}': {}", entry.key, values.error().message));
    return std::nullopt;
  }
  return std::move(*values);
}

}  // namespace

Matrix Matrix::read(const Node& node, Diagnostics& diagnostics, const OtherFiles& others) {
  Matrix matrix;
  matrix.declared_ = true;
  const auto mistakes = diagnostics.size();
  if (node.kind == Node::Kind::list) {
    matrix.read_include(node, diagnostics);
  } else if (node.kind == Node::Kind::map) {
    for (const auto& entry : node.entries) {
      if (is_zip(entry)) {
        matrix.read_zip(*entry.value, diagnostics);
      } else if (is_table(entry)) {
        matrix.read_csv(*entry.value, others, diagnostics);
      } else if (entry.key != "include") {
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
  if (matrix.factors_.empty() && matrix.include_.empty() && diagnostics.size() == mistakes) {
    diagnostics.add(node.at, "'matrix' has no values, so there would be no job");
  }
  return matrix;
}

void Matrix::read_axis(const Node::Entry& entry, Diagnostics& diagnostics) {
  if (const auto good = check_names({entry.key}); !good) {
    diagnostics.add(entry.key_at, good.error().message);
    return;
  }
  const auto& node = *entry.value;
  if (node.kind != Node::Kind::list || node.items.empty()) {
    if (auto values = read_values(entry, diagnostics)) {
      if (const auto added = add_axis({entry.key, std::move(*values)}); !added) {
        diagnostics.add(node.at, added.error().message);
      }
    }
    return;
  }
  std::vector<std::string_view> values;
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
      values.push_back(item->text);
    }
  }
  if (!values.empty()) {
    add_factor({entry.key}, std::move(values));
  }
}

void Matrix::read_zip(const Node& node, Diagnostics& diagnostics) {
  if (node.kind != Node::Kind::list) {
    return read_one_zip(node, diagnostics);
  }
  for (const auto& item : node.items) {
    read_one_zip(*item, diagnostics);
  }
}

void Matrix::read_one_zip(const Node& node, Diagnostics& diagnostics) {
  if (node.kind != Node::Kind::map || node.entries.empty()) {
    diagnostics.add(node.at,
                    "'zip' is a map of axes that go together, for example {model: [s, m], batch: "
                    "[64, 16]}");
    return;
  }
  std::vector<AxisValues> axes;
  bool good = true;
  for (const auto& entry : node.entries) {
    AxisValues axis{entry.key, {}};
    if (entry.value->kind != Node::Kind::list) {
      auto values = read_values(entry, diagnostics);
      good = good && values;
      axis.values = std::move(values).value_or(std::vector<std::string>());
    }
    for (const auto& item : entry.value->items) {
      if (item->kind != Node::Kind::scalar) {
        diagnostics.add(item->at,
                        fmt::format("a value of axis '{}' must be a single value, this is {}",
                                    entry.key, describe(item->kind)));
        good = false;
      }
      axis.values.push_back(item->text);
    }
    axes.push_back(std::move(axis));
  }
  if (good) {
    if (const auto added = add_zip(std::move(axes)); !added) {
      diagnostics.add(node.at, added.error().message);
    }
  }
}

void Matrix::read_csv(const Node& node, const OtherFiles& others, Diagnostics& diagnostics) {
  if (node.kind != Node::Kind::scalar || node.text.empty()) {
    diagnostics.add(node.at, "'csv' is the path of a table whose first line names the axes");
    return;
  }
  if (!others.read) {
    diagnostics.add(node.at, "'csv': other files cannot be read here");
    return;
  }
  const auto path = (others.base_dir / node.text).lexically_normal();
  const auto text = others.read(path);
  if (!text) {
    diagnostics.add(node.at, fmt::format("'csv': {}", text.error().message));
    return;
  }
  Diagnostics in_table(path.string());
  CsvTable table = parse_csv(*text, in_table);
  if (!in_table.empty()) {
    diagnostics.add_others(in_table.take());
    return;
  }
  if (const auto added = add_table(std::move(table)); !added) {
    in_table.add({}, added.error().message);
    diagnostics.add_others(in_table.take());
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
      if (!is_axis_name(entry.key)) {
        diagnostics.add(entry.key_at, fmt::format("'{}' cannot name an axis", entry.key));
      } else if (entry.value->kind != Node::Kind::scalar) {
        diagnostics.add(entry.value->at,
                        fmt::format("axis '{}' needs a single value here, this is {}", entry.key,
                                    describe(entry.value->kind)));
      } else {
        combination.push_back({entry.key, entry.value->text});
      }
    }
    for (const auto& factor : factors_) {
      for (const auto axis : factor.axes) {
        if (item->find(axis) == nullptr) {
          diagnostics.add(item->at, fmt::format("this combination has no value for '{}'", axis));
        }
      }
    }
    include_.push_back(std::move(combination));
  }
}

}  // namespace berth
