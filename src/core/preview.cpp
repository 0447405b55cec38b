#include "core/preview.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "core/apply.hpp"
#include "core/backlog.hpp"

namespace berth {
namespace {

void decide_now(State& state, Now now, std::vector<JobId>& starts) {
  const Decision decision = decide(state, now);
  for (const Placement& placement : decision.start) {
    starts.push_back(placement.job);
  }
  Step step;
  apply(state, decision, now, step);
}

/// Equal requests in a line, of which the first goes first.
struct Line {
  std::uint64_t jobs = 1;
  std::optional<JobId> second;  ///< who may wait for the first, not for what that waits for
};

using Heads = std::map<JobId, Line>;

void add_heads(const State& state, Heads& heads) {
  state.ready.for_each([&](const OrderKey& first, std::size_t count) {
    const Job& job = state.jobs.at(first.job);
    const OrderKey* second = count > 1 && waits_for_its_turn_alone(state, job)
                                 ? state.ready.second(state.lane(job), job.shape)
                                 : nullptr;
    heads[first.job] = {count, second != nullptr ? std::optional(second->job) : std::nullopt};
  });
}

std::optional<Reason> first_reason(const State& state, JobId id, const Room& room) {
  const Job* job = state.job(id);
  auto reasons = job == nullptr ? std::vector<Reason>() : explain(state, *job, room);
  return reasons.empty() ? std::nullopt : std::optional(std::move(reasons.front()));
}

bool say_the_same(const std::optional<Reason>& one, const std::optional<Reason>& other) {
  return one.has_value() == other.has_value() && (!one || one->text == other->text);
}

}  // namespace

Result<Preview> preview_rules(const State& state, const event::SetRules& set, Now now,
                              std::size_t most) {
  State after = state;
  Step step;
  TRY(apply(after, set, now, step));
  Preview preview;
  decide_now(after, now, preview.starts);
  while (after.continuing) {
    TRY(apply(after, event::Continue{}, now, step));
    decide_now(after, now, preview.starts);
  }
  std::ranges::sort(preview.starts);
  Heads heads;
  add_heads(state, heads);
  add_heads(after, heads);
  const Room room_before = room_to_explain(state, now);
  const Room room_after = room_to_explain(after, now);
  for (const auto& [id, line] : heads) {
    if (preview.waits.size() == most) {
      preview.more = true;
      break;
    }
    Preview::Wait wait{id, 1, first_reason(state, id, room_before),
                       first_reason(after, id, room_after)};
    if (say_the_same(wait.before, wait.after) || std::ranges::binary_search(preview.starts, id)) {
      continue;
    }
    if (!line.second || say_the_same(wait.after, first_reason(after, *line.second, room_after))) {
      wait.jobs = line.jobs;
    }
    preview.waits.push_back(std::move(wait));
  }
  return preview;
}

}  // namespace berth
