#include "sim/check_runs.hpp"

#include <utility>

#include <fmt/format.h>

namespace berth::sim {
namespace {

/// Retries that every job has for what is not its fault.
const std::uint32_t kExcuses = Rules().retry.not_its_fault;

}  // namespace

void RunChecker::run_started(AttemptId attempt, JobId job) {
  Truth& truth = truth_[attempt];
  if (truth.ran) {
    findings_.report(
        fmt::format("the command of attempt {} (job {}) ran twice", attempt.value, job.value));
  }
  truth.ran = true;
  truth.running = true;
  const auto entry = disk_.attempts.find(attempt);
  if (entry == disk_.attempts.end() || entry->second.ended) {
    findings_.report(fmt::format("attempt {} of job {} runs and is {} on disk", attempt.value,
                                 job.value,
                                 entry == disk_.attempts.end() ? "not" : "already ended"));
    return;
  }
  const auto [other, alone] = running_.try_emplace(job, attempt);
  if (!alone && other->second != attempt) {
    findings_.report(fmt::format("job {} runs in attempts {} and {} at once", job.value,
                                 other->second.value, attempt.value));
  }
  const Ledger::JobEntry& known = *disk_.job(job);
  if (++runs_[job] > 1 + known.most_retries + kExcuses + known.gave_way) {
    findings_.report(fmt::format("job {} has run {} times with {} retries", job.value, runs_[job],
                                 disk_.job(job)->most_retries));
  }
}

void RunChecker::run_ended(AttemptId attempt, const Verdict& verdict) {
  truth_[attempt].running = false;
  truth_[attempt].recorded = verdict;
  std::erase_if(running_, [&](const auto& entry) { return entry.second == attempt; });
}

void RunChecker::run_vanished(AttemptId attempt) {
  truth_[attempt].running = false;
  std::erase_if(running_, [&](const auto& entry) { return entry.second == attempt; });
}

void RunChecker::exit_forgotten(AttemptId attempt) {
  truth_[attempt].recorded.reset();
}

void RunChecker::handed(const Transaction& transaction) {
  // An id whose first owner never became durable comes again; its past is not this one's.
  for (const AttemptId attempt : transaction.prepare) {
    unprepared_.erase(attempt);
  }
}

void RunChecker::unprepared(AttemptId attempt, const Error& /*error*/) {
  unprepared_.insert(attempt);
}

void RunChecker::effect(const Effect& effect) {
  if (const auto* kill = std::get_if<effect::Kill>(&effect)) {
    told_to_end_.insert(kill->attempt);
  } else if (const auto* pause = std::get_if<effect::Pause>(&effect)) {
    told_to_pause_.insert(pause->attempt);
  } else if (const auto* resume = std::get_if<effect::Resume>(&effect)) {
    told_to_pause_.erase(resume->attempt);
  } else if (const auto* start = std::get_if<effect::Start>(&effect);
             start && unprepared_.contains(start->attempt)) {
    findings_.report(fmt::format("attempt {} was started without a record", start->attempt.value));
  }
}

void RunChecker::stepped(const Engine* engine, Now /*now*/, bool idle) {
  if (!idle || engine->broken()) {
    return;
  }
  for (const AttemptId attempt : disk_.open) {
    const Ledger::AttemptEntry& entry = disk_.attempts.at(attempt);
    const Ledger::JobEntry& job = *disk_.job(entry.job);
    // Who is to end need not be told, too, to stand still until then.
    if (job.kill_requested || entry.gives_way) {
      if (!told_to_end_.contains(attempt)) {
        findings_.report(
            fmt::format("attempt {} is to be killed and nobody has told it", attempt.value));
      }
    } else if ((job.state == JobState::paused) != told_to_pause_.contains(attempt)) {
      findings_.report(fmt::format("attempt {} is {} and nobody has told it", attempt.value,
                                   to_string(job.state)));
    }
  }
}

void RunChecker::crashed(bool machine) {
  told_to_end_.clear();
  told_to_pause_.clear();
  power_cut_ = machine;
}

void RunChecker::restarted(const Snapshot& /*snapshot*/) {
  // Only now is it known which commits the disk has kept.
  if (std::exchange(power_cut_, false)) {
    through_power_cut_.insert(disk_.open.begin(), disk_.open.end());
  }
}

void RunChecker::durable(const Changes& changes) {
  for (const Change& change : changes) {
    if (const auto* end = std::get_if<change::AttemptEnd>(&change)) {
      check_end(*end);
    }
    if (const auto* update = std::get_if<change::JobUpdate>(&change)) {
      check_update(*update);
    }
    disk_.put(change);
  }
}

void RunChecker::check_end(const change::AttemptEnd& end) {
  const auto entry = disk_.attempts.find(end.id);
  if (entry == disk_.attempts.end() || entry->second.ended) {
    findings_.report(fmt::format("attempt {} ended without being open", end.id.value));
    return;
  }
  const Truth truth = truth_[end.id];
  if (end.revoked) {
    if (truth.ran) {
      findings_.report(
          fmt::format("attempt {} was called off although its command ran", end.id.value));
    }
    return;
  }
  if (truth.running) {
    findings_.report(fmt::format("attempt {} was closed while it runs", end.id.value));
  }
  if (truth.recorded) {
    // What a failure is called, and what is said of it, is for the scheduler to find out.
    Verdict told = end.verdict;
    if (told.failure && (truth.recorded->failure || truth.recorded->killed)) {
      told.failure = truth.recorded->failure;
      told.message = truth.recorded->message;
    }
    if (told != *truth.recorded) {
      findings_.report(fmt::format("attempt {} ended with '{}', its record says '{}'", end.id.value,
                                   end.verdict.message, truth.recorded->message));
    }
    return;
  }
  // Of one whose card was lost, too, nobody may know how it ended.
  const bool lost = end.verdict.failure == FailureClass::node_lost ||
                    end.verdict.failure == FailureClass::gpu_lost;
  const bool excused = truth.ran || through_power_cut_.contains(end.id);
  if (unprepared_.contains(end.id) && !truth.ran) {
    if (!lost && end.verdict.failure != FailureClass::cannot_start) {
      findings_.report(fmt::format("attempt {} had no record and ended with '{}'", end.id.value,
                                   end.verdict.message));
    }
  } else if (!lost || !excused) {
    findings_.report(fmt::format("attempt {} ended with '{}', which nobody recorded", end.id.value,
                                 end.verdict.message));
  }
}

void RunChecker::check_update(const change::JobUpdate& update) {
  const Ledger::JobEntry* job = disk_.job(update.id);
  if (!job) {
    findings_.report(fmt::format("job {} changed before it was there", update.id.value));
    return;
  }
  const auto complain = [&](const std::string& what) {
    findings_.report(fmt::format("job {} went from {} to {}: {}", update.id.value,
                                 to_string(job->state), to_string(update.state), what));
  };
  if (is_terminal(job->state)) {
    complain("it had ended");
    return;
  }
  if (job->kill_requested && !update.kill_requested) {
    complain("its kill is forgotten");
  }
  const Ledger::AttemptEntry* last =
      job->attempts.empty() ? nullptr : &disk_.attempts.at(job->attempts.back());
  const bool attempt_open = last && !last->ended;
  switch (update.state) {
    case JobState::running:
      if (job->state == JobState::queued && job->kill_requested) {
        complain("it was to be killed");
      }
      if (job->held) {
        complain("it was held");
      }
      return;
    case JobState::paused:
      if (job->state == JobState::queued || attempt_open) {
        // A kill is noted without waking it in this state.
        const bool allowed =
            job->state == JobState::running ? !job->kill_requested : update.kill_requested;
        if (attempt_open && !allowed) {
          complain("only what runs can be paused");
        }
        return;
      }
      break;
    case JobState::queued:
      if (job->held) {
        return;
      }
      break;
    case JobState::cancelled:
      if (job->state != JobState::queued && !job->held) {
        complain("only a waiting job can be cancelled");
      }
      return;
    default:
      break;
  }
  const bool ran =
      job->state == JobState::running || (job->state == JobState::paused && !job->held);
  if (!ran || attempt_open || !last) {
    complain("no attempt has just ended");
    return;
  }
  const bool failed = !last->revoked && last->verdict.failure.has_value();
  const FailureClass how = last->verdict.failure.value_or(FailureClass::exit);
  const bool neighbour = how == FailureClass::gpu_oom && update.excused > job->forgiven;
  if (neighbour && (update.excused != job->forgiven + 1 || update.excused > kExcuses)) {
    complain("it is forgiven more than it may be");
  }
  const bool for_free = how == FailureClass::preempted || neighbour;
  const bool excused = how == FailureClass::gpu_lost || how == FailureClass::node_lost;
  const bool gave_way = how == FailureClass::preempted || how == FailureClass::gpu_lost;
  const bool killed = last->revoked
                          ? job->kill_requested
                          : (last->verdict.killed && !gave_way) || (job->kill_requested && failed);
  const std::uint32_t beyond = job->excused > kExcuses ? job->excused - kExcuses : 0;
  const bool used_up =
      !for_free && (!excused || beyond != 0) && job->charged + beyond > job->spec->retries;
  // Whoever paused it has not said that it may run again.
  const JobState waiting = job->state == JobState::paused ? JobState::paused : JobState::queued;
  const JobState expected = killed              ? JobState::killed
                            : last->revoked     ? waiting
                            : failed && used_up ? JobState::failed
                            : failed            ? waiting
                                                : JobState::succeeded;
  if (update.state != expected) {
    complain(fmt::format("{} was due after '{}' with {} of {} retries used", to_string(expected),
                         last->verdict.message, job->charged + beyond, job->spec->retries));
  }
  if (!last->revoked && is_terminal(update.state) && update.exit_code != last->verdict.exit_code) {
    complain("its exit code is not that of its attempt");
  }
}

}  // namespace berth::sim
