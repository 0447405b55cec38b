#include "core/foreign.hpp"

#include <algorithm>

namespace berth {
namespace {

/// How busy a process keeps the card; the whole card's load where that is not told apart.
std::optional<std::uint32_t> load_of(const GpuProcess& process, const GpuFacts& facts, bool ours) {
  if (process.utilization) {
    return process.utilization;
  }
  // Load that may be our own cannot be laid at anybody's door; that of an idle card can.
  return ours && facts.utilization.value_or(1) > 0 ? std::nullopt : facts.utilization;
}

bool passes_over(const GpuProcess& process, std::optional<std::uint32_t> load,
                 const ForeignRules& rules) {
  return rules.policy == Foreign::grade && process.memory &&
         *process.memory <= rules.small_memory && load && *load <= rules.idle_utilization &&
         (!process.age || *process.age >= rules.young);
}

bool is_young(const GpuProcess& process, const ForeignRules& rules) {
  return rules.policy == Foreign::grade && process.age && *process.age < rules.young;
}

}  // namespace

Strangers strangers_on(const GpuFacts& facts, bool claimed, const ForeignRules& rules,
                       std::optional<std::uint32_t> self) {
  Strangers result;
  if (!facts.processes) {
    // Nobody can say whose work it is. On a card without claims of ours it is a stranger's.
    if (!claimed) {
      result.utilization = facts.utilization.value_or(0);
      result.utilization_unknown = !facts.utilization;
    }
    return result;
  }
  const auto is_own = [&](const GpuProcess& p) { return self && p.uid == self; };
  // Whose load is none of the strangers'.
  const bool ours = std::ranges::any_of(*facts.processes, [&](const GpuProcess& p) {
    return p.attempt || (is_own(p) && rules.own == ForeignOwn::ignore);
  });
  bool each_known = true;
  std::uint32_t sum = 0;
  for (const GpuProcess& process : *facts.processes) {
    if (process.attempt) {
      continue;
    }
    const bool own = is_own(process);
    result.memory += process.memory.value_or(0);
    result.own = result.own || own;
    result.alien = result.alien || !own;
    result.awaited = result.awaited || (own && rules.own == ForeignOwn::wait);
    if ((own && rules.own == ForeignOwn::ignore) ||
        passes_over(process, load_of(process, facts, ours), rules)) {
      ++result.ignored;
      continue;
    }
    result.present = true;
    result.others = result.others || !own;
    if (is_young(process, rules)) {
      result.young = true;
      result.young_others = result.young_others || !own;
    }
    each_known = each_known && process.utilization.has_value();
    sum += process.utilization.value_or(0);
  }
  if (!result.present) {
    return result;
  }
  if (each_known && (ours || !facts.utilization)) {
    result.utilization = std::min<std::uint32_t>(sum, 100);
  } else {
    // Either all the load is theirs, or it cannot be told apart; then theirs is assumed.
    result.utilization = facts.utilization.value_or(0);
    result.utilization_unknown = !facts.utilization;
  }
  return result;
}

InTheWay in_the_way(const Gpu& gpu, const Rules& rules, Millis began,
                    std::optional<std::uint32_t> self) {
  InTheWay found = InTheWay::nobody;
  for (const GpuProcess& process : gpu.facts.processes.value_or(std::vector<GpuProcess>{})) {
    const bool own = self && process.uid == self;
    if (process.attempt || (own && rules.foreign.own != ForeignOwn::wait)) {
      continue;
    }
    const bool newcomer = process.age && gpu.sampled - *process.age > began;
    const bool small = process.memory.value_or(0) <= rules.foreign.small_memory;
    const bool idle = process.utilization && *process.utilization <= rules.foreign.idle_utilization;
    // Who was there before is minded when it begins to work; who comes, unless it is next to
    // nothing.
    if (process.utilization.value_or(0) > rules.max_utilization || (newcomer && !(small && idle))) {
      found = own && found == InTheWay::nobody ? InTheWay::own_process : found;
      found = own ? found : InTheWay::stranger;
    }
  }
  return found;
}

bool is_disturbed(const Gpu& gpu, const ForeignRules& rules, std::uint32_t max_utilization,
                  std::optional<std::uint32_t> self) {
  const Strangers strangers = strangers_on(gpu.facts, !gpu.claims.empty(), rules, self);
  return strangers.awaited || strangers.young || strangers.utilization > max_utilization ||
         (strangers.present && rules.policy == Foreign::wait);
}

namespace {

auto entry_of(auto& seen, const Rules& rules) {
  return std::ranges::find_if(seen, [&rules](const StrangerSeen& by) {
    return by.max_utilization == rules.max_utilization && by.foreign == rules.foreign;
  });
}

}  // namespace

std::optional<Millis> last_disturbed(const Gpu& gpu, const Rules& rules) {
  if (!gpu.stranger_seen) {
    return std::nullopt;
  }
  const auto it = entry_of(gpu.seen_by_rules, rules);
  return it == gpu.seen_by_rules.end() ? gpu.stranger_seen : it->when;
}

void watch(Gpu& gpu, const Rules& rules, Millis since) {
  if (entry_of(gpu.seen_by_rules, rules) != gpu.seen_by_rules.end()) {
    return;
  }
  // Who asks after so many others finds the latest of all, which is never too early.
  constexpr std::size_t kMost = 16;
  if (gpu.seen_by_rules.size() == kMost) {
    gpu.seen_by_rules.erase(std::ranges::min_element(gpu.seen_by_rules, {}, &StrangerSeen::when));
  }
  gpu.seen_by_rules.push_back({rules.foreign, rules.max_utilization, since});
}

void note_disturbed(Gpu& gpu, const Rules& rules, Millis now) {
  watch(gpu, rules, now);
  entry_of(gpu.seen_by_rules, rules)->when = now;
  gpu.stranger_seen = now;
}

}  // namespace berth
