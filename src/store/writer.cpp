#include "store/writer.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "store/encode.hpp"
#include "store/rows.hpp"

namespace berth {
namespace {

// These numbers are on disk.
static_assert(static_cast<int>(JobState::queued) == 0 && static_cast<int>(JobState::running) == 1 &&
              static_cast<int>(JobState::paused) == 2 &&
              static_cast<int>(JobState::succeeded) == 3 &&
              static_cast<int>(JobState::failed) == 4 && static_cast<int>(JobState::killed) == 5 &&
              static_cast<int>(JobState::cancelled) == 6);
static_assert(static_cast<int>(FailureClass::exit) == 0 &&
              static_cast<int>(FailureClass::preempted) == 7);
static_assert(static_cast<int>(After::ok) == 0 && static_cast<int>(After::any) == 1 &&
              static_cast<int>(After::failed) == 2);
static_assert(static_cast<int>(GivesWay::preempted) == 0 &&
              static_cast<int>(GivesWay::stranger) == 1 &&
              static_cast<int>(GivesWay::gpu_lost) == 2 && static_cast<int>(GivesWay::parked) == 3);
static_assert(kJobStates <= 8, "a batch or queue and a state share one key");

std::uint64_t hash_of(std::string_view bytes) {  // FNV-1a; equality is decided by the bytes
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : bytes) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  }
  return hash;
}

}  // namespace

Result<std::unique_ptr<TransactionWriter>> TransactionWriter::open(Db& db, std::string boot_id) {
  std::unique_ptr<TransactionWriter> writer(new TransactionWriter(db, std::move(boot_id)));
  TRY(writer->prepare_statements());
  TRY_ASSIGN(const auto seq, db.integer("SELECT coalesce(max(seq), 0) FROM history"));
  TRY_ASSIGN(Stmt counters, db.prepare("SELECT what, n FROM counters WHERE batch=0 AND what>=16"));
  while (true) {
    TRY_ASSIGN(const bool row, counters.step());
    if (!row) {
      break;
    }
    const auto index = static_cast<std::size_t>(counters.integer(0) - 16);
    if (index < kCounters) {
      writer->committed_[index] = static_cast<std::uint64_t>(counters.integer(1));
    }
  }
  writer->highest_ = writer->committed_;
  writer->last_seq_ = writer->committed_seq_ =
      std::max(static_cast<std::uint64_t>(seq), writer->committed_[kCounters - 1]);
  return writer;
}

