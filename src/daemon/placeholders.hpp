#pragma once
// Puts into a job's texts what is known only when an attempt starts. See core/placeholders.hpp for
// the words.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.hpp"
#include "core/job.hpp"

namespace berth {

struct LaunchFacts {
  JobId job;
  BatchId batch;                  ///< none: the job stands alone, and `{batch_id}` is empty
  std::string uni_id;             ///< new for each attempt
  std::vector<std::string> gpus;  ///< UUIDs
  std::vector<std::uint32_t> gpu_indices;
  std::string work_dir;
  std::string log_path;
  std::optional<std::uint16_t> port;  ///< set if the job mentions it
};

/// The path that the user named, with what can be told of the attempt put in.
[[nodiscard]] std::string fill_log_path(std::string_view pattern, const LaunchFacts& facts);

/// Whether a command or a variable of the job has a place for `word`.
[[nodiscard]] bool mentions_placeholder(const Payload& payload, std::string_view word);

/// In commands and in the job's own variables.
void fill_placeholders(Payload& payload, const LaunchFacts& facts);

}  // namespace berth
