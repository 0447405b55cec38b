#pragma once
// `berthd --restore FILE`: what `berth restore` runs, with no daemon there.

#include "api/wire.hpp"
#include "daemon/options.hpp"

namespace berth {

/// Says on standard output what was done, on standard error why not; the exit code.
[[nodiscard]] int restore_main(const DaemonOptions& options);

/// The same for a daemon that was asked to and has ended, before the next begins.
[[nodiscard]] RestoreView restore_as_asked(const DaemonOptions& options,
                                           const RestoreRequest& request);

}  // namespace berth
