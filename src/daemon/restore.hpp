#pragma once
// `berthd --restore FILE`: what `berth restore` runs, with no daemon there.

#include "daemon/options.hpp"

namespace berth {

/// Says on standard output what was done, on standard error why not; the exit code.
[[nodiscard]] int restore_main(const DaemonOptions& options);

}  // namespace berth
