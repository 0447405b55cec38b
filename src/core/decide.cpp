#include "core/decide.hpp"

#include <algorithm>
#include <queue>
#include <set>
#include <unordered_map>

#include "core/standing.hpp"

namespace berth {
namespace {

/// Merges the exposed heads of all shapes into one stream in order, remembering which shapes have
/// been found not to fit: within one decision room only shrinks, so they need no second look.
class Candidates {
 public:
  struct Candidate {
    Standing standing;
    OrderKey key;
    ShapeId shape;
    LaneKey lane;
    friend bool operator>(const Candidate& a, const Candidate& b) {
      return a.standing > b.standing;
    }
  };

  Candidates(const State& state, Now now) : state_(state), now_(now) {
    if (state.recheck_all) {
      for (const auto& [shape, heads] : state.ready.heads()) {
        push_heads(shape, heads);
      }
      return;
    }
    const std::set<ShapeId> shapes(state.recheck_shapes.begin(), state.recheck_shapes.end());
    for (const ShapeId shape : shapes) {
      if (const auto it = state.ready.heads().find(shape); it != state.ready.heads().end()) {
        push_heads(shape, it->second);
      }
    }
  }

  std::optional<Candidate> next() {
    if (heap_.empty()) {
      return std::nullopt;
    }
    Candidate top = heap_.top();
    heap_.pop();
    return top;
  }

  /// Jobs of this shape need not be looked at again. `only_gpus`: what was found of the first.
  void block(ShapeId shape, bool only_gpus) { blocked_.emplace(shape, only_gpus); }
  /// What was found of another one of its shape, if that does not fit.
  std::optional<bool> found(const Candidate& candidate) const {
    const auto it = blocked_.find(candidate.shape);
    return it == blocked_.end() || !candidate.standing.ordinary ? std::nullopt
                                                                : std::optional(it->second);
  }
  /// The one behind takes the place of one that was looked at.
  void advance(const Candidate& done) {
    if (const OrderKey* key = state_.ready.next(done.lane, done.shape, done.key)) {
      push(*key, done.shape, done.lane);
    }
  }

 private:
  void push_heads(ShapeId shape, const ReadyIndex::Heads& heads) {
    for (const ReadyIndex::Head& head : heads) {
      push(head.key, shape, head.lane);
    }
  }
  void push(const OrderKey& key, ShapeId shape, LaneKey lane) {
    heap_.push({standing(state_, state_.jobs.at(key.job), now_), key, shape, lane});
  }

  const State& state_;
  Now now_;
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> heap_;
  std::unordered_map<ShapeId, bool> blocked_;
};

class Decider {
 public:
  Decider(const State& state, Now now)
      : state_(state), now_(now), room_(state, now), running_(state.running) {
    decision_.complete = state.recheck_all;
    for (const Gpu& gpu : state.gpus) {
      for (const Claim& claim : gpu.claims) {
        if (claim.ended && gpu.sampled <= *claim.ended) {
          leaving_.insert(claim.attempt);
        }
      }
    }
    if (decision_.complete) {
      return;
    }
    if (state.hold) {
      room_.hold(*state.hold);
    }
    for (const JobId id : state.expected) {
      keep_place(state.jobs.at(id));
    }
  }

  Decision run() {
    Candidates candidates(state_, now_);
    while (const auto candidate = candidates.next()) {
      const Job& job = state_.jobs.at(candidate->key.job);
      if (is_limited(job)) {
        note_wait(*candidate, false);
        continue;
      }
      if (const auto only_gpus = candidates.found(*candidate)) {
        note_wait(*candidate, *only_gpus);
        continue;
      }
      Wish wish = wish_of(state_, job);
      wish.before_hold =
          !decision_.complete && room_.held() && goes_before(state_, job, *room_.held(), now_);
      const auto gpus = room_.place(wish);
      if (gpus) {
        start(job, wish, *gpus);
        candidates.advance(*candidate);
        continue;
      }
      const bool only_gpus = only_gpus_are_missing(wish);
      note_wait(*candidate, only_gpus);
      // One that avoids cards, or wants a look for itself, says nothing of the others of its shape.
      if (wish.avoid == nullptr && room_.stale(wish) == room_.stale(*wish.rules)) {
        candidates.block(candidate->shape, only_gpus);
      } else {
        candidates.advance(*candidate);
      }
      // After a failed look the prober tries again at its own pace; asking would only spin.
      const bool wants_gpus = wish.request->gpus.max > 0;
      const bool unseen = (wants_gpus && room_.stale(wish)) || room_.host_stale(wish);
      if (wants_gpus && unseen) {
        decision_.look_after = room_.look_after();
      }
      if (wants_gpus || wish.rules->keep_host_memory > 0) {
        const Millis age = wish.rules->sample_age_max;
        decision_.look_within = std::min(decision_.look_within.value_or(age), age);
      }
      decision_.want_sample = decision_.want_sample || (unseen && state_.probe_error.empty());
      if (!unseen) {
        stand_up_for(job, wish);
      }
      expect(job, wish, unseen);
    }
    decision_.hold = room_.held();
    decision_.expected.assign(expected_.begin(), expected_.end());
    return std::move(decision_);
  }

