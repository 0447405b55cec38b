// Which cards are taken and which are not, and that everybody gets some in the end.

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <rapidcheck/gtest.h>  // needs the one above

#include "core/foreign.hpp"
#include "property/history.hpp"
#include "unit/core/policy_table.hpp"

namespace berth::testing {
namespace {

/// What a look at the card has left to promise, computed anew.
Bytes unpromised(const Gpu& gpu) {
  Bytes promised = 0;
  for (const Claim& claim : gpu.claims) {
    Bytes used = 0;
    for (const GpuProcess& process : gpu.facts.processes.value_or(std::vector<GpuProcess>{})) {
      used += process.attempt == claim.attempt ? process.memory.value_or(0) : 0;
    }
    promised += claim.memory > used ? claim.memory - used : 0;
  }
  const Bytes free = gpu.facts.memory_free.value_or(0);
  return free > promised ? free - promised : 0;
}

RC_GTEST_PROP(PlacingProps, no_more_is_promised_than_is_free, ()) {
  const Rules rules = any_rules();
  Player player(Limits::changing, rules);
  const auto check = [&](const Decision& decision) {
    std::map<std::size_t, Bytes> wanted;
    std::map<std::size_t, int> shares;
    std::set<std::size_t> whole;
    for (const Placement& placement : decision.start) {
      const Request& request = player.state.request(*player.state.job(placement.job));
      for (const std::size_t gpu : placement.gpus) {
        wanted[gpu] += request.gpu_memory.value_or(0);
        ++shares[gpu];
        if (!request.gpu_memory) {
          whole.insert(gpu);
        }
      }
    }
    for (const auto& [gpu, bytes] : wanted) {
      const Gpu& card = player.state.gpus[gpu];
      RC_ASSERT(bytes + rules.memory_margin <= unpromised(card));
      RC_ASSERT((!whole.contains(gpu) || (shares.at(gpu) == 1 && card.claims.empty())));
    }
  };
  play(player, any_history(), check, kNothing);
}

RC_GTEST_PROP(PlacingProps, only_allowed_cards_are_taken, ()) {
  Rules rules = any_rules();
  rules.gpus = *rc::gen::element(std::vector<std::string>{"0"}, std::vector<std::string>{"0", "2"},
                                 std::vector<std::string>{"GPU-1"},
                                 std::vector<std::string>{"GPU-1", "2", "17"});
  Player player(Limits::changing, rules);
  const auto check = [&](const Decision& decision) {
    for (const Placement& placement : decision.start) {
      for (const std::size_t gpu : placement.gpus) {
        const GpuFacts& facts = player.state.gpus[gpu].facts;
        const bool named =
            std::ranges::find(rules.gpus, facts.uuid) != rules.gpus.end() ||
            std::ranges::find(rules.gpus, fmt::format("{}", facts.index)) != rules.gpus.end();
        RC_ASSERT(named);  // those started by hand included
      }
    }
  };
  play(player, any_history(), check, kNothing);
}

RC_GTEST_PROP(PlacingProps, so_many_free_cards_stay_free_whichever_they_are, ()) {
  Rules rules = any_rules();
  rules.gpu_left = *rc::gen::inRange(1U, 3U);
  rules.gpu_left_mode = LeftMode::any;
  rules.min_gpu = 0;
  Player player(Limits::changing, rules);
  const auto somebody_could_have = [&](const Gpu& gpu) {
    const Strangers others = strangers_on(gpu.facts, false, rules.foreign, player.state.host.uid);
    return gpu.known && gpu.facts.trouble.empty() && gpu.claims.empty() &&
           gpu.facts.memory_free.value_or(0) >= kGiB && others.utilization <= rules.max_utilization;
  };
  const auto check = [&](const Decision& decision) {
    std::set<std::size_t> taken;
    bool ordinary = false;
    for (const Placement& placement : decision.start) {
      for (const std::size_t gpu : placement.gpus) {
        ordinary = ordinary || (player.state.gpus[gpu].claims.empty() && !taken.contains(gpu) &&
                                !player.state.job(placement.job)->expedited);
        taken.insert(gpu);
      }
    }
    std::uint32_t left = 0;
    for (std::size_t i = 0; i < player.state.gpus.size(); ++i) {
      left += !taken.contains(i) && somebody_could_have(player.state.gpus[i]) ? 1 : 0;
    }
    RC_ASSERT((!ordinary || left >= rules.gpu_left));
  };
  play(player, any_history(), check, kNothing);
}

/// More urgent jobs than there is room for arrive all the time, and each runs for a while.
class Stream {
 public:
  Stream(World& world, std::uint32_t cards, Millis longest)
      : world_(world), cards_(cards), longest_(longest) {}

