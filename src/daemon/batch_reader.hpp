#pragma once
// Batches of files that were written for other schedulers, as the store knows them.

#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "daemon/batch_report.hpp"
#include "store/reader.hpp"

namespace berth {

[[nodiscard]] Result<BatchReport> read_batch(StoreReader& reader, BatchId batch,
                                             const BatchTraits& traits);

struct FoundBatch {
  BatchId id;
  BatchTraits traits;
  StateCounts counts{};

  [[nodiscard]] std::uint64_t in(JobState state) const {
    return counts[static_cast<std::size_t>(state)];
  }
  /// Whether some of its jobs wait or run.
  [[nodiscard]] bool alive() const {
    return in(JobState::queued) + in(JobState::paused) + in(JobState::running) > 0;
  }
  /// Whether nothing more of it will start because somebody has said so.
  [[nodiscard]] bool stopped() const {
    return in(JobState::queued) == 0 && in(JobState::cancelled) > 0;
  }
};

/// Those of `ids` that were made of command files and have jobs that wait or run, the newest first.
[[nodiscard]] Result<std::vector<FoundBatch>> command_batches(StoreReader& reader,
                                                              std::vector<BatchId> ids);

/// The newest batch of this command file, whether it has ended or not; looks at the last thousand
/// batches only.
[[nodiscard]] Result<std::optional<FoundBatch>> last_batch_of(StoreReader& reader,
                                                              const std::string& config_file);

/// Whether `path` is the log that some batch writes, of the last thousand; an older one that was
/// renamed ("….1") counts, too.
[[nodiscard]] Result<bool> is_batch_log(StoreReader& reader, const std::string& path);

}  // namespace berth
