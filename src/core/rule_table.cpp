#include "core/rule_table.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/rule_values.hpp"

namespace berth {
namespace {

bool is_name(std::string_view name) {
  return !name.empty() && name.size() <= 1024 && std::ranges::none_of(name, [](char c) {
    return static_cast<unsigned char>(c) <= ' ' || c == '=' || c == ',' || c == '\x7f';
  });
}

/// Other ways to begin a name.
constexpr std::array kSpellings = {
    std::pair{std::string_view("retry."), std::string_view("retry_config.")}};

/// How many letters have to be changed, added or left out.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) {
    row[j] = j;
  }
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t changed = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({changed, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

/// What was meant by something that is the name of no rule, but has to do with one.
std::string meaning_of(std::string_view key) {
  constexpr std::string_view kQueue = "queue.";
  for (const RuleDef& rule : rule_definitions()) {
    const std::string_view group = rule.key.substr(0, rule.key.find('.'));
    if (group != rule.key && canonical_rule(fmt::format("{}.", key)) == fmt::format("{}.", group)) {
      return fmt::format("it is a group; name one of it, as '{}', `berth set {}` lists them",
                         rule.key, group);
    }
    if (group != rule.key && rule.key.substr(group.size() + 1) == key) {
      return fmt::format("did you mean '{}'?", rule.key);
    }
    if (key.starts_with(kQueue) && key.ends_with(fmt::format(".{}", rule.key)) &&
        key.size() > kQueue.size() + rule.key.size() + 1) {
      return fmt::format(
          "`berth set --queue {} {}=…` sets it for a queue",
          key.substr(kQueue.size(), key.size() - kQueue.size() - rule.key.size() - 1), rule.key);
    }
  }
  return {};
}

std::unexpected<Error> no_such_rule(std::string_view key) {
  if (const std::string meant = meaning_of(key); !meant.empty()) {
    return fail(ErrorCode::invalid, fmt::format("there is no rule '{}'; {}", key, meant));
  }
  std::string_view nearest;
  std::size_t least = 4;  // further away it is no typing error
  for (const RuleDef& rule : rule_definitions()) {
    if (const std::size_t d = distance(key.substr(0, 100), rule.key); d < least) {
      least = d;
      nearest = rule.key;
    }
  }
  return fail(ErrorCode::invalid,
              fmt::format("there is no rule '{}'; {}", key,
                          nearest.empty() ? std::string("`berth set` lists them")
                                          : fmt::format("did you mean '{}'?", nearest)));
}

}  // namespace

const RuleDef* find_rule(std::string_view key) {
  const std::string name = canonical_rule(key);
  const auto rules = rule_definitions();
  const auto it = std::ranges::find(rules, std::string_view(name), &RuleDef::key);
  return it == rules.end() ? nullptr : &*it;
}

std::string canonical_rule(std::string_view key) {
  for (const auto& [spelling, prefix] : kSpellings) {
    if (key.starts_with(spelling)) {
      return fmt::format("{}{}", prefix, key.substr(spelling.size()));
    }
  }
  return std::string(key);
}

std::optional<std::string> resource_of_rule(std::string_view key) {
  if (!key.starts_with(kResourcePrefix) || !is_name(key.substr(kResourcePrefix.size()))) {
    return std::nullopt;
  }
  return std::string(key.substr(kResourcePrefix.size()));
}

std::optional<std::string> queue_of_rule(std::string_view key) {
  constexpr std::string_view kPrefix = "queue.";
  constexpr std::string_view kSuffix = ".limit";
  if (!key.starts_with(kPrefix) || !key.ends_with(kSuffix) ||
      key.size() <= kPrefix.size() + kSuffix.size()) {
    return std::nullopt;
  }
  key = key.substr(kPrefix.size(), key.size() - kPrefix.size() - kSuffix.size());
  return is_name(key) ? std::optional(std::string(key)) : std::nullopt;
}

std::string queue_rule(std::string_view queue) {
  return fmt::format("queue.{}.limit", queue);
}

Result<std::uint32_t> parse_queue_limit(std::string_view key, std::string_view text) {
  auto limit = rule_values::whole_number<std::uint32_t>(text);
  if (!limit) {
    return fail(ErrorCode::invalid, fmt::format("{}: {}", key, limit.error().message));
  }
  return limit;
}

Status set_rule(Rules& rules, std::string_view key, std::string_view text) {
  const auto named = [key](Status status) -> Status {
    if (!status) {
      return fail(status.error().code, fmt::format("{}: {}", key, status.error().message));
    }
    return {};
  };
  if (const auto resource = resource_of_rule(key)) {
    const auto total = rule_values::whole_number<std::uint64_t>(text);
    if (!total) {
      return named(std::unexpected(total.error()));
    }
    rules.resources[*resource] = *total;
    return {};
  }
  if (queue_of_rule(key)) {
    const auto limit = parse_queue_limit(key, text);
    return limit ? Status{} : std::unexpected(limit.error());
  }
  if (const RuleDef* rule = find_rule(key)) {
    return named(rule->set(rules, text));
  }
  return no_such_rule(key);
}

Status check_override(std::string_view key, std::string_view text, RuleScope scope) {
  const RuleDef* rule = find_rule(key);
  const bool elsewhere =
      rule == nullptr ? resource_of_rule(key) || queue_of_rule(key) : rule->scope < scope;
  if (elsewhere) {
    return fail(
        ErrorCode::invalid,
        fmt::format("{}: can be set for the instance{} only", key,
                    rule != nullptr && rule->scope == RuleScope::batch ? " or a batch" : ""));
  }
  Rules scratch;
  return set_rule(scratch, key, text);
}

void overlay(Rules& rules, const Overrides& layer) {
  for (const auto& [key, text] : layer) {
    [[maybe_unused]] const Status checked_before = set_rule(rules, key, text);
  }
}

std::string exact_size(Bytes bytes) {
  constexpr std::array kUnits = {std::pair{kTiB, "TiB"}, std::pair{kGiB, "GiB"},
                                 std::pair{kMiB, "MiB"}, std::pair{kKiB, "KiB"}};
  for (const auto& [unit, name] : kUnits) {
    if (bytes != 0 && bytes % unit == 0) {
      return fmt::format("{}{}", bytes / unit, name);
    }
  }
  return fmt::format("{}", bytes);
}

std::string exact_duration(Millis time) {
  constexpr std::array kUnits = {std::pair{86'400'000, "d"}, std::pair{3'600'000, "h"},
                                 std::pair{60'000, "m"}, std::pair{1'000, "s"}};
  for (const auto& [unit, name] : kUnits) {
    if (time.count() != 0 && time.count() % unit == 0) {
      return fmt::format("{}{}", time.count() / unit, name);
    }
  }
  return time.count() == 0 ? "0" : fmt::format("{}ms", time.count());
}

}  // namespace berth
