#pragma once

#include <string>

namespace berth::cli {

/// What this process was called as, "berth" or a name that stands for some of its words (see
/// run_as()): messages and help speak under it.
[[nodiscard]] std::string& program_name();

}  // namespace berth::cli
