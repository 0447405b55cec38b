#include "store/reader.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "store/encode.hpp"
#include "store/load.hpp"
#include "store/schema.hpp"

namespace berth {
namespace {

constexpr std::uint64_t kMaxRowId = std::numeric_limits<std::int64_t>::max();

/// One consistent view for as long as it lives.
class ReadTransaction {
 public:
  explicit ReadTransaction(Db& db) : db_(db), status_(db.exec("BEGIN")) {}
  ReadTransaction(const ReadTransaction&) = delete;
  ReadTransaction& operator=(const ReadTransaction&) = delete;
  ~ReadTransaction() { db_.rollback(); }
  [[nodiscard]] const Status& status() const { return status_; }

 private:
  Db& db_;
  Status status_;
};

std::vector<JobState> distinct(std::vector<JobState> states) {
  std::ranges::sort(states);
  const auto repeated = std::ranges::unique(states);
  states.erase(repeated.begin(), repeated.end());
  if (states.size() == kJobStates) {
    states.clear();  // all of them is no condition
  }
  return states;
}

std::string state_list(const std::vector<JobState>& states) {
  std::vector<int> numbers;
  for (const JobState state : states) {
    numbers.push_back(static_cast<int>(state));
  }
  return fmt::format("{}", fmt::join(numbers, ","));
}

std::string cursor_condition(const JobFilter& query) {
  if (!query.after) {
    return {};
  }
  return fmt::format(" AND id{}{}", query.descending ? '<' : '>',
                     std::min(query.after.value, kMaxRowId));
}

/// The conditions that the chosen index does not answer. The + keeps SQLite from using another one.
std::string filters(const std::vector<JobState>& states, BatchId batch,
                    std::optional<QueueId> queue, std::optional<Millis> since) {
  std::string sql;
  if (!states.empty()) {
    sql += fmt::format(" AND +state IN ({})", state_list(states));
  }
  if (batch) {
    sql += fmt::format(" AND +batch={}", batch.value);
  }
  if (queue) {
    sql += fmt::format(" AND +queue={}", queue->value);
  }
  if (since) {
    sql += fmt::format(" AND (+ended IS NULL OR +ended>={})", since->count());
  }
  return sql;
}

Result<std::vector<JobId>> read_ids(Db& db, const std::string& sql) {
  TRY_ASSIGN(Stmt stmt, db.prepare(sql));
  std::vector<JobId> ids;
  while (true) {
    TRY_ASSIGN(const bool row, stmt.step());
    if (!row) {
      return ids;
    }
    ids.push_back(stmt.get<JobId>(0));
  }
}

Result<std::optional<QueueId>> find_queue(Db& db, const std::string& name) {
  TRY_ASSIGN(Stmt stmt, db.prepare("SELECT id FROM queues WHERE name=?1"));
  stmt.bind(name);
  TRY_ASSIGN(const bool row, stmt.step());
  return row ? std::optional(stmt.get<QueueId>(0)) : std::nullopt;
}

}  // namespace

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
       " j.retries_used, j.exit_code, j.failure, j.message, j.kill_requested, coalesce(p.log,'')"
       " FROM jobs j LEFT JOIN queues q ON q.id=j.queue LEFT JOIN payloads p ON p.id=j.id"
       " WHERE j.id=?1"},
      {&after_, "SELECT after FROM dependencies WHERE job=?1 ORDER BY after"},
      {&last_attempt_, "SELECT id, gpus FROM attempts WHERE job=?1 ORDER BY id DESC LIMIT 1"},
      {&counts_, "SELECT what, n FROM counters WHERE batch=?1 AND what<16"},
  };
  for (const auto& [stmt, sql] : statements) {
    TRY_ASSIGN(*stmt, db_.prepare(sql));
  }
  return {};
}

Result<std::vector<JobRow>> StoreReader::jobs(const JobFilter& query) {
  const ReadTransaction transaction(db_);
  TRY(transaction.status());
  TRY_ASSIGN(const auto ids, page(query));
  std::vector<JobRow> rows;
  rows.reserve(ids.size());
  for (const JobId id : ids) {
    TRY_ASSIGN(auto row, read_job(id));
    if (row) {
      rows.push_back(std::move(*row));
    }
  }
  return rows;
}

Result<std::vector<JobId>> StoreReader::page(const JobFilter& query) {
  std::optional<QueueId> queue;
  if (!query.queue.empty()) {
    TRY_ASSIGN(queue, find_queue(db_, query.queue));
    if (!queue) {
      return std::vector<JobId>();
    }
  }
  if (!query.ids.empty()) {
    return listed(query, queue);
  }
  TRY_ASSIGN(const std::string sql, page_sql(query, queue));
  return read_ids(db_, sql);
}

Result<std::string> StoreReader::page_sql(const JobFilter& query) {
  std::optional<QueueId> queue;
  if (!query.queue.empty()) {
    TRY_ASSIGN(queue, find_queue(db_, query.queue));
  }
  return page_sql(query, queue);
}