Status TransactionWriter::prepare_statements() {
  const std::pair<Stmt*, const char*> statements[] = {
      {&begin_, "BEGIN IMMEDIATE"},
      {&commit_, "COMMIT"},
      {&put_queue_,
       "INSERT INTO queues(id,name,running_max,paused,rules) VALUES(?1,?2,?3,?4,?5)"
       " ON CONFLICT(id) DO UPDATE SET name=?2, running_max=?3, paused=?4, rules=?5"},
      {&put_resource_, "INSERT INTO resources VALUES(?1,?2) ON CONFLICT DO UPDATE SET total=?2"},
      {&put_batch_,
       "INSERT INTO batches VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9) ON CONFLICT(id) DO UPDATE SET"
       " name=?2, owner=?3, max_concurrent=?4, jobs=?5, submitted=?6, open=?7, rules=?8,"
       " traits=?9"},
      {&set_batch_, "UPDATE batches SET rules=?2, max_concurrent=?3 WHERE id=?1"},
      {&put_meta_, "INSERT INTO meta VALUES(?1,?2) ON CONFLICT DO UPDATE SET value=?2"},
      {&put_drain_,
       "INSERT INTO drains VALUES(?1,?2,?3) ON CONFLICT DO UPDATE SET why=?2, wall=?3"},
      {&remove_drain_, "DELETE FROM drains WHERE gpu=?1"},
      {&put_usage_,
       "INSERT INTO usage VALUES(?1,?2,?3,?4) ON CONFLICT DO UPDATE SET gpu_ms=?3, wall=?4"},
      {&remove_usage_, "DELETE FROM usage WHERE kind=1 AND id=?1"},
      {&give_way_, "UPDATE attempts SET gives_way=?2 WHERE id=?1"},
      {&put_job_,
       "INSERT INTO jobs "
       "VALUES(?1,0,?2,?3,?4,?5,?6,?7,0,0,0,?8,NULL,NULL,NULL,NULL,?9,'',?10,0,0,?11,?12,0)"},
      {&put_payload_, "INSERT INTO payloads VALUES(?1,?2,?3,?4)"},
      {&put_fingerprint_, "INSERT OR IGNORE INTO fingerprints VALUES(?1,?2)"},
      {&put_dependency_, "INSERT OR IGNORE INTO dependencies VALUES(?1,?2)"},
      {&job_state_, "SELECT state, batch, queue FROM jobs WHERE id=?1"},
      {&update_job_,
       "UPDATE jobs SET state=?2, attempts=?3, retries_used=?4, kill_requested=?5,"
       " started=coalesce(?6,started), ended=?7, exit_code=?8, failure=?9, message=?10,"
       " not_before=?11, excused=?12 WHERE id=?1"},
      {&set_job_,
       "UPDATE jobs SET name=coalesce(?2,name), queue=coalesce(?3,queue),"
       " priority=coalesce(?4,priority), rank=coalesce(?5,rank),"
       " expedited=coalesce(?6,expedited), request=coalesce(?7,request),"
       " retries=coalesce(?8,retries) WHERE id=?1 RETURNING id"},
      {&find_payload_, "SELECT data FROM payloads WHERE id=?1"},
      {&set_payload_, "UPDATE payloads SET data=?2 WHERE id=?1"},
      {&put_attempt_,
       "INSERT INTO attempts(id,job,number,boot,gpu_memory,started,gpus)"
       " VALUES(?1,?2,?3,?4,?5,?6,?7)"},
      {&end_attempt_,
       "UPDATE attempts SET ended=?2, revoked=?3, killed=?4, failure=?5, exit_code=?6, signal=?7,"
       " user_time=?8, system_time=?9, max_rss=?10, peak_memory=?11, leftover=?12,"
       " verdict_wall=?13, message=?14, log_dropped=?15 WHERE id=?1 RETURNING id"},
      {&drop_batch_, "DELETE FROM batches WHERE id=?1"},
      {&put_key_, "INSERT INTO client_keys VALUES(?1,?2,?3,?4,?5) ON CONFLICT DO NOTHING"},
      {&put_history_, "INSERT INTO history VALUES(?1,?2,?3,?4,?5,?6,?7)"},
      {&find_environment_, "SELECT id, data FROM environments WHERE hash=?1"},
      {&put_environment_, "INSERT INTO environments(hash,data) VALUES(?1,?2) RETURNING id"},
      {&find_boot_, "SELECT id FROM boots WHERE boot_id=?1"},
      {&put_boot_, "INSERT INTO boots(boot_id) VALUES(?1) RETURNING id"},
      {&add_counter_,
       "INSERT INTO counters VALUES(?1,?2,?3) ON CONFLICT DO UPDATE SET n=n+excluded.n"},
      {&add_queue_counter_,
       "INSERT INTO queue_counters VALUES(?1,?2,?3) ON CONFLICT DO UPDATE SET n=n+excluded.n"},
      {&remove_job_, "DELETE FROM jobs WHERE id=?1 RETURNING state, batch, queue"},
      {&remove_payload_, "DELETE FROM payloads WHERE id=?1 RETURNING data"},
      {&remove_fingerprint_, "DELETE FROM fingerprints WHERE hash=?1 AND job=?2"},
      {&remove_dependencies_, "DELETE FROM dependencies WHERE job=?1"},
      {&remove_attempts_, "DELETE FROM attempts WHERE job=?1"},
      {&remove_job_history_, "DELETE FROM history INDEXED BY history_job WHERE job>0 AND job=?1"},
      {&batch_left_, "SELECT coalesce(sum(n),0) FROM counters WHERE batch=?1 AND what<16"},
      {&remove_batch_, "DELETE FROM batches WHERE id=?1 AND open<>1 RETURNING id"},
      {&remove_batch_counters_, "DELETE FROM counters WHERE batch=?1"},
      {&remove_history_, "DELETE FROM history WHERE seq=?1"},
      {&remove_key_, "DELETE FROM client_keys WHERE owner=?1 AND key=?2"},
      {&remove_environment_, "DELETE FROM environments WHERE id=?1"},
      {&raise_counter_,
       "INSERT INTO counters VALUES(0,?1,?2) ON CONFLICT DO UPDATE SET n=max(n,excluded.n)"},
  };
  for (const auto& [stmt, sql] : statements) {
    TRY_ASSIGN(*stmt, db_.prepare(sql));
  }
  return {};
}

