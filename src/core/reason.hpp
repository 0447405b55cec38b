#pragma once
// Why a waiting job waits, as data and as a sentence.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/decide.hpp"
#include "core/state.hpp"

namespace berth {

/// What the sentence is made of, for whoever words it otherwise. docs/formats/api.md lists what
/// each kind has. Sizes are bytes, times milliseconds.
struct ReasonFacts {
  std::map<std::string, std::uint64_t> numbers = {};
  std::map<std::string, std::string> names = {};
};

struct Reason {
  enum class Kind : std::uint8_t {
    held,     ///< somebody said that it is not to start
    parked,   ///< it has started, and stands still for a stranger on its card
    delayed,  ///< asked for: not before some moment
    retry,    ///< it, or one before it in its serial queue, is to be tried again later
    instance_paused,
    dependency,      ///< jobs it follows have not ended yet
    space,           ///< the disk is full
    max_concurrent,  ///< the instance runs as many jobs as it may
    submitting,      ///< its batch has not arrived completely
    queue_paused,
    batch_limit,
    queue_limit,
    queue_order,  ///< an earlier job of the serial queue goes first
    cpus,
    memory,
    host_memory,  ///< `keep_host_memory`
    resource,
    quota,   ///< as many cards are in use as may be
    no_gpu,  ///< the machine has none, or too few
    gpu,     ///< see `gpus`
    due,     ///< nothing stands in the way; starts with the next decision
  };
  Kind kind = Kind::due;
  std::string text;               ///< a sentence for people
  std::vector<JobId> jobs;        ///< the jobs it is about
  std::vector<GpuObstacle> gpus;  ///< one per card that is in the way
  ReasonFacts facts = {};
};

[[nodiscard]] std::string_view to_string(Reason::Kind kind);
[[nodiscard]] std::string_view to_string(GpuObstacle::Kind kind);
[[nodiscard]] std::string describe(const GpuObstacle& obstacle);
/// The same of many cards: those of which it is the same are put together.
[[nodiscard]] std::vector<std::string> describe(const std::vector<GpuObstacle>& obstacles);
/// The same without the card's name.
[[nodiscard]] std::string describe_alone(const GpuObstacle& obstacle);
/// "job 3", "jobs 3, 4 and 7 more".
[[nodiscard]] std::string list_jobs(const std::vector<JobId>& jobs);

/// Everything that keeps the job from starting now, or from going on if it stands still for a
/// stranger. Never empty for a job that waits; empty for any other. Cost depends on the machine,
/// not on the backlog.
[[nodiscard]] std::vector<Reason> explain(const State& state, const Job& job, Now now);
/// What is left at this moment, as explanations see it.
[[nodiscard]] Room room_to_explain(const State& state, Now now);
/// The same for many jobs in that room.
[[nodiscard]] std::vector<Reason> explain(const State& state, const Job& job, const Room& room);

}  // namespace berth
