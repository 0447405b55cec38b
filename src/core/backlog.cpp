#include "core/backlog.hpp"

#include <algorithm>
#include <map>
#include <ranges>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/decide.hpp"

namespace berth {
namespace {

/// Reasons of many jobs, put together where they are the same.
class Holdups {
 public:
  Holdups(const State& state, Now now) : state_(state), room_(room_to_explain(state, now)) {}

  void add(const Job& job, std::uint64_t count) {
    auto reasons = explain(state_, job, room_);
    if (reasons.empty() || count == 0) {
      return;
    }
    Reason& reason = reasons.front();
    if (reason.kind == Reason::Kind::held) {  // each of those has words of its own
      reason.text = "held; `berth resume` lets them wait for their turn again";
    }
    const std::pair key{reason.kind, reason.text};
    const auto [it, fresh] = groups_.try_emplace(key, Holdup{std::move(reason), job.id, 0});
    it->second.jobs += count;
    it->second.first = std::min(it->second.first, job.id);
  }

  [[nodiscard]] std::vector<Holdup> sorted() && {
    std::vector<Holdup> result;
    for (auto& [key, holdup] : groups_) {
      result.push_back(std::move(holdup));
    }
    std::ranges::sort(result, [](const Holdup& a, const Holdup& b) {
      return a.jobs != b.jobs ? a.jobs > b.jobs : a.first < b.first;
    });
    return result;
  }

 private:
  const State& state_;
  Room room_;
  std::map<std::pair<Reason::Kind, std::string>, Holdup> groups_;
};

/// Of those that stand in no line there may be many, and a sentence for each takes its time: they
/// are put together by what it would be made of, and only the groups that go first get one.
class Apart {
 public:
  explicit Apart(const State& state) : state_(state) {}

  void add(JobId id) {
    const auto found = state_.jobs.find(id);
    if (found == state_.jobs.end() || !found->second.waits()) {
      return;
    }
    ++waiting_;
    const auto [it, fresh] = groups_.try_emplace(cause_of(found->second), Group{id, 0});
    ++it->second.jobs;
    it->second.first = std::min(it->second.first, id);
  }

  [[nodiscard]] std::uint64_t waiting() const { return waiting_; }

  void tell(Holdups& holdups) const {
    std::vector<Group> groups;
    for (const auto& [cause, group] : groups_) {
      groups.push_back(group);
    }
    std::ranges::sort(groups, {}, &Group::first);
    for (const Group& group : groups | std::views::take(kExplained)) {
      holdups.add(state_.jobs.at(group.first), group.jobs);
    }
  }

 private:
  static constexpr std::size_t kExplained = 200;

  struct Cause {
    bool held = false;
    After as = After::ok;
    std::vector<JobId> after = {};
    bool backing_off = false;
    Millis due{0};
    friend auto operator<=>(const Cause&, const Cause&) = default;
  };
  struct Group {
    JobId first;
    std::uint64_t jobs = 0;
  };

  /// What `explain` would say first.
  [[nodiscard]] Cause cause_of(const Job& job) const {
    if (job.held()) {
      return {.held = true};
    }
    if (const auto it = state_.pending.find(job.id); it != state_.pending.end()) {
      return {.as = job.after_kind, .after = it->second};
    }
    const auto it = state_.delays.find(job.id);
    return it == state_.delays.end()
               ? Cause{}
               : Cause{.backing_off = it->second.backing_off, .due = it->second.due};
  }

  const State& state_;
  std::map<Cause, Group> groups_;
  std::uint64_t waiting_ = 0;
};

}  // namespace

bool waits_for_its_turn_alone(const State& state, const Job& job) {
  return state.queues.at(job.queue).limit == 1 && !job.expedited;
}

Backlog backlog(const State& state, Now now) {
  Backlog result;
  Holdups holdups(state, now);
  state.ready.for_each([&](const OrderKey& first, std::size_t count) {
    result.waiting += count;
    holdups.add(state.jobs.at(first.job), 1);
    if (count > 1) {
      // In a serial queue those behind wait for the first, elsewhere for what it waits for.
      const Job& job = state.jobs.at(first.job);
      const OrderKey* behind = waits_for_its_turn_alone(state, job)
                                   ? state.ready.second(state.lane(job), job.shape)
                                   : nullptr;
      holdups.add(behind != nullptr ? state.jobs.at(behind->job) : job, count - 1);
    }
  });
  Apart rest(state);
  for (const auto& [id, after] : state.pending) {
    rest.add(id);
  }
  for (const auto& [id, delay] : state.delays) {
    if (!state.pending.contains(id)) {
      rest.add(id);
    }
  }
  for (const JobId id : state.held) {
    if (!state.pending.contains(id) && !state.delays.contains(id)) {
      rest.add(id);
    }
  }
  result.waiting += rest.waiting();
  rest.tell(holdups);
  result.holdups = std::move(holdups).sorted();
  return result;
}

std::optional<std::uint64_t> jobs_ahead(const State& state, const Job& job, std::uint64_t most) {
  const Queue& queue = state.queues.at(job.queue);
  // In a serial queue who waits to be tried again keeps its place.
  const bool keeps = queue.limit == 1 && job.waits() && queue.backing_off.contains(job.id);
  if (!job.ready() && !keeps) {
    return std::nullopt;
  }
  if (job.expedited) {
    return 0;
  }
  const OrderKey key = state.order(job);
  std::uint64_t ahead = state.ready.ahead(job.queue, key, most);
  if (queue.limit == 1) {
    ahead += static_cast<std::uint64_t>(std::ranges::count_if(
        queue.backing_off, [&](JobId id) { return state.order(state.jobs.at(id)) < key; }));
  }
  return std::min(ahead, most);
}

std::optional<Prospect> foretell(const State& state, const Job& job, Now now) {
  if (!job.ready() || state.request(job).gpus.min == 0) {
    return std::nullopt;
  }
  const auto plan = outlook(state, job, now);
  if (!plan) {
    return std::nullopt;
  }
  std::set<JobId> jobs;
  for (const AttemptId id : plan->after) {
    jobs.insert(state.attempts.at(id).job);
  }
  if (jobs.empty()) {
    return std::nullopt;
  }
  Prospect found{{}, {jobs.begin(), jobs.end()}, {}};
  for (const std::string& uuid : plan->gpus) {
    if (const Gpu* gpu = state.gpu(uuid)) {
      found.gpus.push_back(gpu->facts.index);
    }
  }
  std::ranges::sort(found.gpus);
  if (plan->when) {
    found.within = std::max(Millis{0}, *plan->when - now.mono);
  }
  return found;
}

std::string describe(const Prospect& prospect) {
  return fmt::format(
      "GPU{} {} would fit when {} end{}{}", prospect.gpus.size() == 1 ? "" : "s",
      fmt::join(prospect.gpus, ", "), list_jobs(prospect.jobs),
      prospect.jobs.size() == 1 ? "s" : "",
      prospect.within ? fmt::format(", within {}", format_duration(*prospect.within)) : "");
}

}  // namespace berth