 private:
  bool is_limited(const Job& job) {
    if (job.expedited) {
      return false;
    }
    const Queue& queue = state_.queues.at(job.queue);
    const auto batch = state_.batches.find(job.batch);
    const std::uint32_t most = state_.rules.max_concurrent;
    // Its own place does not stand in its way.
    const std::uint32_t own = expected_.contains(job.id) ? 1 : 0;
    return (most != 0 && running_ - own >= most) ||
           (queue.limit != 0 && queue.running + queue_started_[job.queue] - own >= queue.limit) ||
           (batch != state_.batches.end() && batch->second.max_concurrent != 0 &&
            batch->second.running + batch_started_[job.batch] - own >=
                batch->second.max_concurrent);
  }

  /// Counts it as if it ran.
  void keep_place(const Job& job) {
    if (expected_.insert(job.id).second) {
      ++running_;
      ++queue_started_[job.queue];
      ++batch_started_[job.batch];
    }
  }

  /// Who goes first and lacks nothing but a look at its cards does not lose its place among those
  /// that may run to somebody behind it meanwhile.
  void expect(const Job& job, const Wish& wish, bool unseen) {
    const auto batch = state_.batches.find(job.batch);
    const bool limited = state_.rules.max_concurrent != 0 ||
                         state_.queues.at(job.queue).limit != 0 ||
                         (batch != state_.batches.end() && batch->second.max_concurrent != 0);
    if (!limited || job.expedited || wish.request->gpus.max == 0 ||
        state_.rules.backfill == Backfill::any) {
      return;
    }
    if (unseen) {
      if (state_.probe_error.empty() && (room_.host_fits(wish) || room_.host_stale(wish))) {
        keep_place(job);
      }
      return;
    }
    if (leaving_.empty()) {
      return;
    }
    Room room(state_, now_, &leaving_);
    if (room_.held()) {
      room.hold(*room_.held());
    }
    for (const auto& [other, gpus] : taken_) {
      room.take(other, gpus);
    }
    for (const auto& [other, gpus] : promised_) {
      room.take(other, gpus);
    }
    if (const auto gpus = room.place(wish)) {
      keep_place(job);
      promised_.emplace_back(wish, *gpus);
    }
  }

  void start(const Job& job, const Wish& wish, const std::vector<std::size_t>& gpus) {
    room_.take(wish, gpus);
    if (room_.held() && room_.held()->job == job.id) {
      room_.release_hold();
    }
    taken_.emplace_back(wish, gpus);
    keep_place(job);
    expected_.erase(job.id);
    decision_.start.push_back({job.id, gpus});
  }

  void note_wait(const Candidates::Candidate& candidate, bool only_gpus) {
    if (state_.shapes.at(candidate.shape).rules.max_wait > Millis{0}) {
      decision_.waits.push_back({candidate.lane, candidate.shape, candidate.key.job, only_gpus});
    }
  }

  /// Of one that does not wait for ever: whether others keep it from cards, and nothing else holds
  /// it. While its own batch has cards that it could use, it waits for its turn among its own.
  bool only_gpus_are_missing(const Wish& wish) const {
    return wish.rules->max_wait > Millis{0} && wish.request->gpus.max > 0 &&
           room_.host_fits(wish) && !room_.stale(wish) && !room_.full_quota(wish) &&
           !room_.own_batch_keeps(wish);
  }