/// Every condition but one has an index that yields a page in order without looking at other rows:
/// queue and batch are indexed together with the state, and the states' lists are merged. Of a page
/// by both queue and batch the batch drives and the queue filters.
Result<std::string> StoreReader::page_sql(const JobFilter& query, std::optional<QueueId> queue) {
  const std::string cursor = cursor_condition(query);
  const std::string tail = fmt::format(" ORDER BY 1 {} LIMIT {}", query.descending ? "DESC" : "ASC",
                                       std::min<std::uint64_t>(query.limit, kMaxRowId));
  std::vector<JobState> states = distinct(query.states);
  if (states.empty() && !query.batch && !queue) {
    return fmt::format("SELECT id FROM jobs NOT INDEXED WHERE id>0{}{}{}", cursor,
                       filters({}, {}, {}, query.since), tail);
  }
  if (states.empty()) {
    for (std::size_t i = 0; i < kJobStates; ++i) {
      states.push_back(static_cast<JobState>(i));
    }
  }
  std::string driver = "jobs_state WHERE";
  if (query.batch) {
    driver = fmt::format("jobs_batch WHERE batch={} AND batch>0 AND", query.batch.value);
  } else if (queue) {
    driver = fmt::format("jobs_queue WHERE queue={} AND", queue->value);
  }
  std::string sql;
  for (const JobState state : states) {
    sql += fmt::format("{}SELECT id FROM jobs INDEXED BY {} state={}{}{}",
                       sql.empty() ? "" : " UNION ALL ", driver, static_cast<int>(state), cursor,
                       filters({}, {}, query.batch ? queue : std::nullopt, query.since));
  }
  return sql + tail;
}

Result<std::vector<JobId>> StoreReader::listed(const JobFilter& query,
                                               std::optional<QueueId> queue) {
  auto ranges = query.ids;
  std::ranges::sort(ranges);
  std::vector<std::pair<JobId, JobId>> merged;
  for (const auto& [first, last] : ranges) {
    if (last < first) {
      continue;
    }
    if (!merged.empty() && first.value <= merged.back().second.value) {
      merged.back().second = std::max(merged.back().second, last);
    } else {
      merged.emplace_back(first, last);
    }
  }
  if (query.descending) {
    std::ranges::reverse(merged);
  }
  std::vector<JobId> ids;
  for (const auto& [first, last] : merged) {
    if (ids.size() >= query.limit) {
      break;
    }
    const std::string sql = fmt::format(
        "SELECT id FROM jobs NOT INDEXED WHERE id BETWEEN {} AND {}{}{} ORDER BY id {} LIMIT {}",
        std::min(first.value, kMaxRowId), std::min(last.value, kMaxRowId), cursor_condition(query),
        filters(distinct(query.states), query.batch, queue, query.since),
        query.descending ? "DESC" : "ASC",
        std::min<std::uint64_t>(query.limit - ids.size(), kMaxRowId));
    TRY_ASSIGN(const auto found, read_ids(db_, sql));
    ids.insert(ids.end(), found.begin(), found.end());
  }
  return ids;
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
  row.kill_requested = job_.get<bool>(18);
  row.log = job_.text(19);
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

Result<std::vector<AttemptRow>> StoreReader::attempts(JobId job) {
  TRY_ASSIGN(Stmt stmt,
             db_.prepare("SELECT a.id, a.number, a.gpus, a.gpu_memory, b.boot_id, a.started,"
                         " a.ended, a.revoked, a.killed, a.failure, a.exit_code, a.signal,"
                         " a.user_time, a.system_time, a.max_rss, a.peak_memory, a.leftover,"
                         " a.verdict_wall, a.message FROM attempts a LEFT JOIN boots b ON"
                         " b.id=a.boot WHERE a.job=?1 ORDER BY a.id"));
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

Result<std::vector<HistoryRow>> StoreReader::history(const HistoryQuery& query) {
  std::string where;
  if (query.job) {
    where = fmt::format("INDEXED BY history_job WHERE job>0 AND job={}", query.job.value);
  } else if (query.batch) {
    where = fmt::format("INDEXED BY history_batch WHERE batch>0 AND batch={}", query.batch.value);
  } else {
    where = "NOT INDEXED WHERE true";
  }
  TRY_ASSIGN(Stmt stmt,
             db_.prepare(fmt::format("SELECT seq, kind, job, attempt, batch, detail, wall FROM"
                                     " history {} AND seq>?1{} ORDER BY seq LIMIT ?2",
                                     where,
                                     query.job && query.batch
                                         ? fmt::format(" AND +batch={}", query.batch.value)
                                         : std::string())));
  stmt.bind(query.after, std::min<std::uint64_t>(query.limit, kMaxRowId));
  std::vector<HistoryRow> rows;
  while (true) {
    TRY_ASSIGN(const bool more, stmt.step());
    if (!more) {
      return rows;
    }
    rows.push_back({stmt.get<std::uint64_t>(0), stmt.text(1), stmt.get<JobId>(2),
                    stmt.get<AttemptId>(3), stmt.get<BatchId>(4), stmt.text(5),
                    stmt.get<Millis>(6)});
  }
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
      after ? fmt::format("id{}{}", descending ? '<' : '>', after.value) : std::string("true");
  TRY_ASSIGN(Stmt stmt,
             db_.prepare(fmt::format("SELECT id, name, owner, max_concurrent, jobs,"
                                     " submitted, open FROM batches WHERE {} ORDER BY id {}"
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
    TRY_ASSIGN(row.counts, read_counts(row.id));
  }
}

Result<std::vector<QueueRow>> StoreReader::queues() {
  TRY_ASSIGN(Stmt stmt, db_.prepare("SELECT id, name, running_max FROM queues ORDER BY id"));
  std::vector<QueueRow> rows;
  while (true) {
    TRY_ASSIGN(const bool more, stmt.step());
    if (!more) {
      return rows;
    }
    rows.push_back({stmt.get<QueueId>(0), QueueSpec{stmt.text(1), stmt.get<std::uint32_t>(2)}});
  }
}

Result<std::string> StoreReader::instance_id() {
  return db_.text("SELECT value FROM meta WHERE name='instance_id'");
}

Status StoreReader::check_integrity() {
  return berth::check_integrity(db_);
}

}  // namespace berth
