#include "core/rule_table.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace berth {
namespace {

template <class T>
Result<T> whole_number(std::string_view text, T max = std::numeric_limits<T>::max()) {
  T value{};
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  if (text.empty() || error != std::errc() || at != end || value > max) {
    return fail(ErrorCode::invalid,
                fmt::format("expected a whole number from 0 to {}, got '{}'", max, text));
  }
  return value;
}

template <auto Member>
Status set_number(Rules& rules, std::string_view text) {
  TRY_ASSIGN(rules.*Member, whole_number<std::remove_reference_t<decltype(rules.*Member)>>(text));
  return {};
}

template <auto Member>
std::string get_number(const Rules& rules) {
  return fmt::format("{}", rules.*Member);
}

template <auto Member>
Status set_size(Rules& rules, std::string_view text) {
  TRY_ASSIGN(rules.*Member, parse_size(text));
  return {};
}

template <auto Member>
std::string get_size(const Rules& rules) {
  return exact_size(rules.*Member);
}

Status set_min_free(Rules& rules, std::string_view text) {
  if (text == "auto") {
    rules.min_free_memory.reset();
    return {};
  }
  TRY_ASSIGN(rules.min_free_memory, parse_size(text));
  return {};
}

std::string get_min_free(const Rules& rules) {
  return rules.min_free_memory ? exact_size(*rules.min_free_memory) : "auto";
}

Status set_max_utilization(Rules& rules, std::string_view text) {
  if (text.ends_with('%')) {
    text.remove_suffix(1);
  }
  TRY_ASSIGN(rules.max_utilization, whole_number<std::uint32_t>(text, 100));
  return {};
}

Status set_keep_finished(Rules& rules, std::string_view text) {
  TRY_ASSIGN(rules.keep_finished, parse_duration(text));
  return {};
}

std::string get_keep_finished(const Rules& rules) {
  return exact_duration(rules.keep_finished);
}

constexpr std::array kDefinitions = {
    RuleDef{"max_concurrent", "N", "jobs that run at once, of the whole instance; 0: any number",
            get_number<&Rules::max_concurrent>, set_number<&Rules::max_concurrent>},
    RuleDef{"min_free_memory", "SIZE",
            "memory that must be free on a card for a job that does not say what it needs; auto: "
            "8000 MiB or 90 % of the card, the smaller",
            get_min_free, set_min_free},
    RuleDef{"max_utilization", "PERCENT", "a card that others keep busier than this is left alone",
            get_number<&Rules::max_utilization>, set_max_utilization},
    RuleDef{"memory_margin", "SIZE", "kept free on every card beyond what jobs ask for",
            get_size<&Rules::memory_margin>, set_size<&Rules::memory_margin>},
    RuleDef{"keep_finished", "TIME", "finished jobs are kept this long; 0: for ever",
            get_keep_finished, set_keep_finished},
    RuleDef{"keep_jobs", "N", "so many finished jobs are kept, the newest; 0: all",
            get_number<&Rules::keep_jobs>, set_number<&Rules::keep_jobs>},
    RuleDef{"log_limit", "SIZE",
            "what one log that berth names may grow to, its head and tail kept; 0: no limit",
            get_size<&Rules::log_limit>, set_size<&Rules::log_limit>},
};

bool is_name(std::string_view name) {
  return !name.empty() && name.size() <= 1024 && std::ranges::none_of(name, [](char c) {
    return static_cast<unsigned char>(c) <= ' ' || c == '=' || c == ',' || c == '\x7f';
  });
}

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

std::unexpected<Error> no_such_rule(std::string_view key) {
  std::string_view nearest;
  std::size_t least = 4;  // further away it is no typing error
  for (const RuleDef& rule : kDefinitions) {
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

std::span<const RuleDef> rule_definitions() {
  return kDefinitions;
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
  auto limit = whole_number<std::uint32_t>(text);
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
    const auto total = whole_number<std::uint64_t>(text);
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
  for (const RuleDef& rule : kDefinitions) {
    if (rule.key == key) {
      return named(rule.set(rules, text));
    }
  }
  return no_such_rule(key);
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
