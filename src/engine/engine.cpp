#include "engine/engine.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace berth {

Engine::Engine(State state, Store& store, EffectSink& effects, Clock& clock)
    : state_(std::move(state)), store_(store), effects_(effects), clock_(clock) {}

void Engine::handle(Event event, Reply reply) {
  if (broken_) {
    if (reply) {
      reply(std::unexpected(*broken_));
    }
    return;
  }
  if (auto* revive = std::get_if<event::Revive>(&event);
      revive != nullptr && !find_ended(*revive)) {
    when_durable(
        [this, event = std::move(event), reply = std::move(reply)] { handle(event, reply); });
    return;
  }
  Key key;
  if (auto* submit = std::get_if<event::Submit>(&event)) {
    key = {submit->client_key, submit->owner};
    find_dependencies(submit->jobs, submit->finished_dependencies);
  } else if (const auto* begin = std::get_if<event::SubmitBegin>(&event)) {
    key = {begin->client_key, begin->owner};
  } else if (auto* part = std::get_if<event::SubmitPart>(&event)) {
    find_dependencies(part->jobs, part->finished_dependencies);
  } else if (const auto* end = std::get_if<event::SubmitEnd>(&event)) {
    if (const auto open = state_.submissions.find(end->batch); open != state_.submissions.end()) {
      key = {open->second.head.client_key, open->second.head.owner};
    }
  }
  if (!key.first.empty()) {
    if (const auto earlier = find_earlier(key)) {
      if (const auto* end = std::get_if<event::SubmitEnd>(&event)) {
        // Somebody was quicker with the same submission; this one has not happened.
        handle(event::SubmitAbort{end->batch});
      }
      when_durable([reply = std::move(reply), earlier = *earlier] {
        if (reply) {
          reply(Answer{earlier});
        }
      });
      return;
    }
  }
  if (const auto* space = std::get_if<event::SpaceChanged>(&event)) {
    records_full_ = records_full_ && space->low;
  }
  const std::size_t before = open_.step.changes.size();
  auto answer = apply(state_, std::move(event), clock_.now(), open_.step);
  note_finished(before);
  if (answer) {
    if (const auto* submitted = std::get_if<Submitted>(&*answer);
        submitted && !key.first.empty() && !state_.submissions.contains(submitted->batch)) {
      open_.keys.emplace(std::move(key), *submitted);
    }
    decide_now();
  }
  if (reply) {
    when_durable([reply = std::move(reply), answer = std::move(answer)]() mutable {
      reply(std::move(answer));
    });
  } else {
    pump();
  }
}

std::optional<Submitted> Engine::find_earlier(const Key& key) {
  for (const Batch* batch : {&open_, &committing_}) {
    if (const auto it = batch->keys.find(key); it != batch->keys.end()) {
      return it->second;
    }
  }
  if (const auto stored = store_.find_key(key.first, key.second)) {
    return Submitted{stored->batch, stored->first, stored->count};
  }
  return std::nullopt;
}

void Engine::find_dependencies(const std::vector<JobSpec>& jobs,
                               std::map<JobId, JobState>& finished) {
  for (const JobSpec& job : jobs) {
    for (const JobId id : job.after) {
      if (!state_.jobs.contains(id) && !finished.contains(id)) {
        if (const auto state = find_finished(id)) {
          finished.emplace(id, *state);
        }
      }
    }
  }
}

std::optional<JobState> Engine::find_finished(JobId id) {
  // The store may still show the job running while the commit that ends it is under way.
  for (const Batch* batch : {&open_, &committing_}) {
    if (const auto it = batch->finished.find(id); it != batch->finished.end()) {
      return it->second;
    }
  }
  return store_.find_job_state(id);
}

void Engine::note_finished(std::size_t first_change) {
  for (std::size_t i = first_change; i < open_.step.changes.size(); ++i) {
    const auto* update = std::get_if<change::JobUpdate>(&open_.step.changes[i]);
    if (update != nullptr && is_terminal(update->state)) {
      if (meter != nullptr) {
        meter->finished(update->state, update->failure);
      }
      open_.finished.insert_or_assign(update->id, update->state);
    } else if (const auto* remove = std::get_if<change::JobsRemove>(&open_.step.changes[i])) {
      open_.removed.insert(remove->ids.begin(), remove->ids.end());
    } else if (const auto* rules = std::get_if<change::BatchRules>(&open_.step.changes[i])) {
      open_.batches.insert(rules->id);
    } else if (const auto* put = std::get_if<change::BatchPut>(&open_.step.changes[i])) {
      open_.batches.insert(put->id);
    }
  }
}

template <class Asked>
bool Engine::on_its_way(const Asked& asked) const {
  return asked(open_) || asked(committing_);
}

