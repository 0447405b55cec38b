#include "sim/check_durability.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace berth::sim {

void DurabilityChecker::durable(const Changes& changes) {
  for (const Change& change : changes) {
    if (const auto* job = std::get_if<change::JobPut>(&change)) {
      // Not in order: the jobs of a submission in parts are overtaken by others.
      if (!issued_.insert(job->id).second) {
        findings_.report(fmt::format("job id {} was issued twice", job->id.value));
      }
    } else if (const auto* attempt = std::get_if<change::AttemptPut>(&change)) {
      if (!disk_.attempts.empty() && attempt->id <= disk_.attempts.rbegin()->first) {
        findings_.report(
            fmt::format("attempt id {} was issued twice or out of order", attempt->id.value));
      }
      if (const auto* of = disk_.job(attempt->job); of && disk_.open_batches.contains(of->batch)) {
        findings_.report(
            fmt::format("job {} started before its batch was complete", attempt->job.value));
      }
    } else if (const auto* batch = std::get_if<change::BatchPut>(&change)) {
      if (disk_.batch_limits.contains(batch->id) && !disk_.open_batches.contains(batch->id)) {
        findings_.report(fmt::format("batch id {} was issued twice", batch->id.value));
      }
    } else if (const auto* queue = std::get_if<change::QueuePut>(&change)) {
      const auto known = queue_names_.emplace(queue->spec.name, queue->id).first;
      if (known->second != queue->id || (disk_.queues.contains(queue->id) &&
                                         disk_.queues.at(queue->id).name != queue->spec.name)) {
        findings_.report(fmt::format("queue '{}' has two ids, or shares one", queue->spec.name));
      }
    } else if (const auto* key = std::get_if<change::ClientKey>(&change)) {
      if (!keys_on_disk_.emplace(key->key, key->owner).second) {
        findings_.report(fmt::format("client key '{}' was used for two submissions", key->key));
      }
    }
    disk_.put(change);
  }
}

void DurabilityChecker::effect(const Effect& effect) {
  if (const auto* start = std::get_if<effect::Start>(&effect)) {
    if (!disk_.open.contains(start->attempt)) {
      findings_.report(fmt::format("attempt {} of job {} was started before it was on disk",
                                   start->attempt.value, start->job.value));
    }
  } else if (const auto* forget = std::get_if<effect::Forget>(&effect)) {
    if (disk_.open.contains(forget->attempt)) {
      findings_.report(fmt::format("the record of attempt {} was let go before its end was on disk",
                                   forget->attempt.value));
    }
  } else if (const auto* kill = std::get_if<effect::Kill>(&effect)) {
    const auto attempt = disk_.attempts.find(kill->attempt);
    if (attempt == disk_.attempts.end() ||
        (!disk_.job(attempt->second.job)->kill_requested && !attempt->second.gives_way)) {
      findings_.report(fmt::format("attempt {} was killed, and nothing on disk asks for it",
                                   kill->attempt.value));
    }
  } else if (const auto* pause = std::get_if<effect::Pause>(&effect)) {
    const auto attempt = disk_.attempts.find(pause->attempt);
    if (attempt == disk_.attempts.end() ||
        !disk_.job(attempt->second.job)->been.contains(JobState::paused)) {
      findings_.report(fmt::format("attempt {} was paused, and nothing on disk asks for it",
                                   pause->attempt.value));
    }
  }
}

void DurabilityChecker::control_answered(const Event& /*event*/, const Result<Answer>& answer) {
  const auto* controlled = answer ? std::get_if<Controlled>(&*answer) : nullptr;
  if (controlled == nullptr) {
    return;
  }
  for (const auto& [what, jobs] : controlled->jobs) {
    const bool stopped = what == Controlled::What::paused || what == Controlled::What::held;
    for (const JobId id : jobs) {
      const Ledger::JobEntry* job = disk_.job(id);
      if (!job || (stopped && !job->been.contains(JobState::paused))) {
        findings_.report(
            fmt::format("job {} was called {}, the disk disagrees", id.value, to_string(what)));
      }
    }
  }
  for (const JobId id : controlled->absent) {
    if (const Ledger::JobEntry* job = disk_.job(id); job && !is_terminal(job->state)) {
      findings_.report(fmt::format("job {} is alive and a command did not know it", id.value));
    }
  }
}

