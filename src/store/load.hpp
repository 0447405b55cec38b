#pragma once
// Reading the live part of a store after a restart.

#include "core/change.hpp"
#include "store/sqlite.hpp"

namespace berth {

/// Everything unfinished, from one consistent view. Its cost does not depend on finished jobs.
[[nodiscard]] Result<Snapshot> load_snapshot(Db& db);

/// One job that has ended; none: there is none, or it has not. The statements are those of
/// kEndedJob and kDependencies.
[[nodiscard]] Result<std::optional<EndedJob>> read_ended_job(Stmt& job, Stmt& dependencies,
                                                             JobId id);
inline constexpr const char* kEndedJob =
    "SELECT j.state, j.batch, j.queue, j.owner, j.priority, j.request, j.retries, j.attempts,"
    " j.rank, j.expedited, j.after_kind, coalesce(b.name,''), coalesce(b.max_concurrent,0),"
    " b.rules FROM jobs j LEFT JOIN batches b ON b.id=j.batch WHERE j.id=?1";
inline constexpr const char* kDependencies =
    "SELECT after FROM dependencies WHERE job=?1 ORDER BY after";

/// Checks a number read from disk before it becomes an enumerator.
[[nodiscard]] Result<JobState> checked_state(std::int64_t number);
[[nodiscard]] Result<std::optional<FailureClass>> checked_failure(
    std::optional<std::int64_t> number);
[[nodiscard]] Result<After> checked_after(std::int64_t number);
[[nodiscard]] Result<std::optional<GivesWay>> checked_gives_way(std::optional<std::int64_t> number);

}  // namespace berth
