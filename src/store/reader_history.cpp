// Pages of history, in the order in which things happened.

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "store/read_transaction.hpp"
#include "store/reader.hpp"

namespace berth {
namespace {

/// The lines of so many jobs are collected through their index and sorted.
constexpr std::uint64_t kFewJobs = 200;

std::uint64_t how_many(const std::vector<std::pair<JobId, JobId>>& ranges) {
  std::uint64_t count = 0;
  for (const auto& [first, last] : ranges) {
    if (first <= last) {
      const std::uint64_t more = last.value - first.value;
      if (more >= kFewJobs) {
        return kFewJobs + 1;
      }
      count += more + 1;
    }
  }
  return count;
}

/// The parameters from ?1 on are the kinds.
std::string kind_list(const HistoryQuery& query) {
  std::vector<std::string> parameters;
  for (std::size_t i = 1; i <= query.kinds.size(); ++i) {
    parameters.push_back(fmt::format("?{}", i));
  }
  return fmt::format("{}", fmt::join(parameters, ","));
}

}  // namespace

Result<std::uint64_t> StoreReader::first_since(Millis wall) {
  // Lines are written in the order of the clock, so a handful of looks finds the first.
  TRY_ASSIGN(Stmt last, db_.prepare("SELECT coalesce(max(seq),0) FROM history"));
  TRY_ASSIGN([[maybe_unused]] const bool there, last.step());
  std::uint64_t low = 0;
  std::uint64_t high = last.get<std::uint64_t>(0) + 1;
  TRY_ASSIGN(Stmt line,
             db_.prepare("SELECT seq, wall FROM history WHERE seq>=?1 ORDER BY seq LIMIT 1"));
  while (low < high) {
    const std::uint64_t middle = low + (high - low) / 2;
    line.bind(middle);
    TRY_ASSIGN(const bool row, line.step());
    if (!row || line.get<Millis>(1) >= wall) {
      high = middle;
    } else {
      low = line.get<std::uint64_t>(0) + 1;
    }
  }
  return low;
}

Result<std::string> StoreReader::history_sql(const HistoryQuery& query) {
  std::vector<std::string> matches;
  std::string where = "NOT INDEXED WHERE true";
  std::string cursor;
  if (query.after != 0 || !query.descending) {
    cursor =
        fmt::format(" AND seq{}{}", query.descending ? '<' : '>', std::min(query.after, kMaxRowId));
  }
  if (query.since) {
    TRY_ASSIGN(const std::uint64_t first, first_since(*query.since));
    cursor += fmt::format(" AND seq>={}", first);
    matches.push_back(fmt::format("wall>={}", query.since->count()));
  }
  const std::uint64_t jobs = how_many(query.jobs);
  if (query.job) {
    where = fmt::format("INDEXED BY history_job WHERE job>0 AND job={}", query.job.value);
  } else if (!query.jobs.empty() && jobs <= kFewJobs) {
    std::vector<std::uint64_t> ids;
    for (const auto& [first, last] : query.jobs) {
      for (std::uint64_t id = first.value; id <= last.value; ++id) {
        ids.push_back(id);
      }
    }
    where = fmt::format("INDEXED BY history_job WHERE job>0 AND job IN ({})", fmt::join(ids, ","));
  } else if (query.batch) {
    where = fmt::format("INDEXED BY history_batch WHERE batch>0 AND batch={}", query.batch.value);
  }
  if (query.batch && where.find("history_batch") == std::string::npos) {
    matches.push_back(fmt::format("batch={}", query.batch.value));
  }
  if (!query.jobs.empty() && (jobs > kFewJobs || query.job)) {
    std::vector<std::string> any;
    for (const auto& [first, last] : query.jobs) {
      any.push_back(fmt::format("job BETWEEN {} AND {}", std::min(first.value, kMaxRowId),
                                std::min(last.value, kMaxRowId)));
    }
    matches.push_back(fmt::format("({})", fmt::join(any, " OR ")));
  }
  if (!query.kinds.empty()) {
    matches.push_back(fmt::format("kind IN ({})", kind_list(query)));
  }
  return fmt::format(
      "SELECT seq, kind, job, attempt, batch, detail, wall, {} FROM history {}{} ORDER BY seq {} "
      "LIMIT {}",
      matches.empty() ? "1" : fmt::format("{}", fmt::join(matches, " AND ")), where, cursor,
      query.descending ? "DESC" : "ASC",
      std::min<std::uint64_t>(matches.empty() ? query.limit : scan_budget, kMaxRowId));
}

Result<HistoryPage> StoreReader::history_page(const HistoryQuery& query) {
  const ReadTransaction transaction(db_);
  TRY(transaction.status());
  TRY_ASSIGN(const std::string sql, history_sql(query));
  TRY_ASSIGN(Stmt stmt, db_.prepare(sql));
  stmt.bind_each(query.kinds);
  HistoryPage page;
  page.last = query.after;
  std::size_t seen = 0;
  while (page.rows.size() < query.limit) {
    TRY_ASSIGN(const bool row, stmt.step());
    if (!row) {
      page.more = seen >= scan_budget;
      return page;
    }
    ++seen;
    page.last = stmt.get<std::uint64_t>(0);
    if (stmt.integer(7) != 0) {
      page.rows.push_back({page.last, stmt.text(1), stmt.get<JobId>(2), stmt.get<AttemptId>(3),
                           stmt.get<BatchId>(4), stmt.text(5), stmt.get<Millis>(6)});
    }
  }
  page.more = true;
  return page;
}

Result<std::uint64_t> StoreReader::last_history() {
  TRY_ASSIGN(const auto last, db_.integer("SELECT coalesce(max(seq),0) FROM history"));
  return static_cast<std::uint64_t>(last);
}

Result<std::vector<HistoryRow>> StoreReader::history(const HistoryQuery& query) {
  std::vector<HistoryRow> rows;
  HistoryQuery part = query;
  while (rows.size() < query.limit) {
    part.limit = query.limit - rows.size();
    TRY_ASSIGN(HistoryPage page, history_page(part));
    std::ranges::move(page.rows, std::back_inserter(rows));
    if (!page.more) {
      break;
    }
    part.after = page.last;
  }
  return rows;
}

}  // namespace berth
