#include "store/memory_store.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/assert.hpp"

namespace berth {

void MemoryStore::commit(Transaction transaction, std::function<void(CommitOutcome)> done) {
  BERTH_ASSERT(!pending_);
  pending_.emplace(std::move(transaction), std::move(done));
}

std::optional<change::ClientKey> MemoryStore::find_key(const std::string& key,
                                                       std::uint32_t owner) {
  if (const auto found = keys_.find({owner, key}); found != keys_.end()) {
    return found->second;
  }
  if (pending_) {
    for (const Change& change : pending_->transaction.changes) {
      const auto* candidate = std::get_if<change::ClientKey>(&change);
      if (candidate != nullptr && candidate->key == key && candidate->owner == owner) {
        return *candidate;
      }
    }
  }
  return std::nullopt;
}

std::optional<JobState> MemoryStore::find_job_state(JobId id) {
  std::optional<JobState> state;
  if (const auto found = jobs_.find(id); found != jobs_.end()) {
    state = found->second.row.state;
  }
  if (pending_) {
    for (const Change& change : pending_->transaction.changes) {
      const auto* update = std::get_if<change::JobUpdate>(&change);
      if (update != nullptr && update->id == id) {
        state = update->state;
      }
    }
  }
  return state;
}

std::optional<EndedJob> MemoryStore::find_ended_job(JobId id) {
  const auto found = jobs_.find(id);
  if (found == jobs_.end() || !is_terminal(found->second.row.state)) {
    return std::nullopt;
  }
  const JobRow& row = found->second.row;
  EndedJob job{id,           row.state,   row.batch,    row.queue_id,   row.owner,
               row.priority, row.request, row.after,    row.after_kind, row.retries,
               row.attempts, row.rank,    row.expedited};
  if (const auto batch = batches_.find(row.batch); batch != batches_.end()) {
    job.batch_name = batch->second.name;
    job.batch_max_concurrent = batch->second.max_concurrent;
    job.batch_rules = batch->second.rules;
  }
  return job;
}

void MemoryStore::prepare(CommitOutcome& outcome) {
  for (const AttemptId attempt : pending_->transaction.prepare) {
    if (Status made = options_.prepare ? options_.prepare(attempt) : Status(); !made) {
      outcome.unprepared.emplace_back(attempt, std::move(made.error()));
    }
  }
}

void MemoryStore::complete(CommitOutcome wanted) {
  BERTH_ASSERT(pending_);
  CommitOutcome outcome = std::move(wanted);
  if (broken_) {
    outcome = {};
    outcome.status = std::unexpected(*broken_);
  } else {
    prepare(outcome);
    if (outcome.status) {
      outcome.status = check(pending_->transaction.changes);
    }
    if (!outcome.status) {
      broken_ = outcome.status.error();
    }
  }
  const PendingCommit commit = std::move(*pending_);
  pending_.reset();  // the answer may bring the next one
  if (outcome.status) {
    for (const Change& change : commit.transaction.changes) {
      std::visit([this](const auto& c) { apply(c); }, change);
    }
  }
  commit.done(std::move(outcome));
}

void MemoryStore::crash(Pending pending, std::string boot_id) {
  if (pending_ && pending == Pending::durable && !broken_ && check(pending_->transaction.changes)) {
    CommitOutcome unheard;
    prepare(unheard);
    for (const Change& change : pending_->transaction.changes) {
      std::visit([this](const auto& c) { apply(c); }, change);
    }
  }
  pending_.reset();
  broken_.reset();
  options_.boot_id = std::move(boot_id);
}

/// What SQLite would refuse, found before anything has changed.
Status MemoryStore::check(const Changes& changes) const {
  std::set<JobId> new_jobs;
  std::set<AttemptId> new_attempts;
  for (const Change& change : changes) {
    if (const auto* put = std::get_if<change::JobPut>(&change)) {
      if (jobs_.contains(put->id) || !new_jobs.insert(put->id).second) {
        return fail(ErrorCode::io, fmt::format("job {} is already in the store", put->id.value));
      }
    } else if (const auto* update = std::get_if<change::JobUpdate>(&change)) {
      if (!jobs_.contains(update->id) && !new_jobs.contains(update->id)) {
        return fail(ErrorCode::corrupt,
                    fmt::format("job {} is not in the store", update->id.value));
      }
    } else if (const auto* set = std::get_if<change::JobSet>(&change)) {
      if (!jobs_.contains(set->id) && !new_jobs.contains(set->id)) {
        return fail(ErrorCode::corrupt, fmt::format("job {} is not in the store", set->id.value));
      }
    } else if (const auto* attempt = std::get_if<change::AttemptPut>(&change)) {
      if (attempts_.contains(attempt->id) || !new_attempts.insert(attempt->id).second) {
        return fail(ErrorCode::io,
                    fmt::format("attempt {} is already in the store", attempt->id.value));
      }
    } else if (const auto* end = std::get_if<change::AttemptEnd>(&change)) {
      if (!attempts_.contains(end->id) && !new_attempts.contains(end->id)) {
        return fail(ErrorCode::corrupt,
                    fmt::format("attempt {} is not in the store", end->id.value));
      }
    }
  }
  return {};
}

void MemoryStore::apply(const change::BatchRules& put) {
  if (const auto found = batches_.find(put.id); found != batches_.end()) {
    found->second.rules = put.rules;
    found->second.max_concurrent = put.max_concurrent;
  }
}

void MemoryStore::apply(const change::InstancePut& put) {
  paused_ = put.paused;
}

void MemoryStore::apply(const change::DrainPut& put) {
  if (put.drained) {
    drains_[put.gpu] = put.why;
  } else {
    drains_.erase(put.gpu);
  }
}

void MemoryStore::apply(const change::EccPut& put) {
  ecc_[put.gpu] = put.errors;
}

void MemoryStore::apply(const change::UsagePut& put) {
  usage_[{put.batch, put.id}] = put;
}

void MemoryStore::apply(const change::AttemptGivesWay& put) {
  if (const auto found = attempts_.find(put.id); found != attempts_.end()) {
    found->second.gives_way = put.why;
  }
}

void MemoryStore::apply(const change::QueuePut& put) {
  queues_[put.id] = put.spec;
  if (put.paused) {
    paused_queues_.insert(put.id);
  } else {
    paused_queues_.erase(put.id);
  }
  last_queue_ = std::max(last_queue_, put.id);
}

void MemoryStore::apply(const change::ResourcePut& put) {
  resources_[put.name] = put.total;
}

void MemoryStore::apply(const change::BatchPut& put) {
  BatchRow& row = batches_[put.id];
  row = {put.id,     put.name,     put.owner, put.max_concurrent, put.jobs,  put.wall,
         row.counts, put.in_parts, put.open,  put.rules,          put.traits};
  last_batch_ = std::max(last_batch_, put.id);
  last_job_ = std::max(last_job_, put.reserved);
}

void MemoryStore::apply(const change::BatchRemove& remove) {
  batches_.erase(remove.id);
  usage_.erase({true, remove.id.value});
}

void MemoryStore::apply(const change::JobPut& put) {
  Job& job = jobs_[put.id];
  job.spec = put.spec;
  JobRow& row = job.row;
  row.id = put.id;
  row.name = put.spec->name;
  row.queue_id = put.queue;
  row.priority = put.spec->priority;
  row.batch = put.batch;
  row.owner = put.owner;
  row.request = put.spec->request;
  row.after = put.after;
  std::ranges::sort(row.after);
  const auto repeated = std::ranges::unique(row.after);
  row.after.erase(repeated.begin(), repeated.end());
  row.submitted = put.wall;
  row.retries = put.spec->retries;
  row.log = put.spec->payload.log;
  row.after_kind = put.spec->after_kind;
  row.not_before = put.spec->start_at;
  live_.insert(put.id);
  last_job_ = std::max(last_job_, put.id);
  const auto queued = static_cast<std::size_t>(JobState::queued);
  ++counts_[queued];
  ++queue_counts_[put.queue][queued];
  if (put.batch) {
    ++batches_[put.batch].counts[queued];
  }
}

void MemoryStore::apply(const change::JobsRemove& remove) {
  for (const JobId id : remove.ids) {
    const auto found = jobs_.find(id);
    if (found == jobs_.end()) {
      continue;
    }
    const JobRow& row = found->second.row;
    const auto state = static_cast<std::size_t>(row.state);
    --counts_[state];
    --queue_counts_[row.queue_id][state];
    if (row.batch) {
      BatchRow& batch = batches_[row.batch];
      --batch.counts[state];
      if (!batch.open &&
          std::ranges::all_of(batch.counts, [](std::uint64_t n) { return n == 0; })) {
        batches_.erase(row.batch);
        usage_.erase({true, row.batch.value});
      }
    }
    for (const AttemptId attempt : attempts_of_[id]) {
      attempts_.erase(attempt);
      open_attempts_.erase(attempt);
    }
    attempts_of_.erase(id);
    live_.erase(id);
    jobs_.erase(found);
    std::erase_if(history_, [id](const HistoryRow& line) { return line.job == id; });
  }
}

void MemoryStore::apply(const change::JobUpdate& update) {
  JobRow& row = jobs_.at(update.id).row;
  const auto before = static_cast<std::size_t>(row.state);
  const auto after = static_cast<std::size_t>(update.state);
  --counts_[before];
  ++counts_[after];
  --queue_counts_[row.queue_id][before];
  ++queue_counts_[row.queue_id][after];
  if (row.batch) {
    StateCounts& counts = batches_[row.batch].counts;
    --counts[before];
    ++counts[after];
  }
  if (row.state == JobState::queued && update.state == JobState::running) {
    row.started = update.wall;
  }
  row.state = update.state;
  if (is_terminal(update.state)) {
    row.ended = update.wall;
    live_.erase(update.id);
  } else {
    row.ended.reset();
    live_.insert(update.id);
  }
  row.attempts = update.attempts;
  row.retries_used = update.retries_used;
  row.kill_requested = update.kill_requested;
  row.kill_grace = update.kill_requested ? update.kill_grace : std::nullopt;
  row.exit_code = update.exit_code;
  row.failure = update.failure;
  row.message = update.message;
  row.not_before = update.not_before;
  row.excused = update.excused;
}

void MemoryStore::apply(const change::JobSet& set) {
  Job& job = jobs_.at(set.id);
  JobRow& row = job.row;
  row.name = set.name.value_or(row.name);
  if (set.queue) {
    const auto state = static_cast<std::size_t>(row.state);
    --queue_counts_[row.queue_id][state];
    ++queue_counts_[*set.queue][state];
    row.queue_id = *set.queue;
  }
  row.priority = set.priority.value_or(row.priority);
  row.rank = set.rank.value_or(row.rank);
  row.expedited = set.expedited.value_or(row.expedited);
  row.request = set.request.value_or(row.request);
  row.retries = set.retries.value_or(row.retries);
  if (set.time_limit || set.grace) {
    job.spec = std::make_shared<const JobSpec>(changed(*job.spec, set));
  }
}

void MemoryStore::apply(const change::AttemptPut& put) {
  AttemptRow& row = attempts_[put.id];
  row.id = put.id;
  row.job = put.job;
  row.number = put.number;
  row.gpus = put.gpus;
  row.gpu_indices = put.gpu_indices;
  row.gpu_memory = put.gpu_memory;
  row.boot_id = options_.boot_id;
  row.started = put.wall;
  open_attempts_.insert(put.id);
  attempts_of_[put.job].push_back(put.id);
  last_attempt_ = std::max(last_attempt_, put.id);
}

void MemoryStore::apply(const change::AttemptEnd& end) {
  AttemptRow& row = attempts_.at(end.id);
  row.ended = end.wall;
  row.revoked = end.revoked;
  row.verdict = end.verdict;
  open_attempts_.erase(end.id);
}

void MemoryStore::apply(const change::ClientKey& key) {
  keys_.try_emplace({key.owner, key.key}, key);  // the first answer stands
}

void MemoryStore::apply(const change::History& line) {
  history_.push_back(
      {++last_seq_, line.kind, line.job, line.attempt, line.batch, line.detail, line.wall});
}

Snapshot MemoryStore::snapshot() const {
  Snapshot snapshot;
  for (const auto& [id, spec] : queues_) {
    snapshot.queues.emplace_back(id, spec);
  }
  snapshot.paused_queues = paused_queues_;
  std::set<BatchId> live_batches;
  std::map<JobId, JobState> ended;
  for (const JobId id : live_) {
    const JobRow& row = jobs_.at(id).row;
    if (row.batch && batches_.at(row.batch).open) {
      continue;
    }
    Snapshot::LiveJob job{id,
                          row.batch,
                          row.queue_id,
                          row.owner,
                          row.priority,
                          row.request,
                          {},
                          row.retries,
                          row.retries_used,
                          row.attempts,
                          row.state,
                          row.kill_requested,
                          row.kill_grace,
                          row.rank,
                          row.expedited,
                          row.after_kind,
                          row.submitted,
                          row.not_before,
                          row.attempts > 0 && row.not_before != Millis{0},
                          row.excused,
                          {}};
    if (const auto tried = attempts_of_.find(id);
        tried != attempts_of_.end() && row.attempts > 0 && row.state != JobState::running) {
      for (const AttemptId attempt : tried->second) {
        job.last_end = std::max(job.last_end, attempts_.at(attempt).ended.value_or(Millis{0}));
      }
    }
    for (const JobId after : row.after) {
      const auto found = jobs_.find(after);
      if (found == jobs_.end()) {
        continue;  // had ended as it should
      }
      const JobState now = found->second.row.state;
      if (is_terminal(now) && is_as_wanted(row.after_kind, now)) {
        job.last_end = std::max(job.last_end, found->second.row.ended.value_or(Millis{0}));
        continue;
      }
      job.after.push_back(after);
      if (is_terminal(now)) {
        ended.emplace(after, now);
      }
    }
    if (row.batch) {
      live_batches.insert(row.batch);
    }
    snapshot.jobs.push_back(std::move(job));
  }
  snapshot.failed_dependencies.assign(ended.begin(), ended.end());
  for (const auto& [id, batch] : batches_) {
    if (batch.open) {
      Snapshot::OpenBatch& open = snapshot.open_batches.emplace_back(id, JobId{}, JobId{});
      for (const auto& [job, entry] : jobs_) {
        if (entry.row.batch == id) {
          open.first = open.first ? open.first : job;
          open.last = job;
        }
      }
    }
  }
  for (const BatchId id : live_batches) {
    const BatchRow& row = batches_.at(id);
    snapshot.batches.push_back({id, row.name, row.max_concurrent, row.in_parts, row.rules});
  }
  for (const AttemptId id : open_attempts_) {
    const AttemptRow& row = attempts_.at(id);
    snapshot.attempts.push_back({id, row.job, row.number, row.gpus, row.gpu_memory, row.boot_id,
                                 row.started, row.gives_way});
  }
  for (const auto& [key, usage] : usage_) {
    if (!usage.batch || live_batches.contains(BatchId{usage.id})) {
      snapshot.usage.push_back(usage);
    }
  }
  snapshot.paused = paused_;
  snapshot.drains = drains_;
  snapshot.ecc = ecc_;
  snapshot.resources = resources_;
  snapshot.last_job = last_job_;
  snapshot.last_attempt = last_attempt_;
  snapshot.last_batch = last_batch_;
  snapshot.last_queue = last_queue_;
  return snapshot;
}

std::optional<JobRow> MemoryStore::job(JobId id) const {
  const auto found = jobs_.find(id);
  if (found == jobs_.end()) {
    return std::nullopt;
  }
  JobRow row = found->second.row;
  if (const auto queue = queues_.find(row.queue_id); queue != queues_.end()) {
    row.queue = queue->second.name;
  }
  if (const auto attempts = attempts_of_.find(id); attempts != attempts_of_.end()) {
    const AttemptRow& last = attempts_.at(std::ranges::max(attempts->second));
    row.last_attempt = last.id;
    row.gpus = last.gpus;
    row.gpu_indices = last.gpu_indices;
  }
  return row;
}

std::vector<JobId> MemoryStore::job_ids() const {
  std::vector<JobId> ids;
  for (const auto& [id, job] : jobs_) {
    ids.push_back(id);
  }
  return ids;
}

std::vector<AttemptRow> MemoryStore::attempts(JobId job) const {
  std::vector<AttemptRow> rows;
  if (const auto found = attempts_of_.find(job); found != attempts_of_.end()) {
    for (const AttemptId id : found->second) {
      rows.push_back(attempts_.at(id));
    }
  }
  std::ranges::sort(rows, {}, &AttemptRow::id);
  return rows;
}

std::optional<Payload> MemoryStore::payload(JobId job) const {
  const auto found = jobs_.find(job);
  return found == jobs_.end() ? std::nullopt : std::optional(found->second.spec->payload);
}

StateCounts MemoryStore::counts(BatchId batch) const {
  if (!batch) {
    return counts_;
  }
  const auto found = batches_.find(batch);
  return found == batches_.end() ? StateCounts{} : found->second.counts;
}

std::vector<BatchRow> MemoryStore::batches() const {
  std::vector<BatchRow> rows;
  for (const auto& [id, row] : batches_) {
    rows.push_back(row);
  }
  return rows;
}

std::vector<QueueRow> MemoryStore::queues() const {
  std::vector<QueueRow> rows;
  for (const auto& [id, spec] : queues_) {
    const auto counts = queue_counts_.find(id);
    rows.push_back({id, spec, paused_queues_.contains(id),
                    counts == queue_counts_.end() ? StateCounts{} : counts->second});
  }
  return rows;
}

}  // namespace berth
