#include "unit/core/ledger.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "base/assert.hpp"

namespace berth::testing {

void Ledger::write(const Change& change) {
  if (const auto* queue = std::get_if<change::QueuePut>(&change)) {
    queues_[queue->id] = queue->spec;
    queue->paused ? void(paused_.insert(queue->id)) : void(paused_.erase(queue->id));
  } else if (const auto* resource = std::get_if<change::ResourcePut>(&change)) {
    resources_[resource->name] = resource->total;
  } else if (const auto* batch = std::get_if<change::BatchPut>(&change)) {
    batches_[batch->id] = *batch;
    last_batch_ = std::max(last_batch_, batch->id);
    last_job_ = std::max(last_job_, batch->reserved);
  } else if (const auto* gone = std::get_if<change::BatchRemove>(&change)) {
    batches_.erase(gone->id);
  } else if (const auto* removed = std::get_if<change::JobsRemove>(&change)) {
    for (const JobId id : removed->ids) {
      BERTH_ASSERT(jobs_.erase(id) == 1);
      updates_.erase(id);
    }
  } else if (const auto* job = std::get_if<change::JobPut>(&change)) {
    jobs_[job->id] = *job;
    last_job_ = std::max(last_job_, job->id);
    updates_[job->id].id = job->id;
  } else if (const auto* update = std::get_if<change::JobUpdate>(&change)) {
    BERTH_ASSERT(!is_terminal(updates_.at(update->id).state));  // nobody ends twice
    updates_[update->id] = *update;
  } else if (const auto* set = std::get_if<change::JobSet>(&change)) {
    change::JobPut& put = jobs_.at(set->id);
    put.spec = std::make_shared<const JobSpec>(changed(*put.spec, *set));
    put.queue = set->queue.value_or(put.queue);
    if (set->rank) {
      ranks_[set->id] = *set->rank;
    }
    if (set->expedited) {
      *set->expedited ? void(expedited_.insert(set->id)) : void(expedited_.erase(set->id));
    }
  } else if (const auto* attempt = std::get_if<change::AttemptPut>(&change)) {
    BERTH_ASSERT(attempt->id > last_attempt_);  // an id is never used again
    last_attempt_ = attempt->id;
    open_[attempt->id] = *attempt;
  } else if (const auto* end = std::get_if<change::AttemptEnd>(&change)) {
    BERTH_ASSERT(open_.erase(end->id) == 1);
  }
}

Snapshot Ledger::snapshot() const {
  Snapshot out;
  out.queues.assign(queues_.begin(), queues_.end());
  out.paused_queues = paused_;
  out.resources = resources_;
  std::set<BatchId> live_batches;
  std::map<JobId, JobState> failed;
  for (const auto& [id, put] : batches_) {
    if (put.open) {
      out.open_batches.push_back({id, {}, {}});
    }
  }
  for (const auto& [id, put] : jobs_) {
    const change::JobUpdate& now = updates_.at(id);
    const auto open = std::ranges::find(out.open_batches, put.batch, &Snapshot::OpenBatch::id);
    if (open != out.open_batches.end()) {
      open->first = open->first ? open->first : id;
      open->last = id;
      continue;
    }
    if (is_terminal(now.state)) {
      continue;
    }
    Snapshot::LiveJob live;
    live.id = id;
    live.batch = put.batch;
    live.queue = put.queue;
    live.owner = put.owner;
    live.priority = put.spec->priority;
    live.request = put.spec->request;
    live.retries = put.spec->retries;
    live.retries_used = now.retries_used;
    live.attempts = now.attempts;
    live.state = now.state;
    live.kill_requested = now.kill_requested;
    live.kill_grace = now.kill_grace;
    if (const auto rank = ranks_.find(id); rank != ranks_.end()) {
      live.rank = rank->second;
    }
    live.expedited = expedited_.contains(id);
    for (const JobId dependency : put.after) {
      if (const JobState as = updates_.at(dependency).state; as != JobState::succeeded) {
        live.after.push_back(dependency);
        if (is_terminal(as)) {
          failed.emplace(dependency, as);
        }
      }
    }
    live_batches.insert(put.batch);
    out.jobs.push_back(std::move(live));
  }
  out.failed_dependencies.assign(failed.begin(), failed.end());
  for (const auto& [id, put] : batches_) {
    if (live_batches.contains(id)) {
      out.batches.push_back({id, put.name, put.max_concurrent, put.in_parts});
    }
  }
  for (const auto& [id, put] : open_) {
    out.attempts.push_back({id, put.job, put.number, put.gpus, put.gpu_memory, "boot"});
  }
  out.last_job = last_job_;
  out.last_attempt = last_attempt_;
  out.last_batch = last_batch_;
  out.last_queue = queues_.empty() ? QueueId{} : queues_.rbegin()->first;
  return out;
}

}  // namespace berth::testing
