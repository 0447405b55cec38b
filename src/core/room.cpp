#include "core/room.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "core/rule_table.hpp"
#include "core/strategy.hpp"

namespace berth {
namespace {

constexpr Bytes kDefaultMinFree = 8000 * kMiB;
/// With less than this free a card is of no use to anybody.
constexpr Bytes kAvailable = kGiB;
/// How old a look may be that nobody has asked for: as old as those are that follow each other
/// while somebody does.
constexpr Millis kUnasked{2'000};

/// Whether nobody had wanted to know of the GPUs when the last decision was made.
bool is_idle(const State& state) {
  return !state.look_within &&
         std::ranges::all_of(state.gpus, [](const Gpu& gpu) { return gpu.claims.empty(); });
}

Bytes saturating_sub(Bytes a, Bytes b) {
  return a > b ? a - b : 0;
}

/// Exact, without a product that may not fit.
Bytes share_of(Bytes total, std::uint32_t percent) {
  return total / 100 * percent + total % 100 * percent / 100;
}

Bytes used_by(const GpuFacts& facts, AttemptId attempt) {
  Bytes used = 0;
  if (facts.processes) {
    for (const GpuProcess& process : *facts.processes) {
      if (process.attempt == attempt) {
        used += process.memory.value_or(0);
      }
    }
  }
  return used;
}

/// By all processes on the card.
Bytes held_on(const GpuFacts& facts) {
  Bytes held = 0;
  if (facts.processes) {
    for (const GpuProcess& process : *facts.processes) {
      held += process.memory.value_or(0);
    }
  }
  return held;
}

/// What is known of a failure of the wish on the card.
const Avoided* failure_on(const Wish& wish, const GpuFacts& facts) {
  if (wish.avoid == nullptr) {
    return nullptr;
  }
  const auto it = std::ranges::find(*wish.avoid, facts.uuid, &Avoided::gpu);
  return it == wish.avoid->end() ? nullptr : &*it;
}

/// Where a list has the card; its end if nowhere.
auto place_in(const std::vector<std::string>& gpus, const GpuFacts& facts) {
  return std::ranges::find_if(gpus, [&](const std::string& name) {
    return name == facts.uuid || name == fmt::format("{}", facts.index);
  });
}

bool names(const std::vector<std::string>& gpus, const GpuFacts& facts) {
  return place_in(gpus, facts) != gpus.end();
}

}  // namespace

Wish wish_of(const State& state, const Job& job) {
  const Shape& shape = state.shapes.at(job.shape);
  const auto avoid = state.avoiding.find(job.id);
  const auto bereft = state.bereft.find(job.id);
  return {&shape.key.request,
          &shape.rules,
          job.id,
          job.batch,
          job.expedited,
          false,
          avoid == state.avoiding.end() ? nullptr : &avoid->second,
          bereft == state.bereft.end() ? Millis{0} : bereft->second};
}

Room::Room(const State& state, Now now, const std::set<AttemptId>* without)
    : state_(&state), now_(now), last_gpu_(state.last_gpu), use_(state.use) {
  look_after_ = state.look_after;
  if (state.seen && now.mono - *state.seen > kUnasked && is_idle(state)) {
    look_after_ = std::max(look_after_, now.mono - kUnasked);
  }
  cards_.reserve(state.gpus.size());
  for (const Gpu& gpu : state.gpus) {
    Card card;
    card.gpu = &gpu;
    card.held = held_on(gpu.facts);
    Bytes promised = 0;
    Bytes given_back = 0;
    for (const Claim& claim : gpu.claims) {
      const Bytes used = used_by(gpu.facts, claim.attempt);
      card.claimed_before = card.claimed_before || claim.made < gpu.sampled;
      if (without != nullptr && without->contains(claim.attempt)) {
        given_back += used;
        card.held = saturating_sub(card.held, used);
        continue;
      }
      card.ending = (card.claims == 0 || card.ending) && claim.ended.has_value();
      ++card.claims;
      card.whole = card.whole || claim.memory == 0;
      card.claimants.push_back(claim.job);
      const Job* job = state.job(claim.job);
      card.batches.push_back(job == nullptr ? BatchId{} : job->batch);
      // What it has used it may want again.
      promised +=
          saturating_sub(claim.shrunk ? std::min(claim.peak, claim.memory) : claim.memory, used);
    }
    if (gpu.facts.memory_free) {
      card.free = saturating_sub(*gpu.facts.memory_free + given_back, promised);
    }
    cards_.push_back(std::move(card));
  }
  if (without != nullptr) {
    for (const AttemptId id : *without) {
      const auto attempt = state.attempts.find(id);
      if (attempt == state.attempts.end()) {
        continue;  // only its claims are left
      }
      const Request& request = state.request(state.jobs.at(attempt->second.job));
      use_.cpus -= request.cpus;
      use_.memory -= request.memory;
      for (const auto& [name, count] : request.resources) {
        use_.resources[name] -= count;
      }
    }
  }
}

bool Room::stale(const Rules& rules) const {
  return !state_->seen || now_.mono - *state_->seen > rules.sample_age_max ||
         state_->looked < look_after_;
}

bool Room::stale(const Wish& wish) const {
  return stale(*wish.rules) || state_->looked < wish.look_after;
}

bool Room::awaits_look(const Wish& wish) const {
  return wish.request->gpus.max > 0 && wish.request->gpus.min == 0 && !cards_.empty() &&
         state_->probe_error.empty() && stale(wish);
}

bool Room::is_stale(const Card& card, const Rules& rules) const {
  return !card.gpu->known || now_.mono - card.gpu->seen > rules.sample_age_max;
}

bool Room::is_allowed(const Card& card, const Rules& rules) const {
  return rules.gpus.empty() || names(rules.gpus, card.gpu->facts);
}

bool Room::is_left(std::size_t gpu, const Rules& rules) const {
  if (rules.gpu_left == 0 || rules.gpu_left_mode != LeftMode::last) {
    return false;
  }
  // The last ones of those that may be used at all, as they are listed or else by index; cards that
  // vanished are no longer counted.
  std::vector<std::size_t> usable;
  for (std::size_t i = 0; i < cards_.size(); ++i) {
    if (cards_[i].gpu->known && is_allowed(cards_[i], rules)) {
      usable.push_back(i);
    }
  }
  std::ranges::sort(usable, {}, [&](std::size_t i) {
    const GpuFacts& facts = cards_[i].gpu->facts;
    return std::pair(place_in(rules.gpus, facts), facts.index);
  });
  const std::size_t kept = usable.size() - std::min<std::size_t>(usable.size(), rules.gpu_left);
  return std::find(usable.begin() + static_cast<std::ptrdiff_t>(kept), usable.end(), gpu) !=
         usable.end();
}

bool Room::is_ours(const Card& card, BatchId batch) const {
  if (batch) {
    return std::ranges::find(card.batches, batch) != card.batches.end();
  }
  if (card.claims > 0) {
    return true;
  }
  const auto& processes = card.gpu->facts.processes;
  return state_->host.uid && processes &&
         std::ranges::any_of(*processes, [this](const GpuProcess& process) {
           return !process.attempt && process.uid == state_->host.uid;
         });
}

bool Room::is_available(std::size_t gpu, const Rules& rules) const {
  const Card& card = cards_[gpu];
  const GpuFacts& facts = card.gpu->facts;
  if (is_stale(card, rules) || !facts.trouble.empty() || !is_allowed(card, rules) ||
      is_left(gpu, rules)) {
    return false;
  }
  if (is_ours(card, {})) {
    return true;
  }
  if (state_->drains.contains(facts.uuid) || state_->board.contains(facts.uuid)) {
    return false;
  }
  const Strangers strangers = strangers_on(facts, false, rules.foreign, state_->host.uid);
  return card.free && *card.free >= std::min(kAvailable, facts.memory_total.value_or(0)) &&
         strangers.utilization <= rules.max_utilization && !strangers.awaited &&
         (!strangers.present || rules.foreign.policy != Foreign::wait);
}

Quota Room::quota_of(const Rules& rules, BatchId batch) const {
  Quota quota;
  quota.of_batch = batch.value != 0;
  std::uint32_t available = 0;
  for (std::size_t i = 0; i < cards_.size(); ++i) {
    available += is_available(i, rules) ? 1 : 0;
    quota.used += is_ours(cards_[i], batch) ? 1 : 0;
  }
  // The last cards are not among the available ones, so they are not subtracted again.
  const std::uint32_t left = rules.gpu_left_mode == LeftMode::any ? rules.gpu_left : 0;
  quota.available = available;
  quota.gpu_left = left;
  quota.min_gpu = rules.min_gpu;
  quota.max_gpu = rules.max_gpu;
  quota.allowed = std::max(rules.min_gpu, available > left ? available - left : 0);
  if (rules.max_gpu != 0) {
    quota.allowed = std::min(quota.allowed, rules.max_gpu);
  }
  return quota;
}

Quota Room::fence_of(const Rules& rules, BatchId batch) const {
  Rules all = rules;
  all.min_gpu = 0;
  all.max_gpu = 0;
  Quota fence = quota_of(all, {});
  const auto own = static_cast<std::uint32_t>(
      std::ranges::count_if(cards_, [&](const Card& card) { return is_ours(card, batch); }));
  if (own < rules.min_gpu) {
    fence.min_gpu = rules.min_gpu;
    fence.allowed = std::max(fence.allowed, fence.used + rules.min_gpu - own);
  }
  return fence;
}

std::vector<Quota> Room::quotas(const Wish& wish) const {
  const auto leaves_any = [](const Rules& rules) {
    return rules.gpu_left != 0 && rules.gpu_left_mode == LeftMode::any;
  };
  const auto counts = [&](const Rules& rules) { return rules.max_gpu != 0 || leaves_any(rules); };
  std::vector<Quota> result;
  if (wish.forced) {
    return result;
  }
  if (counts(state_->rules)) {
    result.push_back(quota_of(state_->rules, {}));
  }
  if (!counts(*wish.rules)) {
    return result;
  }
  const auto batch = state_->batches.find(wish.batch);
  const bool own_quota =
      batch != state_->batches.end() &&
      (batch->second.rules.contains("max_gpu") || batch->second.rules.contains("min_gpu"));
  // What a batch, queue or job leaves to others is left by all that berth runs.
  if (own_quota) {
    result.push_back(quota_of(*wish.rules, wish.batch));
    if (leaves_any(*wish.rules)) {
      result.push_back(fence_of(*wish.rules, wish.batch));
    }
  } else if (*wish.rules != state_->rules) {
    result.push_back(quota_of(*wish.rules, {}));
  }
  return result;
}

bool Room::would_do(std::size_t gpu, const Wish& wish) const {
  const Card& card = cards_[gpu];
  const GpuFacts& facts = card.gpu->facts;
  return card.gpu->known && facts.trouble.empty() && is_allowed(card, *wish.rules) &&
         (wish.forced || !is_left(gpu, *wish.rules)) && !state_->drains.contains(facts.uuid) &&
         needed(card, wish) <= facts.memory_total.value_or(0);
}

bool Room::own_batch_keeps(const Wish& wish) const {
  for (std::size_t i = 0; wish.batch && i < cards_.size(); ++i) {
    if (std::ranges::find(cards_[i].batches, wish.batch) != cards_[i].batches.end() &&
        would_do(i, wish)) {
      return true;
    }
  }
  return false;
}

const Avoided* Room::avoided(std::size_t gpu, const Wish& wish) const {
  const Avoided* failure = wish.forced ? nullptr : failure_on(wish, cards_[gpu].gpu->facts);
  // Who has left, or holds clearly less now, is not in the way any more.
  if (failure == nullptr ||
      (!failure->broken &&
       (failure->held == 0 || cards_[gpu].held < failure->held - failure->held / 10))) {
    return nullptr;
  }
  // Better there than nowhere.
  std::uint32_t others = 0;
  for (std::size_t i = 0; i < cards_.size(); ++i) {
    others += failure_on(wish, cards_[i].gpu->facts) == nullptr && would_do(i, wish) ? 1 : 0;
  }
  return others >= std::max(wish.request->gpus.min, 1U) ? failure : nullptr;
}

bool Room::is_held(std::size_t gpu, const Wish& wish) const {
  if (!hold_ || hold_->job == wish.job || wish.forced || wish.before_hold ||
      std::ranges::find(hold_->gpus, uuid(gpu)) == hold_->gpus.end()) {
    return false;
  }
  const Millis time = wish.request->time;
  return !hold_->until || time == Millis{0} || now_.mono + time > *hold_->until;
}

Bytes Room::needed(const Card& card, const Wish& wish) const {
  const Request& request = *wish.request;
  const Bytes asked = request.gpu_memory.value_or(0);
  // Said of the job itself it counts in any case, said of others only where memory is not declared.
  if (request.rules.contains("min_free_memory") && wish.rules->min_free_memory) {
    return std::max(asked, *wish.rules->min_free_memory);
  }
  if (request.gpu_memory) {
    return asked;
  }
  // Nine tenths without the rounding of a product that may not fit.
  const Bytes total = card.gpu->facts.memory_total.value_or(0);
  return wish.rules->min_free_memory.value_or(std::min(kDefaultMinFree, total - total / 10));
}

bool Room::needs_by_rule(const Wish& wish) {
  const Request& request = *wish.request;
  return !request.gpu_memory || (request.rules.contains("min_free_memory") &&
                                 wish.rules->min_free_memory > request.gpu_memory);
}

/// What has nothing to do with how full the card is.
std::optional<GpuObstacle::Kind> Room::excluded(std::size_t gpu, const Wish& wish,
                                                GpuObstacle& result) const {
  using Kind = GpuObstacle::Kind;
  const Card& card = cards_[gpu];
  const GpuFacts& facts = card.gpu->facts;
  if (!facts.trouble.empty()) {
    result.detail = facts.trouble;
    return Kind::trouble;
  }
  if (is_stale(card, *wish.rules)) {
    result.detail = state_->probe_error;
    return Kind::stale;
  }
  if (!is_allowed(card, *wish.rules)) {
    return Kind::not_allowed;
  }
  if (const auto drained = state_->drains.find(facts.uuid); drained != state_->drains.end()) {
    result.detail = drained->second;
    return Kind::drained;
  }
  if (!wish.forced && is_left(gpu, *wish.rules)) {
    result.detail = fmt::format("gpu_left={}", wish.rules->gpu_left);
    return Kind::left;
  }
  if (!card.free || !facts.memory_total) {
    return Kind::unknown;
  }
  if (const auto other = state_->board.find(facts.uuid); other != state_->board.end()) {
    result.detail = other->second;
    return Kind::other_berth;
  }
  if (card.gpu->sampled < std::max(look_after_, wish.look_after)) {
    return Kind::stale;
  }
  return std::nullopt;
}

namespace {

/// Those whom the rules wait for.
std::optional<GpuObstacle::Kind> busy_strangers(const Strangers& strangers, const Rules& rules,
                                                GpuObstacle& result) {
  using Kind = GpuObstacle::Kind;
  if (strangers.awaited) {
    result.own = true;
    result.detail = "your own process is on it, and the rule foreign.own says to wait";
    return Kind::strangers;
  }
  if (rules.foreign.policy == Foreign::ignore) {
    return std::nullopt;
  }
  const bool own = strangers.present && !strangers.others;
  if (strangers.present && rules.foreign.policy == Foreign::wait) {
    result.own = own;
    result.detail = fmt::format("{} on it, and the rule foreign.policy says to wait",
                                own ? "your own process is" : "others are");
    return Kind::strangers;
  }
  if (strangers.young) {
    result.own = !strangers.young_others;
    result.detail = result.own ? "your own process has just begun there, outside berth"
                               : "somebody else's process has just begun there";
    return Kind::strangers;
  }
  if (strangers.utilization_unknown && strangers.present) {
    result.own = own;
    result.detail = fmt::format("how busy {} on it is not known",
                                own ? "your own process is" : "strangers are");
    return Kind::utilization;
  }
  if (strangers.utilization > rules.max_utilization) {
    result.own = own;
    return Kind::utilization;
  }
  return std::nullopt;
}

}  // namespace

std::optional<GpuObstacle::Kind> Room::strangers_obstacle(const Card& card, const Wish& wish,
                                                          GpuObstacle& result) const {
  using Kind = GpuObstacle::Kind;
  const Rules& rules = *wish.rules;
  const Strangers strangers =
      strangers_on(card.gpu->facts, card.claimed_before, rules.foreign, state_->host.uid);
  result.strangers = strangers.memory;
  result.own = strangers.own && !strangers.alien;
  result.utilization = strangers.utilization;
  result.utilization_max = rules.max_utilization;
  if (!rules.maximize_resource_utilization && strangers.own) {
    return Kind::own_process;
  }
  if (wish.forced) {
    return std::nullopt;
  }
  if (const auto kind = busy_strangers(strangers, rules, result)) {
    return kind;
  }
  // Of those who are there still, the above says more.
  if (const auto disturbed = last_disturbed(*card.gpu, rules);
      rules.opportunistic != GiveWay::no && disturbed &&
      now_.mono - *disturbed < rules.quiet_time) {
    result.detail = "quiet_time=" + exact_duration(rules.quiet_time);
    return Kind::quiet;
  }
  return std::nullopt;
}

std::optional<GpuObstacle> Room::obstacle(std::size_t gpu, const Wish& wish) const {
  using Kind = GpuObstacle::Kind;
  const Card& card = cards_[gpu];
  const Rules& rules = *wish.rules;
  GpuObstacle result;
  result.index = card.gpu->facts.index;
  result.jobs = card.claimants;
  const auto because = [&result](Kind kind) {
    result.kind = kind;
    return result;
  };
  if (const auto kind = excluded(gpu, wish, result)) {
    return because(*kind);
  }
  const Bytes total = *card.gpu->facts.memory_total;
  result.free = saturating_sub(*card.free, rules.memory_margin);
  result.margin = rules.memory_margin;
  result.needed = needed(card, wish);
  result.rule = needs_by_rule(wish) ? "min_free_memory" : "";
  if (result.needed > total) {
    result.free = total;
    return because(Kind::too_small);
  }
  const bool alone = !wish.request->gpu_memory || !rules.maximize_resource_utilization;
  if (card.whole || (alone && card.claims > 0)) {
    if (!card.whole && !card.ending) {
      // There may be plenty of room on it: what the job itself wants is in the way.
      result.detail =
          wish.request->gpu_memory ? "maximize_resource_utilization" : "without gpu_memory";
    }
    return because(card.ending ? Kind::ending : Kind::claimed);
  }
  if (const Avoided* failure = avoided(gpu, wish)) {
    result.strangers = failure->broken ? 0 : card.held;
    return because(Kind::avoided);
  }
  if (const auto kind = strangers_obstacle(card, wish, result)) {
    return because(*kind);
  }
  const Bytes in_use = total - std::min(total, *card.free);
  if (in_use > share_of(total, rules.keep_gpu_memory)) {
    result.detail = fmt::format("keep_gpu_memory={}", rules.keep_gpu_memory);
    result.in_use = in_use;
    result.total = total;
    return because(Kind::keep_memory);
  }
  if (result.free < result.needed) {
    return because(Kind::memory);
  }
  if (is_held(gpu, wish)) {
    result.jobs = {hold_->job};
    return because(Kind::held);
  }
  return std::nullopt;
}

bool Room::others_alone_keep(std::size_t gpu, const Wish& wish) const {
  using Kind = GpuObstacle::Kind;
  const auto met = obstacle(gpu, wish);
  if (!met) {
    return false;
  }
  switch (met->kind) {
    case Kind::other_berth:
      return needed(cards_[gpu], wish) <= *cards_[gpu].gpu->facts.memory_total;
    case Kind::own_process:
    case Kind::strangers:
    case Kind::quiet:
    case Kind::utilization:
    case Kind::keep_memory:
    case Kind::memory:
      return cards_[gpu].claims == 0;
    case Kind::stale:
    case Kind::trouble:
    case Kind::drained:
    case Kind::not_allowed:
    case Kind::left:
    case Kind::unknown:
    case Kind::claimed:
    case Kind::ending:
    case Kind::too_small:
    case Kind::held:
      return false;
    case Kind::avoided:
      return met->strangers > 0 && cards_[gpu].claims == 0;
  }
  return false;
}

std::optional<Bytes> Room::left_on(std::size_t gpu) const {
  const Card& card = cards_[gpu];
  return card.free && card.whole ? std::optional<Bytes>(0) : card.free;
}

std::uint64_t Room::cpus_free() const {
  return state_->host.cpus == 0 ? UINT64_MAX : saturating_sub(state_->host.cpus, use_.cpus);
}

Bytes Room::memory_free() const {
  return state_->host.memory == 0 ? UINT64_MAX : saturating_sub(state_->host.memory, use_.memory);
}

std::uint64_t Room::resource_free(const std::string& name) const {
  const auto total = state_->rules.resources.find(name);
  const auto used = use_.resources.find(name);
  return saturating_sub(total == state_->rules.resources.end() ? 0 : total->second,
                        used == use_.resources.end() ? 0 : used->second);
}

bool Room::host_stale(const Wish& wish) const {
  // While the driver fails looks are rare, and the last one has to do.
  return wish.rules->keep_host_memory > 0 && state_->probe_error.empty() &&
         (!state_->host_seen || now_.mono - *state_->host_seen > wish.rules->sample_age_max);
}

bool Room::keeps_host_memory(const Wish& wish) const {
  return wish.rules->keep_host_memory == 0 ||
         (!host_stale(wish) &&
          (!state_->host_available || *state_->host_available >= wish.rules->keep_host_memory));
}

bool Room::host_fits(const Wish& wish) const {
  const Request& request = *wish.request;
  return request.cpus <= cpus_free() && request.memory <= memory_free() &&
         keeps_host_memory(wish) && std::ranges::all_of(request.resources, [this](const auto& r) {
           return r.second <= resource_free(r.first);
         });
}

std::vector<std::string> Room::absent(const Rules& rules) const {
  std::vector<std::string> result;
  std::ranges::copy_if(rules.gpus, std::back_inserter(result), [this](const std::string& name) {
    return std::ranges::none_of(cards_,
                                [&](const Card& card) { return names({name}, card.gpu->facts); });
  });
  return result;
}

std::optional<Quota> Room::full_quota(const Wish& wish) const {
  const std::uint32_t wanted = wish.request->gpus.min;
  std::optional<Quota> fullest;
  std::uint32_t fewest = wanted;
  for (const Quota& quota : wanted == 0 ? std::vector<Quota>{} : quotas(wish)) {
    std::uint32_t reachable = quota.left();
    for (std::size_t i = 0; i < cards_.size() && reachable < fewest; ++i) {
      const bool counted = is_ours(cards_[i], quota.of_batch ? wish.batch : BatchId{});
      reachable += counted && !obstacle(i, wish) ? 1 : 0;
    }
    if (reachable < fewest) {
      fewest = reachable;
      fullest = quota;
    }
  }
  return fullest;
}

std::optional<std::vector<std::size_t>> Room::place(const Wish& wish) const {
  if (!host_fits(wish)) {
    return std::nullopt;
  }
  if (wish.request->gpus.max == 0) {
    return std::vector<std::size_t>();
  }
  if (awaits_look(wish)) {
    return std::nullopt;
  }
  std::vector<CardChoice> cards;
  for (std::size_t i = 0; i < cards_.size(); ++i) {
    if (!obstacle(i, wish)) {
      cards.push_back({i, &cards_[i].gpu->facts, *cards_[i].free,
                       *cards_[i].gpu->facts.memory_total, cards_[i].claims});
    }
  }
  // Elsewhere than where it failed, if there is room.
  if (wish.avoid != nullptr) {
    std::vector<CardChoice> elsewhere;
    std::ranges::copy_if(cards, std::back_inserter(elsewhere), [&wish](const CardChoice& card) {
      return failure_on(wish, *card.facts) == nullptr;
    });
    if (auto placed = choose(std::move(elsewhere), wish)) {
      return placed;
    }
  }
  return choose(std::move(cards), wish);
}

std::optional<std::vector<std::size_t>> Room::choose(std::vector<CardChoice> cards,
                                                     const Wish& wish) const {
  const GpuCount count = wish.request->gpus;
  if (cards.size() < count.min) {
    return std::nullopt;
  }
  const auto last =
      std::ranges::find(cards_, last_gpu_, [](const Card& card) { return card.gpu->facts.uuid; });
  rank(cards, wish.rules->strategy,
       last == cards_.end() ? std::nullopt : std::optional(last->gpu->facts.index),
       wish.request->gpu_memory.value_or(0), state_->shapes);
  Allowances allowances;
  for (const Quota& quota : quotas(wish)) {
    for (CardChoice& card : cards) {
      const bool ours = is_ours(cards_[card.gpu], quota.of_batch ? wish.batch : BatchId{});
      card.costs |= ours ? 0U : 1U << allowances.count();
    }
    allowances.add(quota.left());
  }
  std::vector<CardChoice> within;
  std::ranges::copy_if(
      cards, std::back_inserter(within),
      [left = allowances](const CardChoice& card) mutable { return left.pay(card); });
  if (within.size() < count.min) {
    return std::nullopt;
  }
  const std::size_t taken = std::min<std::size_t>(within.size(), count.max);
  if (taken > 1 && taken < cards.size() && wish.rules->topology) {
    within = closest(cards, taken, allowances);
  }
  std::vector<std::size_t> chosen;
  for (std::size_t i = 0; i < taken; ++i) {
    chosen.push_back(within[i].gpu);
  }
  return chosen;
}

void Room::take(const Wish& wish, const std::vector<std::size_t>& gpus) {
  const Request& request = *wish.request;
  use_.cpus += request.cpus;
  use_.memory += request.memory;
  for (const auto& [name, count] : request.resources) {
    use_.resources[name] += count;
  }
  for (const std::size_t gpu : gpus) {
    Card& card = cards_[gpu];
    ++card.claims;
    card.claimants.push_back(wish.job);
    card.batches.push_back(wish.batch);
    card.ending = false;
    card.whole = card.whole || !request.gpu_memory;
    card.free = saturating_sub(*card.free, request.gpu_memory.value_or(0));
    last_gpu_ = card.gpu->facts.uuid;
  }
}

std::set<std::string> awaited_cards(const State& state, Now now) {
  std::set<std::string> cards;
  const Room room(state, now);
  for (const auto& [shape, heads] : state.ready.heads()) {
    const Wish wish = wish_of(state, state.jobs.at(heads.begin()->key.job));
    if (wish.request->gpus.max == 0 || !room.host_fits(wish) || room.full_quota(wish)) {
      continue;
    }
    for (std::size_t gpu = 0; gpu < room.gpu_count(); ++gpu) {
      if (room.others_alone_keep(gpu, wish)) {
        cards.insert(room.uuid(gpu));
      }
    }
    if (cards.size() == room.gpu_count()) {
      break;
    }
  }
  return cards;
}

}  // namespace berth
