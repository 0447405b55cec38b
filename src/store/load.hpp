#pragma once
// Reading the live part of a store after a restart.

#include "core/change.hpp"
#include "store/sqlite.hpp"

namespace berth {

/// Everything unfinished, from one consistent view. Its cost does not depend on finished jobs.
[[nodiscard]] Result<Snapshot> load_snapshot(Db& db);

/// Checks a number read from disk before it becomes an enumerator.
[[nodiscard]] Result<JobState> checked_state(std::int64_t number);
[[nodiscard]] Result<std::optional<FailureClass>> checked_failure(
    std::optional<std::int64_t> number);

}  // namespace berth
