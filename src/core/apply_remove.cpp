// Forgetting jobs.

#include <algorithm>
#include <functional>
#include <unordered_set>

#include <fmt/format.h>

#include "core/apply_context.hpp"

namespace berth {
namespace {

/// Whether somebody alive has yet to hear how it ends, or ended.
bool is_needed(const State& state, JobId id) {
  if (std::ranges::any_of(state.settling, [&](const Settling& told) { return told.ended == id; })) {
    return true;  // not all have been told yet
  }
  const auto it = state.dependents.find(id);
  return it != state.dependents.end() && std::ranges::any_of(it->second, [&](JobId follower) {
           return state.jobs.contains(follower);
         });
}

}  // namespace

Result<Answer> apply_remove(ApplyContext& c, const event::Remove& remove) {
  State& state = c.state;
  Removed answer;
  std::unordered_set<JobId> seen;
  std::vector<JobId> left;
  for (const JobId id : remove.jobs) {
    if (seen.insert(id).second) {
      left.push_back(id);
    }
  }
  // Round after round: a job that others wait for goes once they are gone. Those are nearly always
  // younger.
  std::ranges::sort(left, std::greater{});
  for (bool progress = true; progress;) {
    progress = false;
    std::vector<JobId> again;
    for (const JobId id : left) {
      const auto it = state.jobs.find(id);
      if (it != state.jobs.end() && (remove.ended || !it->second.waits())) {
        answer.running.push_back(id);
        continue;
      }
      if (is_needed(state, id)) {
        again.push_back(id);
        continue;
      }
      if (it != state.jobs.end()) {
        c.cancel(it->second, "removed on request");
        c.retire(id);
        answer.cancelled.push_back(id);
        progress = true;
      }
      answer.removed.push_back(id);
    }
    left = std::move(again);
  }
  answer.needed = std::move(left);
  for (auto* ids : {&answer.removed, &answer.cancelled, &answer.running, &answer.needed}) {
    std::ranges::sort(*ids);
  }
  if (!answer.removed.empty()) {
    c.step.changes.push_back(change::JobsRemove{answer.removed});
    c.step.changes.push_back(
        change::History{"removed",
                        {},
                        {},
                        {},
                        fmt::format("{} jobs, the first of them {}", answer.removed.size(),
                                    answer.removed.front().value),
                        c.now.wall});
  }
  return answer;
}

}  // namespace berth
