// Pages of jobs by id.
//
// Every page comes in id order from an index that has the rows in that order. What the index does
// not answer is asked of the rows on the way, of a limited number of them; a page that ends early
// for that reason says where to go on.

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "store/page_sql.hpp"
#include "store/read_transaction.hpp"
#include "store/reader.hpp"

namespace berth {
namespace pages {

std::vector<JobState> distinct(std::vector<JobState> states) {
  std::ranges::sort(states);
  const auto repeated = std::ranges::unique(states);
  states.erase(repeated.begin(), repeated.end());
  if (states.size() == kJobStates) {
    states.clear();  // all of them is no condition
  }
  return states;
}

std::vector<JobState> all_states() {
  std::vector<JobState> states;
  for (std::size_t i = 0; i < kJobStates; ++i) {
    states.push_back(static_cast<JobState>(i));
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

IdRanges merged(IdRanges ranges) {
  std::ranges::sort(ranges);
  IdRanges out;
  for (const auto& [first, last] : ranges) {
    if (last < first) {
      continue;
    }
    if (!out.empty() && first.value <= out.back().second.value) {
      out.back().second = std::max(out.back().second, last);
    } else {
      out.emplace_back(first, last);
    }
  }
  return out;
}

std::string match(const std::vector<JobState>& states, BatchId batch, std::optional<QueueId> queue,
                  const JobFilter& query) {
  std::vector<std::string> all;
  if (!states.empty()) {
    all.push_back(fmt::format("state IN ({})", state_list(states)));
  }
  if (batch) {
    all.push_back(fmt::format("batch={}", batch.value));
  }
  if (queue) {
    all.push_back(fmt::format("queue={}", queue->value));
  }
  if (query.since) {
    all.push_back(fmt::format("(ended IS NULL OR ended>={})", query.since->count()));
  }
  if (query.ended_before) {
    all.push_back(fmt::format("(ended IS NOT NULL AND ended<{})", query.ended_before->count()));
  }
  if (!query.name.empty()) {
    all.emplace_back("name GLOB ?1");
  }
  return fmt::format("{}", fmt::join(all, " AND "));
}

}  // namespace pages

namespace {

using namespace pages;

/// So many jobs that ended in the window asked for are sorted in memory.
constexpr std::size_t kShortWindow = 1'000;

std::string cursor_condition(const JobFilter& query) {
  if (!query.after.id) {
    return {};
  }
  return fmt::format(" AND id{}{}", query.descending ? '<' : '>',
                     std::min(query.after.id.value, kMaxRowId));
}

bool only_live(const std::vector<JobState>& states) {
  return !states.empty() && std::ranges::none_of(states, is_terminal);
}

}  // namespace

Result<JobListing> StoreReader::list(const JobFilter& query) {
  const ReadTransaction transaction(db_);
  TRY(transaction.status());
  TRY_ASSIGN(const IdPage found, page(query));
  JobListing listing;
  listing.next = found.next;
  listing.rows.reserve(found.ids.size());
  listing.heads.reserve(found.ids.size());
  for (const JobId id : found.ids) {
    TRY_ASSIGN(auto row, read_job(id));
    if (row) {
      TRY_ASSIGN(PayloadHead head, read_head(id));
      listing.rows.push_back(std::move(*row));
      listing.heads.push_back(std::move(head));
    }
  }
  return listing;
}

Result<std::vector<JobId>> StoreReader::job_ids(const JobFilter& query) {
  std::vector<JobId> ids;
  JobFilter part = query;
  while (ids.size() < query.limit) {
    part.limit = query.limit - ids.size();
    TRY_ASSIGN(const IdPage found, page(part));
    ids.insert(ids.end(), found.ids.begin(), found.ids.end());
    if (!found.next) {
      break;
    }
    part.after = *found.next;
  }
  return ids;
}

Result<std::vector<JobRow>> StoreReader::jobs(const JobFilter& query) {
  const ReadTransaction transaction(db_);
  TRY(transaction.status());
  TRY_ASSIGN(const auto ids, job_ids(query));
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

Result<StoreReader::IdPage> StoreReader::page(const JobFilter& asked) {
  JobFilter query = asked;
  query.states = distinct(asked.states);
  if (only_live(query.states)) {
    query.since.reset();  // they have not ended
    if (query.ended_before) {
      return IdPage{};
    }
  }
  std::optional<QueueId> queue;
  if (!query.queue.empty()) {
    TRY_ASSIGN(queue, find_queue(query.queue));
    if (!queue) {
      return IdPage{};
    }
  }
  if (query.sort != JobSort::id) {
    return sorted(query, queue);
  }
  if (!query.ids.empty()) {
    return listed(query, queue);
  }
  if (query.since) {
    TRY_ASSIGN(auto ended, short_window(query));
    if (ended) {
      return recent(query, queue, std::move(*ended));
    }
  }
  const bool by_id = query.states.empty() && !query.batch && !queue;
  return scan(page_sql(query, queue), query.limit, by_id ? scan_budget : lookup_budget, query.name);
}

Result<std::optional<QueueId>> StoreReader::find_queue(const std::string& name) {
  TRY_ASSIGN(Stmt stmt, db_.prepare("SELECT id FROM queues WHERE name=?1"));
  stmt.bind(name);
  TRY_ASSIGN(const bool row, stmt.step());
  return row ? std::optional(stmt.get<QueueId>(0)) : std::nullopt;
}

Result<std::string> StoreReader::page_sql(const JobFilter& query) {
  std::optional<QueueId> queue;
  if (!query.queue.empty()) {
    TRY_ASSIGN(queue, find_queue(query.queue));
  }
  return page_sql(query, queue);
}

/// Queue and batch are indexed together with the state, and the states' lists are merged. Of a page
/// by both queue and batch the batch drives.
std::string StoreReader::page_sql(const JobFilter& query, std::optional<QueueId> queue,
                                  const std::string& also) const {
  const std::string cursor = cursor_condition(query);
  std::vector<JobState> states = distinct(query.states);
  std::string matches = match({}, {}, query.batch ? queue : std::optional<QueueId>(), query);
  if (!also.empty()) {
    matches += (matches.empty() ? "" : " AND ") + also;
  }
  const bool by_id = states.empty() && !query.batch && !queue;
  const std::size_t budget = by_id ? scan_budget : lookup_budget;
  const std::string tail =
      fmt::format(" ORDER BY 1 {} LIMIT {}", query.descending ? "DESC" : "ASC",
                  std::min<std::uint64_t>(matches.empty() ? query.limit : budget, kMaxRowId));
  if (by_id) {
    // One condition on the id: of two, SQLite would seek by the first and walk to the second.
    return fmt::format("SELECT id, {} FROM jobs NOT INDEXED WHERE true{}{}", column(matches),
                       cursor.empty() ? " AND id>0" : cursor, tail);
  }
  if (states.empty()) {
    states = all_states();
  }
  if (query.ended_before) {
    std::erase_if(states, [](JobState state) { return !is_terminal(state); });
  }
  std::string driver = "jobs_state WHERE";
  if (query.batch) {
    driver = fmt::format("jobs_batch WHERE batch={} AND batch>0 AND", query.batch.value);
  } else if (queue) {
    driver = fmt::format("jobs_queue WHERE queue={} AND", queue->value);
  }
  std::string sql;
  for (const JobState state : states) {
    sql += fmt::format("{}SELECT id, {} FROM jobs INDEXED BY {} state={}{}",
                       sql.empty() ? "" : " UNION ALL ", column(matches), driver,
                       static_cast<int>(state), cursor);
  }
  return sql + tail;
}

Result<StoreReader::IdPage> StoreReader::scan(const std::string& sql, std::size_t limit,
                                              std::size_t budget, const std::string& name) {
  TRY_ASSIGN(Stmt stmt, db_.prepare(sql));
  if (!name.empty()) {
    stmt.bind(name);
  }
  IdPage found;
  std::size_t seen = 0;
  JobId last;
  while (found.ids.size() < limit) {
    TRY_ASSIGN(const bool row, stmt.step());
    if (!row) {
      // The statement's own limit is what a filtered page may look at.
      if (seen >= budget && found.ids.size() < limit) {
        found.next = ListPlace{last};
      }
      return found;
    }
    ++seen;
    last = stmt.get<JobId>(0);
    if (stmt.integer(1) != 0) {
      found.ids.push_back(last);
    }
  }
  found.next = ListPlace{last};
  return found;
}

Result<StoreReader::IdPage> StoreReader::listed(const JobFilter& query,
                                                std::optional<QueueId> queue) {
  IdRanges ranges = merged(query.ids);
  if (query.descending) {
    std::ranges::reverse(ranges);
  }
  const std::string matches = match(distinct(query.states), query.batch, queue, query);
  IdPage all;
  std::size_t budget = scan_budget;
  for (const auto& [first, last] : ranges) {
    const std::size_t limit = query.limit - all.ids.size();
    // The cursor narrows the range; as a condition of its own it would be walked to.
    const std::uint64_t after = query.after.id.value;
    const std::uint64_t from = query.descending ? first.value : std::max(first.value, after + 1);
    const std::uint64_t to =
        query.descending && after != 0 ? std::min(last.value, after - 1) : last.value;
    if (from > to) {
      continue;
    }
    const std::string sql = fmt::format(
        "SELECT id, {} FROM jobs NOT INDEXED WHERE id BETWEEN {} AND {} ORDER BY id {} LIMIT {}",
        column(matches), std::min(from, kMaxRowId), std::min(to, kMaxRowId),
        query.descending ? "DESC" : "ASC",
        std::min<std::uint64_t>(matches.empty() ? limit : budget, kMaxRowId));
    TRY_ASSIGN(IdPage found, scan(sql, limit, budget, query.name));
    all.ids.insert(all.ids.end(), found.ids.begin(), found.ids.end());
    if (found.next) {
      all.next = found.next;
      return all;
    }
  }
  return all;
}

/// The ids of what ended in the window, if they are few.
Result<std::optional<std::vector<JobId>>> StoreReader::short_window(const JobFilter& query) {
  TRY_ASSIGN(Stmt stmt, db_.prepare("SELECT id FROM jobs INDEXED BY jobs_ended WHERE ended IS NOT"
                                    " NULL AND ended>=?1 LIMIT ?2"));
  stmt.bind(*query.since, kShortWindow + 1);
  std::vector<JobId> ids;
  while (true) {
    TRY_ASSIGN(const bool row, stmt.step());
    if (!row) {
      return std::optional(std::move(ids));
    }
    ids.push_back(stmt.get<JobId>(0));
    if (ids.size() > kShortWindow) {
      return std::optional<std::vector<JobId>>();
    }
  }
}

Result<StoreReader::IdPage> StoreReader::recent(const JobFilter& query,
                                                std::optional<QueueId> queue,
                                                std::vector<JobId> ended) {
  JobFilter live = query;
  live.since.reset();
  if (live.states.empty()) {
    live.states = {JobState::queued, JobState::running, JobState::paused};
  } else {
    std::erase_if(live.states, is_terminal);
  }
  IdPage found;
  if (!live.states.empty() && !query.ended_before) {
    TRY_ASSIGN(found, scan(page_sql(live, queue), query.limit, lookup_budget, query.name));
  }
  const auto before = [&](JobId a, JobId b) { return query.descending ? b < a : a < b; };
  std::ranges::sort(ended, before);
  const std::string matches = match(query.states, query.batch, queue, query);
  TRY_ASSIGN(Stmt stmt, db_.prepare(fmt::format("SELECT {} FROM jobs WHERE id={}", column(matches),
                                                query.name.empty() ? "?1" : "?2")));
  std::vector<JobId> chosen;
  for (const JobId id : ended) {
    if ((query.after.id && !before(query.after.id, id)) ||
        (found.next && before(found.next->id, id))) {
      continue;  // on another page
    }
    if (chosen.size() >= query.limit) {
      break;
    }
    query.name.empty() ? stmt.bind(id) : stmt.bind(query.name, id);
    TRY_ASSIGN(const bool row, stmt.step());
    if (row && stmt.integer(0) != 0) {
      chosen.push_back(id);
    }
  }
  stmt.reset();
  IdPage merged;
  std::ranges::merge(found.ids, chosen, std::back_inserter(merged.ids), before);
  merged.next = found.next;
  if (merged.ids.size() >= query.limit) {
    merged.ids.resize(query.limit);
    merged.next = ListPlace{merged.ids.back()};
  }
  return merged;
}

}  // namespace berth
