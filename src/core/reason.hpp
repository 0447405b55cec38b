#pragma once
// Why a waiting job waits, as data and as a sentence.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/decide.hpp"
#include "core/state.hpp"

namespace berth {

struct Reason {
  enum class Kind : std::uint8_t {
    held,            ///< somebody said that it is not to start
    dependency,      ///< jobs it follows have not succeeded yet
    space,           ///< the disk is full
    max_concurrent,  ///< the instance runs as many jobs as it may
    submitting,      ///< its batch has not arrived completely
    queue_paused,
    batch_limit,
    queue_limit,
    queue_order,  ///< an earlier job of the serial queue goes first
    cpus,
    memory,
    resource,
    no_gpu,  ///< the machine has none, or too few
    gpu,     ///< see `gpus`
    due,     ///< nothing stands in the way; starts with the next decision
  };
  Kind kind = Kind::due;
  std::string text;               ///< a sentence for people
  std::vector<JobId> jobs;        ///< the jobs it is about
  std::vector<GpuObstacle> gpus;  ///< one per card that is in the way
};

[[nodiscard]] std::string_view to_string(Reason::Kind kind);
[[nodiscard]] std::string_view to_string(GpuObstacle::Kind kind);
[[nodiscard]] std::string describe(const GpuObstacle& obstacle);

/// Everything that keeps the job from starting now. Never empty for a job that waits; empty for
/// any other. Cost depends on the machine, not on the backlog.
[[nodiscard]] std::vector<Reason> explain(const State& state, const Job& job, Now now);
/// The same for many jobs: `room` is what is left at that moment.
[[nodiscard]] std::vector<Reason> explain(const State& state, const Job& job, const Room& room);

}  // namespace berth
