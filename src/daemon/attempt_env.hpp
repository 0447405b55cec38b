#pragma once
// What an attempt is told through its environment, and where its output goes.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/effect.hpp"
#include "core/job.hpp"
#include "daemon/placeholders.hpp"

namespace berth {

/// Facts of this instance that every attempt gets to know.
struct InstanceFacts {
  std::string id;  ///< random, made with the database
  std::string dir;
  std::string bin_dir;  ///< where berth's programs are
  std::string logs;
  std::string bash_env;  ///< what bash reads first, see bash_env.hpp; empty: nothing
  /// Set before the submitter's own variables are looked at: `NAME=value` replaces, `NAME+=value:`
  /// goes in front. Used for simulated GPUs, so that jobs see the same cards as the daemon.
  std::vector<std::pair<std::string, std::string>> prepend;
  std::vector<std::pair<std::string, std::string>> replace;
};

/// The submitter's environment, the job's own `env`, then what berth decides. The placeholders of
/// `payload` have been filled, with this port if it mentions one. `state_file`: uni_id.json of its
/// batch; empty: it has none.
[[nodiscard]] Environment attempt_environment(const Payload& payload, const effect::Start& start,
                                              const InstanceFacts& facts,
                                              std::optional<std::uint16_t> port = {},
                                              const std::string& state_file = {});

/// Of a start, as far as its payload does not matter.
[[nodiscard]] LaunchFacts launch_facts(const effect::Start& start, const std::string& instance);

/// The log berth names for an attempt. A thousand jobs share a directory.
[[nodiscard]] std::string own_log_path(const std::string& logs, JobId job, std::uint32_t number);

}  // namespace berth