template <class Body>
Status TransactionWriter::transact(Body body) {
  TRY(begin_.run());
  Status status = body();
  if (status) {
    status = commit_.run();
  }
  if (!status) {
    db_.rollback();
    forget_transaction();
    return status;
  }
  committed_ = highest_;
  committed_seq_ = last_seq_;
  deltas_.clear();
  queue_deltas_.clear();
  thinned_.clear();
  return {};
}

Status TransactionWriter::write(const Changes& changes) {
  return transact([&] { return apply_all(changes); });
}

Status TransactionWriter::write(const Trim& trim) {
  return transact([&] { return trim_all(trim); });
}

Status TransactionWriter::apply_all(const Changes& changes) {
  for (const Change& change : changes) {
    TRY(std::visit([this](const auto& c) { return apply(c); }, change));
  }
  TRY(flush_counters());
  return remove_empty_batches();
}

Status TransactionWriter::trim_all(const Trim& trim) {
  for (const std::uint64_t seq : trim.history) {
    grow(Counter::last_history, last_seq_);
    TRY(remove_history_.run(seq));
  }
  for (const KeyRow& key : trim.keys) {
    TRY(remove_key_.run(key.owner, key.key));
  }
  for (const std::int64_t id : trim.environments) {
    if (!used_environments_.contains(id)) {
      TRY(remove_environment_.run(id));
    }
  }
  if (trim.begin_environments) {
    used_environments_.clear();
  }
  if (trim.begin_environments || !trim.environments.empty()) {
    environments_ = {};  // it may name rows that are gone, and hides from the sweep what is in use
  }
  return flush_counters();
}

void TransactionWriter::forget_transaction() {
  deltas_.clear();
  queue_deltas_.clear();
  thinned_.clear();
  highest_ = committed_;
  last_seq_ = committed_seq_;
  boot_row_ = 0;
  environments_ = {};
}

std::optional<Blob> TransactionWriter::rules_blob(const Overrides& rules) {
  if (rules.empty()) {
    return std::nullopt;
  }
  buffer_.clear();
  encode_rules(rules, buffer_);
  return Blob{buffer_};
}

Status TransactionWriter::apply(const change::BatchRules& put) {
  return set_batch_.run(put.id, rules_blob(put.rules), put.max_concurrent);
}

Status TransactionWriter::apply(const change::InstancePut& put) {
  return put_meta_.run("paused", put.paused ? "1" : "0");
}

Status TransactionWriter::apply(const change::DrainPut& put) {
  return put.drained ? put_drain_.run(put.gpu, put.why, put.wall) : remove_drain_.run(put.gpu);
}

Status TransactionWriter::apply(const change::EccPut& put) {
  return put_meta_.run(fmt::format("ecc:{}", put.gpu), fmt::format("{}", put.errors));
}

Status TransactionWriter::apply(const change::UsagePut& put) {
  return put_usage_.run(put.batch, put.id, put.gpu_ms, put.wall);
}

Status TransactionWriter::apply(const change::AttemptGivesWay& put) {
  return give_way_.run(put.id, put.why);
}

