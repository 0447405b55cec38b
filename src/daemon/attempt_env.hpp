#pragma once
// What an attempt is told through its environment, and where its output goes.

#include <string>
#include <vector>

#include "core/effect.hpp"
#include "core/job.hpp"

namespace berth {

/// Facts of this instance that every attempt gets to know.
struct InstanceFacts {
  std::string id;  ///< random, made with the database
  std::string dir;
  std::string bin_dir;  ///< where berth's programs are
  std::string logs;
  /// Set before the submitter's own variables are looked at: `NAME=value` replaces, `NAME+=value:`
  /// goes in front. Used for simulated GPUs, so that jobs see the same cards as the daemon.
  std::vector<std::pair<std::string, std::string>> prepend;
  std::vector<std::pair<std::string, std::string>> replace;
};

/// The submitter's environment, the job's own `env`, then what berth decides.
[[nodiscard]] Environment attempt_environment(const Payload& payload, const effect::Start& start,
                                              const InstanceFacts& facts);

/// The log berth names for an attempt. A thousand jobs share a directory.
[[nodiscard]] std::string own_log_path(const std::string& logs, JobId job, std::uint32_t number);

}  // namespace berth
