// Pages of jobs by something else than their id.
//
// Where the conditions lead to few jobs, these are sorted. Otherwise the page comes from an index
// that has the rows in the order asked for, and the conditions are asked of the rows on the way, of
// a limited number of them. When a job's latest attempt began is the order of attempts' ids, so
// that needs no index of its own.

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "store/page_sql.hpp"
#include "store/read_transaction.hpp"
#include "store/reader.hpp"

namespace berth {
namespace {

using namespace pages;

/// No priority and no time is beyond these.
constexpr std::int64_t kKeyMax = std::int64_t{1} << 62;
constexpr std::int64_t kKeyMin = -kKeyMax;
/// Of nearly all jobs, so the index has the others only. On disk, as a condition of jobs_priority.
constexpr std::int64_t kUsualPriority = 5;

/// That of a job, as an expression over its row.
const char* key_of(JobSort sort) {
  switch (sort) {
    case JobSort::id:
      return "NULL";
    case JobSort::priority:
      return "priority";
    case JobSort::state:
      return "state";
    case JobSort::started:
      return "(SELECT id FROM attempts WHERE job=jobs.id ORDER BY id DESC LIMIT 1)";
    case JobSort::ended:
      return "ended";
  }
  std::unreachable();
}

bool contains(const IdRanges& ranges, JobId id) {
  const auto behind = std::ranges::upper_bound(ranges, id, {}, &std::pair<JobId, JobId>::first);
  return behind != ranges.begin() && id <= std::prev(behind)->second;
}

/// The index that serves the conditions best, with what it answers.
std::string driver(const JobFilter& query, std::optional<QueueId> queue) {
  if (query.batch) {
    return fmt::format("jobs_batch WHERE batch={} AND batch>0", query.batch.value);
  }
  return queue ? fmt::format("jobs_queue WHERE queue={}", queue->value) : "jobs_state WHERE true";
}

/// Jobs that have none of what is asked for, as a filter by id; none: there are no such jobs.
std::optional<JobFilter> without_key(const JobFilter& query) {
  if (query.sort != JobSort::started && query.sort != JobSort::ended) {
    return std::nullopt;
  }
  JobFilter rest = query;
  rest.sort = JobSort::id;
  rest.after = query.after.key ? ListPlace{} : query.after;
  if (rest.states.empty()) {
    rest.states = all_states();
  }
  std::erase_if(rest.states, [&](JobState state) {
    return query.sort == JobSort::ended
               ? is_terminal(state)
               : state == JobState::running || state == JobState::succeeded;
  });
  if (query.ended_before) {
    std::erase_if(rest.states, [](JobState state) { return !is_terminal(state); });
  }
  return rest.states.empty() ? std::nullopt : std::optional(std::move(rest));
}

/// The statements of a walk over one column of jobs.
class Walk {
 public:
  Walk(const JobFilter& query, std::size_t budget) : query_(query), budget_(budget) {}

  /// Those between the two, in an index that has nothing but the key.
  void between(const std::string& index, std::int64_t low, std::int64_t high,
               const std::string& matches) {
    if (query_.after.key) {
      // Two statements: of a condition on both, SQLite would walk all of the same key.
      const std::int64_t at = std::clamp(*query_.after.key, kKeyMin, kKeyMax);
      if (at >= low && at <= high) {
        one(fmt::format("{} {}={} AND {}", index, key(), at, beyond()), "id", matches);
      }
      if (query_.descending) {
        high = std::min(high, at - 1);
      } else {
        low = std::max(low, at + 1);
      }
    }
    if (low <= high) {
      one(fmt::format("{} {} BETWEEN {} AND {}", index, key(), low, high), key(), matches);
    }
  }

  /// Those of one key, in an index that has it last.
  void equal(const std::string& index, std::int64_t value, const std::string& matches) {
    const ListPlace& after = query_.after;
    if (after.key && (query_.descending ? value > *after.key : value < *after.key)) {
      return;
    }
    one(fmt::format("{} {}={}{}", index, key(), value,
                    after.key == value ? " AND " + beyond() : std::string()),
        "id", matches);
  }

  /// Those of one key that no index has, among all.
  void among_all(std::int64_t value, const std::string& matches) {
    const ListPlace& after = query_.after;
    if (after.key && (query_.descending ? value > *after.key : value < *after.key)) {
      return;
    }
    statements_.push_back(
        fmt::format("SELECT id, {}={}{}{}, {} FROM jobs NOT INDEXED WHERE {} ORDER BY id {}"
                    " LIMIT {}",
                    key(), value, matches.empty() ? "" : " AND ", matches, value,
                    after.key == value ? beyond() : "id>0", direction(), limit()));
  }

