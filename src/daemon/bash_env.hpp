#pragma once
// What every bash of a job reads first (BASH_ENV): it lets `conda activate` work as in a terminal,
// although nobody reads the start-up files that usually make it so.

#include <string>

#include "base/result.hpp"

namespace berth {

[[nodiscard]] std::string bash_env_path(const std::string& dir);

/// Writes it, unless it is there already.
[[nodiscard]] Status write_bash_env(const std::string& dir);

}  // namespace berth
