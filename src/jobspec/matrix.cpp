#include "jobspec/matrix.hpp"

#include <algorithm>
#include <unordered_set>

#include <fmt/format.h>

#include "jobspec/shell_quotes.hpp"
#include "jobspec/value_list.hpp"

namespace berth {
namespace {

/// Keys of YAML in one line go up to 1024 bytes; longer ones could not be written out again.
constexpr std::size_t kLongestAxis = 1000;
constexpr std::uint64_t kTooMany = std::uint64_t{1} << 63U;

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

std::string substitute_in_shell(std::string_view text, const Combination& combination) {
  if (combination.empty() || text.find('{') == std::string_view::npos) {
    return std::string(text);
  }
  std::string out;
  ShellReader shell(text);
  scan(
      text, [&](std::string_view name) { return find(combination, name) != nullptr; },
      [&](std::string_view piece) { out += piece; },
      [&](std::string_view name) {
        const auto value = find(combination, name)->value;
        if (is_plain_value(value)) {
          out += value;  // as nearly all are, so that a large matrix is cheap
          return;
        }
        const auto offset = static_cast<std::size_t>(name.data() - text.data()) - 1;
        out += quote_value(value, shell.place_at(offset));
      });
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
      text, is_axis_name, [](std::string_view) {},
      [&](std::string_view name) { found.push_back(name); });
  return found;
}

bool is_axis_name(std::string_view name) {
  const auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  return !name.empty() && name.size() <= kLongestAxis && letter(name.front()) &&
         std::all_of(name.begin(), name.end(),
                     [&](char c) { return letter(c) || (c >= '0' && c <= '9') || c == '-'; });
}

std::string instance_name(std::string_view name, const Combination& combination) {
  std::string out = substitute(name, combination);
  for (const auto& [axis, value] : combination) {
    if (!mentions(name, axis)) {
      out += fmt::format("-{}", value);
    }
  }
  return out;
}

std::string_view Matrix::keep(std::string text) {
  if (made_ == nullptr) {
    made_ = std::make_shared<std::deque<std::string>>();
  }
  return made_->emplace_back(std::move(text));
}

bool Matrix::has_axis(std::string_view name) const {
  return std::any_of(factors_.begin(), factors_.end(), [&](const Factor& factor) {
    return std::find(factor.axes.begin(), factor.axes.end(), name) != factor.axes.end();
  });
}

Status Matrix::check_names(const std::vector<std::string>& names) const {
  for (auto name = names.begin(); name != names.end(); ++name) {
    if (!is_axis_name(*name)) {
      return fail(ErrorCode::invalid,
                  fmt::format("'{}' cannot name an axis: use letters, digits, '_' and '-'", *name));
    }
    if (has_axis(*name) || std::find(names.begin(), name, *name) != name) {
      return fail(ErrorCode::invalid, fmt::format("axis '{}' is there twice", *name));
    }
  }
  return {};
}

void Matrix::add_factor(const std::vector<std::string>& names,
                        std::vector<std::string_view> values) {
  declared_ = true;
  Factor factor;
  for (const auto& name : names) {
    factor.axes.push_back(keep(name));
  }
  factor.values = std::move(values);
  factors_.push_back(std::move(factor));
}

Status Matrix::add_axis(AxisValues axis) {
  TRY(check_names({axis.name}));
  std::unordered_set<std::string_view> seen;
  std::vector<std::string_view> values;
  for (auto& value : axis.values) {
    values.push_back(keep(std::move(value)));
    if (!seen.insert(values.back()).second) {
      return fail(ErrorCode::invalid,
                  fmt::format("axis '{}' has the value '{}' twice", axis.name, values.back()));
    }
  }
  if (values.empty()) {
    return fail(ErrorCode::invalid, fmt::format("axis '{}' has no values", axis.name));
  }
  add_factor({axis.name}, std::move(values));
  return {};
}

Status Matrix::add_zip(std::vector<AxisValues> axes) {
  std::vector<std::string> names;
  for (const auto& axis : axes) {
    names.push_back(axis.name);
  }
  TRY(check_names(names));
  for (const auto& axis : axes) {
    if (axis.values.size() != axes.front().values.size()) {
      return fail(ErrorCode::invalid,
                  fmt::format("axes that go together have equally many values, but '{}' has {} and "
                              "'{}' has {}",
                              axes.front().name, axes.front().values.size(), axis.name,
                              axis.values.size()));
    }
  }
  if (axes.empty() || axes.front().values.empty()) {
    return fail(ErrorCode::invalid, "axes that go together need values");
  }
  std::vector<std::string_view> values;
  for (std::size_t row = 0; row < axes.front().values.size(); ++row) {
    for (auto& axis : axes) {
      values.push_back(keep(std::move(axis.values[row])));
    }
  }
  add_factor(names, std::move(values));
  return {};
}

Status Matrix::add_table(CsvTable table) {
  TRY(check_names(table.header));
  std::vector<std::string_view> values;
  for (auto& row : table.rows) {
    for (auto& field : row) {
      values.push_back(keep(std::move(field)));
    }
  }
  if (values.empty()) {
    return fail(ErrorCode::invalid, "the table has no rows");
  }
  add_factor(table.header, std::move(values));
  return {};
}

Status Matrix::add_combination(std::vector<std::pair<std::string, std::string>> values) {
  Combination combination;
  for (auto& [name, value] : values) {
    if (!is_axis_name(name)) {
      return fail(ErrorCode::invalid, fmt::format("'{}' cannot name an axis", name));
    }
    if (find(combination, name) != nullptr) {
      return fail(ErrorCode::invalid, fmt::format("axis '{}' is there twice", name));
    }
    combination.push_back({keep(std::move(name)), keep(std::move(value))});
  }
  if (combination.empty()) {
    return fail(ErrorCode::invalid, "a combination needs at least one value");
  }
  for (const auto& factor : factors_) {
    for (const auto axis : factor.axes) {
      if (find(combination, axis) == nullptr) {
        return fail(ErrorCode::invalid,
                    fmt::format("this combination has no value for '{}'", axis));
      }
    }
  }
  declared_ = true;
  include_.push_back(std::move(combination));
  return {};
}

std::vector<std::string_view> Matrix::axis_names() const {
  std::vector<std::string_view> names;
  const auto add = [&](std::string_view name) {
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      names.push_back(name);
    }
  };
  for (const auto& factor : factors_) {
    std::for_each(factor.axes.begin(), factor.axes.end(), add);
  }
  for (const auto& combination : include_) {
    for (const auto& binding : combination) {
      add(binding.axis);
    }
  }
  return names;
}

std::uint64_t Matrix::product() const {
  if (factors_.empty()) {
    return declared_ ? 0 : 1;
  }
  std::uint64_t size = 1;
  for (const auto& factor : factors_) {
    if (__builtin_mul_overflow(size, factor.rows(), &size) || size > kTooMany) {
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
  Combination combination;
  std::uint64_t below = in_product;  // combinations of the factors from here on
  for (const auto& factor : factors_) {
    below /= factor.rows();
    const auto row = index / below % factor.rows();
    for (std::size_t i = 0; i < factor.axes.size(); ++i) {
      combination.push_back({factor.axes[i], factor.values[row * factor.axes.size() + i]});
    }
  }
  return combination;
}

}  // namespace berth