bool Engine::find_ended(event::Revive& revive) {
  revive.ended.clear();
  revive.finished_dependencies.clear();
  for (const JobId id : revive.jobs) {
    if (state_.jobs.contains(id)) {
      continue;
    }
    if (on_its_way([id](const Batch& batch) {
          return batch.finished.contains(id) || batch.removed.contains(id);
        })) {
      return false;
    }
    auto row = store_.find_ended_job(id);
    if (!row) {
      continue;
    }
    if (!state_.batches.contains(row->batch) &&
        on_its_way([&row](const Batch& batch) { return batch.batches.contains(row->batch); })) {
      return false;
    }
    for (const JobId dependency : row->after) {
      if (const auto state =
              state_.jobs.contains(dependency) ? std::nullopt : find_finished(dependency)) {
        revive.finished_dependencies.emplace(dependency, *state);
      }
    }
    revive.ended.push_back(std::move(*row));
  }
  return true;
}

void Engine::decide_now() {
  const Now now = clock_.now();
  if (meter != nullptr) {
    meter->deciding();
  }
  apply(state_, decide(state_, now), now, open_.step);
  if (meter != nullptr) {
    meter->decided();
  }
}

void Engine::repeat_orders() {
  // In order of the attempts: the same State must always lead to the same effects.
  std::vector<AttemptId> open;
  for (const auto& [id, attempt] : state_.attempts) {
    open.push_back(id);
  }
  std::ranges::sort(open);
  for (const AttemptId id : open) {
    const Attempt& attempt = state_.attempts.at(id);
    const Job& job = state_.jobs.at(attempt.job);
    if (job.kill_requested) {
      effects_.run(effect::Kill{id, attempt.kill_grace});
    } else if (attempt.leaves()) {
      effects_.run(effect::Kill{id, {}, *attempt.gives_way != GivesWay::gpu_lost});
    } else if (job.state == JobState::paused) {
      effects_.run(effect::Pause{id});
    } else {
      effects_.run(effect::Resume{id});
    }
  }
}

void Engine::when_durable(std::function<void()> reply) {
  if (open_.step.changes.empty() && in_flight_) {
    // All that is not yet durable is in the commit under way.
    committing_.replies.push_back(std::move(reply));
  } else {
    open_.replies.push_back(std::move(reply));
  }
  pump();
}

void Engine::pump() {
  // Asked again each time round: a released reply may call back in here and begin a commit.
  while (!in_flight_ && !broken_ && !open_.empty()) {
    if (open_.step.changes.empty()) {
      // A local: what replies add belongs to the next round.
      Batch nothing_to_write = std::exchange(open_, {});
      release(nothing_to_write, CommitOutcome{});
      continue;
    }
    committing_ = std::exchange(open_, {});
    in_flight_ = true;
    if (meter != nullptr) {
      meter->committing();
    }
    Transaction transaction;
    transaction.changes = std::move(committing_.step.changes);
    transaction.prepare = std::move(committing_.step.prepare);
    store_.commit(std::move(transaction),
                  [this](CommitOutcome outcome) { committed(std::move(outcome)); });
    return;
  }
}

void Engine::committed(CommitOutcome outcome) {
  in_flight_ = false;
  if (meter != nullptr) {
    meter->committed();
  }
  if (!outcome.status) {
    broken_ = outcome.status.error();
    // Nobody is answered: what they asked for may be lost, and their client key makes it safe to
    // ask again after the restart.
    if (on_broken) {
      on_broken(*broken_);
    }
    return;
  }
  Batch done = std::exchange(committing_, {});
  release(done, outcome);
  // That the database found room does not mean that a new file does (quota, inodes). Once a record
  // could not be made, only a look at the disk of its own ends it; or starts would spin.
  if (outcome.low_space ? !state_.low_space : state_.low_space && !records_full_) {
    handle(event::SpaceChanged{outcome.low_space, outcome.space_detail});
  }
  for (const auto& [attempt, error] : outcome.unprepared) {
    if (error.code == ErrorCode::no_space) {
      handle(event::SpaceChanged{true, error.message});
      records_full_ = true;
      handle(event::AttemptRevoked{attempt, error.message});
      continue;
    }
    Verdict verdict;
    verdict.failure = FailureClass::cannot_start;
    verdict.message = error.message;
    verdict.ended_wall = clock_.now().wall;
    handle(event::AttemptExited{attempt, verdict});
  }
  pump();
  if (on_durable) {
    on_durable();
  }
}

void Engine::release(Batch& batch, const CommitOutcome& outcome) {
  for (const Effect& effect : batch.step.effects) {
    const auto* start = std::get_if<effect::Start>(&effect);
    const bool cannot =
        start != nullptr && std::ranges::any_of(outcome.unprepared, [&](const auto& failed) {
          return failed.first == start->attempt;
        });
    if (!cannot) {
      effects_.run(effect);
    }
  }
  for (auto& reply : batch.replies) {
    reply();
  }
}

}  // namespace berth
