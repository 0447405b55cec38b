#pragma once
// What a daemon knows once it has looked at the GPUs.

#include "api/views.hpp"
#include "base/result.hpp"
#include "cli/daemon.hpp"

namespace berth::cli {

/// The daemon's status; of one that has just started, after its first look at the GPUs.
[[nodiscard]] Result<StatusView> status_with_gpus(Daemon& daemon);

}  // namespace berth::cli