  /// A job that goes first and does not fit must not wait for ever while others take what becomes
  /// free: jobs it may displace make room, and cards are kept for it.
  void stand_up_for(const Job& job, const Wish& wish) {
    const Rules& rules = state_.rules;
    if (wish.request->gpus.min == 0 || !room_.host_fits(wish) || room_.held()) {
      return;
    }
    if (preempt_for(job, wish)) {
      return;
    }
    if (rules.backfill == Backfill::any || room_.full_quota(wish)) {
      return;
    }
    if (!decision_.complete) {
      decision_.look_again = true;  // others may go before it
      return;
    }
    const auto plan = plan_for(wish);
    if (!plan) {
      return;  // strangers are in the way, and nobody knows for how long
    }
    if (plan->when || rules.backfill == Backfill::none ||
        now_.mono - job.since >= rules.hold_after) {
      keep_for(job, plan->gpus, plan->when);
    }
  }

  /// Where nobody may overtake, all cards are kept for whoever goes first.
  void keep_for(const Job& job, std::vector<std::string> gpus, std::optional<Millis> until) {
    if (state_.rules.backfill == Backfill::none) {
      gpus.clear();
      for (std::size_t i = 0; i < room_.gpu_count(); ++i) {
        gpus.push_back(room_.uuid(i));
      }
      until.reset();
    }
    room_.hold({job.id, std::move(gpus), until});
  }

  /// As if these attempts had ended; what this decision has placed so far stays.
  std::optional<std::vector<std::string>> fits_without(const Wish& wish,
                                                       std::set<AttemptId> without) const {
    without.insert(leaving_.begin(), leaving_.end());
    Room room(state_, now_, &without);
    for (const auto& [other, gpus] : taken_) {
      room.take(other, gpus);
    }
    const auto placed = room.place(wish);
    if (!placed) {
      return std::nullopt;
    }
    std::vector<std::string> uuids;
    for (const std::size_t gpu : *placed) {
      uuids.push_back(room.uuid(gpu));
    }
    return uuids;
  }

  /// The earliest moment at which ends that can be foretold make enough room.
  std::optional<Outlook> plan_for(const Wish& wish) const {
    std::vector<std::pair<Millis, AttemptId>> ends;
    std::set<AttemptId> all;
    for (const auto& [id, attempt] : state_.attempts) {
      all.insert(id);
      if (const auto end = end_of(state_, attempt)) {
        ends.emplace_back(std::max(*end, now_.mono), id);
      }
    }
    std::ranges::sort(ends);
    const auto first_of = [&](std::size_t count) {
      std::set<AttemptId> gone;
      for (std::size_t i = 0; i < count; ++i) {
        gone.insert(ends[i].second);
      }
      return gone;
    };
    if (auto gpus = fits_without(wish, first_of(ends.size()))) {
      std::size_t low = 0;
      for (std::size_t high = ends.size(); low < high;) {
        const std::size_t middle = low + (high - low) / 2;
        if (auto sooner = fits_without(wish, first_of(middle))) {
          gpus = std::move(sooner);
          high = middle;
        } else {
          low = middle + 1;
        }
      }
      return Outlook{low == 0 ? now_.mono : ends[low - 1].first, std::move(*gpus), first_of(low)};
    }
    if (auto gpus = fits_without(wish, all)) {
      return Outlook{std::nullopt, std::move(*gpus), std::move(all)};
    }
    return std::nullopt;
  }

  /// Leaves in `after` only those that have to end, for whoever wants to be told.
  void spare(const Wish& wish, Outlook& plan) const {
    const std::vector<AttemptId> youngest_first(plan.after.rbegin(), plan.after.rend());
    for (const AttemptId id : youngest_first) {
      plan.after.erase(id);
      if (auto gpus = fits_without(wish, plan.after)) {
        plan.gpus = std::move(*gpus);
      } else {
        plan.after.insert(id);
      }
    }
  }