  /// As many as are needed for every card to be wanted by somebody else.
  void fill() {
    std::vector<JobSpec> jobs;
    for (std::size_t waiting = world_.state.jobs.size() - ends_.size(); waiting <= 2 * cards_ + 1;
         ++waiting) {
      auto job = a_job().gpus(*rc::gen::inRange(1U, cards_ + 1)).priority(0);
      if (*rc::gen::arbitrary<bool>()) {
        job.time(longest_);
      }
      jobs.push_back(job);
    }
    if (!jobs.empty()) {
      world_.submit(a_submission(std::move(jobs)).owner(*rc::gen::inRange(1U, 4U)));
    }
  }
  void note_starts() {
    for (const auto& [id, attempt] : world_.state.attempts) {
      const auto runs = std::ranges::any_of(
          ends_, [&attempt](const auto& end) { return end.second == attempt.job.value; });
      if (!runs) {
        const auto lasts = *rc::gen::inRange(longest_.count() / 2, longest_.count() + 1);
        ends_.emplace(world_.now.mono + Millis{lasts}, attempt.job.value);
      }
    }
  }
  /// The moment of the next end, or `moment` if that comes first.
  void go_on(Millis moment) {
    const bool ends_first =
        !ends_.empty() && (moment <= world_.now.mono || ends_.begin()->first <= moment);
    const Millis until = ends_first ? ends_.begin()->first : moment;
    world_.pass(std::max(until - world_.now.mono, Millis{0}));
    while (!ends_.empty() && ends_.begin()->first <= world_.now.mono) {
      world_.succeed(ends_.begin()->second);
      ends_.erase(ends_.begin());
    }
    world_.see_idle(cards_);
  }

 private:
  World& world_;
  std::uint32_t cards_;
  Millis longest_;
  std::multimap<Millis, std::uint64_t> ends_;
};

RC_GTEST_PROP(PlacingProps, nobody_waits_longer_than_the_cap_and_what_runs_then, ()) {
  const auto cards = *rc::gen::inRange(1U, 5U);
  const Millis aging = *rc::gen::element(kHour, kDay);
  const Millis longest = aging / *rc::gen::inRange(2, 6);
  const Millis hold_after = *rc::gen::element(Millis{0}, 10 * kMinute);
  World w;
  w.rule("aging", fmt::format("{}ms", aging.count()));
  w.rule("hold_after", fmt::format("{}ms", hold_after.count()));
  w.rule("order", *rc::gen::element(std::string("fifo"), std::string("random"),
                                    std::string("largest_first")));
  w.rule("backfill", *rc::gen::element(std::string("easy"), std::string("none")));
  w.see_idle(cards);
  Stream stream(w, cards, longest);
  w.submit(copies(cards, a_job().priority(0)));
  w.decide();
  stream.note_starts();
  const Millis came = w.now.mono;
  const std::uint64_t id = w.state.last_job.value + 1;
  w.submit({a_job().gpus(*rc::gen::inRange(1U, cards + 1)).priority(9)});
  // From the cap on nobody goes before it, and it gets the cards of those that run then.
  const Millis latest = came + aging + longest;
  while (w.state.job(JobId{id})->waits()) {
    RC_ASSERT(w.now.mono <= latest);
    stream.fill();
    w.decide();
    stream.note_starts();
    if (w.state.job(JobId{id})->waits()) {
      stream.go_on(came + aging);
    }
  }
}

}  // namespace
}  // namespace berth::testing
