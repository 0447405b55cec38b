#include "sim/ledger.hpp"

#include <algorithm>

#include "core/rule_table.hpp"

namespace berth::sim {

Bytes memory_needed(const Request& request, const Rules& rules, Bytes total) {
  Rules own;
  overlay(own, request.rules);
  if (request.gpu_memory || own.min_free_memory) {
    return std::max(request.gpu_memory.value_or(0), own.min_free_memory.value_or(0));
  }
  return rules.min_free_memory.value_or(std::min(8000 * kMiB, total - total / 10));
}

void Ledger::put(const Change& change) {
  struct Writer {
    Ledger& ledger;
    void operator()(const change::QueuePut& c) {
      ledger.queues[c.id] = c.spec;
      c.paused ? void(ledger.paused_queues.insert(c.id)) : void(ledger.paused_queues.erase(c.id));
    }
    void operator()(const change::ResourcePut& c) { ledger.resources[c.name] = c.total; }
    void operator()(const change::BatchPut& c) {
      ledger.batch_limits[c.id] = c.max_concurrent;
      c.open ? void(ledger.open_batches.insert(c.id)) : void(ledger.open_batches.erase(c.id));
    }
    void operator()(const change::BatchRules& c) { ledger.batch_limits[c.id] = c.max_concurrent; }
    void operator()(const change::InstancePut&) {}
    void operator()(const change::DrainPut& c) {
      c.drained ? void(ledger.drained.insert(c.gpu)) : void(ledger.drained.erase(c.gpu));
    }
    void operator()(const change::EccPut&) {}
    void operator()(const change::UsagePut&) {}
    void operator()(const change::AttemptGivesWay& c) {
      ledger.attempts[c.id].gives_way = c.why && *c.why != GivesWay::parked;
    }
    void operator()(const change::BatchRemove& c) {
      ledger.batch_limits.erase(c.id);
      ledger.open_batches.erase(c.id);
    }
    void operator()(const change::JobPut& c) {
      JobEntry& job = ledger.jobs[c.id];
      job.spec = c.spec;
      job.batch = c.batch;
      job.queue = c.queue;
      job.owner = c.owner;
      job.after = c.after;
      job.been = {JobState::queued};
      job.most_retries = c.spec->retries;
    }
    void operator()(const change::JobsRemove& c) {
      for (const JobId id : c.ids) {
        const auto it = ledger.jobs.find(id);
        if (it != ledger.jobs.end() && is_terminal(it->second.state)) {
          it->second.removed = true;  // what it was is still needed to judge others
        } else if (it != ledger.jobs.end()) {
          ledger.jobs.erase(it);
        }
      }
    }
    [[nodiscard]] bool is_out_of_gpu_memory(const JobEntry& job) const {
      return !job.attempts.empty() &&
             ledger.attempts.at(job.attempts.back()).verdict.failure == FailureClass::gpu_oom;
    }
    void operator()(const change::JobUpdate& c) {
      JobEntry& job = ledger.jobs[c.id];
      if (c.excused > job.forgiven && is_out_of_gpu_memory(job)) {
        // Whose fault that was is for the scheduler to find out.
        --job.charged;
        ++job.excused;
        job.avoids = true;
      }
      job.forgiven = c.excused;
      job.state = c.state;
      job.held = c.state == JobState::paused &&
                 (job.attempts.empty() || ledger.attempts.at(job.attempts.back()).ended);
      job.been.insert(c.state);
      job.kill_requested = c.kill_requested;
      job.exit_code = c.exit_code;
      job.failure = c.failure;
    }
    void operator()(const change::JobSet& c) {
      JobEntry& job = ledger.jobs[c.id];
      job.spec = std::make_shared<const JobSpec>(changed(*job.spec, c));
      job.queue = c.queue.value_or(job.queue);
      job.most_retries = std::max(job.most_retries, job.spec->retries);
      job.rank = c.rank.value_or(job.rank);
      job.expedited = c.expedited.value_or(job.expedited);
    }
    void operator()(const change::AttemptPut& c) {
      ledger.attempts[c.id] = {c.job, c.gpus, c.gpu_memory, false, false, {}, false};
      ledger.jobs[c.job].attempts.push_back(c.id);
      ledger.open.insert(c.id);
    }
    void operator()(const change::AttemptEnd& c) {
      AttemptEntry& attempt = ledger.attempts[c.id];
      attempt.ended = true;
      attempt.revoked = c.revoked;
      attempt.verdict = c.verdict;
      ledger.open.erase(c.id);
      JobEntry& job = ledger.jobs[attempt.job];
      if (c.revoked || !c.verdict.failure) {
        return;
      }
      switch (*c.verdict.failure) {
        case FailureClass::preempted:
          ++job.gave_way;
          break;
        case FailureClass::gpu_lost:
          job.avoids = true;
          ++job.excused;
          break;
        case FailureClass::node_lost:
          ++job.excused;
          break;
        default:
          ++job.charged;
      }
    }
    void operator()(const change::ClientKey&) {}
    void operator()(const change::History&) {}
  };
  std::visit(Writer{*this}, change);
}

const Ledger::JobEntry* Ledger::job(JobId id) const {
  const auto it = jobs.find(id);
  return it == jobs.end() ? nullptr : &it->second;
}

bool Ledger::dependencies_met(const JobEntry& entry) const {
  return std::ranges::all_of(entry.after, [this](JobId id) {
    const JobEntry* other = job(id);
    return other && other->state == JobState::succeeded;
  });
}

bool Ledger::dependency_failed(const JobEntry& entry) const {
  return std::ranges::any_of(entry.after, [this](JobId id) {
    const JobEntry* other = job(id);
    return other && is_terminal(other->state) && other->state != JobState::succeeded;
  });
}

}  // namespace berth::sim