Status TransactionWriter::apply(const change::QueuePut& put) {
  grow(Counter::last_queue, put.id.value);
  return put_queue_.run(put.id, put.spec.name, put.spec.limit, put.paused,
                        rules_blob(put.spec.rules));
}

Status TransactionWriter::apply(const change::ResourcePut& put) {
  return put_resource_.run(put.name, put.total);
}

Status TransactionWriter::apply(const change::BatchPut& put) {
  grow(Counter::last_batch, put.id.value);
  grow(Counter::last_job, put.reserved.value);
  std::optional<Blob> traits;
  if (put.traits != BatchTraits{}) {
    buffer2_.clear();
    encode_traits(put.traits, buffer2_);
    traits = Blob{buffer2_};
  }
  return put_batch_.run(put.id, put.name, put.owner, put.max_concurrent, put.jobs, put.wall,
                        put.in_parts ? (put.open ? kBatchOpen : kBatchInParts) : kBatchWhole,
                        rules_blob(put.rules), traits);
}

Status TransactionWriter::apply(const change::JobPut& put) {
  const JobSpec& spec = *put.spec;
  grow(Counter::last_job, put.id.value);
  count(put.batch, put.queue, JobState::queued, 1);
  buffer_.clear();
  encode_request(spec.request, buffer_);
  TRY(put_job_.run(put.id, put.batch, put.queue, put.owner, spec.priority, put.after.size(),
                   spec.retries, put.wall, spec.name, Blob{buffer_}, spec.start_at,
                   spec.after_kind));
  TRY_ASSIGN(const auto environment, environment_row(spec.payload.environment));
  buffer_.clear();
  encode_payload(spec.payload, buffer_);
  TRY(put_payload_.run(put.id, environment, spec.payload.log, Blob{buffer_}));
  if (spec.payload.fingerprint != 0) {
    TRY(put_fingerprint_.run(spec.payload.fingerprint, put.id));
  }
  for (const JobId after : put.after) {
    TRY(put_dependency_.run(put.id, after));
  }
  return {};
}

Status TransactionWriter::apply(const change::JobsRemove& remove) {
  for (const JobId id : remove.ids) {
    remove_job_.bind(id);
    TRY_ASSIGN(const bool known, remove_job_.step());
    if (!known) {
      continue;
    }
    const auto state = remove_job_.get<JobState>(0);
    const auto batch = remove_job_.get<BatchId>(1);
    const auto queue = remove_job_.get<QueueId>(2);
    TRY_ASSIGN([[maybe_unused]] const bool more, remove_job_.step());
    count(batch, queue, state, -1);
    if (batch && (thinned_.empty() || thinned_.back() != batch)) {
      thinned_.push_back(batch);
    }
    grow(Counter::last_history, last_seq_);  // the last lines may go with it
    TRY(remove_payload(id));
    TRY(remove_dependencies_.run(id));
    TRY(remove_attempts_.run(id));
    TRY(remove_job_history_.run(id));
  }
  return {};
}

Status TransactionWriter::remove_payload(JobId job) {
  remove_payload_.bind(job);
  TRY_ASSIGN(const bool known, remove_payload_.step());
  if (!known) {
    return {};
  }
  // What cannot be read must still be possible to remove.
  const auto payload = decode_payload(remove_payload_.bytes(0));
  TRY_ASSIGN([[maybe_unused]] const bool more, remove_payload_.step());
  return payload && payload->fingerprint != 0 ? remove_fingerprint_.run(payload->fingerprint, job)
                                              : Status();
}

Status TransactionWriter::remove_empty_batches() {
  for (const BatchId batch : thinned_) {
    batch_left_.bind(batch);
    TRY_ASSIGN([[maybe_unused]] const bool row, batch_left_.step());
    const std::int64_t left = batch_left_.integer(0);
    batch_left_.reset();
    if (left != 0) {
      continue;
    }
    remove_batch_.bind(batch);
    TRY_ASSIGN(const bool removed, remove_batch_.step());
    if (removed) {
      remove_batch_.reset();
      TRY(remove_batch_counters_.run(batch));
      TRY(remove_usage_.run(batch));
    }
  }
  return {};
}

