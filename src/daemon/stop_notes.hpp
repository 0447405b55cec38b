#pragma once
// Stops of many jobs that are under way, written down: whatever ends the daemon in between, the
// next one completes them and lets their queues go on.

#include <cstdint>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "base/result.hpp"

namespace berth {

struct StopNote {
  BatchId batch;
  bool kill = false;                ///< what runs is ended, too
  std::uint32_t by_uid = 0;         ///< who asked
  std::vector<std::string> queues;  ///< start nothing meanwhile; they did before

  friend bool operator==(const StopNote&, const StopNote&) = default;
};

/// One small file per stop, in a directory of the instance. Blocks: not for the loop's thread.
class StopNotes {
 public:
  explicit StopNotes(std::string dir) : dir_(std::move(dir)) {}

  /// Durable when this returns.
  [[nodiscard]] Status write(const StopNote& note) const;
  /// Without complaint if there is none.
  [[nodiscard]] Status remove(BatchId batch) const;

  struct Found {
    std::vector<StopNote> notes;        ///< by batch
    std::vector<std::string> problems;  ///< of files that cannot be read; they stay
  };
  /// At the start of a daemon; deletes what one before it had only begun to write.
  [[nodiscard]] Found read() const;

 private:
  [[nodiscard]] std::string path(BatchId batch) const;
  std::string dir_;
};

}  // namespace berth
