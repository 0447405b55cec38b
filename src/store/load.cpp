#include "store/load.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "store/encode.hpp"
#include "store/rows.hpp"
#include "store/schema.hpp"

namespace berth {

Result<JobState> checked_state(std::int64_t number) {
  if (number < 0 || number >= static_cast<std::int64_t>(kJobStates)) {
    return fail(ErrorCode::corrupt,
                fmt::format("{} is no job state; the store is damaged", number));
  }
  return static_cast<JobState>(number);
}

Result<std::optional<FailureClass>> checked_failure(std::optional<std::int64_t> number) {
  if (!number) {
    return std::optional<FailureClass>();
  }
  if (*number < 0 || *number > static_cast<std::int64_t>(FailureClass::preempted)) {
    return fail(ErrorCode::corrupt,
                fmt::format("{} is no failure class; the store is damaged", *number));
  }
  return std::optional(static_cast<FailureClass>(*number));
}

Result<After> checked_after(std::int64_t number) {
  if (number < 0 || number > static_cast<std::int64_t>(After::failed)) {
    return fail(ErrorCode::corrupt,
                fmt::format("{} is no kind of dependency; the store is damaged", number));
  }
  return static_cast<After>(number);
}

Result<std::optional<GivesWay>> checked_gives_way(std::optional<std::int64_t> number) {
  if (!number) {
    return std::optional<GivesWay>();
  }
  if (*number < 0 || *number > static_cast<std::int64_t>(GivesWay::parked)) {
    return fail(ErrorCode::corrupt,
                fmt::format("{} is no reason to give way; the store is damaged", *number));
  }
  return std::optional(static_cast<GivesWay>(*number));
}

namespace {

/// Drained cards, whether the instance is paused, and what everybody has used.
Status load_instance(Db& db, Snapshot& snapshot) {
  TRY_ASSIGN(const auto paused,
             db.integer("SELECT count(*) FROM meta WHERE name='paused' AND value='1'"));
  snapshot.paused = paused != 0;
  TRY_ASSIGN(Stmt drains, db.prepare("SELECT gpu, why FROM drains"));
  while (true) {
    TRY_ASSIGN(const bool row, drains.step());
    if (!row) {
      break;
    }
    snapshot.drains.emplace(drains.text(0), drains.text(1));
  }
  TRY_ASSIGN(Stmt errors, db.prepare("SELECT substr(name, 5), CAST(value AS INTEGER) FROM meta "
                                     "WHERE name GLOB 'ecc:*'"));
  while (true) {
    TRY_ASSIGN(const bool row, errors.step());
    if (!row) {
      break;
    }
    snapshot.ecc.emplace(errors.text(0), static_cast<std::uint64_t>(errors.integer(1)));
  }
  // What a batch has used matters as long as it has live jobs.
  TRY_ASSIGN(Stmt usage, db.prepare("SELECT kind, id, gpu_ms, wall FROM usage ORDER BY kind, id"));
  while (true) {
    TRY_ASSIGN(const bool row, usage.step());
    if (!row) {
      return {};
    }
    const bool batch = usage.get<bool>(0);
    const auto id = usage.get<std::uint64_t>(1);
    if (!batch ||
        std::ranges::binary_search(snapshot.batches, BatchId{id}, {}, &Snapshot::Batch::id)) {
      snapshot.usage.push_back({batch, id, usage.real(2), usage.get<Millis>(3)});
    }
  }
}

Status load_small_tables(Db& db, Snapshot& snapshot) {
  TRY_ASSIGN(Stmt queues,
             db.prepare("SELECT id, name, running_max, paused, rules FROM queues ORDER BY id"));
  while (true) {
    TRY_ASSIGN(const bool row, queues.step());
    if (!row) {
      break;
    }
    TRY_ASSIGN(Overrides rules, decode_rules(queues.bytes(4)));
    snapshot.queues.emplace_back(
        queues.get<QueueId>(0),
        QueueSpec{queues.text(1), queues.get<std::uint32_t>(2), std::move(rules)});
    if (queues.get<bool>(3)) {
      snapshot.paused_queues.insert(queues.get<QueueId>(0));
    }
  }
  TRY_ASSIGN(Stmt resources, db.prepare("SELECT name, total FROM resources"));
  while (true) {
    TRY_ASSIGN(const bool row, resources.step());
    if (!row) {
      break;
    }
    snapshot.resources.emplace(resources.text(0), resources.get<std::uint64_t>(1));
  }
  TRY_ASSIGN(Stmt counters, db.prepare("SELECT what, n FROM counters WHERE batch=0 AND what>=16"));
  while (true) {
    TRY_ASSIGN(const bool row, counters.step());
    if (!row) {
      break;
    }
    const auto n = counters.get<std::uint64_t>(1);
    switch (counters.get<Counter>(0)) {
      case Counter::last_job:
        snapshot.last_job = {n};
        break;
      case Counter::last_attempt:
        snapshot.last_attempt = {n};
        break;
      case Counter::last_batch:
        snapshot.last_batch = {n};
        break;
      case Counter::last_queue:
        snapshot.last_queue = {n};
        break;
      case Counter::last_history:
        break;
    }
  }
  return {};
}

Status load_jobs(Db& db, Snapshot& snapshot) {
  TRY_ASSIGN(
      Stmt jobs,
      db.prepare("SELECT id, batch, queue, owner, priority, request, retries, retries_used,"
                 " attempts, state, kill_requested, dependencies, rank, expedited, submitted,"
                 " not_before, after_kind, excused FROM jobs"
                 " WHERE state=?1"
                 " AND +batch NOT IN (SELECT id FROM batches WHERE open=1) ORDER BY id"));
  // A job that is not there any more had ended as it should: one that did not stays until all that
  // follow it have been told.
  TRY_ASSIGN(Stmt after, db.prepare("SELECT d.after, j.state, coalesce(j.ended,0)"
                                    " FROM dependencies d CROSS JOIN jobs j"
                                    " ON j.id=d.after WHERE d.job=?1"
                                    " ORDER BY d.after"));
  TRY_ASSIGN(Stmt tried, db.prepare("SELECT coalesce(max(ended),0) FROM attempts WHERE job=?1"));
  std::map<JobId, JobState> ended;
  for (const JobState state : {JobState::queued, JobState::running, JobState::paused}) {
    jobs.bind(state);
    while (true) {
      TRY_ASSIGN(const bool row, jobs.step());
      if (!row) {
        break;
      }
      Snapshot::LiveJob& job = snapshot.jobs.emplace_back();
      job.id = jobs.get<JobId>(0);
      job.batch = jobs.get<BatchId>(1);
      job.queue = jobs.get<QueueId>(2);
      job.owner = jobs.get<std::uint32_t>(3);
      job.priority = jobs.get<std::int32_t>(4);
      TRY_ASSIGN(job.request, decode_request(jobs.bytes(5)));
      job.retries = jobs.get<std::uint32_t>(6);
      job.retries_used = jobs.get<std::uint32_t>(7);
      job.attempts = jobs.get<std::uint32_t>(8);
      job.state = state;
      job.kill_requested = jobs.integer(10) != 0;
      job.kill_grace = stored_kill_grace(jobs.integer(10));
      job.rank = jobs.integer(12);
      job.expedited = jobs.get<bool>(13);
      job.submitted = jobs.get<Millis>(14);
      job.not_before = jobs.get<Millis>(15);
      job.backing_off = job.attempts > 0 && job.not_before != Millis{0};
      TRY_ASSIGN(job.after_kind, checked_after(jobs.integer(16)));
      job.excused = jobs.get<std::uint32_t>(17);
      if (job.attempts > 0 && state != JobState::running) {
        tried.bind(job.id);
        TRY_ASSIGN([[maybe_unused]] const bool found, tried.step());
        job.last_end = tried.get<Millis>(0);
        tried.reset();
      }
      if (jobs.integer(11) == 0) {
        continue;
      }
      after.bind(job.id);
      while (true) {
        TRY_ASSIGN(const bool more, after.step());
        if (!more) {
          break;
        }
        TRY_ASSIGN(const JobState now, checked_state(after.integer(1)));
        if (is_terminal(now) && is_as_wanted(job.after_kind, now)) {
          job.last_end = std::max(job.last_end, after.get<Millis>(2));
          continue;
        }
        job.after.push_back(after.get<JobId>(0));
        if (is_terminal(now)) {
          ended.emplace(job.after.back(), now);
        }
      }
    }
  }
  snapshot.failed_dependencies.assign(ended.begin(), ended.end());
  std::ranges::sort(snapshot.jobs, {}, &Snapshot::LiveJob::id);
  return {};
}

Status load_open_batches(Db& db, Snapshot& snapshot) {
  TRY_ASSIGN(Stmt open, db.prepare("SELECT id FROM batches WHERE open=1 ORDER BY id"));
  TRY_ASSIGN(Stmt ends, db.prepare("SELECT coalesce(min(id),0), coalesce(max(id),0) FROM jobs"
                                   " INDEXED BY jobs_batch WHERE batch=?1 AND batch>0"));
  while (true) {
    TRY_ASSIGN(const bool row, open.step());
    if (!row) {
      return {};
    }
    ends.bind(open.get<BatchId>(0));
    TRY_ASSIGN([[maybe_unused]] const bool found, ends.step());
    snapshot.open_batches.push_back({open.get<BatchId>(0), ends.get<JobId>(0), ends.get<JobId>(1)});
    ends.reset();
  }
}

Status load_batches(Db& db, Snapshot& snapshot) {
  std::vector<BatchId> ids;
  for (const auto& job : snapshot.jobs) {
    if (job.batch && (ids.empty() || ids.back() != job.batch)) {
      ids.push_back(job.batch);
    }
  }
  std::ranges::sort(ids);
  const auto repeated = std::ranges::unique(ids);
  ids.erase(repeated.begin(), repeated.end());
  TRY_ASSIGN(Stmt batch, db.prepare("SELECT name, max_concurrent, open, rules FROM batches"
                                    " WHERE id=?1"));
  for (const BatchId id : ids) {
    batch.bind(id);
    TRY_ASSIGN(const bool row, batch.step());
    if (!row) {
      return fail(ErrorCode::corrupt, fmt::format("batch {} has live jobs but is not in the store; "
                                                  "restore a backup",
                                                  id.value));
    }
    TRY_ASSIGN(Overrides rules, decode_rules(batch.bytes(3)));
    snapshot.batches.push_back({id, batch.text(0), batch.get<std::uint32_t>(1),
                                batch.integer(2) == kBatchInParts, std::move(rules)});
    batch.reset();
  }
  return {};
}

Status load_attempts(Db& db, Snapshot& snapshot) {
  TRY_ASSIGN(Stmt attempts,
             db.prepare("SELECT a.id, a.job, a.number, a.gpus, a.gpu_memory, b.boot_id,"
                        " a.started, a.gives_way"
                        " FROM attempts a INDEXED BY attempts_open JOIN boots b ON b.id=a.boot"
                        " WHERE a.ended IS NULL ORDER BY a.id"));
  while (true) {
    TRY_ASSIGN(const bool row, attempts.step());
    if (!row) {
      return {};
    }
    TRY_ASSIGN(GpuSet gpus, decode_gpus(attempts.bytes(3)));
    TRY_ASSIGN(const auto gives_way, checked_gives_way(attempts.maybe<std::int64_t>(7)));
    snapshot.attempts.push_back({attempts.get<AttemptId>(0), attempts.get<JobId>(1),
                                 attempts.get<std::uint32_t>(2), std::move(gpus.uuids),
                                 attempts.get<Bytes>(4), attempts.text(5), attempts.get<Millis>(6),
                                 gives_way});
  }
}

}  // namespace

Result<std::optional<EndedJob>> read_ended_job(Stmt& job, Stmt& dependencies, JobId id) {
  job.bind(id);
  TRY_ASSIGN(const bool known, job.step());
  if (!known) {
    return std::optional<EndedJob>();
  }
  EndedJob ended;
  ended.id = id;
  TRY_ASSIGN(ended.state, checked_state(job.integer(0)));
  ended.batch = job.get<BatchId>(1);
  ended.queue = job.get<QueueId>(2);
  ended.owner = job.get<std::uint32_t>(3);
  ended.priority = job.get<std::int32_t>(4);
  TRY_ASSIGN(ended.request, decode_request(job.bytes(5)));
  ended.retries = job.get<std::uint32_t>(6);
  ended.attempts = job.get<std::uint32_t>(7);
  ended.rank = job.integer(8);
  ended.expedited = job.get<bool>(9);
  TRY_ASSIGN(ended.after_kind, checked_after(job.integer(10)));
  ended.batch_name = job.text(11);
  ended.batch_max_concurrent = job.get<std::uint32_t>(12);
  TRY_ASSIGN(ended.batch_rules, decode_rules(job.bytes(13)));
  job.reset();
  if (!is_terminal(ended.state)) {
    return std::optional<EndedJob>();
  }
  dependencies.bind(id);
  while (true) {
    TRY_ASSIGN(const bool more, dependencies.step());
    if (!more) {
      return ended;
    }
    ended.after.push_back(dependencies.get<JobId>(0));
  }
}

Result<Snapshot> load_snapshot(Db& db) {
  Snapshot snapshot;
  TRY(db.exec("BEGIN"));
  const auto run = [&]() -> Status {
    TRY(load_small_tables(db, snapshot));
    TRY(load_jobs(db, snapshot));
    TRY(load_open_batches(db, snapshot));
    TRY(load_batches(db, snapshot));
    TRY(load_instance(db, snapshot));
    return load_attempts(db, snapshot);
  };
  Status status = run();
  db.rollback();
  if (!status) {
    return std::unexpected(std::move(status.error()));
  }
  return snapshot;
}

}  // namespace berth
