#include "daemon/first_state.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "core/rule_table.hpp"
#include "core/state_ops.hpp"
#include "daemon/machine.hpp"

namespace berth {

void forget_uncommitted(Launcher& launcher, Snapshot& snapshot) {
  std::set<AttemptId> open_attempts;
  for (const Snapshot::OpenAttempt& attempt : snapshot.attempts) {
    open_attempts.insert(attempt.id);
  }
  for (const AttemptId attempt : launcher.leftovers()) {
    if (!open_attempts.contains(attempt)) {
      launcher.forget(attempt);
    }
    snapshot.last_attempt = std::max(snapshot.last_attempt, attempt);
  }
}

State first_state(Snapshot& snapshot, const Rules& usual, const Settings& settings,
                  std::uint32_t max_concurrent) {
  Rules rules = usual;
  Overrides file;
  for (const auto& [key, value] : settings.values) {
    [[maybe_unused]] const Status checked_before = set_rule(rules, key, value);
    if (find_rule(key) != nullptr) {
      file.insert_or_assign(canonical_rule(key), value);
    }
    if (const auto queue = queue_of_rule(key)) {
      for (auto& [id, spec] : snapshot.queues) {
        if (spec.name == *queue) {
          spec.limit = parse_queue_limit(key, value).value_or(spec.limit);
        }
      }
    }
  }
  for (const auto& [name, total] : rules.resources) {
    snapshot.resources[name] = total;
  }
  Overrides this_run;
  if (max_concurrent != 0) {
    this_run["max_concurrent"] = fmt::format("{}", max_concurrent);
    overlay(rules, this_run);
  }
  State state = restore(snapshot, std::move(rules), host_capacity(), read_clock());
  state.base_rules = usual;
  state.file_rules = std::move(file);
  state.set_rules = std::move(this_run);
  state_ops::resolve_instance(state);
  return state;
}

}  // namespace berth
