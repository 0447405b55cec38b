#include "core/decide.hpp"

#include <algorithm>
#include <queue>
#include <set>
#include <unordered_map>

namespace berth {
namespace {

constexpr Bytes kDefaultMinFree = 8000 * kMiB;

Bytes saturating_sub(Bytes a, Bytes b) {
  return a > b ? a - b : 0;
}

/// What strangers do on a card: their memory, and how busy they keep it.
struct Strangers {
  bool present = false;
  Bytes memory = 0;
  std::uint32_t utilization = 0;
  bool utilization_unknown = false;
};

/// `claimed`: attempts of ours could have been at work on the card when it was looked at.
Strangers strangers_on(const GpuFacts& facts, bool claimed) {
  Strangers result;
  if (!facts.processes) {
    // Nobody can say whose work it is. On a card without claims of ours it is a stranger's.
    if (!claimed) {
      result.utilization = facts.utilization.value_or(0);
      result.utilization_unknown = !facts.utilization;
    }
    return result;
  }
  bool ours = false;
  bool each_known = true;
  std::uint32_t sum = 0;
  for (const GpuProcess& process : *facts.processes) {
    if (process.attempt) {
      ours = true;
      continue;
    }
    result.present = true;
    result.memory += process.memory.value_or(0);
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

}  // namespace

Room::Room(const State& state, Now now) : state_(&state), use_(state.use) {
  stale_ = !state.seen || now.mono - *state.seen > state.rules.sample_age_max;
  cards_.reserve(state.gpus.size());
  for (const Gpu& gpu : state.gpus) {
    Card card;
    card.index = gpu.facts.index;
    card.stale = !gpu.known || now.mono - gpu.seen > state.rules.sample_age_max;
    card.trouble = gpu.facts.trouble;
    card.total = gpu.facts.memory_total;
    card.claims = static_cast<std::uint32_t>(gpu.claims.size());
    card.ending = !gpu.claims.empty();
    Bytes promised = 0;
    for (const Claim& claim : gpu.claims) {
      card.whole = card.whole || claim.memory == 0;
      card.claimants.push_back(claim.job);
      card.ending = card.ending && claim.ended.has_value();
      Bytes used = 0;
      if (gpu.facts.processes) {
        for (const GpuProcess& process : *gpu.facts.processes) {
          if (process.attempt == claim.attempt) {
            used += process.memory.value_or(0);
          }
        }
      }
      promised += saturating_sub(claim.memory, used);
    }
    if (gpu.facts.memory_free) {
      card.free = saturating_sub(*gpu.facts.memory_free, promised + state.rules.memory_margin);
    }
    const Strangers strangers =
        strangers_on(gpu.facts, std::ranges::any_of(gpu.claims, [&gpu](const Claim& claim) {
                       return claim.made < gpu.sampled;
                     }));
    card.strangers = strangers.memory;
    card.strangers_present = strangers.present;
    card.stranger_utilization = strangers.utilization;
    card.utilization_unknown = strangers.utilization_unknown;
    cards_.push_back(std::move(card));
  }
}

std::optional<GpuObstacle> Room::obstacle(std::size_t gpu, const Request& request) const {
  using Kind = GpuObstacle::Kind;
  const Card& card = cards_[gpu];
  const Rules& rules = state_->rules;
  GpuObstacle result;
  result.index = card.index;
  result.strangers = card.strangers;
  result.jobs = card.claimants;
  const auto because = [&result](Kind kind) {
    result.kind = kind;
    return result;
  };
  if (!card.trouble.empty()) {
    result.detail = card.trouble;
    return because(Kind::trouble);
  }
  if (card.stale) {
    result.detail = state_->probe_error;
    return because(Kind::stale);
  }
  if (!card.free || !card.total) {
    return because(Kind::unknown);
  }
  Bytes needed = request.gpu_memory.value_or(0);
  if (request.min_free_memory) {
    needed = std::max(needed, *request.min_free_memory);
  } else if (!request.gpu_memory) {
    // Nine tenths without the rounding of a product that may not fit.
    const Bytes most = *card.total - *card.total / 10;
    needed = rules.min_free_memory.value_or(std::min(kDefaultMinFree, most));
  }
  result.free = *card.free;
  result.needed = needed;
  if (needed > *card.total) {
    result.free = *card.total;
    return because(Kind::too_small);
  }
  if (card.whole || (!request.gpu_memory && card.claims > 0)) {
    return because(card.ending ? Kind::ending : Kind::claimed);
  }
  const std::uint32_t utilization_max = request.max_utilization.value_or(rules.max_utilization);
  result.utilization = card.stranger_utilization;
  result.utilization_max = utilization_max;
  if (card.utilization_unknown && card.strangers_present) {
    result.detail = "how busy strangers are on it is not known";
    return because(Kind::utilization);
  }
  if (card.stranger_utilization > utilization_max) {
    return because(Kind::utilization);
  }
  if (*card.free < needed) {
    return because(Kind::memory);
  }
  return std::nullopt;
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

bool Room::host_fits(const Request& request) const {
  return request.cpus <= cpus_free() && request.memory <= memory_free() &&
         std::ranges::all_of(request.resources,
                             [this](const auto& r) { return r.second <= resource_free(r.first); });
}

std::optional<std::vector<std::size_t>> Room::place(const Request& request) const {
  if (!host_fits(request)) {
    return std::nullopt;
  }
  std::vector<std::size_t> chosen;
  if (request.gpus.max == 0) {
    return chosen;
  }
  for (std::size_t i = 0; i < cards_.size(); ++i) {
    if (!obstacle(i, request)) {
      chosen.push_back(i);
    }
  }
  if (chosen.size() < request.gpus.min) {
    return std::nullopt;
  }
  // Most free memory first: what is measured is the best guess of who will be left in peace.
  std::ranges::sort(chosen, [this](std::size_t a, std::size_t b) {
    return *cards_[a].free != *cards_[b].free ? *cards_[a].free > *cards_[b].free : a < b;
  });
  chosen.resize(std::min<std::size_t>(chosen.size(), request.gpus.max));
  return chosen;
}

void Room::take(const Request& request, const std::vector<std::size_t>& gpus, JobId job) {
  use_.cpus += request.cpus;
  use_.memory += request.memory;
  for (const auto& [name, count] : request.resources) {
    use_.resources[name] += count;
  }
  for (const std::size_t gpu : gpus) {
    Card& card = cards_[gpu];
    ++card.claims;
    card.claimants.push_back(job);
    card.ending = false;
    card.whole = card.whole || !request.gpu_memory;
    card.free = saturating_sub(*card.free, request.gpu_memory.value_or(0));
  }
}

namespace {

/// Merges the exposed heads of all shapes into one stream in order, remembering which shapes have
/// been found not to fit: within one decision room only shrinks, so they need no second look.
class Candidates {
 public:
  struct Candidate {
    OrderKey key;
    ShapeId shape;
    LaneKey lane;
    bool head = false;  ///< from the index; its successor there is to be fetched too
    friend bool operator>(const Candidate& a, const Candidate& b) { return a.key > b.key; }
  };

  explicit Candidates(const State& state) : index_(state.ready) {
    if (state.recheck_all) {
      for (const auto& [shape, heads] : index_.heads()) {
        push_head(shape, heads.begin());
      }
      return;
    }
    const std::set<ShapeId> wanted(state.recheck_shapes.begin(), state.recheck_shapes.end());
    for (const ShapeId shape : wanted) {
      if (const auto it = index_.heads().find(shape); it != index_.heads().end()) {
        push_head(shape, it->second.begin());
      }
    }
  }

  std::optional<Candidate> next() {
    while (!heap_.empty()) {
      const Candidate top = heap_.top();
      heap_.pop();
      if (blocked_.contains(top.shape)) {
        continue;
      }
      if (top.head) {
        const auto& heads = index_.heads().at(top.shape);
        push_head(top.shape, heads.upper_bound({top.key, top.lane}));
      }
      return top;
    }
    return std::nullopt;
  }

  void block(ShapeId shape) { blocked_.insert(shape); }
  void advance(const Candidate& started) {
    if (const OrderKey* key = index_.next(started.lane, started.shape, started.key)) {
      heap_.push({*key, started.shape, started.lane, false});
    }
  }

 private:
  void push_head(ShapeId shape, ReadyIndex::Heads::const_iterator it) {
    if (it != index_.heads().at(shape).end()) {
      heap_.push({it->key, shape, it->lane, true});
    }
  }

  const ReadyIndex& index_;
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> heap_;
  std::set<ShapeId> blocked_;
};

}  // namespace

Decision decide(const State& state, Now now) {
  Decision decision;
  if (state.low_space || (!state.recheck_all && state.recheck_shapes.empty())) {
    return decision;
  }
  Room room(state, now);
  Candidates candidates(state);
  std::uint32_t running = state.running;
  std::unordered_map<QueueId, std::uint32_t> queue_started;
  std::unordered_map<BatchId, std::uint32_t> batch_started;
  while (state.rules.max_concurrent == 0 || running < state.rules.max_concurrent) {
    const auto candidate = candidates.next();
    if (!candidate) {
      break;
    }
    const Job& job = state.jobs.at(candidate->key.job);
    const Queue& queue = state.queues.at(job.queue);
    std::uint32_t& from_queue = queue_started[job.queue];
    if (!job.expedited && queue.limit != 0 && queue.running + from_queue >= queue.limit) {
      continue;
    }
    const auto batch = state.batches.find(job.batch);
    if (!job.expedited && batch != state.batches.end() && batch->second.max_concurrent != 0 &&
        batch->second.running + batch_started[job.batch] >= batch->second.max_concurrent) {
      continue;
    }
    const Request& request = state.request(job);
    const auto gpus = room.place(request);
    if (!gpus) {
      // After a failed look the prober tries again at its own pace; asking would only spin.
      decision.want_sample = decision.want_sample ||
                             (request.gpus.max > 0 && room.stale() && state.probe_error.empty());
      candidates.block(candidate->shape);
      continue;
    }
    room.take(request, *gpus, job.id);
    ++running;
    ++from_queue;
    if (batch != state.batches.end()) {
      ++batch_started[job.batch];
    }
    decision.start.push_back({job.id, *gpus});
    candidates.advance(*candidate);
  }
  return decision;
}

}  // namespace berth