  std::vector<std::string> take() { return std::move(statements_); }

 private:
  [[nodiscard]] const char* key() const { return key_of(query_.sort); }
  [[nodiscard]] const char* direction() const { return query_.descending ? "DESC" : "ASC"; }
  [[nodiscard]] std::string beyond() const {
    return fmt::format("id{}{}", query_.descending ? '<' : '>',
                       std::min(query_.after.id.value, kMaxRowId));
  }
  [[nodiscard]] std::uint64_t limit() const { return std::min<std::uint64_t>(budget_, kMaxRowId); }
  void one(const std::string& where, std::string_view by, const std::string& matches) {
    const std::string tie = by == "id" ? "" : fmt::format(", id {}", direction());
    statements_.push_back(
        fmt::format("SELECT id, {}, {} FROM jobs INDEXED BY {} ORDER BY {} {}{}"
                    " LIMIT {}",
                    column(matches), key(), where, by, direction(), tie, limit()));
  }

  const JobFilter& query_;
  std::size_t budget_;
  std::vector<std::string> statements_;
};

std::vector<std::string> by_priority(const JobFilter& query, std::optional<QueueId> queue,
                                     std::size_t budget) {
  Walk walk(query, budget);
  const std::string matches = match(query.states, query.batch, queue, query);
  const std::string index = fmt::format("jobs_priority WHERE priority<>{} AND", kUsualPriority);
  const auto lower = [&] { walk.between(index, kKeyMin, kUsualPriority - 1, matches); };
  const auto higher = [&] { walk.between(index, kUsualPriority + 1, kKeyMax, matches); };
  query.descending ? higher() : lower();
  walk.among_all(kUsualPriority, matches);
  query.descending ? lower() : higher();
  return walk.take();
}

std::vector<std::string> by_end(const JobFilter& query, std::optional<QueueId> queue,
                                std::size_t budget) {
  Walk walk(query, budget);
  walk.between("jobs_ended WHERE ended IS NOT NULL AND", query.since ? query.since->count() : 0,
               query.ended_before ? query.ended_before->count() - 1 : kKeyMax,
               match(query.states, query.batch, queue, query));
  return walk.take();
}

std::vector<std::string> by_state(const JobFilter& query, std::optional<QueueId> queue,
                                  std::size_t budget) {
  Walk walk(query, budget);
  std::vector<JobState> states = query.states.empty() ? all_states() : query.states;
  if (query.descending) {
    std::ranges::reverse(states);
  }
  const std::string matches = match({}, {}, query.batch ? queue : std::optional<QueueId>(), query);
  for (const JobState state : states) {
    walk.equal(driver(query, queue) + " AND", static_cast<int>(state), matches);
  }
  return walk.take();
}

/// An attempt that is not its job's last does not match.
std::vector<std::string> by_start(const JobFilter& query, std::optional<QueueId> queue,
                                  std::size_t budget) {
  const char* direction = query.descending ? "DESC" : "ASC";
  const std::int64_t at = query.after.key.value_or(query.descending ? kKeyMax : 0);
  return {fmt::format(
      "SELECT job, NOT EXISTS (SELECT 1 FROM attempts b WHERE b.job=attempts.job AND"
      " b.id>attempts.id) AND (SELECT {} FROM jobs WHERE id=attempts.job), id FROM attempts"
      " NOT INDEXED WHERE id{}{} ORDER BY id {} LIMIT {}",
      column(match(query.states, query.batch, queue, query)), query.descending ? '<' : '>', at,
      direction, std::min<std::uint64_t>(budget, kMaxRowId))};
}

}  // namespace

Result<std::vector<std::string>> StoreReader::sorted_sql(const JobFilter& query) {
  std::optional<QueueId> queue;
  if (!query.queue.empty()) {
    TRY_ASSIGN(queue, find_queue(query.queue));
  }
  return sorted_sql(query, queue);
}

std::vector<std::string> StoreReader::sorted_sql(const JobFilter& query,
                                                 std::optional<QueueId> queue) const {
  std::vector<std::string> statements;
  if (query.after == ListPlace{} || query.after.key) {
    statements = query.sort == JobSort::priority  ? by_priority(query, queue, lookup_budget)
                 : query.sort == JobSort::state   ? by_state(query, queue, lookup_budget)
                 : query.sort == JobSort::started ? by_start(query, queue, lookup_budget)
                                                  : by_end(query, queue, lookup_budget);
  }
  if (const auto rest = without_key(query)) {
    // Whatever is true makes the statement's limit that of the rows it may look at.
    statements.push_back(page_sql(*rest, queue,
                                  query.sort == JobSort::started
                                      ? "NOT EXISTS (SELECT 1 FROM attempts WHERE job=jobs.id)"
                                      : "true"));
  }
  return statements;
}

Result<StoreReader::IdPage> StoreReader::sorted(const JobFilter& query,
                                                std::optional<QueueId> queue) {
  // States in order are what the indexes hold; sorting is for what they do not.
  if (query.sort == JobSort::state && query.ids.empty()) {
    return walk(query, queue);
  }
  TRY_ASSIGN(auto found, few(query, queue));
  if (!found) {
    return walk(query, queue);
  }
  const auto before = [&](const ListPlace& a, const ListPlace& b) {
    return goes_before(a, b, query.descending);
  };
  const auto middle = found->begin() + static_cast<std::ptrdiff_t>(
                                           std::min<std::size_t>(query.limit, found->size()));
  std::ranges::partial_sort(*found, middle, before);
  IdPage page;
  std::transform(found->begin(), middle, std::back_inserter(page.ids),
                 [](const ListPlace& place) { return place.id; });
  if (page.ids.size() == query.limit && middle != found->begin()) {
    page.next = *std::prev(middle);
  }
  return page;
}

Result<std::optional<std::vector<ListPlace>>> StoreReader::few(const JobFilter& query,
                                                               std::optional<QueueId> queue) {
  const std::string states =
      query.states.empty() ? "" : fmt::format(" AND state IN ({})", state_list(query.states));
  std::vector<std::string> sources;
  if (!query.ids.empty()) {
    std::size_t rows = 0;
    for (const auto& [first, last] : merged(query.ids)) {
      const std::uint64_t more = last.value - first.value;
      if (more >= sort_budget - rows) {
        return std::optional<std::vector<ListPlace>>();
      }
      rows += more + 1;
      sources.push_back(fmt::format("NOT INDEXED WHERE id BETWEEN {} AND {}",
                                    std::min(first.value, kMaxRowId),
                                    std::min(last.value, kMaxRowId)));
    }
  } else if (query.batch || queue || !query.states.empty()) {
    sources.push_back("INDEXED BY " + driver(query, queue) + states);
    TRY_ASSIGN(const auto rows,
               db_.integer(fmt::format("SELECT count(*) FROM (SELECT 1 FROM jobs {} LIMIT {})",
                                       sources.back(), sort_budget + 1)
                               .c_str()));
    if (static_cast<std::size_t>(rows) > sort_budget) {
      return std::optional<std::vector<ListPlace>>();
    }
  } else {
    return std::optional<std::vector<ListPlace>>();
  }
  const std::string matches = column(match(query.states, query.batch, queue, query));
  std::vector<ListPlace> places;
  for (const std::string& source : sources) {
    TRY_ASSIGN(Stmt stmt, db_.prepare(fmt::format("SELECT id, {} FROM jobs {} AND {}",
                                                  key_of(query.sort), source, matches)));
    if (!query.name.empty()) {
      stmt.bind(query.name);
    }
    while (true) {
      TRY_ASSIGN(const bool row, stmt.step());
      if (!row) {
        break;
      }
      const ListPlace place{stmt.get<JobId>(0), stmt.maybe<std::int64_t>(1)};
      if (query.after == ListPlace{} || goes_before(query.after, place, query.descending)) {
        places.push_back(place);
      }
    }
  }
  return std::optional(std::move(places));
}

Result<StoreReader::IdPage> StoreReader::walk(const JobFilter& query,
                                              std::optional<QueueId> queue) {
  const IdRanges ids = merged(query.ids);
  IdPage page;
  std::size_t seen = 0;
  for (const std::string& sql : sorted_sql(query, queue)) {
    TRY_ASSIGN(Stmt stmt, db_.prepare(sql));
    if (!query.name.empty()) {
      stmt.bind(query.name);
    }
    while (true) {
      TRY_ASSIGN(const bool row, stmt.step());
      if (!row) {
        break;
      }
      const ListPlace place{stmt.get<JobId>(0),
                            stmt.columns() > 2 ? stmt.maybe<std::int64_t>(2) : std::nullopt};
      if (stmt.integer(1) != 0 && (ids.empty() || contains(ids, place.id))) {
        page.ids.push_back(place.id);
      }
      if (page.ids.size() == query.limit || ++seen == lookup_budget) {
        page.next = place;
        return page;
      }
    }
  }
  return page;
}

}  // namespace berth