Status TransactionWriter::apply(const change::BatchRemove& remove) {
  for (std::uint64_t state = 0; state < 8; ++state) {
    deltas_.erase(remove.id.value * 8 + state);
  }
  TRY(remove_batch_counters_.run(remove.id));
  TRY(remove_usage_.run(remove.id));
  return drop_batch_.run(remove.id);
}

Status TransactionWriter::apply(const change::JobUpdate& update) {
  job_state_.bind(update.id);
  TRY_ASSIGN(const bool known, job_state_.step());
  if (!known) {
    return fail(ErrorCode::corrupt, fmt::format("job {} is not in the store", update.id.value));
  }
  const auto before = job_state_.get<JobState>(0);
  const auto batch = job_state_.get<BatchId>(1);
  const auto queue = job_state_.get<QueueId>(2);
  job_state_.reset();
  if (before != update.state) {
    count(batch, queue, before, -1);
    count(batch, queue, update.state, 1);
  }
  std::optional<Millis> started;
  std::optional<Millis> ended;
  if (update.state == JobState::running && before == JobState::queued) {
    started = update.wall;
  }
  if (is_terminal(update.state)) {
    ended = update.wall;
  }
  return update_job_.run(update.id, update.state, update.attempts, update.retries_used,
                         stored_kill(update.kill_requested, update.kill_grace), started, ended,
                         update.exit_code, update.failure, std::string_view(update.message),
                         update.not_before, update.excused);
}

/// A job that goes to another queue is counted there. Asked of the row before it is changed.
Status TransactionWriter::count_move(JobId job, QueueId to) {
  job_state_.bind(job);
  TRY_ASSIGN(const bool known, job_state_.step());
  if (known) {
    const auto what = static_cast<std::uint64_t>(job_state_.get<JobState>(0));
    --queue_deltas_[job_state_.get<QueueId>(2).value * 8 + what];
    ++queue_deltas_[to.value * 8 + what];
  }
  job_state_.reset();
  return {};
}

Status TransactionWriter::apply(const change::JobSet& set) {
  if (set.queue) {
    TRY(count_move(set.id, *set.queue));
  }
  std::optional<Blob> request;
  if (set.request) {
    buffer_.clear();
    encode_request(*set.request, buffer_);
    request = Blob{buffer_};
  }
  set_job_.bind(set.id, set.name, set.queue, set.priority, set.rank, set.expedited, request,
                set.retries);
  TRY_ASSIGN(const bool known, set_job_.step());
  set_job_.reset();
  if (!known) {
    return fail(ErrorCode::corrupt, fmt::format("job {} is not in the store", set.id.value));
  }
  if (!set.time_limit && !set.grace) {
    return {};
  }
  find_payload_.bind(set.id);
  TRY_ASSIGN(const bool found, find_payload_.step());
  if (!found) {
    return fail(ErrorCode::corrupt,
                fmt::format("the store has no payload for job {}", set.id.value));
  }
  TRY_ASSIGN(Payload payload, decode_payload(find_payload_.bytes(0)));
  find_payload_.reset();
  payload.time_limit = set.time_limit.value_or(payload.time_limit);
  payload.grace = set.grace.value_or(payload.grace);
  buffer_.clear();
  encode_payload(payload, buffer_);
  return set_payload_.run(set.id, Blob{buffer_});
}

Status TransactionWriter::apply(const change::AttemptPut& put) {
  grow(Counter::last_attempt, put.id.value);
  TRY_ASSIGN(const auto boot, boot_row());
  buffer_.clear();
  encode_gpus(put.gpus, put.gpu_indices, buffer_);
  return put_attempt_.run(put.id, put.job, put.number, boot, put.gpu_memory, put.wall,
                          Blob{buffer_});
}

