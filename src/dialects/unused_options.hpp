#pragma once

#include "dialects/dialect.hpp"

namespace berth {

/// Reports the options that belong to dialects other than `dialect`: they would do nothing.
void refuse_unused_options(const DialectOptions& options, Dialect dialect,
                           Diagnostics& diagnostics);

}  // namespace berth
