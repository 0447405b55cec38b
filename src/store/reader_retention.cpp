// What may be removed. All of it is found in small steps, so that others may read in between.

#include <fmt/format.h>

#include "store/read_transaction.hpp"
#include "store/reader.hpp"

namespace berth {

Result<std::vector<JobRow>> StoreReader::oldest_finished(std::optional<Millis> before,
                                                         std::size_t limit) {
  const ReadTransaction transaction(db_);
  TRY(transaction.status());
  TRY_ASSIGN(Stmt stmt, db_.prepare("SELECT id FROM jobs INDEXED BY jobs_ended WHERE ended IS NOT"
                                    " NULL AND ended<?1 ORDER BY ended, id LIMIT ?2"));
  stmt.bind(before.value_or(Millis::max()), limit);
  std::vector<JobRow> rows;
  while (true) {
    TRY_ASSIGN(const bool more, stmt.step());
    if (!more) {
      return rows;
    }
    TRY_ASSIGN(auto row, read_job(stmt.get<JobId>(0)));
    if (row) {
      rows.push_back(std::move(*row));
    }
  }
}

Result<std::vector<std::uint64_t>> StoreReader::loose_history(std::optional<std::uint64_t>& after,
                                                              Millis before, std::size_t limit) {
  TRY_ASSIGN(Stmt stmt, db_.prepare("SELECT seq, wall, job FROM history WHERE seq>?1 ORDER BY seq"
                                    " LIMIT ?2"));
  stmt.bind(after.value_or(0), limit);
  std::vector<std::uint64_t> found;
  std::optional<std::uint64_t> last;
  for (std::size_t seen = 0; seen < limit; ++seen) {
    TRY_ASSIGN(const bool more, stmt.step());
    if (!more || stmt.get<Millis>(1) >= before) {
      stmt.reset();
      after.reset();
      return found;
    }
    last = stmt.get<std::uint64_t>(0);
    if (!stmt.get<JobId>(2)) {
      found.push_back(*last);
    }
  }
  after = last;
  return found;
}

Result<std::vector<KeyRow>> StoreReader::loose_keys(std::optional<KeyRow>& after, JobId upto,
                                                    std::size_t limit) {
  const ReadTransaction transaction(db_);
  TRY(transaction.status());
  TRY_ASSIGN(Stmt keys, db_.prepare("SELECT owner, key, first_job, jobs FROM client_keys WHERE"
                                    " (owner,key)>(?1,?2) ORDER BY owner, key LIMIT ?3"));
  TRY_ASSIGN(Stmt any, db_.prepare("SELECT 1 FROM jobs WHERE id BETWEEN ?1 AND ?2 LIMIT 1"));
  const std::string from = after ? after->key : std::string();
  keys.bind(after ? static_cast<std::int64_t>(after->owner) : -1, from, limit);
  std::vector<KeyRow> found;
  std::optional<KeyRow> last;
  for (std::size_t seen = 0; seen < limit; ++seen) {
    TRY_ASSIGN(const bool more, keys.step());
    if (!more) {
      after.reset();
      return found;
    }
    last = KeyRow{keys.get<std::uint32_t>(0), keys.text(1), keys.get<JobId>(2),
                  keys.get<std::uint64_t>(3)};
    const std::uint64_t end = last->first.value + last->count - 1;
    if (end > upto.value) {
      continue;
    }
    any.bind(last->first, end);
    TRY_ASSIGN(const bool left, any.step());
    any.reset();
    if (!left) {
      found.push_back(*last);
    }
  }
  after = std::move(last);
  return found;
}

Result<std::optional<bool>> StoreReader::has_jobs(std::uint32_t owner, const std::string& key) {
  const ReadTransaction transaction(db_);
  TRY(transaction.status());
  TRY_ASSIGN(Stmt find,
             db_.prepare("SELECT first_job, jobs FROM client_keys WHERE owner=?1 AND key=?2"));
  find.bind(owner, key);
  TRY_ASSIGN(const bool known, find.step());
  if (!known) {
    return std::optional<bool>();
  }
  const auto first = find.get<JobId>(0);
  TRY_ASSIGN(Stmt any, db_.prepare("SELECT 1 FROM jobs WHERE id BETWEEN ?1 AND ?2 LIMIT 1"));
  any.bind(first, first.value + find.get<std::uint64_t>(1) - 1);
  TRY_ASSIGN(const bool left, any.step());
  return std::optional(left);
}

Status StoreReader::environments_used(std::optional<JobId>& after, std::size_t limit,
                                      std::unordered_set<std::int64_t>& used) {
  TRY_ASSIGN(Stmt stmt,
             db_.prepare("SELECT id, environment FROM payloads WHERE id>?1 ORDER BY id LIMIT ?2"));
  stmt.bind(after.value_or(JobId{}), limit);
  std::optional<JobId> last;
  for (std::size_t seen = 0; seen < limit; ++seen) {
    TRY_ASSIGN(const bool more, stmt.step());
    if (!more) {
      after.reset();
      return {};
    }
    last = stmt.get<JobId>(0);
    used.insert(stmt.integer(1));
  }
  after = last;
  return {};
}

Result<std::vector<std::int64_t>> StoreReader::environment_ids() {
  TRY_ASSIGN(Stmt stmt, db_.prepare("SELECT id FROM environments ORDER BY id"));
  std::vector<std::int64_t> ids;
  while (true) {
    TRY_ASSIGN(const bool more, stmt.step());
    if (!more) {
      return ids;
    }
    ids.push_back(stmt.integer(0));
  }
}

}  // namespace berth
