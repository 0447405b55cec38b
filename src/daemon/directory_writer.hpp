#pragma once
// Writes into one state directory, on a thread that may be given up: the directory may lie on a
// mount that hangs, and nobody waits for that.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/time.hpp"
#include "daemon/state_directory.hpp"

namespace berth {

/// Thread-safe.
class DirectoryWriter {
 public:
  struct Hooks {
    /// Told once of each new trouble, and of its end with an empty text. Called on the thread that
    /// writes.
    std::function<void(const std::string& dir, const std::string& error)> trouble;
    std::function<void()> done;  ///< after each success; likewise
  };

  /// `written`: up to where history needs no telling any more.
  DirectoryWriter(StateDirectoryOptions options, Hooks hooks, std::uint64_t written = 0,
                  Millis again = Millis(5'000));
  /// What has not been written by then is given up.
  ~DirectoryWriter();
  DirectoryWriter(const DirectoryWriter&) = delete;
  DirectoryWriter& operator=(const DirectoryWriter&) = delete;

  /// To be written soon; joined with what has not been written yet. `seq` is the last of history
  /// that it covers.
  void post(std::map<BatchId, BatchFiles> batches, std::uint64_t seq);

  /// Up to where history has been written down; none: all of it.
  [[nodiscard]] std::optional<std::uint64_t> behind() const;

  /// Waits until nothing is left to write, but not for long.
  void finish(Millis patience);

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
};

}  // namespace berth
