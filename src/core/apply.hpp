#pragma once
// How events change State.

#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.hpp"
#include "core/decide.hpp"
#include "core/effect.hpp"
#include "core/event.hpp"
#include "core/state.hpp"

namespace berth {

struct Submitted {
  BatchId batch;
  JobId first;
  std::uint64_t count = 0;

  friend bool operator==(const Submitted&, const Submitted&) = default;
};

struct Killed {
  std::vector<JobId> killed;     ///< running; will end
  std::vector<JobId> cancelled;  ///< were waiting; have ended
  std::vector<JobId> unknown;    ///< not alive: finished or never there
};

/// What became of each job that one of the other commands was about.
struct Controlled {
  enum class What : std::uint8_t {
    paused,    ///< were running; are stopped
    held,      ///< were waiting; do not start
    resumed,   ///< go on
    released,  ///< wait for their start again
    moved,
    expedited,
    changed,
    revived,    ///< had ended; wait again
    unchanged,  ///< were so already
  };
  std::map<What, std::vector<JobId>> jobs;
  std::map<std::string, std::vector<JobId>> refused;  ///< by the reason
  std::vector<JobId> absent;                          ///< not alive: finished or never there

  friend bool operator==(const Controlled&, const Controlled&) = default;
};

[[nodiscard]] std::string_view to_string(Controlled::What what);

/// Every job asked for is in `removed` or in one of the lists that say why not.
struct Removed {
  std::vector<JobId> removed;
  std::vector<JobId> cancelled;  ///< those of `removed` that were waiting
  std::vector<JobId> running;    ///< to be killed first
  std::vector<JobId> needed;     ///< others wait for their outcome
};

using Answer = std::variant<std::monostate, Submitted, Killed, Controlled, Removed>;

/// What can be said of a submission without State: its jobs, their positions, circles. Takes as
/// long as the submission is large. `apply` does it for event::Submit; whoever sends one in parts
/// does it before.
[[nodiscard]] Status check_submission(const std::vector<JobSpec>& jobs);

/// Applies one event. An error means that nothing changed. Pure but for its arguments.
[[nodiscard]] Result<Answer> apply(State& state, Event event, Now now, Step& step);

/// Makes the placements of a decision happen: claims, attempts, effects.
void apply(State& state, const Decision& decision, Now now, Step& step);

}  // namespace berth