  /// Those of lower priority that agreed to it, as few as possible, the least important and the
  /// youngest before others.
  bool preempt_for(const Job& job, const Wish& wish) {
    std::set<AttemptId> going;
    std::vector<const Attempt*> lesser;
    bool asked = false;
    for (const auto& [id, attempt] : state_.attempts) {
      const Job& other = state_.jobs.at(attempt.job);
      const bool less = other.priority > job.priority;
      if (other.kill_requested || (attempt.leaves() && less)) {
        going.insert(id);
        asked = asked || attempt.gives_way == GivesWay::preempted;
      } else if (!attempt.leaves() && less && state_.rules_of(other).preemptible) {
        lesser.push_back(&attempt);
      }
    }
    if (lesser.empty() && !asked) {
      return false;
    }
    // Nobody else has to go when those on their way out leave enough.
    if (auto gpus = fits_without(wish, going)) {
      if (asked) {
        keep_for(job, std::move(*gpus), std::nullopt);
      }
      return asked;
    }
    std::ranges::sort(lesser, [this](const Attempt* a, const Attempt* b) {
      const std::int32_t pa = state_.jobs.at(a->job).priority;
      const std::int32_t pb = state_.jobs.at(b->job).priority;
      return pa != pb ? pa < pb : a->id < b->id;
    });
    const auto victims = victims_of(wish, going, lesser);
    if (victims.empty()) {
      return false;
    }
    for (const AttemptId id : victims) {
      decision_.preempt.push_back({id, job.id});
      going.insert(id);
    }
    if (auto gpus = fits_without(wish, going)) {
      keep_for(job, std::move(*gpus), std::nullopt);
    }
    return true;
  }

  /// Of attempts in the order in which they should be spared. None: it does not help.
  std::vector<AttemptId> victims_of(const Wish& wish, const std::set<AttemptId>& going,
                                    const std::vector<const Attempt*>& lesser) const {
    std::set<AttemptId> gone = going;
    for (const Attempt* attempt : lesser) {
      gone.insert(attempt->id);
    }
    if (lesser.empty() || !fits_without(wish, gone)) {
      return {};
    }
    std::vector<AttemptId> victims;
    for (const Attempt* attempt : lesser) {
      gone.erase(attempt->id);
      if (!fits_without(wish, gone)) {
        gone.insert(attempt->id);
        victims.push_back(attempt->id);
      }
    }
    // Sparing the first ones may cost several others where one of the first would do.
    for (auto it = lesser.rbegin(); victims.size() > 1 && it != lesser.rend(); ++it) {
      gone = going;
      gone.insert((*it)->id);
      if (fits_without(wish, gone)) {
        victims = {(*it)->id};
      }
    }
    return victims;
  }

  const State& state_;
  Now now_;
  Room room_;
  Decision decision_;
  std::uint32_t running_;
  std::set<AttemptId> leaving_;  ///< have ended; the next look at their cards will show it
  std::vector<std::pair<Wish, std::vector<std::size_t>>> taken_;
  std::set<JobId> expected_;  ///< who start with the next look, and are counted already
  std::vector<std::pair<Wish, std::vector<std::size_t>>> promised_;  ///< what they will have
  std::unordered_map<QueueId, std::uint32_t> queue_started_;
  std::unordered_map<BatchId, std::uint32_t> batch_started_;

  friend std::optional<Outlook> berth::outlook(const State& state, const Job& job, Now now);
};

}  // namespace

std::optional<Millis> end_of(const State& state, const Attempt& attempt) {
  const Job& job = state.jobs.at(attempt.job);
  if (attempt.leaves() || job.kill_requested) {
    return attempt.started;  // any moment now
  }
  const Millis time = state.request(job).time;
  return time == Millis{0} || job.state == JobState::paused ? std::nullopt
                                                            : std::optional(attempt.started + time);
}

std::optional<Outlook> outlook(const State& state, const Job& job, Now now) {
  const Decider decider(state, now);
  const Wish wish = wish_of(state, job);
  auto plan = decider.plan_for(wish);
  if (plan) {
    decider.spare(wish, *plan);
  }
  return plan;
}

Decision decide(const State& state, Now now) {
  if (state.low_space || state.paused || (!state.recheck_all && state.recheck_shapes.empty())) {
    Decision nothing;
    nothing.hold = state.hold;
    nothing.expected = state.expected;
    nothing.shut = state.low_space || state.paused;
    return nothing;
  }
  return Decider(state, now).run();
}

}  // namespace berth
