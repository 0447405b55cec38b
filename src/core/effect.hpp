#pragma once
// What the world is to do once the step that asked for it is durable.

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/ids.hpp"
#include "base/time.hpp"
#include "core/change.hpp"

namespace berth {

namespace effect {

/// Spawn the supervisor of a durable attempt, handing it the prepared record.
struct Start {
  AttemptId attempt;
  JobId job;
  std::uint32_t number = 1;
  std::vector<std::string> gpus;
  std::vector<std::uint32_t> gpu_indices;
  bool cpu_affinity = false;  ///< on the processors next to its GPUs
  BatchId batch = {};         ///< none: the job stands alone
};

/// TERM, grace, KILL. Safe to repeat.
struct Kill {
  AttemptId attempt;
  std::optional<Millis> grace;  ///< none: the job's own
  bool warn = false;            ///< its warning signal first, with the time it has asked for
};

/// Stop everything in the attempt where it is, or let it go on. Safe to repeat.
struct Pause {
  AttemptId attempt;
};
struct Resume {
  AttemptId attempt;
};

/// The end of the attempt is durable: its record may go.
struct Forget {
  AttemptId attempt;
};

/// Look at the GPUs as soon as possible; a look that is under way does not count.
struct Sample {};

/// Come back with event::Tick at this moment of the monotonic clock, or earlier.
struct Wake {
  Millis at{0};
};

/// Come back with event::Continue, after whoever else is waiting.
struct Continue {};

}  // namespace effect

using Effect = std::variant<effect::Start, effect::Kill, effect::Pause, effect::Resume,
                            effect::Forget, effect::Sample, effect::Wake, effect::Continue>;

/// All that one or more events led to: what to write, what must exist before it is written, and
/// what to do afterwards.
struct Step {
  Changes changes;
  std::vector<AttemptId> prepare;
  std::vector<Effect> effects;
};

}  // namespace berth
