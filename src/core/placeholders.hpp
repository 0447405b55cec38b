#pragma once
// The words that a launch puts in for `{word}`: what is known only then.

#include <algorithm>
#include <array>
#include <string_view>

namespace berth {

/// In commands and in the job's own `env`; in the path of its log those of kLogPlaceholders.
inline constexpr std::array<std::string_view, 9> kLaunchPlaceholders{
    "gpu_list", "gpu_count", "gpu_uuids", "job_id", "batch_id",
    "uni_id",   "work_dir",  "log_path",  "port"};

/// Those that anybody can tell afterwards, so that the log is found again.
inline constexpr std::array<std::string_view, 6> kLogPlaceholders{
    "gpu_list", "gpu_count", "gpu_uuids", "job_id", "batch_id", "uni_id"};

[[nodiscard]] constexpr bool is_launch_placeholder(std::string_view word) {
  return std::ranges::find(kLaunchPlaceholders, word) != kLaunchPlaceholders.end();
}

[[nodiscard]] constexpr bool is_log_placeholder(std::string_view word) {
  return std::ranges::find(kLogPlaceholders, word) != kLogPlaceholders.end();
}

}  // namespace berth