void DurabilityChecker::submit_answered(const event::Submit& submit, const Result<Answer>& answer) {
  if (!answer) {
    check_refusal(submit, answer.error());
    return;
  }
  const auto& submitted = std::get<Submitted>(*answer);
  if (submitted.count != submit.jobs.size()) {
    findings_.report(fmt::format("{} jobs were submitted as '{}', {} acknowledged",
                                 submit.jobs.size(), submit.client_key, submitted.count));
  }
  for (std::uint64_t i = 0; i < submitted.count; ++i) {
    const JobId id{submitted.first.value + i};
    if (!disk_.job(id)) {
      findings_.report(fmt::format("job {} was acknowledged before it was on disk", id.value));
      return;
    }
    if (submit.client_key.empty() && promised_.contains(id)) {
      findings_.report(fmt::format("job {} was given to two submissions", id.value));
    }
    promised_.insert(id);
  }
  if (!submit.client_key.empty()) {
    const auto [it, fresh] = keys_.try_emplace({submit.client_key, submit.owner}, submitted);
    if (!fresh && it->second != submitted) {
      findings_.report(fmt::format("client key '{}' got jobs from {} first and from {} later",
                                   submit.client_key, it->second.first.value,
                                   submitted.first.value));
    }
  }
}

void DurabilityChecker::check_refusal(const event::Submit& submit, const Error& error) {
  if (error.code != ErrorCode::conflict && error.code != ErrorCode::not_found) {
    return;
  }
  for (const JobSpec& job : submit.jobs) {
    for (const JobId id : job.after) {
      const Ledger::JobEntry* other = disk_.job(id);
      if (!other || other->removed ||
          (is_terminal(other->state) && other->state != JobState::succeeded)) {
        return;
      }
    }
  }
  findings_.report(
      fmt::format("submission '{}' was refused though all it follows is alive or has succeeded: {}",
                  submit.client_key, error.message));
}

void DurabilityChecker::kill_answered(const event::Kill& /*kill*/, const Result<Answer>& answer) {
  if (!answer) {
    return;
  }
  const auto& killed = std::get<Killed>(*answer);
  for (const JobId id : killed.cancelled) {
    if (!disk_.job(id) || disk_.job(id)->state != JobState::cancelled) {
      findings_.report(fmt::format("job {} was called cancelled, the disk disagrees", id.value));
    }
  }
  for (const JobId id : killed.killed) {
    const Ledger::JobEntry* job = disk_.job(id);
    if (!job || (!is_terminal(job->state) && !job->kill_requested)) {
      findings_.report(
          fmt::format("the kill of job {} was acknowledged and is not on disk", id.value));
    }
  }
  for (const JobId id : killed.unknown) {
    if (const Ledger::JobEntry* job = disk_.job(id); job && !is_terminal(job->state)) {
      findings_.report(fmt::format("job {} is alive and a kill did not know it", id.value));
    }
  }
}

void DurabilityChecker::read_answered(const std::vector<Seen>& seen) {
  for (const Seen& one : seen) {
    const Ledger::JobEntry* job = disk_.job(one.job);
    if (!job || !job->been.contains(one.state) ||
        (one.attempt && !disk_.attempts.contains(one.attempt))) {
      findings_.report(fmt::format("a reader was told that job {} is {}, which is not on disk",
                                   one.job.value, to_string(one.state)));
    }
  }
}

void DurabilityChecker::restarted(const Snapshot& snapshot) {
  std::set<JobId> live;
  for (const Snapshot::LiveJob& job : snapshot.jobs) {
    live.insert(job.id);
  }
  for (const JobId id : promised_) {
    if (!is_terminal(disk_.job(id)->state) && !live.contains(id)) {
      findings_.report(
          fmt::format("job {} was acknowledged and is gone after a restart", id.value));
    }
  }
}

}  // namespace berth::sim