Status TransactionWriter::apply(const change::AttemptEnd& end) {
  const Verdict& v = end.verdict;
  end_attempt_.bind(end.id, end.wall, end.revoked, v.killed, v.failure, v.exit_code, v.signal,
                    v.user_time, v.system_time, v.max_rss, v.peak_memory, v.leftover, v.ended_wall,
                    v.message, v.log_dropped);
  TRY_ASSIGN(const bool known, end_attempt_.step());
  if (!known) {
    return fail(ErrorCode::corrupt, fmt::format("attempt {} is not in the store", end.id.value));
  }
  end_attempt_.reset();
  return {};
}

Status TransactionWriter::apply(const change::ClientKey& key) {
  return put_key_.run(key.owner, key.key, key.batch, key.first, key.count);
}

Status TransactionWriter::apply(const change::History& line) {
  return put_history_.run(++last_seq_, line.kind, line.job, line.attempt, line.batch, line.wall,
                          line.detail);
}

Status TransactionWriter::flush_counters() {
  for (const auto& [key, delta] : deltas_) {
    if (delta != 0) {
      TRY(add_counter_.run(key / 8, key % 8, delta));
    }
  }
  for (const auto& [key, delta] : queue_deltas_) {
    if (delta != 0) {
      TRY(add_queue_counter_.run(key / 8, key % 8, delta));
    }
  }
  for (std::size_t i = 0; i < kCounters; ++i) {
    if (highest_[i] > committed_[i]) {
      TRY(raise_counter_.run(i + 16, highest_[i]));
    }
  }
  return {};
}

Result<std::int64_t> TransactionWriter::environment_row(
    const std::shared_ptr<const Environment>& environment) {
  // The jobs of a batch share one; the cache holds it, so the address cannot come back as another.
  if (environment != nullptr && environments_[last_cached_].pointer == environment) {
    return environments_[last_cached_].row;
  }
  buffer2_.clear();
  encode_environment(environment != nullptr ? *environment : Environment{}, buffer2_);
  for (std::size_t i = 0; i < environments_.size(); ++i) {
    if (environments_[i].row != 0 && environments_[i].bytes == buffer2_) {
      environments_[i].pointer = environment;
      last_cached_ = i;
      return environments_[i].row;
    }
  }
  const std::uint64_t hash = hash_of(buffer2_);
  std::int64_t row = 0;
  find_environment_.bind(hash);
  while (row == 0) {
    TRY_ASSIGN(const bool found, find_environment_.step());
    if (!found) {
      break;
    }
    if (find_environment_.bytes(1) == buffer2_) {
      row = find_environment_.integer(0);
    }
  }
  find_environment_.reset();
  if (row == 0) {
    put_environment_.bind(hash, Blob{buffer2_});
    TRY_ASSIGN([[maybe_unused]] const bool inserted, put_environment_.step());
    row = put_environment_.integer(0);
    put_environment_.reset();
  }
  used_environments_.insert(row);
  environments_[next_cached_] = {environment, buffer2_, row};
  last_cached_ = next_cached_;
  next_cached_ = (next_cached_ + 1) % environments_.size();
  return row;
}

Result<std::int64_t> TransactionWriter::boot_row() {
  if (boot_row_ == 0) {
    find_boot_.bind(boot_id_);
    TRY_ASSIGN(const bool found, find_boot_.step());
    Stmt& source = found ? find_boot_ : put_boot_;
    if (!found) {
      put_boot_.bind(boot_id_);
      TRY_ASSIGN([[maybe_unused]] const bool inserted, put_boot_.step());
    }
    boot_row_ = source.integer(0);
    source.reset();
  }
  return boot_row_;
}

void TransactionWriter::count(BatchId batch, QueueId queue, JobState state, std::int64_t delta) {
  const auto what = static_cast<std::uint64_t>(state);
  deltas_[what] += delta;
  queue_deltas_[queue.value * 8 + what] += delta;
  if (batch) {
    deltas_[batch.value * 8 + what] += delta;
  }
}

void TransactionWriter::grow(Counter counter, std::uint64_t value) {
  auto& highest = highest_[static_cast<std::size_t>(counter) - 16];
  highest = std::max(highest, value);
}

}  // namespace berth
