#pragma once
// --snapshot: jobs that run from a copy of the working tree as it was when they were submitted.

#include <optional>
#include <string>

#include "base/result.hpp"
#include "base/units.hpp"
#include "cli/daemon.hpp"
#include "core/event.hpp"
#include "snapshot/snapshot.hpp"

namespace berth::cli {

struct SnapshotOptions {
  bool wanted = false;
  std::optional<Bytes> limit;  ///< none: the usual one
};

/// Copies the trees that the jobs run in and lets the jobs run there; of another machine's, its
/// daemon does the copying and keeps the copy, and nothing comes back. The submission must be
/// complete, for its key names the copy. Nothing where none is wanted. Warns of commands that name
/// the original themselves.
[[nodiscard]] Result<std::optional<TreeSnapshot>> snapshot_jobs(event::Submit& submit,
                                                                const SnapshotOptions& options,
                                                                Daemon& daemon);

/// Submits the jobs; the snapshot stays if they were taken, or may have been.
[[nodiscard]] Result<SubmitAnswer> submit_with(Daemon& daemon, const event::Submit& submit,
                                               std::optional<TreeSnapshot>& snapshot);

}  // namespace berth::cli
