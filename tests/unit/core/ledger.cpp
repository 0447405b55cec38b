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
  } else if (const auto* rules = std::get_if<change::BatchRules>(&change)) {
    batches_.at(rules->id).rules = rules->rules;
    batches_.at(rules->id).max_concurrent = rules->max_concurrent;
  } else if (const auto* instance = std::get_if<change::InstancePut>(&change)) {
    instance_paused_ = instance->paused;
  } else if (const auto* drain = std::get_if<change::DrainPut>(&change)) {
    drain->drained ? void(drains_.insert_or_assign(drain->gpu, drain->why))
                   : void(drains_.erase(drain->gpu));
  } else if (const auto* ecc = std::get_if<change::EccPut>(&change)) {
    ecc_.insert_or_assign(ecc->gpu, ecc->errors);
  } else if (const auto* usage = std::get_if<change::UsagePut>(&change)) {
    usage_.insert_or_assign({usage->batch, usage->id}, *usage);
  } else if (const auto* way = std::get_if<change::AttemptGivesWay>(&change)) {
    gives_way_[way->id] = way->why;
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
    updates_[job->id].not_before = job->spec->start_at;
  } else if (const auto* update = std::get_if<change::JobUpdate>(&change)) {
    // Nobody ends twice, but for whom somebody gave another life.
    BERTH_ASSERT(update->revived == is_terminal(updates_.at(update->id).state));
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
    const auto open = open_.find(end->id);
    BERTH_ASSERT(open != open_.end());
    last_ends_[open->second.job] = end->wall;
    open_.erase(open);
  }
}

std::optional<EndedJob> Ledger::ended(JobId id) const {
  const auto found = jobs_.find(id);
  if (found == jobs_.end() || !is_terminal(updates_.at(id).state)) {
    return std::nullopt;
  }
  const change::JobPut& put = found->second;
  const auto rank = ranks_.find(id);
  EndedJob job{id,
               updates_.at(id).state,
               put.batch,
               put.queue,
               put.owner,
               put.spec->priority,
               put.spec->request,
               put.after,
               put.spec->after_kind,
               put.spec->retries,
               updates_.at(id).attempts,
               rank == ranks_.end() ? 0 : rank->second,
               expedited_.contains(id)};
  if (const auto batch = batches_.find(put.batch); batch != batches_.end()) {
    job.batch_name = batch->second.name;
    job.batch_max_concurrent = batch->second.max_concurrent;
    job.batch_rules = batch->second.rules;
  }
  return job;
}

Snapshot Ledger::snapshot() const {
  Snapshot out;
  out.queues.assign(queues_.begin(), queues_.end());
  out.paused_queues = paused_;
  out.resources = resources_;
  out.paused = instance_paused_;
  out.drains = drains_;
  out.ecc = ecc_;
  for (const auto& [key, usage] : usage_) {
    out.usage.push_back(usage);
  }
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
    live.after_kind = put.spec->after_kind;
    live.submitted = put.wall;
    live.not_before = now.not_before;
    live.backing_off = now.attempts > 0;
    live.excused = now.excused;
    if (const auto tried = last_ends_.find(id); tried != last_ends_.end()) {
      live.last_end = tried->second;
    }
    for (const JobId dependency : put.after) {
      if (const JobState as = updates_.at(dependency).state;
          as != JobState::succeeded || live.after_kind == After::failed) {
        live.after.push_back(dependency);
        if (is_terminal(as)) {
          failed.emplace(dependency, as);
        }
      } else {
        live.last_end = std::max(live.last_end, updates_.at(dependency).wall);
      }
    }
    live_batches.insert(put.batch);
    out.jobs.push_back(std::move(live));
  }
  out.failed_dependencies.assign(failed.begin(), failed.end());
  for (const auto& [id, put] : batches_) {
    if (live_batches.contains(id)) {
      out.batches.push_back({id, put.name, put.max_concurrent, put.in_parts, put.rules});
    }
  }
  for (const auto& [id, put] : open_) {
    const auto way = gives_way_.find(id);
    out.attempts.push_back({id, put.job, put.number, put.gpus, put.gpu_memory, "boot", put.wall,
                            way == gives_way_.end() ? std::nullopt : way->second});
  }
  out.last_job = last_job_;
  out.last_attempt = last_attempt_;
  out.last_batch = last_batch_;
  out.last_queue = queues_.empty() ? QueueId{} : queues_.rbegin()->first;
  return out;
}

}  // namespace berth::testing
