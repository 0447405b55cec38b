#pragma once
// What an attempt says of itself, and what that is worth against how its processes ended.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/job.hpp"

namespace berth {

/// Ordered: the worse of two is the larger.
enum class ReportedState : std::uint8_t { none, running, normal_exit, abnormal_exit };

[[nodiscard]] std::string_view to_string(ReportedState state);
/// Of a word; none: it is no such word.
[[nodiscard]] std::optional<ReportedState> reported_state_from(std::string_view text);

struct SelfReport {
  ReportedState state = ReportedState::none;
  std::string error_type;  ///< of abnormal_exit; "oom" or whatever its author calls it

  friend bool operator==(const SelfReport&, const SelfReport&) = default;
};

/// An attempt may speak in two places; the worse word counts.
[[nodiscard]] SelfReport worse_of(SelfReport a, SelfReport b);

/// "oom", "CUDA OOM", "OutOfMemoryError" and the like.
[[nodiscard]] bool means_out_of_gpu_memory(std::string_view error_type);

/// A reported failure beats an exit code of 0; a failure that was seen beats a reported success.
[[nodiscard]] Verdict heed(Verdict verdict, const SelfReport& report);

}  // namespace berth
