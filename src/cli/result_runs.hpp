#pragma once
// The runs that `berth results` looks at, with what each has told.

#include <string>
#include <vector>

#include "cli/commands.hpp"
#include "cli/daemon.hpp"
#include "results/aggregate.hpp"

namespace berth::cli {

/// The jobs named, those of the batch, the experiments of the files, or the last batch.
[[nodiscard]] Result<std::vector<Run>> gather_runs(Daemon& daemon, const ResultsOptions& options);

}  // namespace berth::cli
