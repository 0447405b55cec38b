#include "sim/sim_store.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "base/assert.hpp"

namespace berth::sim {

SimStore::SimStore(Timeline& timeline, Random random, Observer& observer,
                   std::function<Status(AttemptId)> prepare)
    : timeline_(timeline), random_(random), observer_(observer), prepare_(std::move(prepare)) {}

void SimStore::commit(Transaction transaction, std::function<void(CommitOutcome)> done) {
  BERTH_ASSERT(!in_flight_);
  observer_.handed(transaction);
  in_flight_ = InFlight{std::move(transaction), std::move(done), {}};
  // Three moments, so that a crash can fall between any two of them.
  timeline_.after(random_.millis(0, 3), Timeline::Of::daemon, [this] { make_records(); });
}

void SimStore::make_records() {
  for (const AttemptId attempt : in_flight_->transaction.prepare) {
    Status made = disk_ == Disk::full && random_.percent(70)
                      ? fail(ErrorCode::no_space, "no room for the attempt's record")
                      : prepare_(attempt);
    if (!made) {
      observer_.unprepared(attempt, made.error());
      in_flight_->outcome.unprepared.emplace_back(attempt, std::move(made.error()));
    }
  }
  in_flight_->writing = true;
  const Millis fsync = random_.percent(5) ? random_.millis(100, 3'000) : random_.millis(1, 20);
  timeline_.after(fsync, Timeline::Of::daemon, [this] { write(); });
}

void SimStore::write() {
  const bool full = disk_ == Disk::full && random_.percent(10);
  if (std::exchange(fail_next_, false) || full) {
    in_flight_->outcome.status =
        fail(full ? ErrorCode::no_space : ErrorCode::io, "the database could not be written");
    observer_.commit_failed(in_flight_->outcome.status.error());
  } else {
    for (const Change& change : in_flight_->transaction.changes) {
      put(change);
    }
    in_flight_->written = true;
    observer_.durable(in_flight_->transaction.changes);
    in_flight_->outcome.low_space = disk_ != Disk::roomy;
    in_flight_->outcome.space_detail = disk_ == Disk::roomy ? "" : "the disk is nearly full";
  }
  timeline_.after(random_.millis(0, 3), Timeline::Of::daemon, [this] { finish(); });
}

void SimStore::finish() {
  InFlight finished = std::move(*in_flight_);
  in_flight_.reset();
  finished.done(std::move(finished.outcome));
}

void SimStore::daemon_died() {
  if (!in_flight_) {
    return;
  }
  // Records come first: before they are made, nothing of the transaction can be on disk.
  if (in_flight_->writing && !in_flight_->written && in_flight_->outcome.status &&
      random_.percent(50)) {
    for (const Change& change : in_flight_->transaction.changes) {
      put(change);
    }
    observer_.durable(in_flight_->transaction.changes);
  }
  in_flight_.reset();
}

std::optional<change::ClientKey> SimStore::find_key(const std::string& key, std::uint32_t owner) {
  const auto it = keys_.find({key, owner});
  return it == keys_.end() ? std::nullopt : std::optional(it->second);
}

std::optional<JobState> SimStore::find_job_state(JobId id) {
  const auto it = jobs_.find(id);
  return it == jobs_.end() ? std::nullopt : std::optional(it->second.now.state);
}

std::optional<EndedJob> SimStore::find_ended_job(JobId id) {
  const auto it = jobs_.find(id);
  if (it == jobs_.end() || !is_terminal(it->second.now.state)) {
    return std::nullopt;
  }
  const JobRow& row = it->second;
  const JobSpec& spec = *row.put.spec;
  EndedJob job{
      id,           row.now.state, row.put.batch,   row.put.queue, row.put.owner,    spec.priority,
      spec.request, row.put.after, spec.after_kind, spec.retries,  row.now.attempts, row.rank,
      row.expedited};
  if (const auto batch = batches_.find(row.put.batch); batch != batches_.end()) {
    job.batch_name = batch->second.name;
    job.batch_max_concurrent = batch->second.max_concurrent;
    job.batch_rules = batch->second.rules;
  }
  return job;
}

std::shared_ptr<const JobSpec> SimStore::spec(JobId id) const {
  return jobs_.at(id).put.spec;
}

void SimStore::put(const Change& change) {
  struct Writer {
    SimStore& store;
    void operator()(const change::QueuePut& c) {
      store.queues_[c.id] = c.spec;
      c.paused ? void(store.paused_.insert(c.id)) : void(store.paused_.erase(c.id));
    }
    void operator()(const change::ResourcePut& c) { store.resources_[c.name] = c.total; }
    void operator()(const change::BatchPut& c) {
      store.last_batch_ = std::max(store.last_batch_, c.id);
      store.last_job_ = std::max(store.last_job_, c.reserved);
      store.batches_[c.id] = c;
    }
    void operator()(const change::BatchRules& c) {
      store.batches_.at(c.id).rules = c.rules;
      store.batches_.at(c.id).max_concurrent = c.max_concurrent;
    }
    void operator()(const change::BatchRemove& c) { store.batches_.erase(c.id); }
    void operator()(const change::InstancePut& c) { store.instance_paused_ = c.paused; }
    void operator()(const change::DrainPut& c) {
      c.drained ? void(store.drains_.insert_or_assign(c.gpu, c.why))
                : void(store.drains_.erase(c.gpu));
    }
    void operator()(const change::EccPut& c) { store.ecc_.insert_or_assign(c.gpu, c.errors); }
    void operator()(const change::UsagePut& c) {
      store.usage_.insert_or_assign({c.batch, c.id}, c);
    }
    void operator()(const change::AttemptGivesWay& c) {
      store.attempts_.at(c.id).gives_way = c.why;
    }
    void operator()(const change::JobPut& c) {
      store.last_job_ = std::max(store.last_job_, c.id);
      JobRow row{c, {}, 0, false};
      row.now.id = c.id;
      row.now.not_before = c.spec->start_at;
      store.jobs_.insert_or_assign(c.id, std::move(row));
    }
    void operator()(const change::JobsRemove& c) {
      for (const JobId id : c.ids) {
        store.jobs_.erase(id);
        std::erase_if(store.attempts_,
                      [id](const auto& entry) { return entry.second.put.job == id; });
      }
    }
    void operator()(const change::JobUpdate& c) { store.jobs_.at(c.id).now = c; }
    void operator()(const change::JobSet& c) {
      JobRow& row = store.jobs_.at(c.id);
      row.put.spec = std::make_shared<const JobSpec>(changed(*row.put.spec, c));
      row.put.queue = c.queue.value_or(row.put.queue);
      row.rank = c.rank.value_or(row.rank);
      row.expedited = c.expedited.value_or(row.expedited);
    }
    void operator()(const change::AttemptPut& c) {
      store.last_attempt_ = std::max(store.last_attempt_, c.id);
      store.attempts_.insert_or_assign(c.id, AttemptRow{c, store.boot_id_, false, {}});
    }
    void operator()(const change::AttemptEnd& c) { store.attempts_.at(c.id).ended = true; }
    void operator()(const change::ClientKey& c) { store.keys_[{c.key, c.owner}] = c; }
    void operator()(const change::History&) {}
  };
  std::visit(Writer{*this}, change);
}

Snapshot SimStore::snapshot() const {
  Snapshot result;
  result.resources = resources_;
  for (const auto& [id, spec] : queues_) {
    result.queues.emplace_back(id, spec);
  }
  result.paused_queues = paused_;
  result.paused = instance_paused_;
  result.drains = drains_;
  result.ecc = ecc_;
  for (const auto& [key, usage] : usage_) {
    result.usage.push_back(usage);
  }
  std::set<BatchId> live_batches;
  std::map<JobId, JobState> failed;
  for (const auto& [id, batch] : batches_) {
    if (batch.open) {
      result.open_batches.emplace_back(id, JobId{}, JobId{});
    }
  }
  for (const auto& [id, row] : jobs_) {
    const auto open =
        std::ranges::find(result.open_batches, row.put.batch, &Snapshot::OpenBatch::id);
    if (open != result.open_batches.end()) {
      open->first = open->first ? open->first : id;
      open->last = id;
      continue;
    }
    if (is_terminal(row.now.state)) {
      continue;
    }
    live_batches.insert(row.put.batch);
    Snapshot::LiveJob live;
    live.id = id;
    live.batch = row.put.batch;
    live.queue = row.put.queue;
    live.owner = row.put.owner;
    live.priority = row.put.spec->priority;
    live.request = row.put.spec->request;
    for (const JobId dependency : row.put.after) {
      // Only what has succeeded can have been removed while somebody follows it.
      const auto other = jobs_.find(dependency);
      const JobState now = other == jobs_.end() ? JobState::succeeded : other->second.now.state;
      if (now != JobState::succeeded || row.put.spec->after_kind == After::failed) {
        live.after.push_back(dependency);
        if (is_terminal(now)) {
          failed.emplace(dependency, now);
        }
      } else if (other != jobs_.end()) {
        live.last_end = std::max(live.last_end, other->second.now.wall);
      }
    }
    live.retries = row.put.spec->retries;
    live.retries_used = row.now.retries_used;
    live.attempts = row.now.attempts;
    live.state = row.now.state;
    live.kill_requested = row.now.kill_requested;
    live.kill_grace = row.now.kill_grace;
    live.rank = row.rank;
    live.expedited = row.expedited;
    live.after_kind = row.put.spec->after_kind;
    live.submitted = row.put.wall;
    live.not_before = row.now.not_before;
    live.backing_off = row.now.attempts > 0;
    live.excused = row.now.excused;
    result.jobs.push_back(std::move(live));
  }
  result.failed_dependencies.assign(failed.begin(), failed.end());
  for (const auto& [id, batch] : batches_) {
    if (live_batches.contains(id)) {
      result.batches.push_back({id, batch.name, batch.max_concurrent, batch.in_parts, batch.rules});
    }
  }
  for (const auto& [id, row] : attempts_) {
    if (!row.ended) {
      result.attempts.push_back({id, row.put.job, row.put.number, row.put.gpus, row.put.gpu_memory,
                                 row.boot_id, row.put.wall, row.gives_way});
    }
  }
  result.last_job = last_job_;
  result.last_attempt = last_attempt_;
  result.last_batch = last_batch_;
  result.last_queue = queues_.empty() ? QueueId{} : queues_.rbegin()->first;
  return result;
}

}  // namespace berth::sim
