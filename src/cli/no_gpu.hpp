#pragma once

#include "base/result.hpp"
#include "cli/daemon.hpp"

namespace berth::cli {

/// Whether there is not a single GPU to wait for. Asks the daemon only where no driver of the
/// machine's own is to be seen; a driver that is there but fails is no reason to go without.
[[nodiscard]] Result<bool> no_gpu_anywhere(Daemon& daemon);

}  // namespace berth::cli
