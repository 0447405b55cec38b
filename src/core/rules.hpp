#pragma once
// The rules an instance schedules by.

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/time.hpp"
#include "base/units.hpp"

namespace berth {

struct Rules {
  /// Memory that must be free on a card for a job that does not say what it needs. None: the
  /// smaller of 8000 MiB and 90 % of the card.
  std::optional<Bytes> min_free_memory;
  /// A card on which strangers use more than this is left alone. Percent, inclusive.
  std::uint32_t max_utilization = 30;
  /// Running jobs at most, of the whole instance; 0: no limit.
  std::uint32_t max_concurrent = 0;
  /// Kept free beyond what jobs claim, per card.
  Bytes memory_margin = 0;
  /// A sample older than this decides nothing.
  Millis sample_age_max{5'000};
  /// How many of each named resource there are.
  std::map<std::string, std::uint64_t> resources;
  /// Finished jobs older than this may be removed; 0: age removes nothing.
  Millis keep_finished{30LL * 24 * 3600 * 1000};
  /// Of finished jobs this many are kept, the newest; 0: their number removes nothing.
  std::uint64_t keep_jobs = 100'000;
  /// What one log that berth names may grow to, head and tail kept; 0: no limit.
  Bytes log_limit = 1024 * kMiB;

  friend bool operator==(const Rules&, const Rules&) = default;
};

/// What the machine has besides GPUs.
struct HostCapacity {
  std::uint32_t cpus = 0;
  Bytes memory = 0;

  friend bool operator==(const HostCapacity&, const HostCapacity&) = default;
};

}  // namespace berth
