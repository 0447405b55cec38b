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

namespace {

Status load_small_tables(Db& db, Snapshot& snapshot) {
  TRY_ASSIGN(Stmt queues,
             db.prepare("SELECT id, name, running_max, paused FROM queues ORDER BY id"));
  while (true) {
    TRY_ASSIGN(const bool row, queues.step());
    if (!row) {
      break;
    }
    snapshot.queues.emplace_back(queues.get<QueueId>(0),
                                 QueueSpec{queues.text(1), queues.get<std::uint32_t>(2)});
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
  TRY_ASSIGN(Stmt jobs,
             db.prepare("SELECT id, batch, queue, owner, priority, request, retries, retries_used,"
                        " attempts, state, kill_requested, dependencies, rank, expedited FROM jobs"
                        " WHERE state=?1"
                        " AND +batch NOT IN (SELECT id FROM batches WHERE open=1) ORDER BY id"));
  // A job that is not there any more had succeeded: one that did not stays until all that follow it
  // have ended, too.
  TRY_ASSIGN(Stmt after, db.prepare("SELECT d.after, j.state FROM dependencies d CROSS JOIN jobs j"
                                    " ON j.id=d.after WHERE d.job=?1 AND j.state<>?2"
                                    " ORDER BY d.after"));
  std::map<JobId, JobState> failed;
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
      if (jobs.integer(11) == 0) {
        continue;
      }
      after.bind(job.id, JobState::succeeded);
      while (true) {
        TRY_ASSIGN(const bool more, after.step());
        if (!more) {
          break;
        }
        job.after.push_back(after.get<JobId>(0));
        if (const auto number = after.maybe<std::int64_t>(1)) {
          TRY_ASSIGN(const JobState now, checked_state(*number));
          if (is_terminal(now)) {
            failed.emplace(job.after.back(), now);
          }
        }
      }
    }
  }
  snapshot.failed_dependencies.assign(failed.begin(), failed.end());
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
  TRY_ASSIGN(Stmt batch, db.prepare("SELECT name, max_concurrent, open FROM batches WHERE id=?1"));
  for (const BatchId id : ids) {
    batch.bind(id);
    TRY_ASSIGN(const bool row, batch.step());
    if (!row) {
      return fail(ErrorCode::corrupt, fmt::format("batch {} has live jobs but is not in the store; "
                                                  "restore a backup",
                                                  id.value));
    }
    snapshot.batches.push_back(
        {id, batch.text(0), batch.get<std::uint32_t>(1), batch.integer(2) == kBatchInParts});
    batch.reset();
  }
  return {};
}

Status load_attempts(Db& db, Snapshot& snapshot) {
  TRY_ASSIGN(Stmt attempts,
             db.prepare("SELECT a.id, a.job, a.number, a.gpus, a.gpu_memory, b.boot_id"
                        " FROM attempts a INDEXED BY attempts_open JOIN boots b ON b.id=a.boot"
                        " WHERE a.ended IS NULL ORDER BY a.id"));
  while (true) {
    TRY_ASSIGN(const bool row, attempts.step());
    if (!row) {
      return {};
    }
    TRY_ASSIGN(GpuSet gpus, decode_gpus(attempts.bytes(3)));
    snapshot.attempts.push_back({attempts.get<AttemptId>(0), attempts.get<JobId>(1),
                                 attempts.get<std::uint32_t>(2), std::move(gpus.uuids),
                                 attempts.get<Bytes>(4), attempts.text(5)});
  }
}

}  // namespace

Result<Snapshot> load_snapshot(Db& db) {
  Snapshot snapshot;
  TRY(db.exec("BEGIN"));
  const auto run = [&]() -> Status {
    TRY(load_small_tables(db, snapshot));
    TRY(load_jobs(db, snapshot));
    TRY(load_open_batches(db, snapshot));
    TRY(load_batches(db, snapshot));
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
