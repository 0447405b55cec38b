#include "store/reader.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "store/encode.hpp"
#include "store/load.hpp"
#include "store/read_transaction.hpp"
#include "store/schema.hpp"

namespace berth {

Result<StoreReader> StoreReader::open(const std::filesystem::path& file, const std::string& vfs) {
  TRY_ASSIGN(Db db, open_for_reading(file, vfs));
  StoreReader reader(std::move(db));
  TRY(reader.prepare_statements());
  return reader;
}

Status StoreReader::prepare_statements() {
  const std::pair<Stmt*, const char*> statements[] = {
      {&job_,
       "SELECT j.name, j.state, j.queue, coalesce(q.name,''), j.priority, j.batch, j.owner,"
       " j.request, j.dependencies, j.submitted, j.started, j.ended, j.attempts, j.retries,"
       " j.retries_used, j.exit_code, j.failure, j.message, j.kill_requested, coalesce(p.log,''),"
       " j.rank, j.expedited, j.after_kind, j.not_before, j.excused"
       " FROM jobs j LEFT JOIN queues q ON q.id=j.queue LEFT JOIN payloads p ON p.id=j.id"
       " WHERE j.id=?1"},
      {&head_, "SELECT data FROM payloads WHERE id=?1"},
      {&after_, "SELECT after FROM dependencies WHERE job=?1 ORDER BY after"},
      {&last_attempt_, "SELECT id, gpus FROM attempts WHERE job=?1 ORDER BY id DESC LIMIT 1"},
      {&same_,
       "SELECT j.id, j.state, j.attempts FROM fingerprints f JOIN jobs j ON j.id=f.job"
       " WHERE f.hash=?1 AND j.name=?2 ORDER BY f.job DESC"},
      {&counts_, "SELECT what, n FROM counters WHERE batch=?1 AND what<16"},
  };
  for (const auto& [stmt, sql] : statements) {
    TRY_ASSIGN(*stmt, db_.prepare(sql));
  }
  return {};
}

Result<std::optional<JobRow>> StoreReader::job(JobId id) {
  const ReadTransaction transaction(db_);
  TRY(transaction.status());
  return read_job(id);
}

Result<std::optional<JobRow>> StoreReader::read_job(JobId id) {
  job_.bind(id);
  TRY_ASSIGN(const bool known, job_.step());
  if (!known) {
    return std::optional<JobRow>();
  }
  JobRow row;
  row.id = id;
  row.name = job_.text(0);
  TRY_ASSIGN(row.state, checked_state(job_.integer(1)));
  row.queue_id = job_.get<QueueId>(2);
  row.queue = job_.text(3);
  row.priority = job_.get<std::int32_t>(4);
  row.batch = job_.get<BatchId>(5);
  row.owner = job_.get<std::uint32_t>(6);
  TRY_ASSIGN(row.request, decode_request(job_.bytes(7)));
  const bool has_dependencies = job_.integer(8) != 0;
  row.submitted = job_.get<Millis>(9);
  row.started = job_.maybe<Millis>(10);
  row.ended = job_.maybe<Millis>(11);
  row.attempts = job_.get<std::uint32_t>(12);
  row.retries = job_.get<std::uint32_t>(13);
  row.retries_used = job_.get<std::uint32_t>(14);
  row.exit_code = job_.maybe<std::int32_t>(15);
  TRY_ASSIGN(row.failure, checked_failure(job_.maybe<std::int64_t>(16)));
  row.message = job_.text(17);
  row.kill_requested = job_.integer(18) != 0;
  row.kill_grace = stored_kill_grace(job_.integer(18));
  row.log = job_.text(19);
  row.rank = job_.integer(20);
  row.expedited = job_.get<bool>(21);
  TRY_ASSIGN(row.after_kind, checked_after(job_.integer(22)));
  row.not_before = job_.get<Millis>(23);
  row.excused = job_.get<std::uint32_t>(24);
  job_.reset();
  if (has_dependencies) {
    after_.bind(id);
    while (true) {
      TRY_ASSIGN(const bool more, after_.step());
      if (!more) {
        break;
      }
      row.after.push_back(after_.get<JobId>(0));
    }
  }
  last_attempt_.bind(id);
  TRY_ASSIGN(const bool attempted, last_attempt_.step());
  if (attempted) {
    row.last_attempt = last_attempt_.get<AttemptId>(0);
    TRY_ASSIGN(GpuSet gpus, decode_gpus(last_attempt_.bytes(1)));
    row.gpus = std::move(gpus.uuids);
    row.gpu_indices = std::move(gpus.indices);
    last_attempt_.reset();
  }
  return row;
}

Result<PayloadHead> StoreReader::read_head(JobId id) {
  PayloadHead head;
  head_.bind(id);
  TRY_ASSIGN(const bool known, head_.step());
  if (known) {
    TRY_ASSIGN(Payload payload, decode_payload(head_.bytes(0)));
    head_.reset();
    head.commands = std::move(payload.commands);
    head.cwd = std::move(payload.cwd);
    head.params = std::move(payload.params);
  }
  return head;
}

Result<SameJobs> StoreReader::same_jobs(std::uint64_t fingerprint, const std::string& name) {
  SameJobs same;
  bool known = false;  // how the newest that ran has ended
  same_.bind(fingerprint, name);
  while (!known || !same.alive) {
    TRY_ASSIGN(const bool more, same_.step());
    if (!more) {
      break;
    }
    TRY_ASSIGN(const JobState state, checked_state(same_.integer(1)));
    if (!is_terminal(state)) {
      same.alive = same.alive ? same.alive : same_.get<JobId>(0);
    } else if (!known && (state == JobState::succeeded || same_.integer(2) > 0)) {
      known = true;
      same.succeeded = state == JobState::succeeded ? same_.get<JobId>(0) : JobId{};
    }
  }
  same_.reset();
  return same;
}

Result<std::vector<AttemptRow>> StoreReader::attempts(JobId job) {
  TRY_ASSIGN(Stmt stmt,
             db_.prepare("SELECT a.id, a.number, a.gpus, a.gpu_memory, b.boot_id, a.started,"
                         " a.ended, a.revoked, a.killed, a.failure, a.exit_code, a.signal,"
                         " a.user_time, a.system_time, a.max_rss, a.peak_memory, a.leftover,"
                         " a.verdict_wall, a.message, a.log_dropped, a.gives_way FROM attempts a"
                         " LEFT JOIN boots b ON b.id=a.boot WHERE a.job=?1 ORDER BY a.id"));
  stmt.bind(job);
  std::vector<AttemptRow> rows;
  while (true) {
    TRY_ASSIGN(const bool more, stmt.step());
    if (!more) {
      return rows;
    }
    AttemptRow& row = rows.emplace_back();
    row.id = stmt.get<AttemptId>(0);
    row.job = job;
    row.number = stmt.get<std::uint32_t>(1);
    TRY_ASSIGN(GpuSet gpus, decode_gpus(stmt.bytes(2)));
    row.gpus = std::move(gpus.uuids);
    row.gpu_indices = std::move(gpus.indices);
    row.gpu_memory = stmt.get<Bytes>(3);
    row.boot_id = stmt.text(4);
    row.started = stmt.get<Millis>(5);
    row.ended = stmt.maybe<Millis>(6);
    row.revoked = stmt.get<bool>(7);
    row.verdict.killed = stmt.get<bool>(8);
    TRY_ASSIGN(row.verdict.failure, checked_failure(stmt.maybe<std::int64_t>(9)));
    row.verdict.exit_code = stmt.maybe<std::int32_t>(10);
    row.verdict.signal = stmt.maybe<std::int32_t>(11);
    row.verdict.user_time = stmt.maybe<Millis>(12);
    row.verdict.system_time = stmt.maybe<Millis>(13);
    row.verdict.max_rss = stmt.maybe<Bytes>(14);
    row.verdict.peak_memory = stmt.maybe<Bytes>(15);
    row.verdict.leftover = stmt.get<std::uint32_t>(16);
    row.verdict.ended_wall = stmt.get<Millis>(17);
    row.verdict.message = stmt.text(18);
    row.verdict.log_dropped = stmt.maybe<Bytes>(19).value_or(0);
    TRY_ASSIGN(row.gives_way, checked_gives_way(stmt.maybe<std::int64_t>(20)));
  }
}

Result<std::optional<Payload>> StoreReader::payload(JobId job) {
  TRY_ASSIGN(Stmt stmt, db_.prepare("SELECT p.data, p.log, e.data FROM payloads p"
                                    " LEFT JOIN environments e ON e.id=p.environment"
                                    " WHERE p.id=?1"));
  stmt.bind(job);
  TRY_ASSIGN(const bool known, stmt.step());
  if (!known) {
    return std::optional<Payload>();
  }
  TRY_ASSIGN(Payload payload, decode_payload(stmt.bytes(0)));
  payload.log = stmt.text(1);
  TRY_ASSIGN(Environment environment, decode_environment(stmt.bytes(2)));
  payload.environment = std::make_shared<const Environment>(std::move(environment));
  return payload;
}

Result<StateCounts> StoreReader::counts(BatchId batch) {
  return read_counts(batch);
}

Result<StateCounts> StoreReader::read_counts(BatchId batch) {
  StateCounts counts{};
  counts_.bind(batch);
  while (true) {
    TRY_ASSIGN(const bool more, counts_.step());
    if (!more) {
      return counts;
    }
    TRY_ASSIGN(const JobState state, checked_state(counts_.integer(0)));
    counts[static_cast<std::size_t>(state)] = counts_.get<std::uint64_t>(1);
  }
}

Result<std::vector<BatchRow>> StoreReader::batches(BatchId after, std::size_t limit,
                                                   bool descending) {
  const ReadTransaction transaction(db_);
  TRY(transaction.status());
  const std::string cursor =
      after ? fmt::format("id{}{}", descending ? '<' : '>', std::min(after.value, kMaxRowId))
            : std::string("true");
  TRY_ASSIGN(Stmt stmt, db_.prepare(fmt::format(
                            "SELECT id, name, owner, max_concurrent, jobs,"
                            " submitted, open, rules, traits FROM batches WHERE {} ORDER BY id {}"
                            " LIMIT ?1",
                            cursor, descending ? "DESC" : "ASC")));
  stmt.bind(std::min<std::uint64_t>(limit, kMaxRowId));
  std::vector<BatchRow> rows;
  while (true) {
    TRY_ASSIGN(const bool more, stmt.step());
    if (!more) {
      return rows;
    }
    BatchRow& row = rows.emplace_back();
    row.id = stmt.get<BatchId>(0);
    row.name = stmt.text(1);
    row.owner = stmt.get<std::uint32_t>(2);
    row.max_concurrent = stmt.get<std::uint32_t>(3);
    row.jobs = stmt.get<std::uint64_t>(4);
    row.submitted = stmt.get<Millis>(5);
    row.open = stmt.integer(6) == kBatchOpen;
    row.in_parts = stmt.integer(6) != kBatchWhole;
    TRY_ASSIGN(row.rules, decode_rules(stmt.bytes(7)));
    TRY_ASSIGN(row.traits, decode_traits(stmt.bytes(8)));
    TRY_ASSIGN(row.counts, read_counts(row.id));
  }
}

Result<std::optional<BatchRow>> StoreReader::batch(BatchId id) {
  TRY_ASSIGN(auto rows, batches(BatchId{id.value - 1}, 1));
  if (rows.empty() || rows.front().id != id) {
    return std::optional<BatchRow>();
  }
  return std::move(rows.front());
}

Result<std::optional<BatchTraits>> StoreReader::traits(BatchId batch) {
  TRY_ASSIGN(Stmt stmt, db_.prepare("SELECT traits FROM batches WHERE id=?1"));
  stmt.bind(batch);
  TRY_ASSIGN(const bool known, stmt.step());
  if (!known) {
    return std::optional<BatchTraits>();
  }
  TRY_ASSIGN(BatchTraits traits, decode_traits(stmt.bytes(0)));
  return traits;
}

Result<std::map<QueueId, StateCounts>> StoreReader::queue_counts() {
  TRY_ASSIGN(Stmt stmt, db_.prepare("SELECT queue, state, n FROM queue_counters"));
  std::map<QueueId, StateCounts> all;
  while (true) {
    TRY_ASSIGN(const bool more, stmt.step());
    if (!more) {
      return all;
    }
    TRY_ASSIGN(const JobState state, checked_state(stmt.integer(1)));
    all[stmt.get<QueueId>(0)][static_cast<std::size_t>(state)] = stmt.get<std::uint64_t>(2);
  }
}

Result<std::vector<QueueRow>> StoreReader::queues() {
  const ReadTransaction transaction(db_);
  TRY(transaction.status());
  TRY_ASSIGN(auto counts, queue_counts());
  TRY_ASSIGN(Stmt stmt,
             db_.prepare("SELECT id, name, running_max, paused, rules FROM queues ORDER BY id"));
  std::vector<QueueRow> rows;
  while (true) {
    TRY_ASSIGN(const bool more, stmt.step());
    if (!more) {
      return rows;
    }
    TRY_ASSIGN(Overrides rules, decode_rules(stmt.bytes(4)));
    rows.push_back({stmt.get<QueueId>(0),
                    QueueSpec{stmt.text(1), stmt.get<std::uint32_t>(2), std::move(rules)},
                    stmt.get<bool>(3), counts[stmt.get<QueueId>(0)]});
  }
}

Result<std::string> StoreReader::instance_id() {
  return db_.text("SELECT value FROM meta WHERE name='instance_id'");
}

Status StoreReader::check_integrity() {
  return berth::check_integrity(db_);
}

}  // namespace berth
