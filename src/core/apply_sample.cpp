// What a look at the GPUs changes: which cards there are, which are healthy, and what of the claims
// has become true.

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "core/apply_context.hpp"
#include "core/classify.hpp"
#include "core/foreign.hpp"
#include "core/health.hpp"

namespace berth {
namespace {

/// What an attempt was seen to use of a card; none: nothing is known.
std::optional<Bytes> used_by(const GpuFacts& facts, AttemptId attempt) {
  if (!facts.processes) {
    return std::nullopt;
  }
  Bytes used = 0;
  for (const GpuProcess& process : *facts.processes) {
    if (process.attempt == attempt) {
      used += process.memory.value_or(0);
    }
  }
  return used;
}

bool shows(const GpuFacts& facts, AttemptId attempt) {
  return facts.processes &&
         std::ranges::any_of(*facts.processes, [attempt](const GpuProcess& process) {
           return process.attempt == attempt;
         });
}

/// Drops claims of attempts that are seen to be gone, and follows the memory of the others.
void follow_claims(const State& state, Gpu& gpu, Millis now) {
  std::erase_if(gpu.claims, [&](const Claim& claim) {
    return claim.ended && gpu.sampled >= *claim.ended && gpu.facts.trouble.empty() &&
           !shows(gpu.facts, claim.attempt);
  });
  for (Claim& claim : gpu.claims) {
    const auto used = used_by(gpu.facts, claim.attempt);
    if (!used) {
      continue;
    }
    // A hundredth more or less is no growth.
    if (*used > claim.peak + claim.peak / 100 || claim.peak == 0) {
      claim.peak = std::max(claim.peak, *used);
      claim.grown = now;
      claim.shrunk = false;
    }
    const Job* job = state.job(claim.job);
    if (job == nullptr || claim.memory == 0 || claim.peak == 0 || claim.ended) {
      continue;
    }
    const Millis flat = state.rules_of(*job).shrink_claims;
    claim.shrunk = claim.shrunk || (flat > Millis{0} && now - claim.grown >= flat);
  }
}

void check_health(ApplyContext& c, Gpu& gpu) {
  State& state = c.state;
  const std::string& uuid = gpu.facts.uuid;
  const auto known = state.ecc_seen.find(uuid);
  const std::uint64_t errors = known == state.ecc_seen.end() ? 0 : known->second;
  const auto why = sickness(gpu.facts, errors);
  if (why) {
    c.drain(gpu, *why);
  }
  // Known for good: who gives the card back has seen them, also for the next daemon.
  if (gpu.facts.ecc_uncorrected.value_or(errors) != errors) {
    state.ecc_seen[uuid] = *gpu.facts.ecc_uncorrected;
    c.step.changes.push_back(change::EccPut{uuid, *gpu.facts.ecc_uncorrected});
  }
  for (const Claim& claim : gpu.claims) {
    const auto attempt = state.attempts.find(claim.attempt);
    if (claim.ended || attempt == state.attempts.end()) {
      continue;
    }
    std::ranges::copy_if(gpu.facts.xids, std::back_inserter(attempt->second.xids),
                         is_application_xid);
    if (why) {
      attempt->second.sick_card = fmt::format("GPU {}: {}", gpu.facts.index, *why);
    }
    // One that is merely unreadable may be at work: nothing new starts there, what runs goes on.
    if (gpu.facts.lost && gpu.known) {
      c.give_way(attempt->second, GivesWay::gpu_lost,
                 fmt::format("GPU {}: {}", gpu.facts.index, gpu.facts.trouble));
    }
  }
}

/// An attempt that is at work on a card it was not given is told of, once.
void look_for_strays(ApplyContext& c, const Gpu& gpu) {
  if (!gpu.facts.processes) {
    return;
  }
  for (const GpuProcess& process : *gpu.facts.processes) {
    const auto attempt = c.state.attempts.find(process.attempt);
    if (attempt == c.state.attempts.end() ||
        std::ranges::find(gpu.claims, process.attempt, &Claim::attempt) != gpu.claims.end() ||
        !c.state.strays.emplace(process.attempt, gpu.facts.uuid).second) {
      continue;
    }
    c.history("stray", c.state.jobs.at(attempt->second.job), process.attempt,
              fmt::format("its process {} uses GPU {}, which it was not given", process.pid,
                          gpu.facts.index));
  }
}

/// Opportunistic attempts make room for strangers, and go on when those have left.
void mind_strangers(ApplyContext& c, Gpu& gpu) {
  State& state = c.state;
  for (const Claim& claim : gpu.claims) {
    const auto it = state.attempts.find(claim.attempt);
    if (claim.ended || it == state.attempts.end()) {
      continue;
    }
    Attempt& attempt = it->second;
    Job& job = state.jobs.at(attempt.job);
    const Rules& rules = state.rules_of(job);
    if (rules.opportunistic == GiveWay::no) {
      continue;
    }
    const InTheWay intruder = in_the_way(gpu, rules, attempt.started, state.host.uid);
    if (intruder == InTheWay::nobody) {
      continue;
    }
    note_disturbed(gpu, rules, c.now.mono);
    const bool own = intruder == InTheWay::own_process;
    const std::string what = fmt::format(
        "{} on GPU {}", own ? "your own process works" : "somebody else works", gpu.facts.index);
    if (rules.opportunistic == GiveWay::requeue) {
      attempt.for_own = attempt.gives_way ? attempt.for_own : own;
      c.give_way(attempt, GivesWay::stranger, what);
    } else if (!attempt.gives_way && job.state == JobState::running && !job.kill_requested) {
      attempt.for_own = own;
      c.park(attempt);
      c.step.effects.push_back(effect::Pause{attempt.id});
      c.history("parked", job, attempt.id, what);
    }
  }
}

/// A card that was given up is not quiet while strangers work on it, whoever waits for it now: each
/// by its own rules.
void watch_given_up(const State& state, Gpu& gpu, Millis now) {
  if (!gpu.stranger_seen) {
    return;
  }
  for (const auto& [shape, heads] : state.ready.heads()) {
    if (const Rules& rules = state.shapes.at(shape).rules; rules.opportunistic != GiveWay::no) {
      watch(gpu, rules, *gpu.stranger_seen);
    }
  }
  for (StrangerSeen& by : gpu.seen_by_rules) {
    if (is_disturbed(gpu, by.foreign, by.max_utilization, state.host.uid)) {
      by.when = now;
      gpu.stranger_seen = now;
    }
  }
}

/// What others hold beside an attempt, and were not promised, tells whose fault it is if that finds
/// too little memory.
void note_company(State& state, const Gpu& gpu) {
  for (const Claim& claim : gpu.claims) {
    const auto it = state.attempts.find(claim.attempt);
    if (claim.ended || it == state.attempts.end() || gpu.sampled <= claim.made || !gpu.known) {
      continue;
    }
    Attempt& attempt = it->second;
    const Beside beside = look_beside(gpu, claim.attempt);
    attempt.company_hidden = attempt.company_hidden || beside.hidden;
    attempt.company = std::max(attempt.company.value_or(0), beside.beyond);
  }
}

/// Which card it was, and since when that has been quiet, a daemon that was started anew cannot
/// know: any of them, until now.
void suppose_strangers(State& state, const Attempt& parked, Millis now) {
  const auto is_of_it = [&](const Gpu& gpu) {
    return std::ranges::find(parked.gpus, gpu.facts.uuid) != parked.gpus.end();
  };
  if (std::ranges::none_of(state.gpus, [&](const Gpu& gpu) {
        return is_of_it(gpu) && gpu.stranger_seen.has_value();
      })) {
    for (Gpu& gpu : state.gpus) {
      if (is_of_it(gpu)) {
        gpu.stranger_seen = now;
      }
    }
  }
}

/// Attempts that stand still for strangers go on once all their cards have been quiet.
void unpark_quiet(ApplyContext& c) {
  State& state = c.state;
  std::vector<AttemptId> parked;
  for (const auto& [id, attempt] : state.attempts) {
    if (attempt.parked()) {
      parked.push_back(id);
    }
  }
  std::ranges::sort(parked);
  for (const AttemptId id : parked) {
    Attempt& attempt = state.attempts.at(id);
    const Job& job = state.jobs.at(attempt.job);
    const Rules& rules = state.rules_of(job);
    suppose_strangers(state, attempt, c.now.mono);
    const bool busy = std::ranges::any_of(attempt.gpus, [&](const std::string& uuid) {
      const Gpu* gpu = state.gpu(uuid);
      const auto disturbed = gpu == nullptr ? std::nullopt : last_disturbed(*gpu, rules);
      return disturbed && c.now.mono - *disturbed < rules.quiet_time;
    });
    if (!busy && !job.kill_requested) {
      c.unpark(attempt);
      c.step.effects.push_back(effect::Resume{id});
      c.history("unparked", job, id);
    }
  }
}

/// A probe that was started anew, the one before having hung, knows of a card that it cannot open
/// its index alone. It is the card that was there, unless that one is seen elsewhere.
void recognise(const State& state, std::vector<GpuFacts>& cards) {
  for (GpuFacts& card : cards) {
    if (card.uuid != stand_in_uuid(card.index)) {
      continue;
    }
    const auto known = std::ranges::find_if(state.gpus, [&](const Gpu& gpu) {
      return gpu.facts.index == card.index && gpu.seen != Millis{0} &&
             std::ranges::find(cards, gpu.facts.uuid, &GpuFacts::uuid) == cards.end();
    });
    if (known != state.gpus.end()) {
      card.uuid = known->facts.uuid;
      card.name = known->facts.name;
      card.pci_bus_id = known->facts.pci_bus_id;
    }
  }
}

}  // namespace

Result<Answer> apply_sample(ApplyContext& c, event::Sampled sampled) {
  State& state = c.state;
  GpuSample& sample = sampled.sample;
  state.seen = c.now.mono;
  state.looked = sample.begun_mono;
  state.probe_error.clear();
  state.driver = sample.driver;
  state.host_available = sample.host_available;
  state.host_seen = c.now.mono;
  recognise(state, sample.gpus);
  std::vector<Gpu> gpus;
  for (GpuFacts& facts : sample.gpus) {
    Gpu gpu;
    gpu.known = true;
    gpu.sampled = sample.begun_mono;
    gpu.seen = c.now.mono;
    gpu.facts = std::move(facts);
    const auto old =
        std::ranges::find(state.gpus, gpu.facts.uuid, [](const Gpu& g) { return g.facts.uuid; });
    if (old != state.gpus.end()) {
      gpu.stranger_seen = old->stranger_seen;
      gpu.seen_by_rules = std::move(old->seen_by_rules);
      gpu.claims = std::exchange(old->claims, {});
      follow_claims(state, gpu, c.now.mono);
    }
    gpus.push_back(std::move(gpu));
  }
  for (Gpu& old : state.gpus) {
    if (!old.claims.empty()) {
      // Promised, but the driver no longer shows it.
      old.known = false;
      old.facts.trouble = "the driver no longer shows it";
      gpus.push_back(std::move(old));
    }
  }
  state.gpus = std::move(gpus);
  for (Gpu& gpu : state.gpus) {
    check_health(c, gpu);
    look_for_strays(c, gpu);
    note_company(state, gpu);
    mind_strangers(c, gpu);
    watch_given_up(state, gpu, c.now.mono);
  }
  unpark_quiet(c);
  state.recheck_all = true;
  return Answer{};
}

Result<Answer> apply_drain(ApplyContext& c, const event::DrainGpu& drain_gpu) {
  State& state = c.state;
  const auto it = std::ranges::find_if(state.gpus, [&](const Gpu& gpu) {
    return gpu.facts.uuid == drain_gpu.gpu || fmt::format("{}", gpu.facts.index) == drain_gpu.gpu;
  });
  // A card that has vanished can be given back all the same.
  const std::string uuid = it == state.gpus.end() ? drain_gpu.gpu : it->facts.uuid;
  if (it == state.gpus.end() && !state.drains.contains(uuid)) {
    return fail(ErrorCode::not_found,
                fmt::format("there is no GPU '{}'; `berth gpus` lists them", drain_gpu.gpu));
  }
  if (drain_gpu.drained && it != state.gpus.end()) {
    c.drain(*it, drain_gpu.why.empty() ? "taken out of use on request" : drain_gpu.why);
  } else if (!drain_gpu.drained && state.drains.erase(uuid) > 0) {
    c.step.changes.push_back(change::DrainPut{uuid, false, {}, c.now.wall});
    // Somebody has looked at it, so those that failed there may come back.
    for (auto& [job, cards] : state.avoiding) {
      std::erase_if(cards, [&uuid](const Avoided& avoided) { return avoided.gpu == uuid; });
    }
    // Nor does what runs there fail because of it any more.
    if (it != state.gpus.end()) {
      for (const Claim& claim : it->claims) {
        if (const auto attempt = state.attempts.find(claim.attempt);
            attempt != state.attempts.end()) {
          attempt->second.sick_card.clear();
        }
      }
    }
    c.step.changes.push_back(
        change::History{"undrained", {}, {}, {}, fmt::format("GPU {}", drain_gpu.gpu), c.now.wall});
  }
  state.recheck_all = true;
  return Answer{};
}

}  // namespace berth
